"""The commands. Each opens what it needs, calls the room that does the work, and prints; heavy imports wait for it."""

from __future__ import annotations

import dataclasses
import os
import shlex
import sys
import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from rag_pipeline.cli import session
from rag_pipeline.cli.alerts import alerts
from rag_pipeline.cli.ask_command import ask
from rag_pipeline.cli.config import config as config_commands
from rag_pipeline.cli.console import Watch, err, out
from rag_pipeline.cli.days import chosen_days
from rag_pipeline.cli.forget_command import forget
from rag_pipeline.cli.keys import keys
from rag_pipeline.cli.maintenance import maintain
from rag_pipeline.cli.mcp import mcp
from rag_pipeline.cli.plan import plan
from rag_pipeline.cli.quarantine import quarantine
from rag_pipeline.cli.queries import queries
from rag_pipeline.cli.report_command import report
from rag_pipeline.cli.restore_drops import restore_drops
from rag_pipeline.cli.serve import serve
from rag_pipeline.cli.session import MAX_PORT, AsJson
from rag_pipeline.cli.session import enter_dagster as _enter_dagster
from rag_pipeline.cli.session import print_json as _print_json
from rag_pipeline.cli.session import settings_of_process as _settings
from rag_pipeline.cli.spaces import spaces
from rag_pipeline.cli.webhooks import webhooks
from rag_pipeline.cli.worker import worker
from rag_pipeline.errors import ConfigError

_INTERRUPTED = 130  # 128 and the number of SIGINT, as shells have it

app = typer.Typer(
    name="rag-pipeline", no_args_is_help=True, add_completion=False,
    pretty_exceptions_enable=False, rich_markup_mode=None,
    help="Keeps an organisation's engineering knowledge searchable, fresh and trustworthy.",
    context_settings={"help_option_names": ["-h", "--help"]},
)  # fmt: skip
app.add_typer(config_commands, short_help="Check and show the configuration.")
app.add_typer(alerts, short_help="Send a test of alerts.")
app.add_typer(keys, short_help="Make, show and revoke keys of the HTTP service.")
app.add_typer(quarantine, short_help="Show, retry or accept what could not be processed.")
app.add_typer(spaces, short_help="Build, measure and switch embedding models.")


class Leg(StrEnum):
    """What a search ranks by."""

    fused = "fused"
    lexical = "lexical"
    vector = "vector"


Port = Annotated[int, typer.Option(min=1, max=MAX_PORT, help="Port of the Dagster UI.")]
Host = Annotated[str, typer.Option(help="Address the Dagster UI and the search page listen on.")]
SearchPort = Annotated[int, typer.Option(min=0, max=MAX_PORT, help="Port of the search page; 0 for none.")]


@app.callback()
def _main(
    config: Annotated[Path | None, typer.Option(help="Configuration file; by default ./rag_pipeline.toml.")] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    del debug  # read by main(), so that it also works behind the command
    session.chosen["file"] = config


@app.command(short_help="Index what is new and open the UI.")
def up(
    once: Annotated[bool, typer.Option("--once", help="Return after the summary instead of opening the UI.")] = False,
    repo: Annotated[
        str, typer.Option(help="Index this repository (path, clone URL or owner/name) instead of the configured ones.")
    ] = "",
    host: Host = "127.0.0.1",
    port: Port = 3000,
    search_port: SearchPort = 8080,
) -> None:
    """Start the database, index what is new, answer a sample question, and open the Dagster UI and the search page."""
    from rag_pipeline.cli.ask import print_sample
    from rag_pipeline.cli.dagster_ui import require_free_port, serve_ui
    from rag_pipeline.cli.runs import plan_refresh, prepare, print_summary, require_all_read, run_days

    if repo:
        os.environ["RAG_REPO"] = _absolute(repo)
    settings = _settings()
    if not settings.repositories and not settings.sources:
        raise ConfigError(
            "no repository is configured: add [[repositories]] to rag_pipeline.toml, or name one with --repo"
        )
    if not once:
        require_free_port(host, port)
    began = time.perf_counter()
    _enter_dagster(settings)
    err.print("Starting PostgreSQL and applying migrations …")
    url = prepare(settings)
    with Watch() as watch:
        todo = plan_refresh(settings, url, watch=watch)
    for reason in todo.reasons or ["nothing new in the sources"]:
        err.print(f"  {reason}")
    with Watch() as watch:
        summary = run_days(settings, todo.ranges, select="", watch=watch, url=url, planned=todo, began=began)
    print_summary(summary)
    out.print()
    print_sample(settings)
    if once:
        require_all_read(summary)
        err.print("\nPostgreSQL keeps running for `rag-pipeline search`; `rag-pipeline down` stops it.")
        return
    for line in summary.left_out:
        err.print(f"\n{line}", markup=False)
    serve_ui(host=host, port=port, search_port=search_port)


@app.command(short_help="Start Dagster and the search page.")
def dev(host: Host = "127.0.0.1", port: Port = 3000, search_port: SearchPort = 8080) -> None:
    """Start Dagster's webserver and daemon, and the search page beside them, on the database."""
    from rag_pipeline.cli.dagster_ui import require_free_port, serve_ui
    from rag_pipeline.cli.runs import prepare

    settings = _settings()
    require_free_port(host, port)
    _enter_dagster(settings)
    prepare(settings)
    serve_ui(host=host, port=port, search_port=search_port)


@app.command(short_help="Stop the embedded PostgreSQL.")
def down() -> None:
    """Stop the embedded PostgreSQL; the data stays."""
    from rag_pipeline.embedded import EmbeddedPostgres

    settings = _settings()
    if settings.database_url:
        out.print("DATABASE_URL is set: that server is not ours to stop.")
    elif EmbeddedPostgres(settings.home).stop():
        out.print("PostgreSQL stopped.")
    else:
        out.print("PostgreSQL was not running.")


@app.command(short_help="Show what the index holds.")
def status(
    as_json: AsJson = False,
    check: Annotated[
        bool, typer.Option("--check", help="Exit with 1 when a source is stale or was never indexed.")
    ] = False,
) -> None:
    """Show what is used, how fresh each source is, what the index holds, and what is quarantined."""
    from rag_pipeline.cli.freshness import complain_of_stale
    from rag_pipeline.cli.status import print_status, status_report

    report = status_report(_settings())
    if as_json:
        _print_json(report)
    else:
        print_status(report)
    if check and (complaints := complain_of_stale(report)):
        err.print("\n".join(complaints), markup=False)
        raise typer.Exit(1)


@app.command(short_help="Print Dagster's variables.")
def env() -> None:
    """Print the variables for those who start `dagster dev` themselves: eval "$(rag-pipeline env)"."""
    from rag_pipeline.cli.environment import dagster_environment

    for name, value in dagster_environment(_settings()).items():
        print(f"export {name}={shlex.quote(value)}")


@app.command(short_help="Bring the schema up to date.")
def migrate(as_json: AsJson = False) -> None:
    """Bring the database's schema up to date."""
    from rag_pipeline.embedded import database_url
    from rag_pipeline.index import migrations
    from rag_pipeline.sources.drops.stage import make_inbox

    settings = _settings()
    url = database_url(settings)
    applied = [f"{m.version:04d}_{m.name}" for m in migrations.migrate(url)]
    lacks = migrations.lacks_trigrams(url)
    make_inbox(settings)
    if as_json:
        _print_json({"applied": applied, "lacks": lacks})
    else:
        said = [f"applied {name}" for name in applied] or ["the schema is up to date"]
        out.print("\n".join([*said, lacks] if lacks else said))


@app.command(short_help="Run the refresh job.")
def materialize(
    partition: Annotated[str, typer.Option(help="One day, YYYY-MM-DD (UTC).")] = "",
    from_: Annotated[str, typer.Option("--from", help="First day of a range.")] = "",
    to: Annotated[str, typer.Option("--to", help="Last day of a range; by default today.")] = "",
    select: Annotated[str, typer.Option(help="Assets, comma-separated; by default all.")] = "",
    as_json: AsJson = False,
) -> None:
    """Run the refresh job: for a day, for a range in a single run, or for whatever the index has not seen."""
    from rag_pipeline.cli.runs import plan_refresh, prepare, print_summary, require_all_read, run_days

    began = time.perf_counter()
    settings = _settings()
    chosen = chosen_days(settings, partition=partition, from_=from_, to=to)
    _enter_dagster(settings)
    url = prepare(settings)
    with Watch() as watch:
        planned = None if chosen else plan_refresh(settings, url, watch=watch)
        ranges = planned.ranges if planned else [chosen] if chosen else []
        summary = run_days(settings, ranges, select=select, watch=watch, url=url, planned=planned, began=began)
    if as_json:
        _print_json(dataclasses.asdict(summary))
    else:
        print_summary(summary)
    require_all_read(summary)


app.command("plan", short_help="Show what a refresh would do and cost.")(plan)
app.command("restore-drops", short_help="Take accepted drops in again.")(restore_drops)


@app.command(short_help="Compare GitHub with the index.")
def reconcile(
    confirm_removals: Annotated[
        bool, typer.Option("--confirm-removals", help="Remove even more than the configured threshold.")
    ] = False,
    repository: Annotated[list[str] | None, typer.Option(help="Only this repository, by its name; repeatable.")] = None,
    as_json: AsJson = False,
) -> None:
    """Find what was deleted, transferred or silently edited on GitHub, and bring the index to that state."""
    from rag_pipeline.cli.reconciliation import print_reconciliation, require_all_compared, run_reconciliation
    from rag_pipeline.cli.runs import prepare

    settings = _settings()
    if not settings.github_repositories:
        raise ConfigError("no repository has `github` set: name owner/name under [[repositories]] in rag_pipeline.toml")
    _enter_dagster(settings)
    prepare(settings)
    with Watch() as watch:
        rows = run_reconciliation(settings, confirm=confirm_removals, repositories=repository or [], watch=watch)
    if as_json:
        _print_json(rows)
    else:
        print_reconciliation(rows)
    require_all_compared(rows)


app.command(short_help="Answer over HTTP.")(serve)
app.command("mcp", short_help="Let coding agents use the index (MCP).")(mcp)


app.command(short_help="Receive GitHub's webhooks.")(webhooks)


@app.command(short_help="Search the index.")
def search(
    question: Annotated[str, typer.Argument(help="What you want to know.")],
    k: Annotated[int, typer.Option("-k", "--k", help="How many hits, 1 to 200.")] = 5,
    tenant: Annotated[str, typer.Option(help="Whose knowledge; by default the configured tenant.")] = "",
    scope: Annotated[list[str] | None, typer.Option(help="Also what this scope may see; repeatable.")] = None,
    leg: Annotated[Leg, typer.Option(help="Rank by both legs, or by one of them alone.")] = Leg.fused,
    repo: Annotated[str, typer.Option(help="Only this repository.")] = "",
    source_type: Annotated[str, typer.Option(help="Only docs, code, github_issue, github_pull_request, ….")] = "",
    language: Annotated[str, typer.Option(help="Only this language.")] = "",
    path_prefix: Annotated[str, typer.Option(help="Only paths that begin like this.")] = "",
    author: Annotated[str, typer.Option(help="Only what this login opened.")] = "",
    label: Annotated[
        list[str] | None, typer.Option(help="Only what has this label; repeatable, all must be there.")
    ] = None,
    state: Annotated[str, typer.Option(help="Only issues and pull requests in this state: open, closed, merged.")] = "",
    since: Annotated[str, typer.Option(help="Only what changed on this day (UTC) or later.")] = "",
    until: Annotated[str, typer.Option(help="Only what last changed on this day (UTC) or earlier.")] = "",
    metadata: Annotated[
        list[str] | None, typer.Option(help="Only what has this metadata: key=value; repeatable.")
    ] = None,
    min_score: Annotated[float | None, typer.Option(help="Only hits with this score or a higher one.")] = None,
    rerank: Annotated[
        bool | None, typer.Option(help="Use the configured reranker; by default if there is one.")
    ] = None,
    diversity: Annotated[float | None, typer.Option(help="0: by score alone, to 1: as different as can be.")] = None,
    stitch: Annotated[bool, typer.Option("--stitch", help="Join hits that stand beside each other.")] = False,
    linked: Annotated[
        bool, typer.Option("--linked", help="Add issues and pull requests that hits are linked to.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Search the index. Each hit says where both legs saw it, and which of the question's terms it holds."""
    from rag_pipeline.cli.search import metadata_of, print_hits, search_index
    from rag_pipeline.retrieval.query import SearchQuery, day_of

    settings = _settings()
    query = SearchQuery(
        text=question, k=k, tenant=tenant or settings.tenant, scopes=tuple(scope or ()), legs=leg.value,
        repository=repo or None, source_type=source_type or None, language=language or None,
        path_prefix=path_prefix or None, author=author or None, labels=tuple(label or ()), state=state or None,
        updated_from=day_of(since, "--since"), updated_to=day_of(until, "--until"),
        metadata=metadata_of(metadata or ()), min_score=min_score, rerank=rerank, diversity=diversity, stitch=stitch,
        linked=linked,
    )  # fmt: skip
    hits = search_index(settings, query)
    if as_json:
        _print_json([dataclasses.asdict(hit) for hit in hits])
    else:
        print_hits(hits)


app.command(short_help="Answer a question from the index.")(ask)


@app.command("eval", short_help="Measure how well questions are answered.")
def evaluate(
    dataset: Annotated[
        Path | None,
        typer.Option(help="Folder with corpus.jsonl, queries.jsonl and qrels.tsv (BEIR's layout) to measure instead."),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first questions of the dataset.")] = None,
    mine: Annotated[
        Path | None, typer.Option(help="Write labels mined from closed issues to this file; evaluate nothing.")
    ] = None,
    mine_feedback: Annotated[
        Path | None, typer.Option(help="Write labels mined from thumbs up on hits to this file; evaluate nothing.")
    ] = None,
    tenant: Annotated[str, typer.Option(help="Whose knowledge; by default the configured tenant.")] = "",
    as_json: AsJson = False,
) -> None:
    """Ask labelled questions, and measure the answers of each leg: precision, recall, MRR and nDCG.

    Without --dataset, the labels that [evaluation] names are asked of the index as it is, and the figures are put on
    record beside those of the times before. With --dataset, the folder's documents are indexed with your settings in a
    scratch database on the same server, which is dropped at the end; the index is left alone.
    """
    from rag_pipeline.cli.evaluation import measure_dataset, measure_index, print_measured, write_mined

    if (mine or mine_feedback) and (dataset or as_json or (mine and mine_feedback)):
        raise ConfigError("--mine writes labels and evaluates nothing, as --mine-feedback does: give one of them alone")
    if dataset and tenant:
        raise ConfigError("--dataset is evaluated in a space of its own: leave out --tenant")
    if limit and not dataset:
        raise ConfigError("--limit is for --dataset: figures of some labels cannot be compared with those of all")
    settings = _settings()
    if path := mine or mine_feedback:
        write_mined(settings, path, tenant=tenant or settings.tenant, from_feedback=mine_feedback is not None)
        return
    with Watch() as watch:
        if dataset:
            measured = [measure_dataset(settings, dataset, limit=limit, watch=watch)]
        else:
            measured = measure_index(settings, tenant=tenant or settings.tenant, watch=watch)
    if as_json:
        _print_json(measured[0] if dataset else measured)
    else:
        print_measured(measured)


app.command(short_help="Show size, growth, freshness, quality and cost.")(report)
app.command(short_help="Show what was asked, worst first.")(queries)
app.command("maintain", short_help="Put the index in order.")(maintain)
app.command(short_help="Take something out for good.")(forget)
app.command(short_help="Execute runs on this machine, beside other workers.")(worker)


def main() -> None:
    """The console script: runs a command; an error is one line and a non-zero exit code."""
    debug = "--debug" in sys.argv[1:]
    if debug:
        sys.argv.remove("--debug")
    try:
        app()
    except Exception as error:
        from rag_pipeline.cli.complaints import in_words

        ours = None if debug else in_words(error)
        if ours is None:
            raise
        lines = str(ours).splitlines() or [type(ours).__name__]
        err.print(f"error: {lines[0]}", markup=False)
        sys.exit(1)
    except SystemExit as ended:
        if ended.code == _INTERRUPTED:  # what Typer makes of Ctrl-C
            err.print("stopped; what was done so far is kept, and the next run goes on from there")
        raise


def _absolute(repo: str) -> str:
    from rag_pipeline.settings import resolve_source

    return resolve_source(repo, Path.cwd())
