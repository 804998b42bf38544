"""The ledger: what models were asked for, by tenant, repository and run, so that parallel runs share one budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from rag_pipeline.index.database import Connection
from rag_pipeline.index.sql_files import queries
from rag_pipeline.model import Spent

EMBEDDING = "embedding"
"""The purpose of what the pipeline embeds."""
ANSWER = "answer"
"""The purpose of what a language model writes for those who ask."""
_LEASE = timedelta(hours=1)
"""A run that has neither stored nor given up a batch for so long is dead, and what it set aside is free again."""


class RunLedger:
    """What one run spends on one model for one tenant; a `Ledger` of `rag_pipeline.embedding.spending`.

    A row for each repository and month (UTC): what is set aside in a month is spent in that month. The cost is always
    the tokens' at `price` (USD per million), so that sums of many batches do not drift.
    """

    def __init__(
        self, connection: Connection, *, tenant: str, run_id: str, provider: str, model: str, price: float,
        clock: Callable[[], datetime],
    ) -> None:  # fmt: skip
        self._connection = connection
        self._who = {"tenant": tenant, "run": run_id, "provider": provider, "model": model, "purpose": EMBEDDING}
        self._price = price
        self._clock = clock
        self._month = datetime.min.replace(tzinfo=UTC)
        self._rows: dict[str, int] = {}

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Nobody else looks at this tenant's account and sets aside meanwhile."""
        with self._connection.transaction():
            self._connection.execute(queries("usage")["lock"], self._who)
            yield

    def spent(self) -> tuple[Spent, Spent]:
        """By this run, and by all runs this month; what is set aside counts as spent."""
        return spent(self._connection, tenant=self._who["tenant"], run_id=self._who["run"], now=self._clock())

    def set_aside(self, tokens: Mapping[str, int]) -> None:
        """Note what is about to be spent, by repository; what comes back is booked in the same rows."""
        now = self._clock()
        month, _ = month_of(now)
        if month != self._month:
            self._month, self._rows = month, {}
        for repository in tokens.keys() - self._rows.keys():
            values = self._who | {"repository": repository, "now": now}
            row = self._connection.execute(queries("usage")["open"], values).fetchone()
            assert row is not None
            self._rows[repository] = row[0]
        values = {"ids": [self._rows[name] for name in tokens], "tokens": list(tokens.values())}
        more = {"price": self._price, "until": now + _LEASE}
        self._connection.execute(queries("usage")["set_aside"], values | more)

    def book(self, tokens: Mapping[str, int], *, released: Mapping[str, int], requests: int, seconds: float) -> None:
        """Note what was spent, by repository; `released` had been set aside for it and is no more.

        Requests and seconds, which repositories share, go to the first.
        """
        now = self._clock()
        _, next_month = month_of(self._month)
        names = [*tokens, *(name for name in released if name not in tokens)]
        first = [name == names[0] for name in names]
        values = {
            # What was sent in the last moment of a month is of that month, whenever it comes back.
            "now": min(now, next_month - timedelta(microseconds=1)),
            "until": now + _LEASE, "price": self._price,
            "ids": [self._rows[name] for name in names],
            "tokens": [tokens.get(name, 0) for name in names],
            "released": [released.get(name, 0) for name in names],
            "requests": [requests * is_first for is_first in first],
            "seconds": [seconds * is_first for is_first in first],
        }  # fmt: skip
        self._connection.execute(queries("usage")["book"], values)


def book_answer(
    connection: Connection, *, tenant: str, provider: str, model: str, tokens: int, cost_usd: float | None,
    now: datetime, run_id: str = "",
) -> None:  # fmt: skip
    """Note what an answer took: tokens that were read and written; `cost_usd` is None where the price is not known.

    Questions go over all that a tenant may see, so it is booked on no repository. What took nothing is not booked.
    """
    if tokens:
        values = {"tenant": tenant, "run": run_id, "provider": provider, "model": model, "purpose": ANSWER, "now": now}
        connection.execute(queries("usage")["answered"], values | {"tokens": tokens, "usd": cost_usd or 0.0})


def spent(connection: Connection, *, tenant: str, run_id: str, now: datetime) -> tuple[Spent, Spent]:
    """For a tenant: by this run, and by all runs of this month (UTC); what is set aside counts as spent."""
    month, next_month = month_of(now)
    values = {"tenant": tenant, "run": run_id, "month": month, "next_month": next_month, "now": now}
    row = connection.execute(queries("usage")["spent"], values).fetchone()
    assert row is not None
    return Spent(tokens=row[0], usd=row[1]), Spent(tokens=row[2], usd=row[3])


def tokens_per_second(connection: Connection, *, provider: str, model: str) -> float | None:
    """How fast a model read in the last runs; None: it never did."""
    row = connection.execute(queries("usage")["rate"], {"provider": provider, "model": model}).fetchone()
    return row[0] / row[1] if row and row[1] else None


def month_of(now: datetime) -> tuple[datetime, datetime]:
    """The first moment of a month (UTC), and of the next one."""
    first = now.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return first, (first + timedelta(days=32)).replace(day=1)
