"""`rag-pipeline spaces …`: another embedding model is built beside the active one, measured, and switched to."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from rag_pipeline.cli.console import Watch, err, out
from rag_pipeline.cli.session import AsJson, enter_dagster, print_json, settings_of_process
from rag_pipeline.errors import ConfigError, SpaceUnavailable

if TYPE_CHECKING:
    from rag_pipeline.index.database import Connection
    from rag_pipeline.model import EmbeddingSpace, Graph
    from rag_pipeline.refresh import Models
    from rag_pipeline.settings import Embedding, Settings

spaces = typer.Typer(
    name="spaces", no_args_is_help=True, rich_markup_mode=None,
    help=(
        "Embedding spaces: all vectors of one model. One space is active and answers questions; others are built "
        "beside it, fed by every refresh, measured, and promoted.\n\n"
        "The way to another model: create, build, evaluate, promote; rollback goes back."
    ),
)  # fmt: skip

SpaceId = Annotated[int, typer.Argument(metavar="ID", help="The space's number, as `spaces list` shows it.")]


class GraphKind(StrEnum):
    """`model.Graph`, as an option takes it."""

    VECTORS = "vectors"
    CODES = "codes"


_GRAPH_HELP = (
    "What its graph is built over: codes of three bits a dimension (half of the time and memory), or the vectors "
    "themselves. By default codes, of 256 to 3,300 dimensions."
)
Force = Annotated[bool, typer.Option("--force", help="Although texts are missing or measures are worse.")]


@spaces.command("list", short_help="Show all spaces.")
def list_spaces(as_json: AsJson = False) -> None:
    """Show every space: its model, whether it is active, and what it lacks."""
    from rag_pipeline.cli.space_reports import print_spaces, space_rows

    with _opened(settings_of_process()) as connection:
        rows = space_rows(connection)
    if as_json:
        print_json(rows)
    else:
        print_spaces(rows)


@spaces.command(short_help="Make a space for another model.")
def create(
    model: Annotated[str, typer.Option(help="The model's name, as the provider knows it.")],
    provider: Annotated[str, typer.Option(help="By default the configured one.")] = "",
    dimensions: Annotated[int | None, typer.Option(help="Asked of models that can shorten their vectors.")] = None,
    passage_prefix: Annotated[str, typer.Option(help='Put before every chunk, such as "passage: ".')] = "",
    query_prefix: Annotated[str, typer.Option(help='Put before every question, such as "query: ".')] = "",
    base_url: Annotated[str, typer.Option(help="Of an OpenAI-compatible server.")] = "",
    api_key_env: Annotated[str, typer.Option(help="The environment variable that holds the key.")] = "",
    partitions: Annotated[
        int, typer.Option(min=1, max=256, help="Lay its vectors out in so many tables with a graph each.")
    ] = 1,
    graph: Annotated[GraphKind | None, typer.Option(help=_GRAPH_HELP)] = None,
    as_json: AsJson = False,
) -> None:
    """Make an empty space for another model; from then on every refresh feeds it beside the active one.

    What is not named here is taken from [embedding] in rag_pipeline.toml, and kept with the space.
    """
    from rag_pipeline.cli.space_reports import candidate_settings
    from rag_pipeline.refresh.spaces import made_space

    settings = settings_of_process()
    wanted = candidate_settings(
        settings.embedding, provider=provider, model=model, dimensions=dimensions, passage_prefix=passage_prefix,
        query_prefix=query_prefix, base_url=base_url, api_key_env=api_key_env,
    )  # fmt: skip
    with _opened(settings) as connection:
        space = made_space(connection, _models(wanted), partitions=partitions, graph=_graph_of(graph))
    if as_json:
        values = {
            "status": space.status, "dimensions": space.dimensions, "partitions": space.partitions,
            "graph_over": space.graph,
        }  # fmt: skip
        print_json({"space_id": space.space_id} | values)
        return
    length = f"{space.dimensions} dimensions"
    out.print(f"embedding space {space.space_id}: {space.provider} {space.model}, {length}, {space.status}")
    if space.partitions != partitions:
        change = f"`rag-pipeline spaces partition {space.space_id} --partitions {partitions}`"
        err.print(f"its tables were made before, with {space.partitions} of them: {change} changes that", markup=False)
    if graph is not None and space.graph != graph:
        change = f"`rag-pipeline spaces partition {space.space_id} --graph {graph.value}`"
        err.print(f"it was made before, for a graph over {space.graph}: {change} changes that", markup=False)
    if space.status != "active":
        out.print(f"fill it with `rag-pipeline spaces build {space.space_id}`")


@spaces.command(short_help="Fill a space with all texts.")
def build(space_id: SpaceId, as_json: AsJson = False) -> None:
    """Embed every text that the index shows and the space lacks, then build its graph.

    Runs as the Dagster job `build_embedding_space`. What is stored stays stored: stop it and run it again as you like.
    """
    from rag_pipeline.cli.runs import prepare
    from rag_pipeline.cli.space_reports import build_summary, print_build, run_build
    from rag_pipeline.index.database import connected
    from rag_pipeline.index.spaces import numbered_space

    settings = settings_of_process()
    enter_dagster(settings)
    with connected(prepare(settings)) as connection:
        space = numbered_space(connection, space_id)
    with Watch() as watch:
        report = run_build(settings, space_id, watch=watch)
    if as_json:
        print_json(build_summary(report))
    else:
        print_build(space, report)


@spaces.command(short_help="Measure a space against the active one.")
def evaluate(space_id: SpaceId, as_json: AsJson = False) -> None:
    """Ask a space and the active one the same labelled questions."""
    from dataclasses import asdict

    from rag_pipeline.cli.space_comparison import compare
    from rag_pipeline.cli.space_reports import print_comparison
    from rag_pipeline.index.promotion import standing
    from rag_pipeline.index.spaces import active_space, numbered_space

    settings = settings_of_process()
    with _opened(settings) as connection:
        space, active = numbered_space(connection, space_id), active_space(connection)
        if active is None or active.space_id == space_id:
            raise SpaceUnavailable(f"embedding space {space_id} has no active one beside it to be measured against")
        if lacks := standing(connection, space).missing:
            err.print(
                f"embedding space {space_id} lacks {lacks:,} texts: what it is measured at is not yet what it can do"
            )
        found = compare(settings, connection, candidate=space, active=active, models=_models(settings.embedding))
    if not found:
        raise ConfigError(
            "there are no labelled questions to measure with: name `labels` under [evaluation] (docs/evaluation.md)"
        )
    if as_json:
        print_json([asdict(comparison) for comparison in found])
        return
    for comparison in found:
        print_comparison(comparison, candidate=space, active=active)


@spaces.command(short_help="Let another space answer.")
def promote(space_id: SpaceId, force: Force = False, as_json: AsJson = False) -> None:
    """Switch all questions to another space at once, if it is complete and no measure falls by more than tolerated."""
    from rag_pipeline.cli.space_comparison import compare
    from rag_pipeline.index.promotion import promote as promote_space

    settings = settings_of_process()
    with _opened(settings) as connection:

        def gate(candidate: EmbeddingSpace, active: EmbeddingSpace) -> list[str] | None:
            models = _models(settings.embedding)
            found = compare(settings, connection, candidate=candidate, active=active, models=models)
            return [fall for comparison in found for fall in comparison.falls] if found else None

        _say_active(settings, promote_space(connection, space_id, gate=gate, force=force), as_json=as_json)


@spaces.command(short_help="Go back to the space before.")
def rollback(
    force: Annotated[bool, typer.Option("--force", help="Although texts are missing.")] = False, as_json: AsJson = False
) -> None:
    """Switch all questions back to the space that was active before, at once; a second rollback takes it back."""
    from rag_pipeline.index.promotion import rollback as roll_back

    settings = settings_of_process()
    with _opened(settings) as connection:
        _say_active(settings, roll_back(connection, force=force), as_json=as_json)


@spaces.command("partition", short_help="Lay a space's vectors out anew.")
def partition_space(
    space_id: SpaceId,
    partitions: Annotated[
        int | None, typer.Option(min=1, max=256, help="So many tables with a graph each; 1: one.")
    ] = None,
    graph: Annotated[GraphKind | None, typer.Option(help=_GRAPH_HELP)] = None,
    as_json: AsJson = False,
) -> None:
    """Lay a space's vectors out in several tables, each with a smaller graph of its own, or in one again, or give it
    another kind of graph. What is not named stays as it is.

    For a graph that does not fit the memory it is built in; see docs/scaling.md. Searches and runs go on, nothing is
    embedded, and there must be room on disk for a second copy meanwhile. Stop it and run it again as you like.
    """
    from rag_pipeline.index.partitioning import partition

    if partitions is None and graph is None:
        raise ConfigError("nothing to change: name --partitions, --graph or both")
    with _opened(settings_of_process()) as connection, Watch() as watch:
        space = partition(connection, space_id, partitions=partitions, graph=_graph_of(graph), progress=watch)
    if as_json:
        print_json({"space_id": space.space_id, "partitions": space.partitions, "graph_over": space.graph})
    else:
        tables = "one table" if space.partitions == 1 else f"{space.partitions} tables"
        graphs = "its graph is" if space.partitions == 1 else "their graphs are"
        out.print(f"the vectors of embedding space {space.space_id} lie in {tables} now, {graphs} over {space.graph}")


@spaces.command(short_help="Remove a space.")
def drop(space_id: SpaceId, yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False) -> None:
    """Remove a space that is not active, with its vectors. Those in the lake stay: made again, it needs no model."""
    from rag_pipeline.index.promotion import drop as drop_space
    from rag_pipeline.index.spaces import numbered_space

    with _opened(settings_of_process()) as connection:
        space = numbered_space(connection, space_id)
        if space.status != "active" and not yes:
            typer.confirm(f"Remove embedding space {space_id} ({space.provider} {space.model})?", abort=True, err=True)
        drop_space(connection, space_id)
    out.print(f"embedding space {space_id} is removed")


def _graph_of(kind: GraphKind | None) -> Graph | None:
    """As the index has it."""
    return None if kind is None else kind.value


def _opened(settings: Settings) -> AbstractContextManager[Connection]:
    """A connection to the migrated database."""
    from rag_pipeline.embedded import database_url
    from rag_pipeline.index.database import connected
    from rag_pipeline.index.migrations import migrate

    url = database_url(settings)
    migrate(url)
    return connected(url)


def _models(embedding: Embedding) -> Models:
    from rag_pipeline.embedding import make_embedder
    from rag_pipeline.refresh import Models

    return Models(settings=embedding, environ=os.environ, make=make_embedder)


def _say_active(settings: Settings, space: EmbeddingSpace, *, as_json: bool) -> None:
    if as_json:
        print_json({"active": space.space_id})
        return
    out.print(f"embedding space {space.space_id} ({space.provider} {space.model}) answers questions now")
    if (space.provider, space.model) != (settings.embedding.provider, settings.embedding.model):
        err.print(
            f"rag_pipeline.toml names another model: put provider = {space.provider!r} and model = {space.model!r} "
            "under [embedding], with the options it was created with, when it is here to stay",
            markup=False,
        )
