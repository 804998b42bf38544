"""What a refresh would do and cost, for people and for scripts."""

from __future__ import annotations

import dataclasses
import os
from datetime import UTC, datetime
from typing import Any

from rag_pipeline.cli.console import out, rows_table
from rag_pipeline.embedded import database_url
from rag_pipeline.embedding import make_embedder
from rag_pipeline.index.database import connected
from rag_pipeline.index.migrations import migrate
from rag_pipeline.lake.store import Lake
from rag_pipeline.model import DayRange
from rag_pipeline.progress import Progress
from rag_pipeline.refresh import Models, plan, serving_space
from rag_pipeline.refresh.estimate import Estimate, estimate
from rag_pipeline.settings import Settings
from rag_pipeline.sources.github.stage import Access


def estimate_refresh(settings: Settings, days: DayRange | None, *, watch: Progress) -> Estimate:
    """For these days, else for whatever the index has not seen; raises as `estimate`."""
    url = database_url(settings)
    migrate(url)
    models = Models(settings=settings.embedding, environ=os.environ, make=make_embedder)
    access = Access(environ=os.environ, clock=lambda: datetime.now(UTC))
    lake, now = Lake(settings.lake_url), datetime.now(UTC)
    with connected(url) as connection:
        ranges, reasons = [days] if days else [], list[str]()
        if days is None:
            space = serving_space(connection, models)
            todo = plan(settings, connection=connection, space=space, access=None, lake=lake, now=now)
            ranges, reasons = list(todo.ranges), list(todo.reasons)
        return estimate(
            settings, ranges, connection=connection, models=models, access=access, lake=lake, now=now, progress=watch,
            reasons=reasons,
        )  # fmt: skip


def of_estimate(found: Estimate) -> dict[str, Any]:
    """All of it, with the sums."""
    names = ("tenant", "repository", "tokens", "usd")
    return dataclasses.asdict(found) | {
        "tokens": found.tokens,
        "usd": found.usd,
        "would_be_stopped": bool(found.stopped_by),
        "repositories": [dict(zip(names, row, strict=True)) for row in found.repositories],
    }


def print_estimate(found: Estimate) -> None:
    """A few tables; what is estimated is said at the end."""
    rows = [
        ("days", ", ".join(found.days)),
        *(("because", reason) for reason in found.reasons),
        ("items", f"{found.items:,} ({found.tombstones:,} tombstones)"),
        *([("drops", f"{found.drops:,} wait")] if found.drops else []),
        ("documents", f"{found.documents:,}"),
        ("chunks", f"{found.chunks:,}"),
        ("texts reused", f"{found.reused:,}"),
        ("tokens to embed", f"{found.tokens:,}"),
        ("cost", f"{found.usd:,.4f} USD" + ("" if _all_priced(found) else ", and what has no price")),
        ("requests", f"{sum(m.requests for m in found.models):,} to embed, about {found.github_requests:,} to GitHub"),
        ("time", f"about {_spoken(found.seconds)}"),
        ("budget", "; ".join(f"stopped by {name}" for name in found.stopped_by) or "it would not be stopped"),
    ]
    if found.guessed_tokens:
        rows.insert(
            7, ("beside these", f"about {found.guessed_tokens:,} tokens, {found.guessed_usd:,.4f} USD (a guess)")
        )
    out.print(rows_table("", ("plan", ""), rows))
    costs = [
        (m.model, m.role, m.texts, m.tokens, _price(m.price), "?" if m.usd is None else f"{m.usd:,.4f}")
        for m in found.models
    ] + [
        (o.model, "for comparison, the same texts", "", o.tokens, _price(o.price), f"{o.usd:,.4f}")
        for o in found.others
    ]  # fmt: skip
    out.print()
    out.print(rows_table("", ("model", "", "texts", "tokens", "USD per million", "USD"), costs))
    if found.repositories:
        out.print()
        lines = [(tenant, name, tokens, f"{cost:,.4f}") for tenant, name, tokens, cost in found.repositories]
        out.print(rows_table("", ("tenant", "repository", "tokens", "USD"), lines))
    if found.budgets:
        out.print()
        left = [(b.tenant, b.key, f"{b.limit:,}", f"{b.left:,}", f"{b.needed:,}") for b in found.budgets]
        out.print(rows_table("", ("tenant", "budget", "limit", "left", "needed"), left))
    out.print()
    for note in ["tokens are counted, requests and time are estimated", *found.notes]:
        out.print(f"note: {note}", markup=False)


def _all_priced(found: Estimate) -> bool:
    return all(model.price is not None for model in found.models)


def _price(price: float | None) -> str:
    return "not known" if price is None else f"{price:g}"


def _spoken(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:,.0f} s"
    return f"{seconds / 60:,.0f} min" if seconds < 7200 else f"{seconds / 3600:,.1f} h"
