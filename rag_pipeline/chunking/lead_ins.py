"""Blocks of prose that say nothing alone: headings, lead-ins (`Returns:`), labels, captions, `New in version 1.2:`.

They stay with what they lead to: the gap after them is the last one that is cut. Where nothing follows, as at the end
of a section, they stay with what stands above them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from rag_pipeline.chunking.blocks import GLUE, PARAGRAPH, Block
from rag_pipeline.chunking.prose_blocks import LIST_ITEM
from rag_pipeline.chunking.splitting import FULL_STOPS

_MAX_LEAD_IN_CHARS: Final = 200
_MAX_LABEL_CHARS: Final = 60
_MAX_LABEL_WORDS: Final = 6
_MAX_BLOCK_CHARS: Final = 300
"""With the blank lines after it."""
_CLOSING: Final = "*_`\"')]"
_COLONS: Final = (":", "：")
_ENDS_SENTENCE: Final = frozenset([*".!?…;,，", *FULL_STOPS, ""])
_WORD: Final = re.compile(r"\w")
_DETAILS: Final = re.compile(r"(?:\n[ \t]+(?:Type|Default|Value): [^\n]*)+\Z")
"""What stands between the name of an object and the text about it."""
_NO_LABEL: Final = frozenset("|+-*>`~=<")
"""What a table, a list item, a quote, a fence, a rule or an element begins with."""


def with_lead_ins(text: str, blocks: Sequence[Block]) -> list[Block]:
    """The blocks, each lead-in glued to the block after it, or to the one before it where it leads to nothing."""
    glued = list(blocks)
    following: Block | None = None
    is_left_over = True  # a heading that nothing but headings follow
    for number in range(len(blocks) - 1, -1, -1):
        block = blocks[number]
        start, end, _, kind, _, _ = block
        if kind == "heading":
            if is_left_over:
                glued[number] = _glued(glued[number])
        else:
            is_left_over = False
            if kind == "prose" and end - start <= _MAX_BLOCK_CHARS and _may_lead(words := _lead_of(text[start:end])):
                if not _is_lead_in(words, block, following):
                    pass
                elif following and _leads_to(block, following):
                    glued[number + 1] = _glued(glued[number + 1])
                else:
                    glued[number] = _glued(glued[number])
        following = block
    return glued


def _lead_of(block: str) -> str:
    """The words of a block, of an object's only its name."""
    words = block.strip()
    return _DETAILS.sub("", words) if "\n" in words else words


def _may_lead(words: str) -> bool:
    """What most blocks fail: they end like sentences, or are long lines of words or items."""
    last = words[-1:]
    if last in _ENDS_SENTENCE:
        return False
    return not last.isalnum() or (len(words) <= _MAX_LABEL_CHARS and words[0] not in _NO_LABEL)


def _glued(block: Block) -> Block:
    return block if block.level == GLUE else Block(block.start, block.end, GLUE, block.kind, block.path)


def _leads_to(block: Block, following: Block) -> bool:
    return following.kind != "heading" and not following.opens_section and _depth(following) >= _depth(block)


def _depth(block: Block) -> int:
    return PARAGRAPH if block.level == GLUE else block.level


def _is_lead_in(words: str, block: Block, following: Block | None) -> bool:
    """Whether the block is so short, and so worded, that it says nothing without the next one."""
    if len(words) > _MAX_LEAD_IN_CHARS:
        return False
    unclosed = words.rstrip(_CLOSING)
    ends_with_colon = unclosed.endswith(_COLONS)
    if LIST_ITEM.match(words):  # its own items are deeper
        return ends_with_colon and following is not None and _depth(following) > _depth(block)
    if ends_with_colon or not _WORD.search(words):
        return True
    is_short = len(words) <= _MAX_LABEL_CHARS and "\n" not in words and words.count(" ") < _MAX_LABEL_WORDS
    return is_short and "=" not in words and words[0] not in _NO_LABEL and unclosed[-1:] not in _ENDS_SENTENCE
