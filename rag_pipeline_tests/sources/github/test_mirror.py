"""Which repository a mirror is of, and who may read it: names change, the number stays, tokens go nowhere else."""

from __future__ import annotations

import multiprocessing
from dataclasses import replace
from pathlib import Path

import pytest

from rag_pipeline.errors import ConfigError, SourceNotFound, TransientError
from rag_pipeline.sources.github import listings, mirror
from rag_pipeline_tests.github_server.faults import Fault
from rag_pipeline_tests.github_server.model import Forge
from rag_pipeline_tests.github_server.nouns import Repository
from rag_pipeline_tests.github_server.server import GitHubServer
from rag_pipeline_tests.sources.github.mirrors import Mirrored, cold_load, served

# Names.


def test_a_repository_that_does_not_exist_is_named_with_what_to_check(server: GitHubServer, tmp_path: Path) -> None:
    missing = Mirrored(home=tmp_path, server=server)
    with pytest.raises(SourceNotFound, match=r"acme/app does not exist at http.*token_env") as caught:
        missing.fetch()
    assert server.url in str(caught.value)
    assert not missing.mirror.exists() and missing.mirror.id is None
    with pytest.raises(SourceNotFound, match="never read"):
        missing.mirror.open()


def test_a_repository_that_was_deleted_keeps_what_was_read_of_it(
    forge: Forge, app: Repository, mirrored: Mirrored
) -> None:
    forge.open_issue(app)
    mirrored.fetch()
    forge.delete_repository(app)
    with pytest.raises(SourceNotFound):
        mirrored.fetch()
    assert set(mirrored.threads()) == {"issue 1"}


def test_a_renamed_repository_is_followed_and_its_threads_show_the_new_name(
    forge: Forge, app: Repository, mirrored: Mirrored, tmp_path: Path
) -> None:
    forge.open_issue(app, body="See #2")
    for _ in range(4):
        forge.open_pull_request(app)
    mirrored.fetch()
    forge.tick(7200)
    forge.rename_repository(app, "initech/product")
    asked = mirrored.asked_by_fetch()
    # The old name redirects; that no thread changed is known without asking.
    assert [request.status for request in asked[:2]] == [301, 200] and len(asked) == 6
    issue = mirrored.issue(1)
    assert (issue["reference"], issue["links"]) == ("initech/product#1", ["initech/product#2"])
    assert issue["url"] == "https://github.com/initech/product/issues/1"
    assert mirrored.threads() == cold_load(mirrored, tmp_path / "cold")
    before = mirrored.last_seq()
    mirrored.fetch()
    assert mirrored.last_seq() == before


def test_when_another_repository_takes_the_old_name_the_first_is_still_the_one(
    forge: Forge, app: Repository, mirrored: Mirrored
) -> None:
    forge.open_issue(app, title="ours")
    mirrored.fetch()
    forge.rename_repository(app, "acme/app-classic")
    forge.open_issue(forge.add_repository("acme/app"), title="theirs")
    forge.comment(forge.open_issue(app, title="ours too"))
    mirrored.fetch()
    assert [thread["title"] for thread in mirrored.threads().values()] == ["ours", "ours too"]
    assert mirrored.mirror.id == app.id


def test_a_repository_that_was_deleted_and_made_anew_is_not_mistaken_for_the_first(
    forge: Forge, app: Repository, mirrored: Mirrored
) -> None:
    forge.open_issue(app, title="old")
    mirrored.fetch()
    forge.delete_repository(app)
    forge.open_issue(forge.add_repository("acme/app"), title="new")
    with pytest.raises(SourceNotFound, match=r"is another repository now.*delete (.*acme%2Fapp\.json)") as caught:
        mirrored.fetch()
    assert mirrored.issue(1)["title"] == "old"
    Path(str(caught.value).rpartition("delete ")[2]).unlink()
    mirrored.fetch()
    assert mirrored.issue(1)["title"] == "new"


def test_an_entry_renamed_in_the_settings_has_the_mirror_that_was_there(
    forge: Forge, app: Repository, mirrored: Mirrored
) -> None:
    forge.open_pull_request(app)
    mirrored.fetch()
    forge.tick(7200)
    mirrored.fetch()
    forge.rename_repository(app, "acme/product")
    mirrored.fetch()
    renamed = replace(mirrored, name="Acme/Product")
    assert len(renamed.asked_by_fetch()) == 5
    assert renamed.threads() == mirrored.threads()
    assert renamed.mirror.id == mirrored.mirror.id


def test_a_repository_renamed_while_it_is_read_loses_no_thread(
    forge: Forge, app: Repository, mirrored: Mirrored
) -> None:
    for _ in range(3):
        forge.comment(forge.open_issue(app))
    mirrored.fetch()
    forge.tick(7200)
    rename = Fault(match=r"/pulls\?", kind="act", action=lambda: forge.rename_repository(app, "acme/product"))
    mirrored.server.faults.add(rename)
    mirrored.server.faults.add(Fault(match=r"/issues\?", kind="body", body=b"[]"))
    report = mirrored.reconcile()
    assert rename.hits == 1
    assert (report.removed_threads, len(mirrored.threads())) == ([], 3)


def test_a_thread_moved_into_a_repository_of_the_same_number_is_another(
    forge: Forge, app: Repository, mirrored: Mirrored
) -> None:
    other = forge.add_repository("acme/other")
    issue = forge.open_issue(app)
    mirrored.fetch()
    forge.transfer_issue(issue, other)
    assert other.threads[1].number == issue.number
    mirrored.reconcile()
    assert mirrored.settled()["issue 1"].deleted


@pytest.mark.parametrize("answer", [b"[]", b"{}", b'{"id": "7", "full_name": "acme/app"}', b"3"])
def test_an_answer_that_is_not_about_a_repository_is_asked_again_another_time(
    answer: bytes, mirrored: Mirrored
) -> None:
    mirrored.server.faults.add(Fault(match="/repos/acme/app$", kind="body", body=answer))
    with pytest.raises(TransientError, match="acme/app is not that of a repository"):
        mirrored.fetch()
    assert not mirrored.fetch().stopped


# Who may read.


def test_each_tenant_has_a_mirror_of_its_own(forge: Forge, app: Repository, mirrored: Mirrored) -> None:
    forge.open_issue(app)
    mirrored.fetch()
    other = replace(mirrored, repository={"tenant": "initech"})
    assert not other.mirror.exists()
    forge.open_issue(app)
    other.fetch()
    assert (len(mirrored.threads()), len(other.threads())) == (1, 2)


def test_a_private_repository_is_read_with_a_token_and_hidden_without(forge: Forge, tmp_path: Path) -> None:
    forge.open_issue(forge.add_repository("acme/app", private=True))
    with served(forge, tokens=["ghp_secret"]) as server:
        mirrored = Mirrored(home=tmp_path, server=server)
        with pytest.raises(SourceNotFound, match="token"):
            mirrored.fetch()
        mirrored.environ = {"GITHUB_TOKEN": "ghp_secret"}
        mirrored.fetch()
        assert len(mirrored.threads()) == 1
        assert server.requests[-1].authorization == "token ghp_secret"


def test_a_repository_on_another_github_never_gets_the_general_token(
    forge: Forge, app: Repository, mirrored: Mirrored
) -> None:
    mirrored.repository = {"github_base_url": mirrored.server.url}
    mirrored.github = {"base_url": "https://api.github.com", "token_env": "GENERAL"}
    mirrored.environ = {"GENERAL": "ghp_general", "OWN": "ghp_own"}
    mirrored.fetch()
    assert {request.authorization for request in mirrored.server.requests} == {None}
    mirrored.server.clear_requests()
    mirrored.server.tokens.add("ghp_own")
    mirrored.repository = {"github_base_url": mirrored.server.url, "token_env": "OWN"}
    mirrored.fetch()
    assert {request.authorization for request in mirrored.server.requests} == {"token ghp_own"}


def test_an_app_of_one_github_is_none_of_another(mirrored: Mirrored) -> None:
    mirrored.repository = {"github_base_url": mirrored.server.url}
    mirrored.github = {"base_url": "https://api.github.com", "app_id": "7"}
    assert not mirrored.fetch().stopped


def test_a_token_that_was_revoked_while_reading_is_said_and_what_was_read_is_kept(
    forge: Forge, app: Repository, mirrored: Mirrored
) -> None:
    forge.open_issue(app)
    mirrored.server.tokens.add("ghp_secret")
    mirrored.environ = {"GITHUB_TOKEN": "ghp_secret"}
    revoke = Fault(match="/issues/comments", kind="act", action=mirrored.server.tokens.clear)
    mirrored.server.faults.add(revoke)
    with pytest.raises(ConfigError, match="GITHUB_TOKEN"):
        mirrored.fetch()
    mirrored.server.tokens.add("ghp_secret")
    mirrored.fetch()
    assert set(mirrored.threads()) == {"issue 1"}


def test_the_same_name_on_two_githubs_is_two_repositories(forge: Forge, app: Repository, mirrored: Mirrored) -> None:
    forge.open_issue(app)
    mirrored.fetch()
    with served(Forge()) as server:
        server.forge.open_issue(server.forge.add_repository("acme/app"), title="elsewhere")
        other = replace(mirrored, server=server)
        other.fetch()
        assert other.mirror.id == mirrored.mirror.id  # both count from the same number
        assert other.issue(1)["title"] == "elsewhere" and mirrored.issue(1)["title"] == "An issue"
        assert other.mirror.source_id(other_identity(other), 1) != mirrored.mirror.source_id(
            other_identity(mirrored), 1
        )


def other_identity(mirrored: Mirrored) -> mirror.Identity:
    with mirrored.mirror.open() as store:
        return mirrored.mirror.identity(store)


def test_an_enterprise_server_is_read_below_its_prefix(forge: Forge, app: Repository, tmp_path: Path) -> None:
    forge.review(forge.open_pull_request(app, body="See https://github.com/acme/app/issues/9"), body="good")
    for _ in range(120):
        forge.open_issue(app)
    with served(forge, prefix="/api/v3") as server:
        mirrored = Mirrored(home=tmp_path, server=server)
        mirrored.fetch()
        assert len(mirrored.threads()) == 121
        host = server.url.removesuffix("/api/v3")
        assert (mirrored.pull(1)["url"], mirrored.pull(1)["links"]) == (f"{host}/acme/app/pull/1", [])
        assert mirrored.mirror.source_id(other_identity(mirrored), 1) == f"{host[7:]}/{app.id}#1"


# Large repositories.


def test_issues_that_github_pages_by_cursor_are_read(forge: Forge, app: Repository, mirrored: Mirrored) -> None:
    mirrored.server.limits.cursors = True
    for _ in range(350):
        forge.open_issue(app)
    mirrored.fetch()
    assert len(mirrored.threads()) == 350
    report = mirrored.reconcile()
    assert (report.listed["issue"], report.fetched.stopped) == (350, "")


@pytest.mark.parametrize("is_known", [True, False], ids=["known", "met while listing"])
def test_comments_beyond_the_last_page_that_github_gives_are_asked_for_by_time(
    is_known: bool, forge: Forge, app: Repository, mirrored: Mirrored, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listings, "_MOST_BY_PAGE", 200)
    mirrored.server.limits.pages = 3
    issue = forge.open_issue(app)
    for number in range(450):
        forge.tick(1)
        forge.comment(issue, str(number))
    pulls = [forge.open_pull_request(app) for _ in range(3)]
    if is_known:
        mirrored.fetch()
    gone = issue.comments[7]
    forge.delete_comment(gone, silently=True)
    forge.edit_comment(issue.comments[3], "edited", silently=True)
    report = mirrored.reconcile()
    assert (report.fetched.stopped, report.listed["comment"]) == ("", 449)
    mirrored.server.clear_requests()
    mirrored.reconcile()
    assert mirrored.server.count(r"/comments\?", status=200) == 0
    assert "7" not in mirrored.bodies(1) and "edited" in mirrored.bodies(1)
    assert len(mirrored.bodies(1)) == 449 and len(mirrored.threads()) == 1 + len(pulls)


def test_a_reconciliation_of_very_many_pull_requests_ends(
    forge: Forge, app: Repository, mirrored: Mirrored, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(130):
        forge.tick(1)
        forge.open_pull_request(app)
    mirrored.fetch()
    monkeypatch.setattr(listings, "_MOST_BY_PAGE", 10)
    mirrored.server.clear_requests()
    assert not mirrored.reconcile().fetched.stopped
    assert mirrored.server.count(r"/pulls\?") == 2


# Who may write.


def _hold(mirrored: Mirrored, held: multiprocessing.synchronize.Event, done: multiprocessing.synchronize.Event) -> None:
    with mirrored.mirror.locked():
        held.set()
        done.wait(30)


def test_a_reading_waits_for_another_of_the_same_repository(
    mirrored: Mirrored, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = multiprocessing.get_context("fork")
    held, done = context.Event(), context.Event()
    other = context.Process(target=_hold, args=(mirrored, held, done))
    other.start()
    assert held.wait(30)
    monkeypatch.setattr(mirror, "_LOCK_TIMEOUT_S", 0.1)
    with pytest.raises(TransientError, match="another run has been reading acme/app"):
        mirrored.fetch()
    monkeypatch.setattr(mirror, "_LOCK_TIMEOUT_S", 30)
    done.set()
    assert not mirrored.fetch().stopped
    other.join()
