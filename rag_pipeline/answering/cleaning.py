"""What a language model writes to what people see, piece by piece: citations put in order, foreign links taken out.

A model may have followed an instruction in a document, so its text is trusted no more than the documents are: no
picture, no link and no tag that is not in the sources, no mark that points to no source, no invisible character. The
text is read from left to right in tokens, and a token is passed on once nothing that may follow could change it: so
the same text comes out however it was cut into pieces. Pure.
"""

from __future__ import annotations

import re
from typing import Final

from rag_pipeline.answering.citations import CLOSING, MOST_CHARS, OPENING, Numbering, is_named_mark, numbers_cited
from rag_pipeline.answering.links import FETCHING_TAG, REMOVED, Links
from rag_pipeline.embedding.tokens import encodable

_INVISIBLE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]"
)
_JOINER_AFTER_ASCII: Final = re.compile("(?<=[\x00-\x7f])[\u200c\u200d]+")
_SPACE: Final = re.compile(r"\s*")
_PLAIN: Final = re.compile(r"(?:[\x21-\x7e](?<![`<\[\]!\\])|!(?!\[))+")
_TAG: Final = re.compile(r"</?[A-Za-z][\w-]*")
_AUTOLINK: Final = re.compile(r"<(https?://[^\s<>]*)>", re.IGNORECASE)
_DEFINES: Final = re.compile(r"(?:^|\n)[ >]*\[[^\n\]]*\]\Z")
_IN_CODE: Final = re.compile(r"\[([^\[\]]{1,120})\]")
_MOST_LINK_TEXT: Final = 300
_MOST_ADDRESS: Final = 2_000
_MOST_TAG: Final = 1_000
_MOST_CODE: Final = 500
_ELLIPSIS: Final = "[…]"

Token = tuple[int, str, bool]
"""How many characters it has, what becomes of them, and whether that is passed on as it is."""


class Cleaner:
    """Cleans one text: `feed` it piece by piece, then `finish` it."""

    def __init__(self, *, sources: int, links: Links) -> None:
        self.numbering = Numbering(sources)
        self._links = links
        self._buffer = ""
        self._last = ""
        """The last character that was read."""
        self._shown = ""
        """The end of what was passed on."""
        self._fence = ""
        self._ended = False

    def feed(self, piece: str) -> str:
        """What can be shown by now; the concatenation of all that is returned is the text."""
        visible = _JOINER_AFTER_ASCII.sub("", self._last + _INVISIBLE.sub("", encodable(piece)))[len(self._last) :]
        self._last = visible[-1:] or self._last
        self._buffer += visible
        return self._drain()

    def finish(self) -> str:
        """The rest. White space at the ends is dropped, and a block of code that was left open is closed."""
        self._ended = True
        rest = self._drain()
        return f"{rest}\n{self._fence}" if self._fence else rest

    def _drain(self) -> str:
        shown = []
        while (some := self._next()) is not None:
            shown.append(some)
        return "".join(shown)

    def _next(self) -> str | None:
        """What becomes of the next token and the space before it; None: more must be read first."""
        if self._fence:
            return self._code_line()
        space = _SPACE.match(self._buffer)
        assert space is not None
        if space.end() == len(self._buffer):
            return None
        before, rest = space[0], self._buffer[space.end() :]
        token = self._fence_start(rest, before) or self._token(rest, glued=not before and bool(self._shown))
        if token is None or token[0] < 0:
            return None
        length, text, as_it_is = token
        self._buffer = rest[length:]
        if not text:
            # What is taken out takes the space before it along, but no end of a line.
            self._buffer = (before if "\n" in before else "") + self._buffer
            return ""
        return self._passed(before if self._shown else "", text, as_it_is=as_it_is)

    def _passed(self, before: str, text: str, *, as_it_is: bool) -> str:
        """What was taken out may not make marks, links, pictures or tags of what stood around it."""
        last = before[-1:] or self._shown[-1:]
        if not as_it_is:
            word = "" if before else self._shown.split()[-1] if self._shown[-1:].strip() else ""
            if (
                _joins(last, text[0])
                or (text[0] == ":" and _DEFINES.search(self._shown + before))
                or self._links.only_known(word + text) != word + text
            ):
                before += " "
            if text == "]" and is_named_mark((self._shown + before).rpartition("[")[2]):
                text = ")"
        self._shown = (self._shown + before + text)[-2 * MOST_CHARS :]
        return before + text

    def _needs(self, enough: bool) -> bool:
        """Whether to wait for more before deciding; `enough`: there is so much that no more would help."""
        return not enough and not self._ended

    # Each of these returns the token at the beginning of `rest`, or _WAIT.

    def _token(self, rest: str, *, glued: bool) -> Token:
        first = rest[0]
        if first in OPENING:
            return self._bracket(rest, glued=glued)
        if first in CLOSING:
            return 1, "]", False
        if first == "`":
            return self._code_span(rest)
        if first == "<":
            return self._angle(rest)
        if first in "\\!" and self._needs(len(rest) > 1):
            return _WAIT
        if rest[:2] == "\\`":
            return 2, rest[:2], False
        if rest[:2] == "![":
            return self._picture(rest)
        plain = _PLAIN.match(rest)
        if plain is None:
            return 1, first, False
        if self._needs(plain.end() < len(rest)):
            return _WAIT
        return plain.end(), self._links.only_known(plain[0]), False

    def _bracket(self, rest: str, *, glued: bool) -> Token:
        inside, closed = _until(rest, 1, CLOSING, stop="\n" + OPENING, most=_MOST_LINK_TEXT)
        if not closed:
            return _WAIT if inside is None and not self._ended else (1, "[", False)
        assert inside is not None
        end = len(inside) + 2
        if self._needs(len(rest) > end):
            return _WAIT
        if rest[end : end + 1] == "(":
            return self._link(rest, inside, end)
        numbers = numbers_cited(inside, glued=glued)
        return (1, "[", False) if numbers is None else (end, self.numbering.renumbered(numbers), True)

    def _link(self, rest: str, words: str, end: int) -> Token:
        """A link keeps its address when a source has it, and else only its words, read as any others are."""
        address, closed = _until(rest, end + 1, ")", stop="\n", most=_MOST_ADDRESS)
        if not closed and address is None and not self._ended:
            return _WAIT
        if not closed or address is None:
            return 1, "[", False
        whole = end + len(address) + 2
        url = address.strip().split(" ")[0].strip("<>")
        if self._links.allows(url) and not is_named_mark(words):
            return whole, f"[{self._links.only_known(words).replace('`', '')}]({url})", True
        numbers = numbers_cited(words, glued=False)
        if numbers is not None:
            return whole, self.numbering.renumbered(numbers), True
        return whole, self._links.only_known(re.sub("[<`]", "", words)).strip(), False

    def _picture(self, rest: str) -> Token:
        """Never shown: an answer is text."""
        inside, closed = _until(rest, 2, CLOSING, stop="\n" + OPENING, most=_MOST_LINK_TEXT)
        if not closed:
            return _WAIT if inside is None and not self._ended else (1, "!", False)
        assert inside is not None
        end = len(inside) + 3
        if self._needs(len(rest) > end):
            return _WAIT
        if rest[end : end + 1] != "(":
            return 1, "!", False
        address, closed = _until(rest, end + 1, ")", stop="\n", most=_MOST_ADDRESS)
        if not closed:
            return _WAIT if address is None and not self._ended else (1, "!", False)
        assert address is not None
        return end + len(address) + 2, "", False

    def _angle(self, rest: str) -> Token:
        if self._needs(len(rest) > 1):
            return _WAIT
        if not (rest[1:2].isalpha() or rest[1:2] == "/"):
            return 1, "<", False
        inside, closed = _until(rest, 1, ">", stop="\n", most=_MOST_TAG)
        if not closed and inside is None and not self._ended:
            return _WAIT
        if link := _AUTOLINK.match(rest):
            return link.end(), link[0] if self._links.allows(link[1]) else REMOVED, True
        tag = _TAG.match(rest)
        if tag is None:
            return 1, "<", False
        if not FETCHING_TAG.fullmatch(tag[0]) and "=" not in (inside or ""):
            return tag.end(), tag[0], False
        return (len(inside) + 2, "", False) if closed and inside is not None else (1, "", False)

    def _code_span(self, rest: str) -> Token:
        ticks = len(rest) - len(rest.lstrip("`"))
        if self._needs(ticks < len(rest)):
            return _WAIT
        for found in re.finditer("`+", rest[: ticks + _MOST_CODE]):
            if found.start() and len(found[0]) == ticks:
                if self._needs(found.end() < len(rest)):
                    return _WAIT
                code = rest[: found.end()]
                return (ticks, rest[:ticks], False) if "\n\n" in code else (found.end(), self._code(code), False)
        is_sure = "\n\n" in rest or len(rest) > ticks + _MOST_CODE
        return _WAIT if self._needs(is_sure) else (ticks, rest[:ticks], False)

    def _fence_start(self, rest: str, before: str) -> Token | None:
        """The first line of a block of code; None: it is none."""
        if (self._shown and "\n" not in before) or rest[0] not in "`~":
            return None
        run = len(rest) - len(rest.lstrip(rest[0]))
        if self._needs(run < len(rest)):
            return _WAIT
        if run < 3:
            return None
        line, newline, _ = rest.partition("\n")
        if self._needs(bool(newline)):
            return _WAIT
        if "`" in line[run:]:
            return None
        self._fence = line[:run]
        return len(line), self._code(line), True

    def _code_line(self) -> str | None:
        """The next line of a block of code, with the end of the line before it."""
        end = self._buffer.find("\n", 1)
        if end < 0 and (not self._ended or len(self._buffer) < 2):
            return None
        line = self._buffer[:end] if end >= 0 else self._buffer
        self._buffer = self._buffer[len(line) :]
        run = line.strip()
        if run and not run.strip(self._fence[0]) and len(run) >= len(self._fence):
            self._fence = ""
        shown = self._code(line)
        self._shown = shown[-2 * MOST_CHARS :] or self._shown
        return shown

    def _code(self, code: str) -> str:
        """Brackets with a number are indices here; only marks that say what they are are read as such."""

        def replace(match: re.Match[str]) -> str:
            if not is_named_mark(match[1]):
                return match[0]
            return self.numbering.renumbered(numbers_cited(match[1], glued=True) or ()) or _ELLIPSIS

        return _IN_CODE.sub(replace, self._links.only_known(code).replace("](", "] ("))


_WAIT: Final[Token] = (-1, "", False)


def _joins(last: str, first: str) -> bool:
    """Whether two characters beside each other would begin a link, a picture or a tag."""
    return (
        (last == "]" and first in "([")
        or (last == "!" and first == "[")
        or (last == "<" and (first.isalpha() or first in "/!?"))
    )


def _until(text: str, start: int, ends: str, *, stop: str, most: int) -> tuple[str | None, bool]:
    """What stands before the first of `ends`, and that it is there.

    `("", False)`: it is not there, whatever follows, since something of `stop` or `most` characters come before it.
    `(None, False)`: nobody can tell yet.
    """
    for at in range(start, min(len(text), start + most)):
        if text[at] in ends:
            return text[start:at], True
        if text[at] in stop:
            return "", False
    return (None, False) if len(text) < start + most else ("", False)
