"""How fast the local model is alone: `python -m rag_pipeline_tests.bench.model_reference DATABASE_URL TEXTS`.

Embeds the texts of an index again, without pipeline or database beside it; prints tokens and seconds as JSON.
"""

from __future__ import annotations

import json
import sys
import time

import psycopg

from rag_pipeline.embedding import make_embedder
from rag_pipeline.settings import Settings


def main(database: str, limit: str) -> None:
    """Texts chosen by their hash, so that they are a fair sample of short and long ones."""
    with psycopg.connect(database) as connection:
        rows = connection.execute(
            "SELECT text FROM (SELECT DISTINCT ON (text_hash) text_hash, text FROM rag.chunks) t"
            " ORDER BY text_hash LIMIT %s",
            (int(limit),),
        ).fetchall()
    texts = [row[0] for row in rows]
    embedder = make_embedder(Settings().embedding, environ={})
    list(embedder.embed(texts[:8]))
    before, started = embedder.model_seconds, time.perf_counter()
    tokens = sum(batch.tokens for batch in embedder.embed(texts))
    print(
        json.dumps({
            "texts": len(texts), "tokens": tokens, "seconds": time.perf_counter() - started,
            "model_seconds": embedder.model_seconds - before,
        })
    )  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])
