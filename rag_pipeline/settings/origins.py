"""The values in force, each with where it comes from: a line of the file, the environment, or the default."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import BaseModel

from rag_pipeline.settings.complaints import Place
from rag_pipeline.settings.model import Settings

_DERIVED = ("name", "tenant", "source")


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """One setting in force."""

    key: str
    value: object
    origin: str
    """`FILE:LINE`, the environment variable, `default`, or `derived` from what is written beside it."""
    is_set: bool | None = None
    """Of a key that names an environment variable: whether that is set; None: it names none."""


def values_in_force(settings: Settings, *, lines: Mapping[Place, int], environ: Mapping[str, str]) -> list[Value]:
    """Every key of the file with its value, in the order of the settings; blocks are numbered from 0."""
    file = settings.config_file.name if settings.config_file else ""
    found = []
    for place, value, default in _leaves(settings, ()):
        if place[0] == "repositories" and environ.get("RAG_REPO"):
            origin = "RAG_REPO"
        elif line := lines.get(place):
            origin = f"{file}:{line}"
        else:
            is_derived = place[0] == "repositories" and place[-1] in _DERIVED and bool(value)
            origin = "derived" if is_derived and value != default else "default"
        names_variable = str(place[-1]).endswith("_env") and bool(value)
        found.append(
            Value(
                key=".".join(str(part) for part in place), value=value, origin=origin,
                is_set=bool(environ.get(str(value))) if names_variable else None,
            )
        )  # fmt: skip
    return found


def _leaves(section: BaseModel, above: Place) -> Iterator[tuple[Place, object, object]]:
    """Each key that holds a value, the value, and its default."""
    for name, field in type(section).model_fields.items():
        if field.exclude:
            continue
        value = getattr(section, name)
        default = field.get_default(call_default_factory=True, validated_data={})
        yield from _inside(value, default, (*above, name))


def _inside(value: object, default: object, place: Place) -> Iterator[tuple[Place, object, object]]:
    if isinstance(value, BaseModel):
        yield from _leaves(value, place)
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _inside(inner, None, (*place, key))
    elif isinstance(value, Sequence) and value and all(isinstance(one, BaseModel | Mapping) for one in value):
        for number, one in enumerate(value):
            yield from _inside(one, None, (*place, number))
    else:
        yield place, value, default
