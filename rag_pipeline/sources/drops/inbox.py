"""The inbox: files that wait, and where they go when they were taken or refused.

```
inbox/<name>                         waits
inbox/accepted/<day>/<name>          was taken in on that day
inbox/rejected/<name>                cannot be taken, beside <name>.reason.txt
inbox/.notes/<subject>/<note>        what those who drop things remember of them, by the names of empty files
```

A file is only ever moved, never changed. Several processes may work on one inbox: who comes second finds the file gone,
which is no error. What a file holds is the business of `parse`.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path

import fsspec

from rag_pipeline.errors import ItemError
from rag_pipeline.sources.drops.local_storage import LocalStorage
from rag_pipeline.sources.drops.remote_storage import RemoteStorage
from rag_pipeline.sources.drops.storage import Storage

_ACCEPTED, _REJECTED, _REASON = "accepted", "rejected", ".reason.txt"
_NOTES = ".notes"
_UNFINISHED = (".tmp", ".part", ".partial", ".crdownload", ".swp", "~")
_FORBIDDEN = re.compile(r"[/\\\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_MAX_NAME_BYTES = 255
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_CLOCK_SKEW_S = 60.0  # a file from further in the future comes from a wrong clock, not from a moment ago


@dataclass(frozen=True, slots=True, kw_only=True)
class DropFile:
    """A file that waits in the inbox."""

    name: str
    size: int
    modified_at: datetime


class Inbox:
    """A folder, or any fsspec URL, that knowledge is dropped into.

    A name that cannot be a drop's raises ItemError: one with separators or control characters, hidden, longer than
    255 bytes, of an unfinished file (`*.tmp`, `*.part`, …), or `accepted` or `rejected`. `waiting` does not list these;
    `unusable` lists those of finished files, `ignored` what is no file.
    """

    def __init__(self, url: str) -> None:
        self._storage = _storage(url)

    def waiting(self, *, now: datetime, settle_s: float) -> list[DropFile]:
        """What can be taken, oldest first, then by name; empty when there is no inbox.

        A file that changed less than `settle_s` ago is still being written. Links and folders are left alone.
        """
        found = [
            DropFile(name=name, size=size, modified_at=modified_at)
            for name, size, modified_at in self._storage.files("")
            if _is_drop_name(name) and not -_CLOCK_SKEW_S < (now - modified_at).total_seconds() < settle_s
        ]
        return sorted(found, key=lambda file: (file.modified_at, file.name))

    def unusable(self, *, now: datetime, settle_s: float) -> list[DropFile]:
        """Finished files that cannot be taken because of their names."""
        return [
            DropFile(name=name, size=size, modified_at=modified_at)
            for name, size, modified_at in self._storage.files("")
            if _is_unusable(name) and not -_CLOCK_SKEW_S < (now - modified_at).total_seconds() < settle_s
        ]

    def reject_unusable(self, file: DropFile) -> str:
        """Move such a file to `rejected/` under a name of its own; why it was rejected, with its name spelt out."""
        shown = ascii(file.name) if len(file.name) <= 300 else f"{file.name[:300]!a}…"
        reason = (
            f"{shown} cannot be the name of a drop: it must be UTF-8 text of at most {_MAX_NAME_BYTES} bytes without "
            "line breaks, backslashes and other control characters: rename the file, and drop it again"
        )
        name = file.name.encode("utf-8", "surrogatepass")
        digest = hashlib.blake2b(name, digest_size=6).hexdigest()
        safe = _FORBIDDEN.sub("_", file.name).lstrip(".") or "drop"
        if self._is_still(file.name, file):
            self._move(file.name, _REJECTED, reason=reason, to=_marked(safe, f".{digest}", room=len(_REASON)))
        return reason

    def ignored(self) -> list[str]:
        """Names of folders, links and whatever else is not a file, which stay where they are."""
        names = [*self._storage.folders(""), *self._storage.others("")]
        return sorted(name for name in names if not name.startswith(".") and name not in (_ACCEPTED, _REJECTED))

    def read(self, name: str, *, max_bytes: int) -> bytes:
        """The file's content.

        Raises:
            ItemError: it is larger than `max_bytes`, or may not be read.
            FileNotFoundError: it is gone: another process took it.
        """
        content = self._storage.read(_checked(name), limit=max_bytes + 1)
        if len(content) > max_bytes:
            raise ItemError(f"{name} is larger than {max_bytes:,} bytes (drops.max_drop_bytes)")
        return content

    def put(self, name: str, content: bytes) -> bool:
        """Drop a file: on disk, whole, when this returns; False, with nothing written, when the name is known."""
        if self._is_accepted(_checked(name)) or not self._storage.create(name, content):
            return False
        if self._is_accepted(name):
            # Another process took one of this name in between the look and the writing.
            self._storage.remove(name)
            return False
        return True

    def knows(self, name: str) -> bool:
        """Whether a file of this name waits or was accepted, on whatever day."""
        return self._storage.find(_checked(name)) is not None or self._is_accepted(name)

    def accept(self, name: str, *, day: date, seen: DropFile | None = None) -> str | None:
        """Move a file to `accepted/<day>/`; its name there, or None when it is gone.

        With `seen`, the file as it was listed before it was read: one that was replaced since stays and waits.
        """
        if self._is_still(_checked(name), seen):
            return self._move(name, f"{_ACCEPTED}/{day.isoformat()}", reason=None)
        return None

    def reject(self, name: str, *, reason: str, seen: DropFile | None = None) -> None:
        """Move a file to `rejected/`, beside its reason; no error when it is gone. `seen` is as for `accept`."""
        if self._is_still(_checked(name), seen):
            self._move(name, _REJECTED, reason=reason)

    def reject_part(self, name: str, content: bytes, *, reason: str) -> None:
        """Keep a part that could not be taken, such as lines of an accepted file, in `rejected/` beside its reason.

        Its name carries a hash of the content: a part that is rejected again, as after a crash, is there once.
        """
        digest = hashlib.blake2b(content, digest_size=6).hexdigest()
        target = f"{_REJECTED}/{_marked(_checked(name), f'.{digest}', room=len(_REASON))}"
        self._explain(target, reason)
        self._storage.create(target, content)

    def accepted_days(self) -> list[date]:
        """Days that something was accepted on."""
        return sorted(date.fromisoformat(day) for day in self._storage.folders(_ACCEPTED) if _DAY.fullmatch(day))

    def accepted(self, day: date) -> list[DropFile]:
        """The files that were accepted on a day; `content` takes `accepted/<day>/<name>`."""
        return [
            DropFile(name=name, size=size, modified_at=modified_at)
            for name, size, modified_at in self._storage.files(f"{_ACCEPTED}/{day.isoformat()}")
            if _is_drop_name(name)
        ]

    def archived(self) -> list[str]:
        """Paths of all that was accepted or rejected, reasons included; `content` and `remove` take them."""
        folders = [_REJECTED, *(f"{_ACCEPTED}/{day}" for day in self._storage.folders(_ACCEPTED))]
        return sorted(f"{folder}/{file.name}" for folder in folders for file in self._storage.files(folder))

    def content(self, path: str) -> bytes:
        """All of a file in the inbox or its archive; nothing when it is gone."""
        found = self._storage.find(path)
        return self._storage.read(path, limit=found.size) if found else b""

    def remove(self, path: str) -> None:
        """Remove a file for good, with the reason beside it."""
        self._storage.remove(path)
        if path.startswith(f"{_REJECTED}/"):
            self._storage.remove(path + _REASON)

    def notes(self, subject: str) -> list[str]:
        """What was noted of a subject, in order of the notes."""
        return sorted(file.name for file in self._storage.files(f"{_NOTES}/{_checked(subject)}"))

    def note(self, subject: str, note: str) -> None:
        """Note something, durably; once is enough."""
        self._storage.create(f"{_NOTES}/{_checked(subject)}/{_checked(note)}", b"")

    def remove_note(self, subject: str, note: str) -> None:
        """Take a note back; no error when it is gone."""
        self._storage.remove(f"{_NOTES}/{_checked(subject)}/{_checked(note)}")

    def replace(self, name: str, content: bytes) -> None:
        """Let a file that waits hold something else."""
        self._storage.replace(_checked(name), content)

    def _is_still(self, name: str, seen: DropFile | None) -> bool:
        file = self._storage.find(name)
        return file is not None and (seen is None or (file.size, file.modified_at) == (seen.size, seen.modified_at))

    def _move(self, name: str, folder: str, *, reason: str | None, to: str | None = None) -> str | None:
        """Move a file to the first free name; where it is already, only the one in the inbox goes."""
        for candidate in _candidates(to or name, room=0 if reason is None else len(_REASON)):
            target = f"{folder}/{candidate}"
            is_there = self._storage.find(target) is not None
            if is_there and not self._storage.same(name, target):
                continue
            # The reason first: after a crash in between, the file waits and is rejected again.
            if reason is not None:
                self._explain(target, reason)
            if is_there and reason is not None:
                self._storage.remove(name)
                return candidate
            if is_there:
                # The later time is kept: it says which state of a file without a date of its own is the newest.
                self._storage.remove(target)
            try:
                self._storage.move(name, target)
            except FileExistsError:
                continue
            except FileNotFoundError:
                if reason is not None and self._storage.find(target) is None:
                    self._storage.remove(target + _REASON)
                return None
            return candidate
        return None

    def _explain(self, target: str, reason: str) -> None:
        self._storage.replace(target + _REASON, f"{reason.strip()}\n".encode("utf-8", "replace"))

    def _is_accepted(self, name: str) -> bool:
        days = [f"{_ACCEPTED}/{day}/{name}" for day in sorted(self._storage.folders(_ACCEPTED), reverse=True)]
        if isinstance(self._storage, LocalStorage):
            return any(self._storage.find(path) for path in days)
        # An object store answers in tens of milliseconds, and GitHub waits ten seconds.
        with ThreadPoolExecutor(max_workers=16) as pool:
            return any(pool.map(self._storage.find, days))


def _storage(url: str) -> Storage:
    filesystem, root = fsspec.core.url_to_fs(url)
    protocols = filesystem.protocol if isinstance(filesystem.protocol, tuple) else (filesystem.protocol,)
    return LocalStorage(Path(root)) if "file" in protocols else RemoteStorage(filesystem, str(root).rstrip("/"))


def _is_drop_name(name: str) -> bool:
    return _is_for_us(name) and not _is_unusable(name)


def _is_for_us(name: str) -> bool:
    """Whether a file of this name is finished, and neither hidden nor one of our folders."""
    return not (
        not name or name.startswith(".") or name in (_ACCEPTED, _REJECTED) or name.lower().endswith(_UNFINISHED)
    )


def _is_unusable(name: str) -> bool:
    return _is_for_us(name) and bool(
        _FORBIDDEN.search(name) or len(name.encode("utf-8", "surrogatepass")) > _MAX_NAME_BYTES
    )


def _checked(name: str) -> str:
    if not _is_drop_name(name):
        raise ItemError(
            f"{name[:300]!r} cannot be the name of a drop: it must be a plain file name of at most {_MAX_NAME_BYTES} "
            "bytes, not hidden and without a suffix that marks unfinished files"
        )
    return name


def _candidates(name: str, *, room: int) -> Iterator[str]:
    """The name, then with numbers before its suffix."""
    yield _marked(name, "", room=room)
    for number in itertools.count(2):
        yield _marked(name, f".{number}", room=room)


def _marked(name: str, mark: str, *, room: int) -> str:
    """The name with a mark before its suffix, cut where there would be no room for what is appended to it."""
    suffix = Path(name).suffix if len(Path(name).suffix.encode()) <= 20 else ""
    limit = _MAX_NAME_BYTES - room - len((mark + suffix).encode())
    return name.removesuffix(suffix).encode()[:limit].decode("utf-8", "ignore") + mark + suffix
