"""What is indexed: a repository's files, or many files from installed packages, and how they change."""

from __future__ import annotations

import hashlib
import os
import random
import re
import subprocess
import sysconfig
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from rag_pipeline.errors import ConfigError
from rag_pipeline.settings import GitLimits
from rag_pipeline.sources.git.file_kinds import kind_of, skip_by_content, skip_by_path, skip_by_size
from rag_pipeline_tests.bench.files import files_of
from rag_pipeline_tests.bench.place import Place, place_for

SHARE: Final = 100
"""One in so many files is changed."""
EDITED: Final = 20
REMOVED: Final = 20
QUESTIONS: Final = 200
_WORD = re.compile(r"(?<![\w/.<`:*_-])[a-z]{5,12}(?![\w/.>`:*_-])")
_LINES_CHANGED: Final = 3
_AGE: Final = timedelta(days=30)
"""Of the files before they are changed, as those of most repositories are older than their last change."""

_OF_FAKE_VECTORS: Final = '[quality]\naccepted = ["knowledge_index.graph_recall"]\n'
"""No graph finds nine of ten neighbours among half a million of them, and a run would say so by failing. How many each
system finds is in the table."""


@dataclass(kw_only=True)
class Corpus:
    """The same files twice: in a git repository, which is what the pipeline reads, and in a folder, for the others."""

    name: str
    place: Place
    files: dict[str, bytes]
    """Those that the pipeline would index, by path; as they are now."""
    _chance: random.Random = field(default_factory=lambda: random.Random(8))
    _touched: set[str] = field(default_factory=set)

    @property
    def folder(self) -> Path:
        """Nothing but these files."""
        return self.place.folder / "files"

    @property
    def megabytes(self) -> float:
        return sum(map(len, self.files.values())) / 1e6

    def change_a_share(self) -> int:
        """Replace a word on each of three lines in one percent of the files; how many files that is."""
        chosen = self._choose(max(1, round(len(self.files) / SHARE)))
        return self._write({path: _changed(self.files[path], _LINES_CHANGED, "zebra") for path in chosen})

    def edit_words(self) -> int:
        """Replace one word in each of some files."""
        return self._write({path: _changed(self.files[path], 1, "giraffe") for path in self._choose(EDITED)})

    def remove(self) -> list[str]:
        """Delete some files; their paths."""
        chosen = self._choose(REMOVED)
        for path in chosen:
            (self.folder / path).unlink()
            (self.place.clone / path).unlink()
            del self.files[path]
        self._commit("Remove files")
        return chosen

    def questions(self) -> list[str]:
        """Sentences of the files."""
        found: dict[str, None] = {}
        for path in self._chance.sample(sorted(self.files), len(self.files)):
            lines = [line.strip(" #\"'*-") for line in self.files[path].decode("utf-8", "replace").split("\n")]
            sentences = [line for line in lines if _is_sentence(line)]
            found |= dict.fromkeys(self._chance.sample(sentences, min(3, len(sentences))))
            if len(found) >= QUESTIONS:
                break
        return list(found)[:QUESTIONS]

    def _choose(self, count: int) -> list[str]:
        """Files that were not touched yet and have lines enough to change."""
        fit = [path for path, content in sorted(self.files.items())
               if path not in self._touched and len(_lines_with_words(_text(content))) >= _LINES_CHANGED]  # fmt: skip
        if len(fit) < count:
            raise ConfigError(f"the corpus {self.name} has {len(fit)} files to change, not {count}: take a larger one")
        chosen = self._chance.sample(fit, count)
        self._touched |= set(chosen)
        return chosen

    def _write(self, contents: dict[str, bytes]) -> int:
        for path, content in contents.items():
            (self.folder / path).write_bytes(content)
            (self.place.clone / path).write_bytes(content)
            self.files[path] = content
        self._commit("Change files")
        return len(contents)

    def _commit(self, message: str) -> None:
        self.place.git("add", "--all")
        self.place.git("commit", "--quiet", "--no-verify", "--message", message)


@contextmanager
def corpus_of_repository(repository: str) -> Iterator[Corpus]:
    """The docs and code of its newest commit; the pipeline gets its whole history, from a week ago on by days."""
    with place_for(repository, start_date=(datetime.now(UTC) - timedelta(days=7)).date()) as place:
        found = files_of(str(place.clone))
        files = {path: content for same in found.by_kind.values() for path, content in same}
        name = Path(repository).resolve().name if Path(repository).exists() else repository
        yield _with_folder(Corpus(name=name, place=place, files=files))


@contextmanager
def corpus_of_packages(count: int, packages: Path | None = None) -> Iterator[Corpus]:
    """So many files below a site-packages folder, by default this environment's, chosen by a hash of their paths."""
    source = packages or Path(sysconfig.get_path("purelib"))
    paths = sorted(_candidates(source), key=lambda path: hashlib.blake2b(path.encode()).digest())
    files: dict[str, bytes] = {}
    for path in paths:
        if len(files) == count:
            break
        content = (source / path).read_bytes()
        if _is_indexed(path, content):
            files[path] = content
    if len(files) < count:
        raise ConfigError(f"{source} has {len(files):,} files to index, not {count:,}: name another with --packages")
    with TemporaryDirectory(prefix="rag-bench-corpus-") as folder:
        _write_all(Path(folder), files)
        identity = ("-c", "user.name=Bench", "-c", "user.email=bench@example.org")
        written = (datetime.now(UTC) - _AGE).isoformat()
        env = os.environ | {"GIT_AUTHOR_DATE": written, "GIT_COMMITTER_DATE": written}
        for command in (("init", "--quiet"), ("add", "--all", "--force"), (*identity, "commit", "-qm", "Files")):
            subprocess.run(["git", "-C", folder, *command], check=True, env=env)
        week_ago = (datetime.now(UTC) - timedelta(days=7)).date()
        with place_for(folder, start_date=week_ago, more=_OF_FAKE_VECTORS) as place:
            yield _with_folder(Corpus(name=f"{count:,} files of installed packages", place=place, files=files))


def _with_folder(corpus: Corpus) -> Corpus:
    _write_all(corpus.folder, corpus.files)
    return corpus


def _write_all(folder: Path, files: dict[str, bytes]) -> None:
    for path, content in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


def _candidates(source: Path) -> Iterator[str]:
    for found in source.rglob("*"):
        path = found.relative_to(source).as_posix()
        # What git would not take or checks out otherwise, and names that are in the way of each other elsewhere.
        plain = path.isascii() and not any(part.startswith(".") for part in path.split("/"))
        if plain and found.is_file() and not found.is_symlink():
            yield path


def _is_indexed(path: str, content: bytes) -> bool:
    limits = GitLimits()
    kind = kind_of(path)
    if kind is None or skip_by_path(path, generated=None, vendored=None):
        return False
    # Those with other line ends or encodings would not be the same bytes for everyone.
    if b"\r" in content or not _is_utf8(content):
        return False
    return not (
        skip_by_size(len(content), kind=kind, limits=limits)
        or skip_by_content(content, kind=kind, generated=None, limits=limits)
    )


def _is_utf8(content: bytes) -> bool:
    try:
        return "\0" not in content.decode("utf-8")
    except UnicodeDecodeError:
        return False


def _text(content: bytes) -> str:
    return content.decode("utf-8", "replace")


def _lines_with_words(text: str) -> list[int]:
    return [number for number, line in enumerate(text.split("\n")) if _WORD.search(line)]


def _changed(content: bytes, lines: int, word: str) -> bytes:
    """One word replaced on each of so many lines, which lie evenly in the text."""
    parts = _text(content).split("\n")
    places = _lines_with_words(_text(content))
    for n in range(lines):
        at = places[len(places) * (2 * n + 1) // (2 * lines)]
        parts[at] = _WORD.sub(word, parts[at], count=1)
    return "\n".join(parts).encode("utf-8")


def _is_sentence(line: str) -> bool:
    words = line.split()
    return 4 <= len(words) <= 16 and sum(word.isalpha() for word in words) >= 0.7 * len(words)


def removed_text(rows: Sequence[tuple[str, str]], paths: Sequence[str]) -> dict[str, str]:
    """The longest text of each path among rows of (path, text)."""
    found: dict[str, str] = {}
    for path, text in rows:
        if path in paths and len(text) > len(found.get(path, "")):
            found[path] = text
    return found
