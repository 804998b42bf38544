"""What reading GitHub costs: requests and time of a first load, of nothing new, of a few changes, of reconciliation.

Against the emulated server of the tests, so the time is ours and the server's, not the network's; the same requests
without reading anything are the reference.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path

from rag_pipeline_tests.bench.report import Report
from rag_pipeline_tests.github_server.changes import random_change
from rag_pipeline_tests.github_server.client import Client
from rag_pipeline_tests.github_server.generated import generate
from rag_pipeline_tests.github_server.model import Forge
from rag_pipeline_tests.github_server.quota import Quota
from rag_pipeline_tests.github_server.server import GitHubServer
from rag_pipeline_tests.sources.github.mirrors import Mirrored

_SECTION = "github"
_LONG_COMMENTS, _LONG_WORDS = 300, 2_000  # one thread of about 4 MB


def bench_github(_repository: str, report: Report, *, start_date: date | None = None) -> None:
    """600 issues, 1,200 pull requests and 9,750 comments, one thread of 4 MB; a made repository, whatever `--repo`."""
    forge = Forge()
    repository = generate(
        forge, seed=1, full_name="acme/app", issues=600, pulls=1200, comments=3, reviews=1.5, review_comments=2,
        days=1000,
    )  # fmt: skip
    for number in range(_LONG_COMMENTS):
        forge.tick(60)
        forge.comment(repository.issues()[0], f"word{number} " * _LONG_WORDS, author="ada")
    with GitHubServer(forge) as server, tempfile.TemporaryDirectory() as home:
        server.clock = lambda: forge.now
        server.quota = Quota(limit=1_000_000, remaining=1_000_000)
        mirrored = Mirrored(home=Path(home), server=server)
        cold = _measure(report, "first load", server, mirrored.fetch)
        report.figure(_SECTION, "first load: requests beside reviews and files", _shared(server), "requests")
        report.figure(_SECTION, "the same requests, nothing read", _reference(server), "s", note="reference")
        forge.tick(3600)
        mirrored.fetch()  # What changed in the minute before the last reading is asked for once more.
        nothing = _measure(report, "nothing new", server, mirrored.fetch)
        report.check(_SECTION, "nothing new costs 5 requests", nothing == 5, f"{nothing} requests")
        rng = random.Random(3)
        for _ in range(10):
            random_change(forge, rng, repository=repository)
        _measure(report, "10 random changes", server, mirrored.fetch)
        _measure(report, "reconciliation", server, mirrored.reconcile)
        _measure(report, "reconciliation again", server, mirrored.reconcile)
        fresh = Mirrored(home=Path(home) / "fresh", server=server)
        fresh.fetch()
        report.check(_SECTION, "the mirror equals one that was loaded now", mirrored.threads() == fresh.threads())
        size = sum(file.stat().st_size for file in (Path(home) / "mirrors").rglob("*.sqlite*")) / 1e6
        report.figure(_SECTION, "size of the mirror", size, "MB", note=f"{cold} requests")
    report.show(_SECTION)


def _measure(report: Report, name: str, server: GitHubServer, run: Callable[[], object]) -> int:
    server.clear_requests()
    started = time.perf_counter()
    run()
    report.figure(_SECTION, name, time.perf_counter() - started, "s")
    requests, unchanged = server.count(), server.count(status=304)
    report.figure(_SECTION, f"{name}: requests", requests, "requests", note=f"{unchanged} not modified")
    return requests


def _shared(server: GitHubServer) -> int:
    """Requests that do not grow with each pull request's own lists."""
    return server.count() - server.count(r"/pulls/\d+/(reviews|files)")


def _reference(server: GitHubServer) -> float:
    client = Client(server)
    asked = [request.line for request in list(server.requests)]
    started = time.perf_counter()
    for line in asked:
        client.get(line)
    return time.perf_counter() - started
