"""What the server answers: a status, headers and JSON; and the refusals, worded as GitHub words them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rag_pipeline_tests.github_server.shapes import Json, JsonValue

DOCS = "https://docs.github.com/rest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request, as routes see it: the path without the prefix, the query's last value for each name."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    authorization: str | None = None
    body: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A complete answer; `body` is what becomes JSON, `is_free` says that it does not use the quota."""

    status: int = 200
    body: JsonValue = None
    headers: Mapping[str, str] = field(default_factory=dict)
    is_free: bool = False


class Refused(Exception):
    """A request that gets no data; holds the answer that says so."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(f"{answer.status}: {answer.body}")
        self.answer = answer


def refused(status: int, message: str, *, docs: str = DOCS, errors: list[JsonValue] | None = None) -> Refused:
    """A refusal with GitHub's error body."""
    body: dict[str, JsonValue] = {"message": message}
    if errors:
        body["errors"] = errors
    return Refused(Answer(status=status, body={**body, "documentation_url": docs, "status": str(status)}))


def not_found(docs: str = DOCS) -> Refused:
    """It is not there, or not for you: GitHub does not say which."""
    return refused(404, "Not Found", docs=docs)


def gone() -> Refused:
    """An issue that was deleted."""
    return refused(410, "This issue was deleted", docs="https://docs.github.com/v3/issues/")


def moved(address: str) -> Refused:
    """A renamed repository or a transferred issue, at its address by id."""
    body: Json = {
        "message": "Moved Permanently",
        "url": address,
        "documentation_url": "https://docs.github.com/v3/#http-redirects",
    }
    return Refused(Answer(status=301, body=body, headers={"Location": address}))


def invalid(resource: str, field_name: str) -> Refused:
    """A parameter with a value that GitHub does not take."""
    error: Json = {"resource": resource, "code": "invalid", "field": field_name}
    return refused(422, "Validation Failed", errors=[error])
