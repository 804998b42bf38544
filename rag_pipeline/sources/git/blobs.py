"""Reading objects of a mirror through long-lived git processes: two, however many files there are."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from rag_pipeline.sources.git.command import git_failed, open_git

_SIZES, _CONTENTS = ("--batch-check=%(objectname) %(objectsize)", "--batch")


class BlobReader:
    """Sizes and contents of objects; the processes start when first asked. A context manager."""

    def __init__(self, git_dir: Path) -> None:
        self._git_dir = git_dir
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> BlobReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the processes; asking again starts new ones."""
        for process in self._processes.values():
            # Nothing is waiting to be written or worth waiting for: an unfinished answer must not block the end.
            process.kill()
            process.communicate()
        self._processes.clear()

    def sizes(self, blobs: Sequence[str]) -> list[int]:
        """Sizes in bytes, in the order asked.

        Raises:
            PermanentError: an object is missing: the mirror is damaged.
        """
        return [int(self._found(line)[1]) for line in self._ask(_SIZES, blobs)]

    def contents(self, blobs: Sequence[str]) -> Iterator[bytes]:
        """Contents in the order asked, one in memory at a time; draw all of them before asking again.

        Raises:
            PermanentError: an object is missing: the mirror is damaged.
        """
        for line in self._ask(_CONTENTS, blobs):
            yield self._body(int(self._found(line)[2]))

    def find(self, name: str) -> bytes | None:
        """The content of an object by any name git understands, such as `COMMIT:path`; None when there is none."""
        line = next(iter(self._ask(_CONTENTS, [name])))
        if line.endswith((b" missing\n", b" submodule\n")):
            return None
        return self._body(int(self._found(line)[2]))

    def _ask(self, mode: str, names: Sequence[str]) -> Iterator[bytes]:
        if mode not in self._processes:
            self._processes[mode] = open_git(self._git_dir, "cat-file", mode)
        process = self._processes[mode]
        assert process.stdin is not None and process.stdout is not None
        # A pipe holds 64 KiB: asking for more at once than fits would block both sides.
        for start in range(0, len(names), 500):
            asked = names[start : start + 500]
            try:
                process.stdin.write(b"".join(name.encode() + b"\n" for name in asked))
                process.stdin.flush()
            except BrokenPipeError as error:
                raise git_failed("cat-file", self._git_dir, b"it ended early") from error
            for _ in asked:
                yield process.stdout.readline()

    def _found(self, line: bytes) -> list[bytes]:
        words = line.split()
        if len(words) < 2 or not words[-1].isdigit():
            raise git_failed("cat-file", self._git_dir, line)
        return words

    def _body(self, size: int) -> bytes:
        out = self._processes[_CONTENTS].stdout
        assert out is not None
        content = out.read(size)
        if len(content) < size or out.read(1) != b"\n":
            raise git_failed("cat-file", self._git_dir, b"the answer ended early")
        return content
