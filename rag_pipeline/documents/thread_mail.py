"""What e-mail puts around the words of a reply: `On … wrote:`, the message it answers, signatures, GitHub's footer."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rag_pipeline.documents.thread_markup import Line

_MAX_ATTRIBUTION_CHARS = 400
MAX_ATTRIBUTION_LINES = 4
_ATTRIBUTION_END = re.compile(
    r"(?:\b(?:wrote|écrit|escribió|scrisse|scritto|escreveu|schreef|skrev)|\bschrieb\b[^:]{0,100}|写道)"
    r"[ \t]?[:\uff1a]$",
    re.IGNORECASE,
)
_ATTRIBUTION_START = re.compile(r"(?:on|am|le|el|il|em|op|den|在)\b[^\n]*\d", re.IGNORECASE)
FOOTERS = (
    "Reply to this email directly", "You are receiving this because", "Message ID: <", "Message ID: *",
    "/notifications/unsubscribe", ", or unsubscribe",
)  # fmt: skip
"""What stands below the text in GitHub's notifications, and is quoted with it."""
_ORIGINAL = re.compile(
    r"[ \t]*-{3,} ?(?:Original Message|Ursprüngliche Nachricht|Message d'origine|Mensaje original) ?-{3,}[ \t]*",
    re.IGNORECASE,
)
_REPLY_FOOTER = re.compile(r"[ \t]*Reply to this email directly\b")
_DIVIDER = re.compile(r"[ \t]*(?:_{5,}|—|--)?[ \t]*")
_MAIL_HEADERS = ("from", "sent", "date", "to", "cc", "reply-to", "subject")
_GITHUB_SUBJECT = re.compile(r"[ *_]*Subject:.{0,40}\[[\w.-]+/[\w.-]+\]", re.IGNORECASE)
_SIGNATURE_LINES = 8
_SENT_FROM = re.compile(
    r"[ \t]*(?:Sent from my \w|Sent from (?:Outlook|Yahoo|Mail|Proton)|Get \[?Outlook for )[^\n]{0,80}"
)


def without_mail_tail(lines: Sequence[Line]) -> list[Line]:
    """The lines up to the message that an e-mail carries below itself, to its signature and to GitHub's footer."""
    end = next((number for number in range(len(lines)) if _is_tail(lines, number)), len(lines))
    kept = list(lines[:end])
    while end < len(lines) and kept and _DIVIDER.fullmatch(kept[-1].text):
        kept.pop()
    # GitHub takes some of the messages out itself, and leaves what stood above them.
    drop_attribution(kept)
    return kept


def without_device(lines: Sequence[Line]) -> list[Line]:
    """The lines without `Sent from my …` below them."""
    end = len(lines)
    while end and not lines[end - 1].text.strip():
        end -= 1
    return list(lines[: end - 1] if end and _SENT_FROM.fullmatch(lines[end - 1].text) else lines)


def _is_tail(lines: Sequence[Line], number: int) -> bool:
    line = lines[number]
    if line.code or line.quoted or not line.text:
        return False
    if line.text == "-- ":
        rest = lines[number + 1 : number + 2 + _SIGNATURE_LINES]
        return len(rest) <= _SIGNATURE_LINES and not any(line.code or line.quoted for line in rest)
    if line.text.lstrip()[:1] in "-R":
        return bool(_ORIGINAL.fullmatch(line.text) or _REPLY_FOOTER.match(line.text))
    return _begins_mail_headers(lines, number)


def _begins_mail_headers(lines: Sequence[Line], number: int) -> bool:
    """Whether these lines head a notification of GitHub's: `From:` to `Subject: … [owner/name] …`."""
    if not _is_mail_header(lines[number].text, names=_MAIL_HEADERS[:1]):
        return False
    for line in lines[number + 1 : number + 8]:
        if _GITHUB_SUBJECT.match(line.text):
            return True
        if line.text.strip() and not _is_mail_header(line.text, names=_MAIL_HEADERS):
            return False
    return False


def _is_mail_header(text: str, *, names: Sequence[str]) -> bool:
    name, colon, _ = text[:40].partition(":")
    return bool(colon) and name.strip(" \t*_").casefold() in names


def drop_attribution(lines: list[Line]) -> None:
    """Take away `On … wrote:` from the end."""
    last = [line.text for line in lines[-2 * MAX_ATTRIBUTION_LINES :]]
    del lines[len(lines) - len(last) + attribution_start(last) :]


def attribution_start(texts: Sequence[str]) -> int:
    """Where `On … wrote:`, which may be wrapped, begins at the end of the texts; their number when there is none."""
    end = len(texts)
    while end and not texts[end - 1].strip():
        end -= 1
    if not end or not _ATTRIBUTION_END.search(texts[end - 1][-_MAX_ATTRIBUTION_CHARS:].rstrip()):
        return len(texts)
    for start in range(end - 1, max(-1, end - 1 - MAX_ATTRIBUTION_LINES), -1):
        if _ATTRIBUTION_START.match(" ".join(texts[start:end])[:_MAX_ATTRIBUTION_CHARS].lstrip()):
            return start
    return len(texts)
