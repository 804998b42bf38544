"""What of a conversation is noise: whose comments say nothing, and what in a text nobody said.

Pure functions of texts. What a text loses it loses in whole lines, HTML comments or images; nothing is put in.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

from rag_pipeline.documents.thread_content import Author
from rag_pipeline.documents.thread_mail import without_device, without_mail_tail
from rag_pipeline.documents.thread_markup import Line, visible_lines
from rag_pipeline.documents.thread_quotes import Said, without_repetition
from rag_pipeline.settings import Threads

_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]|$)")
_FILLER = re.compile(
    r"[ \t]*[*_]{0,2}(?:no response(?: provided)?|n/?a|none|nil|-+|[–—])[*_]{0,2}\.?[ \t]*", re.IGNORECASE
)


def is_noise(author: Author, threads: Threads) -> bool:
    """Whether this author's comments are left out."""
    return _matches(author, threads.noisy_authors) and not _matches(author, threads.kept_authors)


def _matches(author: Author, globs: Sequence[str]) -> bool:
    login = author.login.lower()
    # An app's comments come with or without the suffix, depending on which of GitHub's interfaces told.
    names = {login, f"{login.removesuffix('[bot]')}[bot]"} if author.bot else {login}
    # To fnmatch, `[bot]` is one letter of three.
    patterns = [glob.lower().replace("[", "[[]") for glob in globs]
    return any(fnmatchcase(name, pattern) for name in names for pattern in patterns)


def clean_description(text: str) -> str:
    """A thread's own text as GitHub shows it, without the sections of its template that were left empty."""
    return _joined(_without_empty_sections(visible_lines(text)))


def clean_reply(text: str, said: Said) -> str:
    """A comment's text as GitHub shows it, without what it repeats of what was said, and without e-mail's additions."""
    return _joined(without_device(without_repetition(without_mail_tail(visible_lines(text)), said)))


def _joined(lines: Sequence[Line]) -> str:
    """The lines as a text; where lines were left out, one blank line is enough."""
    kept: list[str] = []
    for line in lines:
        if line.text.strip() or line.code or (kept and kept[-1].strip()):
            kept.append(line.text)
    while kept and not kept[-1].strip():
        kept.pop()
    return "\n".join(kept)


def _without_empty_sections(lines: Sequence[Line]) -> list[Line]:
    """The lines without headings that have nothing or only filler under them; all, when they are nothing but headings.

    From the end: `below` holds the levels of the headings below, and whether there are words in their sections.
    """
    empty: set[int] = set()
    fillers: set[int] = set()
    below: list[tuple[int, bool]] = []
    words, filler = False, list[int]()
    for number in range(len(lines) - 1, -1, -1):
        text, code, _ = lines[number]
        if not code and (heading := _HEADING.match(text)):
            level, filled = len(heading[1]), words
            while below and below[-1][0] > level:
                filled |= below.pop()[1]
            below.append((level, filled))
            if not filled:
                empty.add(number)
            if not words:
                fillers.update(filler)
            words, filler = False, []
        elif not code and _FILLER.fullmatch(text):
            filler.append(number)
        elif text.strip():
            words = True
    left = [line for number, line in enumerate(lines) if number not in empty and number not in fillers]
    return left if fillers or any(line.text.strip() for line in left) else list(lines)
