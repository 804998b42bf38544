"""Every string of a document without its secrets: text, title, section names, metadata, path and URL.

What was redacted is listed in the metadata by kind and source line, never by value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from rag_pipeline.documents.redaction.detect import redact
from rag_pipeline.documents.redaction.plausible import is_secret
from rag_pipeline.documents.redaction.spans import MARKER, Redacted
from rag_pipeline.documents.titles import tidy_title
from rag_pipeline.model import Document, Json, Section
from rag_pipeline.settings import Redaction

BY_KIND: Final = "redactions_by_kind"
"""The key of the metadata that counts all that was redacted."""
MAX_ENTRIES: Final = 100
"""Entries of `metadata["redactions"]`; `metadata["redactions_by_kind"]` counts them all."""

_BARE_VALUES: Final = frozenset(
    [
        "bash",
        "dockerfile",
        "hcl",
        "ini",
        "jinja",
        "json",
        "make",
        "powershell",
        "properties",
        "terraform",
        "toml",
        "xml",
        "yaml",
    ]
)
_REPEATED_FROM = 8
_CUT_FROM = 6


@dataclass(slots=True, kw_only=True)
class _Redactor:
    """Redacts the strings of one document, and notes what and where."""

    settings: Redaction
    code: bool
    known: dict[str, str] = field(default_factory=dict)
    """Values found in the text, which other strings of the document may repeat: value to kind."""
    found: Counter[tuple[str, str | int]] = field(default_factory=Counter)
    """By kind and place: a source line, or the name of another part."""

    def redact(self, text: str, *, code: bool = False) -> Redacted:
        return redact(text, emails=self.settings.emails, allowed=self.settings.allowed, code=code)

    def text(self, document: Document) -> Redacted:
        done = self.redact(document.text, code=self.code)
        lines = _lines_of(document.text, [span.start for span in done.spans], document.source_lines)
        for span, line in zip(done.spans, lines, strict=True):
            self.found[span.kind, line] += 1
            value = document.text[span.start : span.end]
            if len(value) >= _REPEATED_FROM and "\n" not in value:
                self.known[value] = span.kind
        return done

    def string(self, text: str, place: str) -> str:
        """A string of another part of the document."""
        done = self.redact(text)
        for span in done.spans:
            self.found[span.kind, place] += 1
        text = done.text
        for value, kind in self.known.items():
            if value in text:
                self.found[kind, place] += text.count(value)
                text = text.replace(value, f"[REDACTED:{kind}]")
        return text

    def title(self, title: str) -> str:
        """A title, of which a cut may have left the beginning of a value that the text holds whole."""
        title = self.string(title, "title")
        for value, kind in self.known.items() if title.endswith("…") else ():
            start = title.rfind(value[:_CUT_FROM])
            if start >= 0 and value.startswith(title[start:-1]):
                self.found[kind, "title"] += 1
                title = f"{title[:start]}[REDACTED:{kind}]"
        return tidy_title(title) or title

    def json(self, value: Json, name: str = "") -> Json:
        """Metadata at any depth; a value is judged by the name that it stands under too."""
        if isinstance(value, str):
            if is_secret(name, value) and not MARKER.search(value) and not self.settings.allows(value):
                self.found["secret", "metadata"] += 1
                return "[REDACTED:secret]"
            return self.string(value, "metadata")
        if isinstance(value, Mapping):
            return {self.string(key, "metadata"): self.json(entry, key) for key, entry in value.items()}
        if isinstance(value, Sequence):
            return [self.json(entry, name) for entry in value]
        return value

    def report(self) -> dict[str, Json]:
        """What the metadata says of it; empty when nothing was redacted."""
        if not self.found:
            return {}
        entries: list[Json] = [
            {"kind": kind, "line" if isinstance(place, int) else "place": place, "count": count}
            for (kind, place), count in self.found.items()
        ]
        by_kind: Counter[str] = Counter()
        for (kind, _), count in self.found.items():
            by_kind[kind] += count
        return {"redactions": entries[:MAX_ENTRIES], BY_KIND: dict(sorted(by_kind.items()))}


def bare_words_are_names(markup: str, language: str | None) -> bool:
    """Whether a word without quotes is a name, as in programs, and no value, as in configuration and prose."""
    return markup == "code" and language not in _BARE_VALUES


def redact_document(document: Document, *, settings: Redaction) -> Document:
    """The document without secrets; its lines, sections and identity stay, a tombstone stays as it is."""
    if document.deleted:
        return document
    redactor = _Redactor(settings=settings, code=bare_words_are_names(document.markup, document.language))
    done = redactor.text(document)
    title, sections, metadata = document.title, document.sections, document.metadata
    path, url = document.path, document.url
    careful = bool(redactor.known) or _needs_care(document, redactor.redact, settings)
    if careful:
        title = redactor.title(title) if title else title
        path = redactor.string(path, "path") if path else path
        url = redactor.string(url, "url") if url else url
        metadata = {redactor.string(key, "metadata"): redactor.json(value, key) for key, value in metadata.items()}
    if sections and (careful or done.spans):
        sections = _moved(sections, done, redactor)
    report = redactor.report()
    return replace(
        document, text=done.text, title=title, path=path, url=url, sections=sections,
        metadata={**metadata, **report} if report else metadata,
    )  # fmt: skip


def redactions_in(metadata: Mapping[str, Json]) -> Counter[str]:
    """How many values of each kind were redacted in the document that has this metadata."""
    counts = metadata.get(BY_KIND)
    found: Counter[str] = Counter()
    for kind, count in counts.items() if isinstance(counts, Mapping) else ():
        if isinstance(count, int):
            found[kind] += count
    return found


def _needs_care(document: Document, look: Callable[[str], Redacted], settings: Redaction) -> bool:
    """Whether any string beside the text holds a secret: all of them at once, as most hold none."""
    strings = [document.title or "", document.path or "", document.url or ""]
    strings += dict.fromkeys(section.name for section in document.sections or ())
    for name, value in _strings(document.metadata):
        if is_secret(name, value) and not settings.allows(value):
            return True
        strings += [name, value]
    return bool(look("\n\n".join(strings)).spans)


def _strings(metadata: Json, name: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(metadata, str):
        yield name, metadata
    elif isinstance(metadata, Mapping):
        for key, value in metadata.items():
            yield from _strings(value, key)
            yield "", key
    elif isinstance(metadata, Sequence):
        for value in metadata:
            yield from _strings(value, name)


def _moved(sections: Sequence[Section], done: Redacted, redactor: _Redactor) -> list[Section]:
    """The sections where they begin now."""
    return [
        replace(section, start_char=done.moved(section.start_char), name=redactor.string(section.name, "section"))
        for section in sections
    ]


def _lines_of(text: str, starts: Sequence[int], source_lines: Sequence[int] | None) -> Iterator[int]:
    """The source line of each position, in order."""
    line, at = 0, 0
    for start in starts:
        line += text.count("\n", at, start)
        at = start
        yield line + 1 if source_lines is None or line >= len(source_lines) else source_lines[line]
