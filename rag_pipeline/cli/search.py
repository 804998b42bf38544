"""`rag-pipeline search`: the words of the command line to a query, and hits to what people read."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from rich.markup import escape

from rag_pipeline.bounded_json import parse_json
from rag_pipeline.cli.console import err, link_of, out, place_of
from rag_pipeline.embedded import database_url
from rag_pipeline.errors import ConfigError
from rag_pipeline.model import Json, LegResult, SearchHit
from rag_pipeline.retrieval.opening import opened_for_reading
from rag_pipeline.retrieval.query import SearchQuery
from rag_pipeline.retrieval.retriever import open_retriever, said_of_corrections
from rag_pipeline.settings import Settings

_SHOWN_LINES = 4
_SHOWN_TERMS = 8


def search_index(settings: Settings, query: SearchQuery) -> Sequence[SearchHit]:
    """The hits of the index; what could not be done is said on standard error."""
    with (
        opened_for_reading(settings, primary=database_url) as connection,
        open_retriever(connection, settings, environ=os.environ) as retriever,
    ):
        found = retriever.find(query)
    if found.degraded:
        err.print(f"warning: {found.degraded}", markup=False)
    if found.corrected:
        err.print(f"note: {said_of_corrections(found.corrected)}", markup=False)
    return found.hits


def print_hits(hits: Sequence[SearchHit]) -> None:
    """Hits for people: where, why, and the first lines."""
    if not hits:
        out.print("nothing found")
    for hit in hits:
        path = " › ".join(hit.heading_path[hit.heading_path[:1] == (hit.title,) :])
        out.print(f"[bold]{hit.rank}. {escape(hit.title)}[/bold]{f'  ({escape(path)})' if path else ''}")
        where = f"[cyan]{escape(link_of(hit))}[/cyan]{escape(place_of(hit))}"
        out.print(f"   {hit.score:.3f}  {escape(hit.repository)}  {where}")
        if why := _why(hit):
            out.print(f"   [green]{escape(why)}[/green]")
        lines = [line for line in hit.text.splitlines() if line.strip()]
        for line in lines[:_SHOWN_LINES]:
            out.print(f"   [dim]{escape(line[:160])}[/dim]")
        out.print()


def metadata_of(pairs: Sequence[str]) -> Mapping[str, Json]:
    """Metadata to look for, from `key=value`; a value may be JSON, and is text otherwise.

    Raises:
        ConfigError: one has no key or no `=`.
    """
    found: dict[str, Json] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise ConfigError(f"--metadata {pair!r} is not key=value, such as --metadata milestone=3.0")
        try:
            found[key] = parse_json(value)
        except ValueError:
            found[key] = value
    return found


def _why(hit: SearchHit) -> str:
    legs = ", ".join(_place(leg) for leg in hit.legs)
    terms = ", ".join(hit.matched_terms[:_SHOWN_TERMS])
    linked = "linked from another hit" if hit.linked_from else ""
    guessed = ", ".join(f"{' or '.join(words)} for {word}" for word, words in hit.corrected.items())
    looked = f"guessed: {guessed}" if guessed else ""
    return " · ".join(part for part in (linked, legs, looked, f"words: {terms}" if terms else "") if part)


def _place(leg: LegResult) -> str:
    return f"{leg.leg} {f'#{leg.rank}' if leg.rank else 'not among its best'} ({leg.score:.2f})"
