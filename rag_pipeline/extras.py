"""Optional parts of this package (the extras of `pyproject.toml`): how one that is missing is added."""

from __future__ import annotations


def how_to_add(extra: str) -> str:
    """What to do, to follow what is missing; never by this package's name, which on PyPI is another project's."""
    return f"run `pip install -e '.[{extra}]'` in the checkout of this project"
