"""Labelled lines that are made while the benchmark runs: random values of each format, in many syntaxes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final, NamedTuple

from rag_pipeline_tests.documents.redaction import contexts, ordinary, ways
from rag_pipeline_tests.documents.redaction.look_alikes import look_alikes
from rag_pipeline_tests.documents.redaction.planted import ALNUM, NAMED, TOKENS, run, word

_TUNED_SEED: Final = 20261125
_HELD_OUT_SEED: Final = 7919
_SEASONS: Final = ("Winter", "Sommer", "Verano", "Outono", "Hilversum", "Karlsruhe", "Dragonfly", "Blueberry")
_PASSWORDS_EACH: Final = 3


class Case(NamedTuple):
    """A line, and whether it holds a secret."""

    name: str
    text: str
    is_secret: bool
    value: str | None = None
    """The secret, where it is known: none of it may be left."""


def tuned_cases() -> list[Case]:
    """In the syntaxes that the detectors were made with."""
    rng = random.Random(_TUNED_SEED)
    cases = [*_given(rng, ways.PASSWORDS, ways.TOKENS), *_formats(rng)]
    return cases + [Case("look-alike", line, False) for line in (*ordinary.ORDINARY, *look_alikes(rng))]


def held_out_cases() -> list[Case]:
    """In other syntaxes, with other values."""
    rng = random.Random(_HELD_OUT_SEED)
    cases = [*_given(rng, ways.HELD_OUT_PASSWORDS, ways.HELD_OUT_TOKENS), *_formats(rng)]
    return cases + [Case("look-alike", line, False) for line in (*ordinary.HELD_OUT, *look_alikes(rng))]


def _given(rng: random.Random, passwords: tuple[str, ...], tokens: tuple[str, ...]) -> Iterator[Case]:
    for template in passwords:
        for number in range(_PASSWORDS_EACH):
            # Each third as a person chooses it.
            value = f"{rng.choice(_SEASONS)}{rng.randint(1990, 2039)}" if number == 0 else _password(rng)
            yield Case("password", f"Notes\n\n{template.format(v=value)}\n", True, value)
    for template in tokens:
        for _ in range(_PASSWORDS_EACH):
            value = run(ALNUM, 28)(rng)
            yield Case("token", f"Notes\n\n{template.format(v=value)}\n", True, value)


def _password(rng: random.Random) -> str:
    """A password without what ends a value in one of the syntaxes."""
    return next(value for _ in iter(int, 1) if not set(value := word(rng)) & set("@%^*+"))


def _formats(rng: random.Random) -> Iterator[Case]:
    for kind, make in TOKENS.items():
        for context in contexts.ANYWHERE.values():
            value = make(rng)
            yield Case(kind, context.format(value), True, value)
    for kind, (name, make) in NAMED.items():
        for context in contexts.NAMED.values():
            value = make(rng)
            yield Case(kind, context.format(name=name, value=value), True, value)
