"""Dropped knowledge: a record, or a plain file with front matter, becomes a source item.

Fields are checked here; how a file is cut into records is the business of `parse`, cleaning that of the documents.
"""

from __future__ import annotations

import codecs
import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import PurePath
from urllib.parse import quote, urlsplit

from rag_pipeline.bounded_json import storable, storable_text
from rag_pipeline.errors import BrokenFrontMatter, ItemError
from rag_pipeline.front_matter import Broken, FrontMatter, nested_scope, read_front_matter
from rag_pipeline.front_matter.attempts import MAX_CHARS, access_lines, unfenced_key
from rag_pipeline.front_matter.keys import ACCESS_KEYS, FRONT_KEYS, KEYS, key_problems, matched_key, similar_key
from rag_pipeline.model import Json, SourceItem
from rag_pipeline.notebook_json import CONTENT_TYPE as NOTEBOOK
from rag_pipeline.notebook_json import Notebook, read_notebook

PLAIN_FILES = {
    ".adoc": "text/asciidoc",
    ".asciidoc": "text/asciidoc",
    ".htm": "text/html",
    ".html": "text/html",
    ".ipynb": NOTEBOOK,
    ".markdown": "text/markdown",
    ".md": "text/markdown",
    ".mdx": "text/markdown",
    ".mkd": "text/markdown",
    ".org": "text/org",
    ".qmd": "text/markdown",
    ".rmd": "text/markdown",
    ".rst": "text/x-rst",
    ".text": "text/plain",
    ".txt": "text/plain",
    ".xhtml": "text/html",
}
"""Content type of the files that are knowledge as they are, by suffix."""

_OUR_SOURCES = frozenset({"docs", "code", "github_issue", "github_pull_request", "github_release", "github_discussion"})
_SOURCE_TYPE = re.compile(r"[a-z][a-z0-9_]{0,63}")
_SCOPE = re.compile(r"[a-z][a-z0-9_-]*:\S(.*\S)?")
_NOT_TEXT = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_MAX_FOLDER_CHARS = 255  # of a file system; the lake makes a tenant's or a repository's name one folder
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# How a text may be encoded; UTF-32 before UTF-16, whose mark is the beginning of the other's.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (codecs.BOM_UTF8, "utf-8"),
)
_UNMARKED = (
    (re.compile(rb"(?:[^\x00]\x00\x00\x00){2}"), "utf-32-le"),
    (re.compile(rb"(?:\x00\x00\x00[^\x00]){2}"), "utf-32-be"),
    (re.compile(rb"(?:[^\x00]\x00){4}"), "utf-16-le"),
    (re.compile(rb"(?:\x00[^\x00]){4}"), "utf-16-be"),
)
"""How ASCII letters begin a text in an encoding whose mark is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    """The circumstances a file is taken in under."""

    file_name: str
    received_at: datetime
    """When the file was last written, UTC, and never in the future."""
    now: datetime
    tenant: str
    """Of records that name none."""
    repository: str


def record_item(record: Json, intake: Intake) -> SourceItem:
    """The source item of a JSON record; keys that we do not know become metadata.

    Raises:
        ItemError: it is no object, or a field of it cannot be followed; the reason names the field.
    """
    if not isinstance(record, Mapping):
        raise ItemError("is not a JSON object")
    record = _with_known_keys(record, KEYS)
    deleted = _flag(record, "deleted")
    content = record.get("content")
    if not isinstance(content, str) and not deleted:
        raise ItemError("content is missing" if content is None else "content must be a string")
    text = content if isinstance(content, str) and not deleted else ""
    kind = _text(record, "content_type", most=200) or "text/markdown"
    if not deleted and kind.partition(";")[0].strip().lower() == NOTEBOOK:
        _check_notebook(record, read_notebook(text, path=str(record.get("id"))))
    if key := nested_scope(record):
        raise ItemError(f"{key!a} stands below another key: give scope as a key of the record (null is for everyone)")
    _check_access(record, text)
    metadata = {**_metadata(record, known=KEYS), "content_type": kind}
    return _item(record, intake, content=storable_text(text).encode(), metadata=metadata)


def received_item(value: Mapping[str, Json], intake: Intake) -> SourceItem:
    """The source item of a record that a service received, and wrapped as `{"received_at", "repository", "document"}`.

    What was received last is the newest state, whatever the record says of when it was updated.

    Raises:
        ItemError: as `record_item`.
    """
    received_at = moment_of(value.get("received_at"), "received_at", received_at=intake.received_at, now=intake.now)
    repository = _folder(value, "repository") or intake.repository
    # The receiver's clock may be ahead: that decides what is newest, but nothing was seen before it came here.
    intake = dataclasses.replace(intake, received_at=min(received_at, intake.now), repository=repository)
    return dataclasses.replace(record_item(value.get("document"), intake), as_of=received_at)


def plain_item(content: bytes, intake: Intake) -> SourceItem:
    """The source item of a plain file: its bytes without the front matter, whose other keys become metadata.

    Raises:
        ItemError: the file is empty, or its front matter is broken or has a field that cannot be followed.
    """
    if not content.strip():
        raise ItemError("is empty")
    front, body = _without_front_matter(content)
    try:
        values = _with_known_keys(front.values if front else {}, FRONT_KEYS)
        if values.get("id") is None:
            values = {**values, "id": intake.file_name}
        is_deleted = _flag(values, "deleted")
        if not is_deleted and intake.file_name.lower().endswith(".ipynb"):
            _check_notebook(front.values if front else {}, read_notebook(body, path="the file"))
        known = {"content_type": PLAIN_FILES[PurePath(intake.file_name).suffix.lower()], "file_name": intake.file_name}
        metadata = {**_metadata(values, known=FRONT_KEYS), **known}
        return _item(values, intake, content=b"" if is_deleted else body, metadata=metadata)
    except ItemError as error:
        lines = front.key_lines if front else {}
        about = str(error)
        line = next((n for key, n in lines.items() if about.startswith(f"{key.lower()} ") or ascii(key) in about), None)
        raise ItemError(f"{about} (line {line})" if line else about) from None


def moment_of(value: Json, field: str, *, received_at: datetime, now: datetime) -> datetime:
    """A time in ISO 8601 or epoch seconds as UTC; `received_at` when there is none, or it lies in the future.

    Raises:
        ItemError: it is no time.
    """
    if value is None:
        return received_at
    try:
        if isinstance(value, str):
            found = datetime.fromisoformat(value.strip())
            found = found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found = _EPOCH + timedelta(seconds=value)
        else:
            raise ItemError(f"{field} must be a time in ISO 8601 or in seconds since 1970")
    except OverflowError as error:
        raise ItemError(f"{field} is out of range (a number counts seconds since 1970, not milliseconds)") from error
    except ValueError as error:
        raise ItemError(f"{field} is not a time in ISO 8601, such as 2024-05-01T12:00:00Z: {value!r:.60}") from error
    return found if found <= now + timedelta(days=1) else received_at


def _item(
    values: Mapping[str, Json], intake: Intake, *, content: bytes, metadata: Mapping[str, Json]
) -> SourceItem:  # fmt: skip
    updated_at = moment_of(values.get("updated_at"), "updated_at", received_at=intake.received_at, now=intake.now)
    return SourceItem(
        tenant=_folder(values, "tenant") or intake.tenant,
        source_type=_source_type(values),
        source_id=_identity(values),
        repository=intake.repository,
        day=intake.now.astimezone(UTC).date(),
        source_updated_at=updated_at,
        as_of=updated_at,
        observed_at=intake.received_at,
        scope=_scope(values),
        deleted=_flag(values, "deleted"),
        content=content,
        title=_title(values),
        url=_url(values),
        metadata=metadata,
    )


def _identity(values: Mapping[str, Json]) -> str:
    value = values.get("id")
    if value is None:
        raise ItemError("id is missing")
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    found = _plain(value, "id", most=500)
    if not found.strip():
        raise ItemError("id is empty")
    return found


def _folder(values: Mapping[str, Json], field: str) -> str | None:
    """A name that the lake makes a folder."""
    name = _text(values, field, most=200)
    if name is not None and len(quote(name, safe="")) > _MAX_FOLDER_CHARS:
        raise ItemError(f"{field} has too many characters that a folder's name cannot hold")
    return name


def _source_type(values: Mapping[str, Json]) -> str:
    source_type = _text(values, "source_type", most=64) or "knowledge"
    if not _SOURCE_TYPE.fullmatch(source_type):
        raise ItemError(f"source_type must be lower-case letters, digits and '_', from a letter on: {source_type!r}")
    if source_type in _OUR_SOURCES:
        raise ItemError(f"source_type {source_type!r} is read from its own source: give another, or none")
    return source_type


def _scope(values: Mapping[str, Json]) -> str | None:
    scope = _text(values, "scope", most=200)
    # A scope that nobody can name would hide the item; one that is dropped would show it to all.
    if scope is not None and not _SCOPE.fullmatch(scope):
        raise ItemError(f"scope must be a kind and a name, such as user:jane, or null: {scope!r:.60}")
    return scope


def _url(values: Mapping[str, Json]) -> str | None:
    url = _text(values, "url", most=2_000)
    if url is None:
        return None
    try:
        parts = urlsplit(url)
        is_web = parts.scheme in ("http", "https") and bool(parts.hostname) and not re.search(r"\s", url)
        has_credentials = parts.username is not None
    except ValueError:
        is_web = has_credentials = False
    if not is_web:
        raise ItemError(f"url must be an http or https address: {url!r:.100}")
    if has_credentials:
        raise ItemError("url holds a user name or password: leave them out")
    return url


def _title(values: Mapping[str, Json]) -> str | None:
    title = values.get("title")
    if title is None:
        return None
    if isinstance(title, int | float) and not isinstance(title, bool):
        title = str(title)  # YAML reads `title: 2024` as a number
    if isinstance(title, str):
        title = storable_text(title).strip()
    return _plain(title, "title", most=1_000) or None


def _flag(values: Mapping[str, Json], field: str) -> bool:
    value = values.get(field)
    if value is not None and not isinstance(value, bool):
        raise ItemError(f"{field} must be true or false")
    return bool(value)


def _text(values: Mapping[str, Json], field: str, *, most: int) -> str | None:
    """A field that may be absent or null, but not empty."""
    if values.get(field) is None:
        return None
    text = _plain(values[field], field, most=most)
    if not text.strip():
        raise ItemError(f"{field} is empty: give a value, or leave it out")
    return text


def _plain(value: Json, field: str, *, most: int) -> str:
    if not isinstance(value, str):
        raise ItemError(f"{field} must be a string")
    if len(value) > most:
        raise ItemError(f"{field} is longer than {most:,} characters")
    if _NOT_TEXT.search(value):
        raise ItemError(f"{field} holds control characters")
    return value


def _metadata(values: Mapping[str, Json], *, known: frozenset[str]) -> dict[str, Json]:
    metadata = values.get("metadata")
    if metadata is not None and not isinstance(metadata, Mapping):
        raise ItemError("metadata must be an object")
    unknown = {key: value for key, value in values.items() if key not in known}
    found = {**unknown, **(metadata or {})}
    return {storable_text(key): storable(value) for key, value in found.items()}


def _with_known_keys(values: Mapping[str, Json], known: frozenset[str]) -> Mapping[str, Json]:
    """The values with known keys in lower case.

    Raises:
        ItemError: a key looks like a known one, or stands there in two spellings.
    """
    for problem in key_problems(values, known):
        raise ItemError(problem)
    return {matched_key(key, known) or key: value for key, value in values.items()}


def _check_access(record: Mapping[str, Json], text: str) -> None:
    """Refuse a record whose content has front matter that says something else of who may see it.

    Raises:
        ItemError: only the record is asked for that.
    """
    front = read_front_matter(text, clean=str)
    if isinstance(front, Broken):
        if any(access_lines(text[: front.end_char or MAX_CHARS])):
            raise ItemError(f"content has {front.error}")
        return
    for key, said in (front.values if front else {}).items():
        name = similar_key(key)
        if name in ACCESS_KEYS and said is not None and said != record.get(name):
            raise ItemError(f"{name} stands in the front matter of the content: give it as a key of the record")
    if not front and not _says_scope(record) and unfenced_key(text):
        raise ItemError("content says who may see it: give scope as a key of the record (null is for everyone)")


def _check_notebook(values: Mapping[str, Json], notebook: Notebook) -> None:
    """Refuse a notebook that says itself who may see it: in its metadata, or in its first cell, as Quarto has it.

    Raises:
        ItemError: `values`, what is known of the notebook, say nothing of that.
    """
    if _says_scope(values):
        return
    source = notebook.cells[0].get("source", notebook.cells[0].get("input")) if notebook.cells else ""
    text = "".join(map(str, source)) if isinstance(source, list) else str(source)
    _check_access({}, text)
    own = {"metadata": storable(notebook.metadata), "others": storable(notebook.others)}
    if nested_scope(own):
        raise ItemError("its metadata says who may see it: drop it as a JSON record with scope (null is for everyone)")


def _says_scope(values: Mapping[str, Json]) -> bool:
    return any(key.lower() == "scope" for key in values)


def _without_front_matter(content: bytes) -> tuple[FrontMatter | None, bytes]:
    """The front matter, and the content without it, in the encoding it has.

    Raises:
        BrokenFrontMatter: it cannot be read, or who may see the text is said where it is not read.
    """
    mark, encoding = _encoding(content)
    errors = "surrogateescape" if encoding == "utf-8" else "replace"
    text = content[len(mark) :].decode(encoding, errors)
    front = read_front_matter(text, clean=str)
    if isinstance(front, Broken) and encoding == "utf-8":
        latin = content[len(mark) :].decode("latin-1")
        if isinstance(found := read_front_matter(latin, clean=str), FrontMatter):
            front, text, encoding, errors = found, latin, "latin-1", "strict"
    if isinstance(front, Broken):
        raise front.error
    rest = text[front.end_char :] if front else text
    line = None if front and _says_scope(front.values) else unfenced_key(rest)
    again = read_front_matter(rest, clean=str) if front else None
    if line or isinstance(again, Broken) or (again and any(similar_key(key) in ACCESS_KEYS for key in again.values)):
        number = (front.lines if front else 0) + (line.number if line else 1)
        raise BrokenFrontMatter(
            number, "broken front matter: this says who may see the text, but does not stand between two lines ---"
        )
    if front is None:
        return None, content
    taken = len(text[: front.end_char].encode(encoding, errors))
    return front, mark + content[len(mark) + taken :]


def _encoding(content: bytes) -> tuple[bytes, str]:
    """The mark that the content begins with, and its encoding, as far as that shows."""
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return mark, encoding
    return b"", next((encoding for pattern, encoding in _UNMARKED if pattern.match(content)), "utf-8")
