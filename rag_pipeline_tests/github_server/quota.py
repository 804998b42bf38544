"""The primary rate limit: so many requests until a moment, then as many again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from rag_pipeline_tests.github_server.answers import Answer
from rag_pipeline_tests.github_server.shapes import Json

_WINDOW = timedelta(hours=1)


@dataclass(slots=True, kw_only=True)
class Quota:
    """Requests that may still be made; without `resets_at` the hour begins with the first request."""

    limit: int = 5000
    remaining: int = 5000
    resets_at: datetime | None = None

    def begin(self, now: datetime) -> None:
        """Start a new window when there is none or the last one is over."""
        if self.resets_at is None:
            self.resets_at = now + _WINDOW
        elif now >= self.resets_at:
            self.remaining, self.resets_at = self.limit, now + _WINDOW

    def spend(self) -> None:
        """One request was answered."""
        self.remaining = max(0, self.remaining - 1)

    def headers(self) -> dict[str, str]:
        """What every answer says about it."""
        return {f"X-RateLimit-{name.title()}": str(value) for name, value in self._core().items()} | {
            "X-RateLimit-Resource": "core"
        }

    def overview(self) -> Answer:
        """`GET /rate_limit`, which is free."""
        core: Json = dict(self._core())
        other: Json = {"limit": 30, "used": 0, "remaining": 30, "reset": self._core()["reset"]}
        resources: Json = {"core": core, "search": other, "graphql": core}
        return Answer(body={"resources": resources, "rate": core}, is_free=True)

    def _core(self) -> dict[str, int]:
        reset = 0 if self.resets_at is None else int(self.resets_at.timestamp())
        return {"limit": self.limit, "remaining": self.remaining, "used": self.limit - self.remaining, "reset": reset}
