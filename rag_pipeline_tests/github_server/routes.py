"""From a request to an answer: which address means what, who may ask, and where things have moved to.

Everything below a repository answers under both `/repos/{owner}/{name}` and `/repositories/{id}`. The listings are in
`listings`; how bytes reach the wire is in `server`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

from rag_pipeline_tests.github_server import listings, pull_shapes, shapes
from rag_pipeline_tests.github_server.access import PERMISSIONS, Access, Caller
from rag_pipeline_tests.github_server.answers import Answer, Call, Refused, gone, moved, not_found, refused
from rag_pipeline_tests.github_server.listings import Place
from rag_pipeline_tests.github_server.model import Forge
from rag_pipeline_tests.github_server.nouns import Repository, Thread
from rag_pipeline_tests.github_server.paging import Limits
from rag_pipeline_tests.github_server.shapes import Json, Site

_DOCS = "https://docs.github.com/rest"
_BY_NAME = re.compile(r"/repos/([^/]+/[^/]+)(/.*)?")
_BY_ID = re.compile(r"/repositories/(\d+)(/.*)?")
_TOKENS = re.compile(r"/app/installations/(\d+)/access_tokens")


@dataclass(slots=True, kw_only=True)
class Routes:
    """All addresses of the server, over one forge; `overview` answers `/rate_limit`."""

    forge: Forge
    site: Site
    access: Access = field(default_factory=Access)
    limits: Limits = field(default_factory=Limits)
    overview: Answer = field(default_factory=Answer)

    def answer(self, call: Call) -> Answer:
        """Answer one request; what the forge holds does not change."""
        with self.forge.lock:
            try:
                return self._answer(call)
            except Refused as refusal:
                return refusal.answer

    def _answer(self, call: Call) -> Answer:
        if match := _TOKENS.fullmatch(call.path):
            return self._access_token(call, int(match[1]))
        caller = self.access.caller(call.authorization)
        if call.method != "GET":
            raise not_found()
        if call.path == "/rate_limit":
            return self.overview
        for address, found in ((_BY_NAME, self._named), (_BY_ID, self._numbered)):
            if match := address.fullmatch(call.path):
                rest = match[2] or ""
                repository = found(match[1], rest, call, caller)
                return self._in_repository(call, caller, repository, rest)
        raise not_found()

    def _named(self, name: str, rest: str, call: Call, caller: Caller) -> Repository:
        try:
            repository = self.forge.repository(name)
        except KeyError:
            known = self.forge.repositories.get(self.forge.renamed.get(name.lower(), 0))
            if known is None or not caller.sees(known):
                raise not_found(f"{_DOCS}/repos/repos#get-a-repository") from None
            raise moved(self._address(known) + rest + listings.query_of(call)) from None
        return self._visible(repository, caller)

    def _numbered(self, number: str, _rest: str, _call: Call, caller: Caller) -> Repository:
        repository = self.forge.repositories.get(int(number))
        if repository is None:
            raise not_found(f"{_DOCS}/repos/repos#get-a-repository")
        return self._visible(repository, caller)

    def _visible(self, repository: Repository, caller: Caller) -> Repository:
        # An app's own JWT reads no repository; `/installation` alone takes it, for private ones too.
        if not caller.sees(repository) and caller.kind != "app":
            raise not_found(f"{_DOCS}/repos/repos#get-a-repository")
        return repository

    def _in_repository(self, call: Call, caller: Caller, repository: Repository, rest: str) -> Answer:
        if rest == "/installation":
            return self._installation(call, repository)
        if caller.kind == "app":
            raise refused(403, "Resource not accessible by integration")
        for pattern, handler, docs in _TABLE:
            if match := pattern.fullmatch(rest):
                place = Place(
                    forge=self.forge, site=self.site, limits=self.limits, repository=repository, call=call,
                    caller=caller, address=self._address(repository) + rest, docs=f"{_DOCS}/{docs}",
                )  # fmt: skip
                return handler(place, int(match[1]) if match.groups() else 0)
        raise not_found()

    def _installation(self, call: Call, repository: Repository) -> Answer:
        self.access.check_jwt(call.authorization)
        if repository.installation is None:
            raise not_found(f"{_DOCS}/apps/apps#get-a-repository-installation-for-the-authenticated-app")
        number, created = repository.installation, shapes.shown(repository.created_at)
        body: Json = {
            "id": number, "account": shapes.user(self.site, repository.owner, kind="Organization"),
            "repository_selection": "selected", "html_url": f"{self.site.web}/settings/installations/{number}",
            "access_tokens_url": f"{self.site.api}/app/installations/{number}/access_tokens",
            "repositories_url": f"{self.site.api}/installation/repositories", "app_id": 1, "app_slug": "reader",
            "target_id": 1, "target_type": "Organization", "permissions": PERMISSIONS, "events": [],
            "created_at": created, "updated_at": created, "single_file_name": None, "suspended_by": None,
            "suspended_at": None,
        }  # fmt: skip
        return Answer(body=body, is_free=True)

    def _access_token(self, call: Call, installation: int) -> Answer:
        self.access.check_jwt(call.authorization)
        covered = [one for one in self.forge.repositories.values() if one.installation == installation]
        if call.method != "POST" or not covered:
            raise not_found(f"{_DOCS}/apps/apps#create-an-installation-access-token-for-an-app")
        asked = _json_body(call)
        chosen = [one for one in covered if one.id in asked.get("repository_ids", [one.id])]
        chosen = [one for one in chosen if one.name in asked.get("repositories", [one.name])]
        if not chosen:
            raise refused(422, "There is at least one repository that does not exist or is not accessible")
        is_limited = "repositories" in asked or "repository_ids" in asked
        permissions = cast("Json", asked.get("permissions", PERMISSIONS))
        token, until = self.access.issue(installation, [one.id for one in chosen] if is_limited else None, permissions)
        body: dict[str, shapes.JsonValue] = {"token": token, "expires_at": until, "permissions": permissions}
        body["repository_selection"] = "selected"
        if is_limited:
            body["repositories"] = [shapes.repository(self.site, one) for one in chosen]
        return Answer(status=201, body=body, is_free=True)

    def _address(self, repository: Repository) -> str:
        return f"{self.site.api}/repositories/{repository.id}"


def _json_body(call: Call) -> dict[str, list[object]]:
    try:
        return cast("dict[str, list[object]]", json.loads(call.body or b"{}"))
    except ValueError:
        raise refused(400, "Problems parsing JSON") from None


def _repository(place: Place, _number: int) -> Answer:
    return Answer(body=shapes.full_repository(place.site, place.repository))


def _issue(place: Place, number: int) -> Answer:
    left = place.repository.gone.get(number)
    if left is not None and left.moved_to is not None:
        target = left.moved_to
        if not place.caller.sees(target.repository):
            raise not_found(place.docs)
        raise moved(f"{place.site.api}/repositories/{target.repository.id}/issues/{target.number}")
    if left is not None:
        raise gone()
    return Answer(body=shapes.issue(place.site, _thread(place, number), alone=True))


def _issue_comments(place: Place, number: int) -> Answer:
    # The redirect of a transferred issue covers the issue itself and nothing below it: its comments are a 404.
    left = place.repository.gone.get(number)
    if left is not None and left.moved_to is None:
        raise gone()
    return listings.comments(place, _thread(place, number).comments)


def _comment(place: Place, number: int) -> Answer:
    for comment in place.repository.comments():
        if comment.id == number:
            return Answer(body=shapes.comment(place.site, comment))
    raise not_found(place.docs)


def _review_comment(place: Place, number: int) -> Answer:
    for comment in place.repository.review_comments():
        if comment.id == number:
            return Answer(body=pull_shapes.review_comment(place.site, comment))
    raise not_found(place.docs)


def _pull(place: Place, number: int) -> Answer:
    return Answer(body=pull_shapes.pull(place.site, _thread(place, number, pull=True), alone=True))


def _reviews(place: Place, number: int) -> Answer:
    return listings.reviews(place, _thread(place, number, pull=True))


def _pull_comments(place: Place, number: int) -> Answer:
    return listings.review_comments(place, _thread(place, number, pull=True).the_pull().shown_review_comments())


def _files(place: Place, number: int) -> Answer:
    return listings.files(place, _thread(place, number, pull=True))


def _thread(place: Place, number: int, *, pull: bool = False) -> Thread:
    thread = place.repository.threads.get(number)
    if thread is None or (pull and not thread.is_pull):
        raise not_found(place.docs)
    return thread


Handler = Callable[[Place, int], Answer]
_TABLE: list[tuple[re.Pattern[str], Handler, str]] = [
    (re.compile(pattern), handler, docs)
    for pattern, handler, docs in (
        ("", _repository, "repos/repos#get-a-repository"),
        ("/issues", lambda place, _: listings.issues(place), "issues/issues#list-repository-issues"),
        (r"/issues/(\d+)", _issue, "issues/issues#get-an-issue"),
        (r"/issues/(\d+)/comments", _issue_comments, "issues/comments#list-issue-comments"),
        (
            "/issues/comments",
            lambda place, _: listings.comments(place, place.repository.comments(), whole=True),
            "issues/comments#list-issue-comments-for-a-repository",
        ),
        (r"/issues/comments/(\d+)", _comment, "issues/comments#get-an-issue-comment"),
        ("/pulls", lambda place, _: listings.pulls(place), "pulls/pulls#list-pull-requests"),
        (r"/pulls/(\d+)", _pull, "pulls/pulls#get-a-pull-request"),
        (r"/pulls/(\d+)/reviews", _reviews, "pulls/reviews#list-reviews-for-a-pull-request"),
        (r"/pulls/(\d+)/comments", _pull_comments, "pulls/comments#list-review-comments-on-a-pull-request"),
        (r"/pulls/(\d+)/files", _files, "pulls/pulls#list-pull-requests-files"),
        (
            "/pulls/comments",
            lambda place, _: listings.review_comments(place, place.repository.review_comments(), whole=True),
            "pulls/comments#list-review-comments-in-a-repository",
        ),
        (r"/pulls/comments/(\d+)", _review_comment, "pulls/comments#get-a-review-comment-for-a-pull-request"),
    )
]
