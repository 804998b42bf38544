"""What may stand in a request: texts that a database can hold, bodies without unknown fields."""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints

_UNSTORABLE: Final = re.compile(r"[\x00\ud800-\udfff]")


class Strict(BaseModel):
    """A body or a set of query parameters that holds nothing unknown."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def storable(text: str) -> str:
    """The text; refuses what PostgreSQL cannot hold."""
    if _UNSTORABLE.search(text):
        raise ValueError("holds a NUL or half of a surrogate pair")
    return text


Storable = AfterValidator(storable)
Name = Annotated[str, StringConstraints(min_length=1, max_length=500), Storable]
"""Of a repository, an author, a label, …"""
Question = Annotated[str, StringConstraints(min_length=1, max_length=4_000), Storable]
"""What people ask."""
