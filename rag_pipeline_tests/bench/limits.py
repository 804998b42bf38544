"""How close each stage is to what bounds it: its rate, and in the same run the rate of what it cannot do without."""

from __future__ import annotations

import io
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from rag_pipeline.chunking.stage import chunk_documents
from rag_pipeline.documents.redaction import redact
from rag_pipeline.documents.stage import clean_items
from rag_pipeline.embedding import bfloat16
from rag_pipeline.embedding.devices import device_for
from rag_pipeline.embedding.local import LocalEmbedder, batches_of, windows_of
from rag_pipeline.embedding.onnx_wire import Graph
from rag_pipeline.embedding.wordpiece import wordpiece
from rag_pipeline.lake.derive import parts_in
from rag_pipeline.lake.store import Lake, Part
from rag_pipeline.machine import usable_cores
from rag_pipeline.model import DayRange
from rag_pipeline.progress import silent
from rag_pipeline.refresh import RAW_STAGES, chunking_rules
from rag_pipeline.settings import Embedding
from rag_pipeline.sources.git.stage import read_git
from rag_pipeline_tests.bench.limits_load import bench_load
from rag_pipeline_tests.bench.place import Place, place_for
from rag_pipeline_tests.bench.report import Report

_SECTION: Final = "limits"
_TEXTS: Final = 600
"""Embedded: about a quarter of a minute on two cores."""
_GEMM_S: Final = 1.0
_LAYERS, _HIDDEN, _WIDE = 6, 384, 1536
"""Of all-MiniLM-L6-v2."""


def bench_limits(repository: str, report: Report, *, start_date: date | None = None) -> None:
    """All stages over the newest commit of a repository, each beside its bound."""
    today = datetime.now(UTC).date()
    with place_for(repository, start_date=start_date or today - timedelta(days=6)) as place:
        days = DayRange(first=place.start_date, last=today)
        with tempfile.TemporaryDirectory(prefix="rag-bench-") as folder:
            lake = Lake(folder)
            _raw(place, lake, days, report)
            _documents(place, lake, days, report)
            _chunks(place, lake, days, report)
            _lake(lake, days, report)
            texts = [f"{c}{t}" for batch in _batches(lake, "chunks", days) for c, t in _inputs(batch)]
            _embeddings(texts, report)
    report.show(_SECTION)
    bench_load(texts, report)


def floating_point_operations(lengths: Sequence[int]) -> int:
    """What the model's matrix products take for windows of so many tokens; a multiplication and an addition are two."""
    weights = _LAYERS * (4 * _HIDDEN * _HIDDEN + 2 * _HIDDEN * _WIDE)
    return sum(2 * n * weights + 2 * _LAYERS * 2 * n * n * _HIDDEN for n in lengths)


def _compare(report: Report, stage: str, *, ours: float, bound: float, unit: str, what: str) -> None:
    report.figure(_SECTION, stage, ours, unit)
    report.figure(_SECTION, f"{stage}: bound", bound, unit, note=what)
    report.figure(_SECTION, f"{stage}: of the bound", 100 * ours / bound, "%")


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _best(work: Callable[[], object]) -> float:
    """Of work that takes milliseconds."""
    return min(_timed(work) for _ in range(7))


def _raw(place: Place, lake: Lake, days: DayRange, report: Report) -> None:
    settings, now = place.settings(), datetime.now(UTC)
    # Once before: the first fetch clones.
    with tempfile.TemporaryDirectory(prefix="rag-bench-") as other:
        read_git(settings, Lake(other), days, now=now, progress=silent)
    ours = _timed(lambda: read_git(settings, lake, days, now=now, progress=silent))
    size = sum(sum(map(len, _contents(batch))) for stage in RAW_STAGES for batch in _batches(lake, stage, days)) / 1e6
    git = ["git", "-C", str(place.clone)]

    def alone() -> None:
        tree = subprocess.run([*git, "ls-tree", "-r", "HEAD"], check=True, capture_output=True).stdout.decode()
        blobs = "".join(f"{line.split()[2]}\n" for line in tree.splitlines())
        subprocess.run([*git, "cat-file", "--batch"], input=blobs.encode(), check=True, capture_output=True)

    what = "git ls-tree and git cat-file of the newest commit, thrown away"
    _compare(report, "raw", ours=size / ours, bound=size / _timed(alone), unit="MB/s", what=what)


def _documents(place: Place, lake: Lake, days: DayRange, report: Report) -> None:
    texts = [c.decode("utf-8", "replace") for s in RAW_STAGES for b in _batches(lake, s, days) for c in _contents(b)]
    size = sum(map(len, texts)) / 1e6
    threads = place.settings().threads
    ours = _timed(lambda: clean_items(lake, days, inputs=RAW_STAGES, threads=threads, progress=silent))
    bound = _timed(lambda: [redact(text) for text in texts])
    _compare(report, "documents", ours=size / ours, bound=size / bound, unit="MB/s", what="looking for secrets, alone")


def _chunks(place: Place, lake: Lake, days: DayRange, report: Report) -> None:
    texts = [text for batch in _batches(lake, "documents", days) for text in batch.column("text").to_pylist()]
    size = sum(map(len, texts)) / 1e6
    settings = place.settings()
    rules, limits = chunking_rules(settings), settings.documents
    ours = _timed(lambda: chunk_documents(lake, days, rules=rules, limits=limits, progress=silent))
    bound = _timed(lambda: [wordpiece().encode(text, add_special_tokens=False) for text in texts])
    what = "every word through the model's tokenizer once"
    _compare(report, "chunks", ours=size / ours, bound=size / bound, unit="MB/s", what=what)


def _lake(lake: Lake, days: DayRange, report: Report) -> None:
    batches = list(_batches(lake, "chunks", days))
    size = sum(batch.nbytes for batch in batches) / 1e6
    part = Part(tenant="bench", repository="again", day=days.last)

    def write() -> None:
        with lake.writer("chunks", part, schema=batches[0].schema) as writer:
            for batch in batches:
                writer.add(batch)

    raw = _best(lambda: pq.write_table(pa.Table.from_batches(batches), io.BytesIO(), compression="zstd"))
    what = "pyarrow.parquet.write_table into memory"
    _compare(report, "lake: write", ours=size / _best(write), bound=size / raw, unit="MB/s", what=what)
    path = lake.path("chunks", part)
    ours = _best(lambda: list(lake.read("chunks", part)))
    bound = _best(lambda: pq.read_table(path, use_threads=False))
    what = "pyarrow.parquet.read_table, one thread"
    _compare(report, "lake: read", ours=size / ours, bound=size / bound, unit="MB/s", what=what)
    lake.remove("chunks", part)


def _embeddings(texts: Sequence[str], report: Report) -> None:
    """Every n-th text, so that the sample is as long and as short as all of them."""
    sample = texts[:: max(1, len(texts) // _TEXTS)]
    embedder = LocalEmbedder(Embedding(device="cpu"))
    list(embedder.embed(sample[:64]))
    seconds = _timed(lambda: list(embedder.embed(sample)))
    embedder.close()
    cores = usable_cores()
    device = device_for("cpu", threads=0, available=(), cores=cores)
    batches = list(batches_of(windows_of(sample), device))
    lengths = [len(window.ids) for batch in batches for window in batch]
    padded = sum(len(batch) * max(len(window.ids) for window in batch) for batch in batches)
    tokens, work = sum(lengths), floating_point_operations(lengths)
    peak = max(_gemm(cores, width) for width in (_HIDDEN, _WIDE))
    engine = "OpenVINO's matrix product in bfloat16" if bfloat16.is_usable() else "onnxruntime's matrix product"
    what = f"{work / tokens / 1e6:.1f} MFLOP a token at the {peak:.0f} GFLOP/s of {engine} alone"
    _compare(report, "embeddings", ours=tokens / seconds, bound=tokens * peak * 1e9 / work, unit="tokens/s", what=what)
    note = f"{len(sample)} texts in {len(batches)} batches on {cores} threads"
    report.figure(_SECTION, "embeddings: padding", 100 * (padded - tokens) / padded, "%", note=note)


def _gemm(threads: int, width: int) -> float:
    """GFLOP/s of a product of the model's shape (480 × 384 by 384 × width), one session and thread per core."""
    graph, random = Graph(), np.random.default_rng(1)
    weight = graph.constant(random.random((_HIDDEN, width), dtype=np.float32))
    graph.node("MatMul", "x", weight, name="y")
    model = graph.model(inputs={"x": (np.float32, ("n", "k"))}, output="y", dims=("n", width), opsets={"": 17})
    x = random.random((480, _HIDDEN), dtype=np.float32)
    counts = [0] * threads

    def run(number: int) -> None:
        multiply = product()
        multiply(x)
        ready.wait()
        end = time.perf_counter() + _GEMM_S
        while time.perf_counter() < end:
            multiply(x)
            counts[number] += 1

    product = _products(model, threads)
    ready = threading.Barrier(threads)
    workers = [threading.Thread(target=run, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(counts) * 2 * len(x) * _HIDDEN * width / _GEMM_S / 1e9


def _products(model: bytes, threads: int) -> Callable[[], Callable[[NDArray[np.float32]], object]]:
    """Makes what each thread multiplies with, in the precision and by the engine that the model is run with."""
    if bfloat16.is_usable():
        compiled = bfloat16.compiled(model, threads=threads)
        # The first one of a process alone: two of them at once wait for each other, see `Bfloat16Session`.
        compiled.create_infer_request().infer({0: np.zeros((1, _HIDDEN), dtype=np.float32)})

        def request() -> Callable[[NDArray[np.float32]], object]:
            infer = compiled.create_infer_request().infer
            return lambda x: infer({0: x}, share_inputs=True, share_outputs=True)

        return request

    from onnxruntime import InferenceSession, SessionOptions

    options = SessionOptions()
    options.intra_op_num_threads = 1

    def session() -> Callable[[NDArray[np.float32]], object]:
        run = InferenceSession(model, options, providers=["CPUExecutionProvider"]).run
        return lambda x: run(None, {"x": x})

    return session


def _batches(lake: Lake, stage: str, days: DayRange) -> list[pa.RecordBatch]:
    return [batch for part in parts_in(lake, [stage], days) for batch in lake.read(stage, part)]


def _contents(batch: pa.RecordBatch) -> list[bytes]:
    return [content or b"" for content in batch.column("content").to_pylist()]


def _inputs(batch: pa.RecordBatch) -> list[tuple[str, str]]:
    return list(zip(batch.column("context").to_pylist(), batch.column("text").to_pylist(), strict=True))
