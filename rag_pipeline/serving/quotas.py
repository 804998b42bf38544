"""The monthly quota of each tenant, counted in memory and written in batches.

No request waits for a row that all requests of a tenant would write. What is not written yet is lost when the process
is killed: at most what came since the last `flush`. Several processes see each other's counts at each flush.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final

from rag_pipeline.index.pool import Connections
from rag_pipeline.index.quota import add_requests, requests_served

FLUSH_EVERY_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class _Account:
    tenant: str
    month: date


class Quotas:
    """Counts requests; may be used from several threads. `most`: of one tenant in a month (UTC), None: any number.

    They are written to `pool`, and looked up in `lookup`, by default the same.
    """

    def __init__(self, pool: Connections, *, most: int | None, lookup: Connections | None = None) -> None:
        self._pool = pool
        self._lookup = lookup or pool
        self._most = most
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._waiting: Counter[_Account] = Counter()
        self._written: dict[_Account, int] = {}

    @property
    def is_limited(self) -> bool:
        """Whether there is a quota, so that `take` may ask the database."""
        return self._most is not None

    def take(self, tenant: str, *, now: datetime) -> bool:
        """Count a request; False, and not counted, when the quota is used up.

        Raises:
            DatabaseUnavailable: there is a quota, and it cannot be known how much of it is left.
        """
        account = _Account(tenant, now.date().replace(day=1))
        served = self._written.get(account)
        if self._most is not None and served is None:
            with self._lookup.connection() as connection:
                served = requests_served(connection, tenant=account.tenant, month=account.month)
        with self._lock:
            if self._most is not None and served is not None:
                # Somebody may have written more in the meantime.
                served = self._written.setdefault(account, served)
                if served + self._waiting[account] >= self._most:
                    return False
            self._waiting[account] += 1
            return True

    def flush(self) -> None:
        """Write what was counted since the last time.

        Raises:
            DatabaseUnavailable: it cannot be written now, and is kept for the next time.
        """
        with self._writing:
            with self._lock:
                waiting = dict(self._waiting)
            if waiting:
                self._write(waiting)
                self._forget_old_months(max(account.month for account in waiting))

    def _write(self, waiting: Mapping[_Account, int]) -> None:
        with self._pool.connection() as connection:
            for account, requests in waiting.items():
                served = add_requests(connection, tenant=account.tenant, month=account.month, requests=requests)
                with self._lock:
                    self._written[account] = served
                    self._waiting[account] -= requests
                    if not self._waiting[account]:
                        del self._waiting[account]

    def _forget_old_months(self, newest: date) -> None:
        with self._lock:
            for account in [a for a in self._written if a.month < newest and a not in self._waiting]:
                del self._written[account]


def until_next_month(now: datetime) -> timedelta:
    """How long until quotas begin anew."""
    first = (now.replace(day=1, hour=0, minute=0, second=0, microsecond=0) + timedelta(days=32)).replace(day=1)
    return first - now
