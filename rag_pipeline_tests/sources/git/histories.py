"""Random histories of a repository, made by `git fast-import` in one process, with the states they must lead to."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path

from hypothesis import strategies as st

START = datetime(2024, 1, 1, tzinfo=UTC)
PATHS = ("a.md", "sub/c.md", "gen/e.py", "f.bin")
_RULES = (
    "", "gen/* linguist-generated\n", "*.md linguist-vendored\n", "[attr]made linguist-generated\n",
    "a.md linguist-vendored\ngen/* -linguist-generated\n",
)  # fmt: skip
_SUB_RULES = ("", "*.md linguist-generated\n", "*.md made\n", "*.md -linguist-vendored\n")

Tree = dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Commit:
    """A commit of the model: its number is its mark."""

    parents: tuple[int, ...]
    tree: Tree
    at: int


@dataclass(kw_only=True)
class Epoch:
    """What happened before one fetch: the commits so far, where the branch then stands, and the runs that follow."""

    commits: list[Commit]
    head: int
    fetched_at: datetime
    runs: list[tuple[date, date]] = field(default_factory=list)


@st.composite
def _trees(draw: st.DrawFn, tree: Tree) -> Tree:
    tree = dict(tree)
    for _ in range(draw(st.sampled_from((0, 1, 1, 2)))):
        action = draw(st.sampled_from(("write", "write", "delete", "rename", "rules", "rules")))
        path = draw(st.sampled_from(PATHS))
        if action == "write":
            tree[path] = "".join(f"line {draw(st.integers(0, 1))} of {n}\n" for n in range(3))
        elif action == "delete":
            tree.pop(path, None)
        elif action == "rename" and path in tree:
            tree[draw(st.sampled_from(PATHS))] = tree.pop(path)
        elif action == "rules":
            name, rules = draw(st.sampled_from(((".gitattributes", _RULES), ("sub/.gitattributes", _SUB_RULES))))
            tree[name] = draw(st.sampled_from(rules))
    return tree


@st.composite
def _commits(draw: st.DrawFn, known: list[Commit], clock: datetime) -> Commit:
    parents: tuple[int, ...] = ()
    if known:
        # Mostly the newest, so that there are chains; now and then an old one, or none at all.
        newest = len(known) - 1
        first = draw(st.sampled_from((newest, newest, newest, newest, draw(st.integers(-1, newest)))))
        second = draw(st.sampled_from((-1, -1, draw(st.integers(-1, newest)))))
        parents = tuple(dict.fromkeys(mark for mark in (first, second) if mark >= 0))
    base = known[parents[0]].tree if parents else dict.fromkeys(PATHS, "first\n")
    hours = draw(st.sampled_from((0, -3, -10, -30, -60, -400, 20, 60, 40000)))
    at = max(0, int((clock + timedelta(hours=hours)).timestamp()))
    return Commit(parents=parents, tree=draw(_trees(base)), at=draw(st.sampled_from((at, at, at, 0))))


@st.composite
def histories(draw: st.DrawFn, *, max_epochs: int = 4) -> list[Epoch]:
    """Epochs of one repository; between two of them the branch may have grown, been reset or been rewritten."""
    commits: list[Commit] = []
    epochs = []
    clock = START
    for _ in range(draw(st.integers(2, max_epochs))):
        clock += timedelta(hours=draw(st.sampled_from((30, 0, 1, 75))), seconds=60)
        for _ in range(draw(st.integers(0 if commits else 1, 4))):
            commits = [*commits, draw(_commits(commits, clock))]
        head = draw(st.sampled_from((len(commits) - 1, draw(st.integers(0, len(commits) - 1)))))
        epochs.append(Epoch(commits=commits, head=head, fetched_at=clock, runs=draw(_runs(clock.date()))))
    return epochs


@st.composite
def _runs(draw: st.DrawFn, today: date) -> list[tuple[date, date]]:
    span = (today - START.date()).days
    found = []
    for _ in range(draw(st.integers(0, 3))):
        first = draw(st.integers(-2, span))
        last = draw(st.integers(first, span))
        found.append((START.date() + timedelta(days=first), START.date() + timedelta(days=last)))
    return found


@st.composite
def covers(draw: st.DrawFn, first: date, last: date) -> list[tuple[date, date]]:
    """Windows that together cover the days, in any order, some overlapping, some twice."""
    days = (last - first).days + 1
    cuts = sorted(draw(st.sets(st.integers(1, days - 1), max_size=4))) if days > 1 else []
    edges = [0, *cuts, days]
    windows = [(first + timedelta(days=a), first + timedelta(days=b - 1)) for a, b in pairwise(edges)]
    windows += draw(st.lists(st.sampled_from(windows), max_size=2))
    if draw(st.booleans()):
        windows.append((first, last))
    return draw(st.permutations(windows))


class Repository:
    """A bare repository that is brought to the states of the epochs, one after the other."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._written = 0
        subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=main", str(path)], check=True)

    def advance(self, epoch: Epoch) -> None:
        """Write the epoch's new commits and move the branch."""
        marks = str(self.path / "marks")
        script = []
        for mark, commit in enumerate(epoch.commits[self._written :], start=self._written + 1):
            script += [
                f"commit refs/heads/c{mark}",
                f"mark :{mark}",
                f"committer Ada <ada@x> {commit.at} +0000",
                "data 0",
            ]
            script += [f"{word} :{parent + 1}" for word, parent in zip(("from", "merge"), commit.parents, strict=False)]
            script.append("deleteall")
            for path, text in commit.tree.items():
                script += [f"M 100644 inline {path}", f"data {len(text)}", text]
        self._written = len(epoch.commits)
        script += ["reset refs/heads/main", f"from :{epoch.head + 1}", ""]
        options = ["--quiet", "--force", f"--import-marks-if-exists={marks}", f"--export-marks={marks}"]
        git = ["git", "--git-dir", str(self.path), "fast-import", *options]
        subprocess.run(git, input="\n".join(script).encode(), check=True, capture_output=True)


def snapshot(tree: Tree) -> dict[str, bytes]:
    """What an index of this state holds: by rules of the model, independent of the code under test."""
    top, sub = tree.get(".gitattributes", ""), tree.get("sub/.gitattributes", "")
    gone = {path for path in tree if path.endswith((".bin", ".gitattributes"))}
    if "gen/* linguist-generated" in top:
        gone |= {"gen/e.py"}
    if "*.md linguist-vendored" in top:
        gone |= {"a.md"} | ({"sub/c.md"} if "-linguist-vendored" not in sub else set())
    if "a.md linguist-vendored" in top:
        gone |= {"a.md"}
    if "*.md linguist-generated" in sub or ("*.md made" in sub and "[attr]made" in top):
        gone |= {"sub/c.md"}
    return {path: text.encode() for path, text in tree.items() if path not in gone}
