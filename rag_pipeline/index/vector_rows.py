"""Rows of a vector table in the binary format of COPY, made and read by NumPy all at once: each is of the same length.

Format: https://www.postgresql.org/docs/current/sql-copy.html, "Binary Format"; of a halfvec, `halfvec_recv` in
pgvector: its dimensions (int16), 0 (int16), then each element at half precision, all in network byte order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

_HEADER: Final = b"PGCOPY\n\xff\r\n\0" + bytes(8)  # no flags, no extension
_TRAILER: Final = b"\xff\xff"
_FIELDS: Final = 3


def read_vectors(packed: bytes, *, dimensions: int) -> dict[UUID, NDArray[np.float16]]:
    """Vectors by their hashes, from rows of 16 bytes and a halfvec each; all of them look at one array."""
    row = np.dtype([("hash", "V16"), ("dimensions", ">i2"), ("unused", ">i2"), ("vector", ">f2", (dimensions,))])
    rows = np.frombuffer(packed, dtype=row)
    vectors = rows["vector"].astype(np.float16)
    return {UUID(bytes=name.tobytes()): vector for name, vector in zip(rows["hash"], vectors, strict=True)}


def vector_rows(hashes: Sequence[UUID], tenant: bytes, vectors: NDArray[np.floating]) -> bytes:
    """What COPY of `text_hash, tenant_id, embedding` reads; `vectors` of shape (len(hashes), dimensions).

    Rows are in the order of their hashes, so that two writers never wait for each other in a circle.
    """
    dimensions = vectors.shape[1]
    row = np.dtype([
        ("fields", ">i2"), ("hash_bytes", ">i4"), ("hash", "V16"),
        ("tenant_bytes", ">i4"), ("tenant", f"V{len(tenant)}"),
        ("vector_bytes", ">i4"), ("dimensions", ">i2"), ("unused", ">i2"), ("vector", ">f2", (dimensions,)),
    ])  # fmt: skip
    order = sorted(range(len(hashes)), key=lambda index: hashes[index])
    rows = np.zeros(len(hashes), dtype=row)
    rows["fields"], rows["hash_bytes"], rows["tenant_bytes"] = _FIELDS, 16, len(tenant)
    rows["vector_bytes"], rows["dimensions"] = 4 + 2 * dimensions, dimensions
    rows["hash"] = np.frombuffer(b"".join(hashes[index].bytes for index in order), dtype="V16")
    rows["tenant"] = np.void(tenant)
    rows["vector"] = vectors[order]
    return _HEADER + rows.tobytes() + _TRAILER
