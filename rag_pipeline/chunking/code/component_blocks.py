"""Single-file components (Vue, Svelte, Astro): script, style and template, each cut as the language that it is in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from rag_pipeline.chunking.blocks import Block
from rag_pipeline.chunking.code.line_blocks import line_blocks
from rag_pipeline.chunking.code.syntax_blocks import syntax_blocks

COMPONENTS: Final = frozenset(["astro", "svelte", "vue"])
"""Languages whose files have such parts."""
_OPENING = re.compile(
    r"^<(?P<tag>script|style|template)\b(?P<attributes>[^>]{0,500})>|\A---[ \t]*$", re.MULTILINE | re.IGNORECASE
)
"""A part begins and ends at the left margin; Astro's script stands between rules at the top."""
_CLOSING: Final = {
    tag: re.compile(rf"^</{tag}[ \t]*>[ \t]*(?:\n|\Z)", re.MULTILINE | re.IGNORECASE)
    for tag in ("script", "style", "template")
} | {"": re.compile(r"^---[ \t]*(?:\n|\Z)", re.MULTILINE)}
_TYPED = re.compile(r"\blang\s*=\s*[\"']?(\w+)")
_SCRIPTS: Final = {"js": "javascript", "jsx": "javascript", "ts": "typescript", "tsx": "tsx"}


def component_blocks(text: str, *, min_chars: int) -> list[Block]:
    """Blocks that tile the text; each part begins a section."""
    blocks: list[Block] = []
    end = 0
    for opening, closing in _parts(text):
        blocks += _placed(text, end, opening.start(), language=None, min_chars=min_chars)
        body = opening.end(), closing.start()
        inside = list(_placed(text, *body, language=_language(opening), min_chars=min_chars))
        inside = inside or [Block(*body, 0, "verbatim")]
        # The tags belong to what they hold.
        blocks.append(inside[0]._replace(start=opening.start(), level=0, opens_section=True))
        blocks += inside[1:]
        end = closing.end()
    blocks += _placed(text, end, len(text), language=None, min_chars=min_chars)
    starts = [0, *(block.start for block in blocks[1:])]
    ends = [*starts[1:], len(text)]
    return [block._replace(start=at, end=to) for block, at, to in zip(blocks, starts, ends, strict=False)]


def _parts(text: str) -> Iterator[tuple[re.Match[str], re.Match[str]]]:
    """How each part begins and ends."""
    unclosed: set[str] = set()  # is not looked for again
    at = 0
    while opening := _OPENING.search(text, at):
        tag = (opening["tag"] or "").lower()
        closing = None if tag in unclosed else _CLOSING[tag].search(text, opening.end())
        if closing is None:
            unclosed.add(tag)
            at = opening.end()
        else:
            yield opening, closing
            at = closing.end()


def _language(opening: re.Match[str]) -> str | None:
    """The language of a part that is a script."""
    tag = (opening["tag"] or "").lower()
    if tag != "script":
        return None if tag else "typescript"
    typed = _TYPED.search(opening["attributes"])
    return _SCRIPTS.get(typed[1], "typescript") if typed else "javascript"


def _placed(text: str, start: int, end: int, *, language: str | None, min_chars: int) -> Iterator[Block]:
    """The blocks of a part, at their places in the text; what comes after another part begins a section."""
    part = text[start:end]
    if not part.strip():
        return
    blocks = syntax_blocks(part, language=language, min_chars=min_chars) or line_blocks(part, python=False)
    for number, block in enumerate(blocks):
        placed = block._replace(start=block.start + start, end=block.end + start)
        yield placed if number or not start else placed._replace(level=0, opens_section=True)
