"""Source code to blocks: by syntax tree where there is a grammar, by lines and indentation where there is none."""

from __future__ import annotations

from rag_pipeline.chunking.blocks import Block
from rag_pipeline.chunking.code.component_blocks import COMPONENTS, component_blocks
from rag_pipeline.chunking.code.line_blocks import line_blocks
from rag_pipeline.chunking.code.syntax_blocks import syntax_blocks


def code_blocks(text: str, *, language: str | None, max_tokens: int) -> list[Block]:
    """Blocks of source code, which tile the text; `language` as cleaning names it, None where it is not known.

    What has fewer than `max_tokens` characters fits a chunk, so that its inside is not looked at.
    """
    if language in COMPONENTS:
        return component_blocks(text, min_chars=max_tokens)
    blocks = syntax_blocks(text, language=language, min_chars=max_tokens)
    return line_blocks(text, python=language == "python") if blocks is None else blocks
