"""Private keys as blocks of text: PEM, OpenSSH, PGP and PuTTY, over many lines or on one line with escaped newlines."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rag_pipeline.documents.redaction.spans import Finding

_BEGIN = re.compile(r"-{2,5} ?BEGIN (?:[A-Z0-9]+ ){0,4}?PRIVATE KEY(?: BLOCK)? ?-{2,5}")
_END = re.compile(r"-{2,5} ?END (?:[A-Z0-9]+ ){0,4}?PRIVATE KEY(?: BLOCK)? ?-{2,5}")
_LONGEST = 40_000
_KEY_LINE = re.compile(
    r"[^\S\n]*[#>+*/|\"'`-]{0,4}[^\S\n]*[\"'`]?(?:[A-Za-z0-9+/=]{16,}|(?:Proc-Type|DEK-Info|Version|Comment):[^\n]*|[A-Za-z0-9+/=]{1,76})?(?:\\n|\\r)*[\"'`]?[^\S\n]*[+,\\]?[^\S\n]*(?:\n|$)"
)
_ONE_LINE = re.compile(r"(?:\\+[nr]|[A-Za-z0-9+/= \t]|%0[ADad]|%2[BFbf]|%3[Dd]|&#10;)+")
_MATERIAL = re.compile(r"[A-Za-z0-9+/]{24,}")
_FEWEST = 48
_PUTTY = re.compile(r"Private-Lines: (\d{1,4})[^\S\n]*\n((?:[^\S\n]*[A-Za-z0-9+/=]+[^\S\n]*\n?){1,400})")
_PUTTY_MAC = re.compile(r"Private-MAC: ([0-9a-f]{32,64})")


def find_key_blocks(text: str) -> Iterator[Finding]:
    """Every private key block with key material in it, from its first dash to its last; public keys stay."""
    if "PRIVATE KEY" in text:
        yield from _armoured(text)
    if "Private-Lines: " in text:
        for pattern, group in ((_PUTTY, 2), (_PUTTY_MAC, 1)):
            for found in pattern.finditer(text):
                start, end = found.span(group)
                yield Finding(kind="private-key", start=start, end=end - text[start:end].endswith("\n"), rank=0)


def _armoured(text: str) -> Iterator[Finding]:
    at = 0
    while begin := _BEGIN.search(text, at):
        end = _end_of(text, begin.end())
        body = text[begin.end() : end]
        if sum(len(run) for run in _MATERIAL.findall(body)) >= _FEWEST and not _is_repeated(body):
            yield Finding(kind="private-key", start=begin.start(), end=end, rank=0)
        at = max(end, begin.end())


def _end_of(text: str, start: int) -> int:
    """Where a block that was begun ends; one that nothing closes ends with the last line that looks like a key's."""
    closing = _END.search(text, start, start + _LONGEST)
    again = _BEGIN.search(text, start, start + _LONGEST)
    if closing and not (again and again.start() < closing.start()):
        return closing.end()
    limit = again.start() if again else min(len(text), start + _LONGEST)
    line = _ONE_LINE.match(text, start, limit)
    end = line.end() if line else start
    while end < limit and (found := _KEY_LINE.match(text, end, limit)) and found.end() > end:
        end = found.end()
    return start + len(text[start:end].rstrip())


def _is_repeated(body: str) -> bool:
    """Whether it only stands for a key: `xxxx…`, `AAAA…`."""
    material = "".join(_MATERIAL.findall(body))
    return len(set(material)) < 12
