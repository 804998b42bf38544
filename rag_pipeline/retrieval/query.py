"""What is asked of the index: a question, who asks, and where to look."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Final, Literal

from rag_pipeline.errors import ConfigError
from rag_pipeline.model import Json

MAX_K: Final = 200
Legs = Literal["fused", "lexical", "vector"]
_UNSTORABLE = re.compile(r"[\x00\ud800-\udfff]")  # PostgreSQL refuses such text


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    """A question and where to look for its answer; None and empty: everywhere."""

    text: str
    tenant: str
    """Whose knowledge is searched; there is no search over everybody's."""
    scopes: Sequence[str] = ()
    """Of the asker (`user:…`); rows with another scope are invisible."""
    k: int = 5
    legs: Legs = "fused"
    min_score: float | None = None
    """Hits with a lower score are left out."""
    repository: str | None = None
    source_type: str | None = None
    language: str | None = None
    path_prefix: str | None = None
    author: str | None = None
    labels: Sequence[str] = ()
    """All of them."""
    state: str | None = None
    """`open`, `closed` or `merged`."""
    updated_from: date | None = None
    """Last changed on this day (UTC) or later."""
    updated_to: date | None = None
    """Last changed on this day (UTC) or earlier."""
    metadata: Mapping[str, Json] = field(default_factory=dict)
    """Values that a document's metadata must hold."""
    rerank: bool | None = None
    """None: when a reranker is configured."""
    diversity: float | None = None
    """0: by score alone, 1: as different from each other as can be; None: as the settings say."""
    stitch: bool = False
    """Join hits that stand beside each other in one document."""
    linked: bool = False
    """Add what the hits are linked to: the issues of a pull request, the pull requests that last touched a file."""

    @property
    def is_filtered(self) -> bool:
        """Whether it looks at a part of what the asker may see."""
        wanted = (
            self.repository, self.source_type, self.language, self.path_prefix, self.author, self.state,
            self.updated_from, self.updated_to,
        )  # fmt: skip
        return any(value is not None for value in wanted) or bool(self.labels) or bool(self.metadata)

    def check(self) -> None:
        """Refuse what cannot be answered.

        Raises:
            ConfigError: the question or the tenant is empty, a number is out of range, or a name cannot be stored.
        """
        if not self.text.strip():
            raise ConfigError("the question is empty: say what you are looking for")
        if not self.tenant:
            raise ConfigError("a search needs a tenant: name one with --tenant")
        if not 1 <= self.k <= MAX_K:
            raise ConfigError(f"k is {self.k}: choose a number of hits from 1 to {MAX_K}")
        if self.diversity is not None and not 0 <= self.diversity <= 1:
            raise ConfigError(f"diversity is {self.diversity}: choose a number from 0 to 1")
        if self.updated_from and self.updated_to and self.updated_from > self.updated_to:
            raise ConfigError(f"no day is from {self.updated_from} to {self.updated_to}: exchange the two")
        names = (
            self.tenant, self.repository, self.source_type, self.language, self.path_prefix, self.author, self.state,
            *self.scopes, *self.labels, *_strings(dict(self.metadata)),
        )  # fmt: skip
        for name in names:
            if name and _UNSTORABLE.search(name):
                raise ConfigError(f"{name!r} holds a character that no name in the index has: look for something else")


def day_of(text: str, name: str) -> date | None:
    """A day, or None for no text.

    Raises:
        ConfigError: it is not written as YYYY-MM-DD.
    """
    if not text:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise ConfigError(f"{name} {text!r} is not a day: write it as YYYY-MM-DD") from error


def _strings(value: Json) -> Sequence[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return [text for key, item in value.items() for text in (key, *_strings(item))]
    return [text for item in value for text in _strings(item)] if isinstance(value, Sequence) else []
