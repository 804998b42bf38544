"""Parquet files per stage, repository and day: where they lie, how they are written whole or not at all.

Knows nothing of what the columns mean; `schemas` does.
"""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote
from uuid import uuid4

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq

from rag_pipeline.errors import DamagedPart, PartError, RefusedPart
from rag_pipeline.lake.refusals import ONE_FILE, spoken

_PREFIX = "rag."
_ROW_GROUP_BYTES = 4 << 20
"""Small groups cost: half a kilobyte a column of each stays in memory while a part is written, and while it is read."""
_TEMPORARY = re.compile(r"[.-][0-9a-f]{32}\.tmp$")
_DAY_FILE = re.compile(r"^(\d{4}-\d\d-\d\d)\.parquet$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One repository of one tenant on one day: the unit in which stage data is stored."""

    tenant: str
    repository: str
    day: date


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSize:
    """What a stage takes up in the lake."""

    files: int
    bytes: int


class PartWriter:
    """Writes one part's batches; set `fingerprint` and `tags` before the block that owns it ends."""

    def __init__(self, open_sink: Callable[[], Any], schema: pa.Schema) -> None:
        self._open_sink = open_sink
        self._schema = schema
        self._sink: Any = None
        self._writer: pq.ParquetWriter | None = None
        self._pending: list[pa.RecordBatch] = []
        self._pending_bytes = 0
        self.fingerprint = ""
        self.tags: dict[str, str] = {}
        self.rows = 0
        self.bytes = 0
        self.discarded = False
        """Whether the part stays as it was, whatever was added."""

    def add(self, batch: pa.RecordBatch) -> None:
        """Append a batch; what is appended is written in row groups of a few megabytes."""
        if batch.num_rows == 0:
            return
        self._pending.append(batch)
        self._pending_bytes += batch.nbytes
        self.rows += batch.num_rows
        if self._pending_bytes >= _ROW_GROUP_BYTES:
            self._write()

    def _write(self) -> None:
        if self._writer is None:
            self._sink = self._open_sink()
            self._writer = pq.ParquetWriter(
                self._sink, self._schema, compression="zstd", write_statistics=False, use_dictionary=False,
                write_page_checksum=True,
            )  # fmt: skip
        self._writer.write_table(pa.Table.from_batches(self._pending))
        self._pending, self._pending_bytes = [], 0

    def close(self) -> None:
        """Write what is left and the footer with the tags, and close the file; without a row there is none."""
        if self._pending:
            self._write()
        if self._writer is None:
            return
        noted = {"fingerprint": self.fingerprint, **self.tags}
        self._writer.add_key_value_metadata({f"{_PREFIX}{key}": value for key, value in noted.items()})
        self._writer.close()
        self._sink.close()
        self._writer = self._sink = None

    def abandon(self) -> None:
        """Drop what is still open after an error."""
        writer, sink, self._writer, self._sink = self._writer, self._sink, None, None
        self._pending, self._pending_bytes = [], 0
        for opened in (writer, sink):
            # On a full disk closing fails as writing did, and what failed first is what shall be told.
            with contextlib.suppress(OSError, pa.ArrowException):
                if opened is not None:
                    opened.close()


class Lake:
    """Stage data under one fsspec URL (a local folder, s3://, gs://, …).

    A reader never sees half a file: a part is written under a temporary name and renamed, or for an object store
    uploaded whole, which publishes it when the upload ends.
    """

    def __init__(self, url: str) -> None:
        filesystem, root = fsspec.core.url_to_fs(url)
        self._fs: Any = filesystem
        self._root = str(root).rstrip("/")
        self._local = "file" in (
            filesystem.protocol if isinstance(filesystem.protocol, tuple) else (filesystem.protocol,)
        )

    def path(self, stage: str, part: Part) -> str:
        """Where a part of a stage lies."""
        return f"{self._folder(stage, part.tenant, part.repository)}/{part.day.isoformat()}.parquet"

    def days(self, stage: str, *, tenant: str, repository: str) -> list[date]:
        """Days for which the stage holds a file of this repository, in order."""
        names = self._names(self._folder(stage, tenant, repository))
        return sorted(date.fromisoformat(match[1]) for name in names if (match := _DAY_FILE.match(name)))

    def exists(self, stage: str, part: Part) -> bool:
        """Whether there is a file, damaged or not."""
        return bool(self._fs.exists(self.path(stage, part)))

    def fingerprint(self, stage: str, part: Part) -> str | None:
        """The fingerprint a part was written with; None when there is no such file or it cannot be read."""
        tags = self.tags(stage, part)
        return tags.get("fingerprint") if tags else None

    def schema(self, stage: str, part: Part) -> pa.Schema | None:
        """The columns of a part, from its footer; None when there is no such file.

        Raises:
            DamagedPart, RefusedPart: the file is there and cannot be read.
        """
        try:
            with self._open(self.path(stage, part)) as file:
                return pq.ParquetFile(file).schema_arrow
        except FileNotFoundError:
            return None
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(self.path(stage, part), stage, part, error) from error

    def tags(self, stage: str, part: Part, *, owned: bool = True) -> dict[str, str] | None:
        """All that was noted with a part, `rows` included; None when there is no such file or it cannot be read.

        A damaged file counts as absent, because the stage that owns it makes it again. Whoever does not own it says
        so: what stands there unreadable is not taken for nothing.

        Raises:
            DamagedPart: of one that is not `owned`: the file is damaged, or is not one of ours.
            RefusedPart: of one that is not `owned`: the file may not be read.
        """
        path = self.path(stage, part)
        try:
            with self._open(path) as file:
                footer = pq.ParquetFile(file).metadata
        except FileNotFoundError:
            return None
        except (pa.ArrowException, OSError) as error:
            if owned:
                return None
            raise _unreadable(path, stage, part, error) from error
        noted = {
            k.decode().removeprefix(_PREFIX): v.decode()
            for k, v in (footer.metadata or {}).items()
            if k.startswith(_PREFIX.encode())
        }
        if not owned and "fingerprint" not in noted:
            raise _damaged(path, stage, part, "it was not written by this pipeline")
        return noted | {"rows": str(footer.num_rows)}

    def read(self, stage: str, part: Part, *, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The part's record batches in order, a row group in memory at a time; nothing when there is no such file.

        Raises:
            DamagedPart, RefusedPart: the file is there and cannot be read.
        """
        path = self.path(stage, part)
        try:
            with self._open(path) as file:
                parquet = pq.ParquetFile(file, page_checksum_verification=True)
                # Asked for all of them at once, Arrow reads the whole file ahead and keeps it until the last batch.
                for group in range(parquet.num_row_groups):
                    yield from parquet.iter_batches(batch_size=1024, row_groups=[group], columns=columns)
        except FileNotFoundError:
            return
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(path, stage, part, error) from error

    def read_or_give_up(
        self, stage: str, part: Part, *, columns: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:  # fmt: skip
        """As `read`; a damaged part is emptied, so that what it held is gone, and its owner makes it again.

        Raises:
            RefusedPart: the file is there and may not be read.
        """
        try:
            yield from self.read(stage, part, columns=columns)
        except DamagedPart:
            if not self.give_up(stage, part):
                raise

    @contextlib.contextmanager
    def writer(self, stage: str, part: Part, *, schema: pa.Schema) -> Iterator[PartWriter]:
        """A writer that replaces the part when the block ends without an error; with no rows at all it removes it."""
        path = self.path(stage, part)
        target = Path(f"{path}.{uuid4().hex}.tmp" if self._local else f"{tempfile.gettempdir()}/rag-{uuid4().hex}.tmp")
        writer = PartWriter(lambda: _new_file(target), schema)
        try:
            yield writer
            if writer.discarded:
                return
            if not writer.rows:
                self.remove(stage, part)
                return
            writer.close()
            writer.bytes = target.stat().st_size
            if self._local:
                target.replace(path)
            else:
                self._fs.put_file(str(target), path)
        except OSError as error:
            refused = spoken(error, where=error.filename2 or error.filename or path)
            if refused is None:
                raise
            if error.errno in ONE_FILE and error.filename2 == path:
                raise RefusedPart(str(refused), stage=stage, part=part) from error
            raise refused from error
        finally:
            writer.abandon()
            target.unlink(missing_ok=True)

    def repositories(self, stage: str) -> list[tuple[str, str]]:
        """(tenant, repository) of everything the stage holds."""
        root = f"{self._root}/{stage}"
        found = [(tenant, name) for tenant in self._names(root) for name in self._names(f"{root}/{tenant}")]
        return sorted((unquote(tenant), unquote(name)) for tenant, name in found)

    def sizes(self) -> dict[str, StageSize]:
        """What each stage takes up; lists every file, which takes a while in a large lake far away."""
        self._fs.invalidate_cache(self._root)
        found: dict[str, StageSize] = {}
        try:
            listed = self._fs.find(self._root, detail=True)
        except FileNotFoundError:
            return {}
        for path, about in listed.items():
            stage = str(path)[len(self._root) :].lstrip("/").split("/")[0]
            known = found.get(stage, StageSize(files=0, bytes=0))
            found[stage] = StageSize(files=known.files + 1, bytes=known.bytes + int(about["size"]))
        return dict(sorted(found.items()))

    def remove(self, stage: str, part: Part) -> bool:
        """Remove a part; False when there was none.

        Raises:
            RefusedPart: the system does not let us.
        """
        path = self.path(stage, part)
        try:
            self._fs.rm_file(path)
        except FileNotFoundError:
            return False
        except OSError as error:
            refused = spoken(error, where=path)
            if refused is None:
                raise
            raise RefusedPart(str(refused), stage=stage, part=part) from error
        return True

    def give_up(self, stage: str, part: Part) -> bool:
        """Make it plain that a part cannot be read, so that its owner makes it again; False when it can be read.

        A footer may be whole where the pages are not, and only who reads the pages finds out. What could not be read
        once is read once more before anything is changed: a network may have been at fault.
        """
        try:
            for _ in self.read(stage, part):
                pass
            whole = self.fingerprint(stage, part) is not None
        except DamagedPart:
            whole = False
        except RefusedPart:
            return True
        if not whole and self.exists(stage, part):
            self._fs.pipe_file(self.path(stage, part), b"")
        return not whole

    def substages(self, stage: str) -> list[str]:
        """Stages below this one, as there is one of vectors for each embedding space."""
        return sorted(f"{stage}/{name}" for name in self._names(f"{self._root}/{stage}"))

    def remove_folder(self, stage: str, *, tenant: str, repository: str) -> None:
        """Remove a repository's folder when nothing is left in it, and the tenant's then; an object store has none."""
        if not self._local:
            return
        folder = Path(self._folder(stage, tenant, repository))
        for empty in (folder, folder.parent):
            with contextlib.suppress(OSError):
                empty.rmdir()

    def remove_abandoned(self, *, before: datetime) -> tuple[int, int]:
        """Remove temporary files that nobody has written to since; how many they were, and their bytes.

        A writer that was killed leaves one. Of an object store they lie on this machine, and it sees only its own.
        """
        folder, files = (self._root, "**/*.parquet.*.tmp") if self._local else (tempfile.gettempdir(), "rag-*.tmp")
        removed = held = 0
        for path in Path(folder).glob(files):
            with contextlib.suppress(FileNotFoundError):
                seen = path.stat()
                if _TEMPORARY.search(path.name) and seen.st_mtime < before.timestamp():
                    path.unlink()
                    removed, held = removed + 1, held + seen.st_size
        return removed, held

    def _folder(self, stage: str, tenant: str, repository: str) -> str:
        return f"{self._root}/{stage}/{_folder_name(tenant)}/{_folder_name(repository)}"

    def _names(self, folder: str) -> list[str]:
        if self._local:
            try:
                return [entry.name for entry in Path(folder).iterdir()]
            except (FileNotFoundError, NotADirectoryError):
                return []
        self._fs.invalidate_cache(folder)
        try:
            return [str(path).rstrip("/").rsplit("/", 1)[-1] for path in self._fs.ls(folder, detail=False)]
        except FileNotFoundError:
            return []

    def _open(self, path: str) -> Any:
        return Path(path).open("rb") if self._local else self._fs.open(path, "rb")


def whole_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches up to the first that cannot be read: for who can do without the others."""
    with contextlib.suppress(PartError):
        yield from batches


def _unreadable(path: str, stage: str, part: Part, error: Exception) -> PartError:
    """What the system refuses is told from what Arrow cannot make sense of."""
    refused = spoken(error, where=path)
    return RefusedPart(str(refused), stage=stage, part=part) if refused else _damaged(path, stage, part, error)


def _damaged(path: str, stage: str, part: Part, error: object) -> DamagedPart:
    # Arrow's words may be several lines.
    said = " ".join(str(error).split())
    return DamagedPart(
        f"{path} is damaged ({said}): if the next refresh does not make it again, "
        f"delete that file, then materialize {stage} for {part.day} again",
        stage=stage,
        part=part,
    )


def _new_file(path: Path) -> Any:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.open("wb")


def _folder_name(name: str) -> str:
    """A name as one folder, whatever is in it; `..` must not lead out of the lake."""
    quoted = quote(name, safe="")
    return f"%2E{quoted[1:]}" if quoted.startswith(".") else quoted
