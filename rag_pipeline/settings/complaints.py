"""What is wrong with values for `Settings`, in words: where, what, and what was probably meant.

Nothing here repeats what may be a secret.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import TypeAlias

from pydantic import BaseModel, ValidationError

from rag_pipeline.settings.model import Settings

Place: TypeAlias = tuple[str | int, ...]
"""A key with the sections it stands in, and numbers (from 0) of blocks: `("repositories", 0, "source")`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Complaint:
    """One thing that is wrong."""

    place: Place
    message: str

    @property
    def key(self) -> str:
        """The place, for people."""
        return ".".join(str(part) for part in self.place) or "the file"


def complaints_of(
    error: ValidationError, *, model: type[BaseModel] = Settings, above: Place = ()
) -> list[Complaint]:  # fmt: skip
    """Everything that a validation found; `above` is where in the file its `model` stands."""
    found = []
    for wrong in error.errors(include_url=False):
        place = tuple(wrong["loc"])
        if wrong["type"] == "extra_forbidden":
            found.append(Complaint(place=(*above, *place), message=f"unknown key: {_hint(place, model)}"))
            continue
        message = str(wrong["msg"]).removeprefix("Value error, ")
        got = wrong.get("input")
        secret = str(place[-1] if place else "").endswith(("_env", "source", "url"))
        if isinstance(got, str | int | float | bool | date) and not secret:
            message += f" (got {str(got)[:80]!r})"
        found.append(Complaint(place=(*above, *place), message=message))
    return found


def spoken(complaint: Complaint) -> str:
    """A complaint as the one line that stops a program."""
    if complaint.message.startswith("unknown key: "):
        return f"unknown key {complaint.key!r}: {complaint.message.removeprefix('unknown key: ')}"
    return f"{complaint.key}: {complaint.message}"


def _hint(place: Sequence[str | int], model: type[BaseModel]) -> str:
    """The key that was probably meant: of the same section, else of another."""
    *section, wrong = [str(part) for part in place if not isinstance(part, int)]
    paths = key_paths(model)
    own = {path[-1]: path for path in paths if path[:-1] == tuple(section)}
    elsewhere = {path[-1]: path for path in paths}
    exact = {wrong: elsewhere[wrong]} if wrong in elsewhere else {}
    for keys in (exact, own, elsewhere):
        if close := difflib.get_close_matches(wrong, keys, n=1):
            path = keys[close[0]]
            return f"did you mean {close[0] if path[:-1] == tuple(section) else '.'.join(path)!r}?"
    return "see docs/configuration.md for the keys there are"


def key_paths(model: type[BaseModel], above: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The keys of the file, each with the sections it stands in; sections come before what is in them."""
    found: list[tuple[str, ...]] = []
    for name, field in model.model_fields.items():
        if field.exclude:
            continue
        found.append((*above, name))
        for candidate in (field.annotation, *getattr(field.annotation, "__args__", ())):
            if isinstance(candidate, type) and issubclass(candidate, BaseModel):
                found += key_paths(candidate, (*above, name))
    return found
