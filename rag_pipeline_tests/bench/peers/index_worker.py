"""Indexes and asks through one other library, in the environment of the other libraries.

`python -m rag_pipeline_tests.bench.peers.index_worker JOB RESULT`: JOB is a file that holds a `Job` as JSON.
Each library is used as its documentation shows it, in its best documented incremental mode, with its own splitter.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from rag_pipeline_tests.bench.peers.models import MODELS, Counted, Remembering


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is to be done."""

    peer: str
    variant: str
    """One of its `VARIANTS`, or `SHORT`."""
    model: str
    folder: str
    """Of the files."""
    url: str
    state: str
    """A folder for what the library keeps beside the database."""
    questions: str = ""
    """A file of questions to ask, instead of indexing."""
    memory: str = ""
    """A file of vectors."""
    recalls: bool = False
    """Those in the file are not computed again; otherwise they are only put there."""


class Peer(Protocol):
    """One library."""

    def refresh(self, folder: Path) -> None:
        """Bring the index to the state of the folder."""

    def ask(self, text: str, vector: list[float]) -> list[tuple[str, str]]:
        """Paths and texts of the ten nearest chunks, through the library's own retriever."""


HNSW: Final = "HNSW"
"""With the HNSW index that its documentation offers."""
BOOKKEEPING: Final = "own bookkeeping"
SHORT: Final = "HNSW, 160 tokens"
"""With that index and with chunks as long as ours are by default, so that both write and index about as many."""
SHORT_TOKENS: Final = 160
SHORT_CHARACTERS: Final = 520
"""Of a splitter that counts characters: as many of code as LlamaIndex's has in so many tokens (3.25 each)."""
VARIANTS: Final = {
    "LlamaIndex": ("", HNSW), "LangChain": ("", HNSW), "Haystack": ("", HNSW, BOOKKEEPING), "CocoIndex": ("", HNSW),
}  # fmt: skip
"""Ways to use each of them; the first is its default."""
TAKE_SHORT: Final = ("LlamaIndex", "CocoIndex")
"""Those that can be had in chunks of another length: the fastest of those that build an index."""
PEERS: Final = {
    "LlamaIndex": "with_llama_index", "LangChain": "with_langchain", "Haystack": "with_haystack",
    "CocoIndex": "with_cocoindex",
}  # fmt: skip


def read_files(folder: Path) -> list[tuple[str, str]]:
    """Paths below the folder and their texts, in order; PostgreSQL takes no NUL."""
    return [
        (path.relative_to(folder).as_posix(), path.read_text("utf-8", "replace").replace("\0", ""))
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    ]


def main(arguments: Sequence[str]) -> None:
    """See the module."""
    job_file, result = map(Path, arguments)
    job = Job(**json.loads(job_file.read_text("utf-8")))
    made = MODELS[job.model]()
    remembering = Remembering(made, Path(job.memory), recalls=job.recalls) if job.memory else None
    model = Counted(remembering or made)
    module = importlib.import_module(f"rag_pipeline_tests.bench.peers.{PEERS[job.peer]}")
    started = time.perf_counter()
    peer: Peer = module.open_peer(job, model)
    if job.questions:
        result.write_text(json.dumps(_asked(peer, Path(job.questions))), encoding="utf-8")
        return
    peer.refresh(Path(job.folder))
    model.counts.save(result, own_s=time.perf_counter() - started)
    if remembering:
        remembering.save()


def _asked(peer: Peer, questions: Path) -> list[dict[str, object]]:
    """Hits and milliseconds of each question, the second time that it is asked."""
    found: list[dict[str, object]] = []
    asked = json.loads(questions.read_text("utf-8"))
    for turn in range(2):
        for question in asked:
            started = time.perf_counter()
            hits = peer.ask(question["text"], question["vector"])
            if turn:
                found.append({"ms": 1e3 * (time.perf_counter() - started), "hits": hits})
    return found


if __name__ == "__main__":
    main(sys.argv[1:])
