"""What is indexed: git repositories with a month of history, threads on GitHub, and drops that wait in the inbox."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from rag_pipeline_tests.git_repository import GitRepository
from rag_pipeline_tests.github_server import webhooks
from rag_pipeline_tests.github_server.generated import generate
from rag_pipeline_tests.github_server.model import Forge
from rag_pipeline_tests.github_server.server import GitHubServer

TOKEN = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"
DAYS = 31
DAYS_PER_RUN = 5
POOLS = {"git": 1, "github": 1, "drops": 1, "embedding": 1}
"""All lower than there are workers, so that steps do have to wait for each other."""
_REPOSITORIES = ("harbour", "lighthouse", "tide")


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """Sources, the same for every installation that reads them."""

    repositories: list[GitRepository]
    github: GitHubServer
    drops: dict[str, str]
    now: datetime

    @property
    def days(self) -> list[date]:
        """Of the backfill; the last one is today, to which drops belong."""
        return [self.now.date() - timedelta(days=n) for n in reversed(range(DAYS))]

    def install(self, home: Path) -> Path:
        """Configure an installation and fill its inbox; the configuration file."""
        blocks = "".join(f'[[repositories]]\nsource = "{found.path}"\n' for found in self.repositories)
        pools = "".join(f"{name} = {limit}\n" for name, limit in POOLS.items())
        config = home / "rag_pipeline.toml"
        config.write_text(
            f"start_date = {self.days[0]}\n{blocks}"
            f'[[repositories]]\ngithub = "acme/rocket"\n[github]\nbase_url = "{self.github.url}"\n'
            f"[backfills]\ndays_per_run = {DAYS_PER_RUN}\n[pools]\n{pools}"
        )
        inbox = home / "inbox"
        inbox.mkdir()
        for number, (name, content) in enumerate(self.drops.items()):
            (inbox / name).write_text(content)
            written = self.now.timestamp() - 3600 + number
            os.utime(inbox / name, (written, written))
        return config


@contextmanager
def corpus_in(folder: Path) -> Iterator[Corpus]:
    """Made anew, up to today; GitHub answers for as long as the context is open."""
    now = datetime.now(UTC).replace(microsecond=0)
    repositories = [GitRepository(folder / name) for name in _REPOSITORIES]
    for n in range(DAYS - 1):
        day = now.date() - timedelta(days=DAYS - 1 - n)
        for repository in repositories:
            repository.commit(f"{day}T10:00", _changes(repository.path.name, n))
    forge = Forge(now=now)
    rocket = generate(forge, issues=12, pulls=6, days=DAYS - 3)
    issue = forge.open_issue(rocket, title="Login fails", body="The login page shows an error.")
    comment = forge.comment(issue, "It was the cookie.", author="grace")
    with GitHubServer(forge, tokens=[TOKEN]) as github:
        delivery = webhooks.issue_comment(github.site, "created", comment)
        yield Corpus(repositories=repositories, github=github, now=now, drops=_drops(now) | {
            "issue_comment.1.json": json.dumps(delivery.payload),
        })  # fmt: skip


def _changes(name: str, n: int) -> dict[str, str | None]:
    """Of a day: two new pages and some code, an edit of yesterday's, now and then a removal."""
    files: dict[str, str | None] = {
        f"docs/{name}_{n}_{page}.md": _page(name, n * 2 + page, "at first") for page in range(2)
    }
    files[f"src/{name}_{n}.py"] = (
        f'def beam_{n}(speed):\n    """Turn the lamp of {name} {n}."""\n    return speed * {n}\n'
    )
    if n:
        files[f"docs/{name}_{n - 1}_0.md"] = _page(name, n * 2 - 2, f"since day {n}")
    if n > 2 and n % 3 == 0:
        files[f"src/{name}_{n - 2}.py"] = None
    return files


def _page(name: str, n: int, when: str) -> str:
    sections = "\n\n".join(
        f"## Section {s}\n\n" + f"Page {n} of {name} says in section {s} what matters about topic {n * 7 + s}. " * 6
        for s in range(5)
    )
    return f"# {name} {n}\n\nIts beam is {n * 3} miles wide, {when}.\n\n{sections}\n"


def _drops(now: datetime) -> dict[str, str]:
    record = {"updated_at": now.isoformat(), "content": "Drain the queue before you restart the broker."}
    lines = [json.dumps({**record, "id": f"note-{n}", "content": f"Note {n} is about topic{n}."}) for n in range(20)]
    return {
        "runbook.json": json.dumps({**record, "id": "runbook"}),
        "notes.ndjson": "\n".join(lines),
        "page.md": "---\ntitle: Restarting\n---\nCall the vendor of the broker.\n",
    }
