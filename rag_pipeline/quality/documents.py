"""What must be true of documents: identity, words, clean text, no secrets, and lines that lead back to the source."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, Final

import pyarrow as pa

from rag_pipeline.documents.decoding import plain_text
from rag_pipeline.documents.redaction import REDACTION_VERSION, engine_version, redact
from rag_pipeline.documents.redaction.addresses import find_in_urls
from rag_pipeline.documents.redaction.assignments import find_assignments
from rag_pipeline.documents.redaction.document import bare_words_are_names
from rag_pipeline.documents.redaction.key_blocks import find_key_blocks
from rag_pipeline.documents.redaction.prefixes import find_prefixed
from rag_pipeline.documents.redaction.tables import find_in_tables
from rag_pipeline.documents.stage import STAGE
from rag_pipeline.lake.derive import combine
from rag_pipeline.lake.schemas import DOCUMENTS
from rag_pipeline.lake.store import Lake, Part
from rag_pipeline.model import document_id
from rag_pipeline.quality.expectations import Row, Rule
from rag_pipeline.quality.parts import (
    SCHEMA,
    Measured,
    PartSuite,
    about,
    at_most,
    none_of,
    share_beyond,
    wrong_columns,
)
from rag_pipeline.settings import Redaction, Settings
from rag_pipeline.settings import fingerprint as settings_fingerprint

_VERSION: Final = "documents/1"
_COLUMNS: Final = (
    "tenant", "source_type", "source_id", "repository", "deleted", "document_id", "text", "markup", "language",
    "metadata", "source_lines",
)  # fmt: skip
_LATER_COLUMNS: Final = ("as_of", "scope", "sections")
_MARKUPS: Final = {"markdown", "rst", "asciidoc", "text", "code"}
_LANGUAGE: Final = re.compile(r"[a-z0-9][a-z0-9+#._ -]{0,39}", re.IGNORECASE)
_LEFT_OUT: Final = '"skipped"'  # metadata of what has no text on purpose, as code that a tool wrote
_REPLACEMENT: Final = "\ufffd"
_AGAIN: Final = "delete the file and materialize these days again; if it comes back, report it with the rows below"


def documents_suite(settings: Settings) -> PartSuite:
    """The suite of the documents stage under these settings."""
    limits = settings.quality

    def measure(lake: Lake, part: Part) -> Measured:
        found = Measured()
        if wrong_columns(lake, part, found, stage=STAGE, schema=DOCUMENTS, optional=_LATER_COLUMNS):
            return found
        reading = _Reading(settings, part, found)
        for batch in lake.read(STAGE, part, columns=_COLUMNS):
            reading.add(batch)
        found.figures |= reading.counts
        found.figures["empty_share"] = share_beyond(reading.empty, reading.living, most=limits.max_empty_documents)
        return found

    detects = (REDACTION_VERSION, engine_version(), settings_fingerprint(settings.redaction))
    counts = (str(limits.max_empty_documents), str(limits.max_replaced_share), str(limits.secrets_chars))
    return PartSuite(stage=STAGE, rules=_rules(settings), measure=measure, version=combine(_VERSION, *detects, *counts))


def _rules(settings: Settings) -> tuple[Rule, ...]:
    limits = settings.quality
    return (
        *SCHEMA,
        none_of(
            "repeated", name="document_unique", check="identities",
            expects="no document occurs twice in a day of a repository", remedy=_AGAIN,
        ),
        none_of(
            "misnamed", name="document_id", check="identities",
            expects="document_id is the hash of tenant, source type and source id", remedy=_AGAIN,
        ),
        none_of(
            "elsewhere", name="tenant_and_repository", check="identities",
            expects="every document is of the tenant and repository whose file it is in",
            remedy=f"it would be shown to another tenant: {_AGAIN}",
        ),
        at_most(
            "empty_share", limits.max_empty_share, name="not_empty", check="text",
            expects=(
                f"not more than {limits.max_empty_documents} documents and {limits.max_empty_share:.0%} of a day of a "
                "repository are without a word (deleted ones and what tools wrote aside)"
            ),
            remedy=(
                "look at the items named below: pages without text are left out with `exclude`; raise "
                "quality.max_empty_documents or quality.max_empty_share to accept them"
            ),
        ),
        none_of(
            "unclean", name="clean_text", check="text",
            expects="texts are in NFC, with no NUL, no control character, no lone surrogate, and \\n as newline",
            remedy=_AGAIN,
        ),
        none_of(
            "damaged_texts", name="decoded", check="text", severity="warn",
            expects=f"at most {limits.max_replaced_share:.0%} of a text was lost in decoding (U+FFFD)",
            remedy="save the file as UTF-8, leave it out with `exclude`, or raise quality.max_replaced_share",
        ),
        at_most(
            "longest", settings.documents.max_bytes, name="length", check="text",
            expects=f"no text is longer than documents.max_bytes ({settings.documents.max_bytes:,})",
            remedy="leave the item out with `exclude`, or raise documents.max_bytes",
        ),
        none_of(
            "odd_language", name="language_and_markup", check="text",
            expects="the language is a name or missing, the markup one that chunking knows", remedy=_AGAIN,
        ),
        none_of(
            "unordered_lines", name="source_lines", check="text", severity="warn",
            expects="the lines of the source that a text's lines came from are from 1 on and never go back",
            remedy=f"links of these documents lead to a wrong line: {_AGAIN}",
        ),
        none_of(
            "with_secrets", name="no_secrets", check="no_secrets",
            expects="the detector of secrets finds none in the texts that it has redacted",
            remedy=(
                "delete the file and materialize these days again; list values that are none in redaction.allowed. "
                "Whatever was real must be revoked where it is used"
            ),
        ),
    )  # fmt: skip


class _Reading:
    """Counts over the documents of one part, a batch in memory at a time."""

    def __init__(self, settings: Settings, part: Part, found: Measured) -> None:
        self._settings = settings
        self._part = part
        self._found = found
        self._seen: set[bytes] = set()
        self._read = 0
        self.living = 0
        self.empty = 0
        self.counts: dict[str, int] = dict.fromkeys(
            ("repeated", "misnamed", "elsewhere", "unclean", "damaged_texts", "longest", "odd_language",
             "unordered_lines", "with_secrets"), 0,
        )  # fmt: skip

    def add(self, batch: pa.RecordBatch) -> None:
        """Look at the documents of a batch."""
        self._found.rows += batch.num_rows
        for document in _rows(batch):
            self._identity(document)
            if not document["deleted"]:
                self._text(document)

    def _note(self, rule: str, count: str, document: Mapping[str, Any], **more: object) -> None:
        if count:
            self.counts[count] += 1
        named: Row = {"source_type": document["source_type"], "source_id": document["source_id"], **more}
        self._found.add(rule, [about(self._part) | dict(named)])

    def _identity(self, document: Mapping[str, Any]) -> None:
        identity, part = document["document_id"], self._part
        if identity in self._seen:
            self._note("document_unique", "repeated", document)
        self._seen.add(identity)
        names = {name: document[name] or "" for name in ("tenant", "source_type", "source_id")}
        if document_id(**names).bytes != identity:
            self._note("document_id", "misnamed", document, document_id=identity.hex() if identity else None)
        if (document["tenant"], document["repository"]) != (part.tenant, part.repository):
            where = f"{document['tenant']}/{document['repository']}"
            self._note("tenant_and_repository", "elsewhere", document, belongs_to=where)

    def _text(self, document: Mapping[str, Any]) -> None:
        text, limits = document["text"] or "", self._settings.quality
        self.living += 1
        if not text.strip():
            if _LEFT_OUT not in (document["metadata"] or ""):
                self.empty += 1
                self._note("not_empty", "", document)
            return
        self.counts["longest"] = max(self.counts["longest"], len(text))
        if len(text) > self._settings.documents.max_bytes:
            self._note("length", "", document, characters=len(text))
        if plain_text(text) != text:
            self._note("clean_text", "unclean", document, around=_first_difference(text))
        lost = text.count(_REPLACEMENT)
        if lost > limits.max_replaced_share * len(text):
            self._note("decoded", "damaged_texts", document, lost=lost, characters=len(text))
        language, markup = document["language"], document["markup"]
        if markup not in _MARKUPS or (language is not None and not _LANGUAGE.fullmatch(language)):
            self._note("language_and_markup", "odd_language", document, language=language, markup=markup)
        lines = document["source_lines"]
        if lines and (lines[0] < 1 or any(b < a for a, b in pairwise(lines))):
            self._note("source_lines", "unordered_lines", document, lines=lines[:20])
        self._read += len(text)
        code = bare_words_are_names(markup, language)
        if self._read > limits.secrets_chars and not _looks_secret(text, code=code):
            return
        for kind, line in _secrets(text, code=code, settings=self._settings.redaction):
            # Where it stands and of what kind it is, never what it is.
            self._note("no_secrets", "with_secrets", document, kind=kind, line_of_text=line)
            break


def _rows(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    columns = {name: batch.column(name).to_pylist() for name in batch.schema.names}
    for values in zip(*columns.values(), strict=True):
        yield dict(zip(columns, values, strict=True))


def _first_difference(text: str) -> str:
    clean = plain_text(text)
    pairs = zip(text, clean, strict=False)
    place = next((n for n, (one, other) in enumerate(pairs) if one != other), min(len(text), len(clean)))
    return f"character {place}: {text[max(0, place - 10) : place + 10]!r}"


def _looks_secret(text: str, *, code: bool) -> bool:
    """Whether the quick detectors find something, which all of them then have to judge."""
    quick = (
        find_key_blocks(text),
        find_prefixed(text),
        find_in_urls(text),
        find_assignments(text, text.lower(), code=code),
        iter(()) if code else find_in_tables(text),
    )
    return any(True for found in quick for _ in found)


def _secrets(text: str, *, code: bool, settings: Redaction) -> Iterator[tuple[str, int]]:
    """Kind and line (of the text, from 1) of what the detector still finds."""
    for span in redact(text, emails=settings.emails, allowed=settings.allowed, code=code).spans:
        yield span.kind, text.count("\n", 0, span.start) + 1
