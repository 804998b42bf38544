"""As much of ONNX's file format as it takes to read a model's tensors and to write another graph over them.

Field numbers are those of onnx.proto (https://github.com/onnx/onnx/blob/main/onnx/onnx.proto), the encoding is that of
protobuf (https://protobuf.dev/programming-guides/encoding). The package `onnx` would do the same, at its size.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_DTYPES: Final[dict[int, np.dtype[Any]]] = {
    1: np.dtype("<f4"),
    3: np.dtype("i1"),
    6: np.dtype("<i4"),
    7: np.dtype("<i8"),
}
"""TensorProto.DataType, as far as our models use it."""
_NUMBERS: Final = {dtype: number for number, dtype in _DTYPES.items()}
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

Array = NDArray[Any]


def read_tensors(model: bytes) -> dict[str, Array]:
    """The model's initializers by name, without a copy of what they hold.

    Raises:
        ValueError: not a model, or a tensor of a type or form that is not known here.
    """
    graph = _only(model, 7)
    return dict(_tensor(value) for number, value in _fields(graph) if number == 5 and isinstance(value, memoryview))


@dataclass(slots=True)
class Graph:
    """A graph that is being written: nodes in the order in which they run."""

    _nodes: list[bytes] = field(default_factory=list)
    _tensors: list[tuple[bytes, bytes]] = field(default_factory=list)
    """What comes before a tensor's content, and the content."""
    _names: int = 0

    def constant(self, value: Array) -> str:
        """Put a tensor into the model; its name."""
        name, content = self._name(), np.ascontiguousarray(value).tobytes()
        dims = b"".join(_varint_field(1, size) for size in value.shape)
        kind = _varint_field(2, _NUMBERS[value.dtype])
        self._tensors.append((dims + kind + _text(8, name) + _begin(9, len(content)), content))
        return name

    def node(self, operator: str, *inputs: str, domain: str = "", name: str = "", **attributes: float) -> str:
        """Put an operator behind its inputs; the name of its output, which is `name` when that is given."""
        output = name or self._name()
        self._nodes.append(
            b"".join(_text(1, one) for one in inputs)
            + _text(2, output)
            + _text(4, operator)
            + b"".join(_block(5, _attribute(key, value)) for key, value in attributes.items())
            + _text(7, domain)
        )
        return output

    def model(
        self, *, inputs: Mapping[str, tuple[type, Sequence[str]]], output: str, dims: Sequence[str | int],
        opsets: Mapping[str, int],
    ) -> bytes:  # fmt: skip
        """The model as a file would hold it; `inputs` are types and names of dimensions, the output is of float32."""
        graph = [_block(1, node) for node in self._nodes]
        graph.append(_text(2, "graph"))
        for before, content in self._tensors:
            graph += [_begin(5, len(before) + len(content)), before, content]
        for name, (kind, shape) in inputs.items():
            graph.append(_block(11, _value(name, _NUMBERS[np.dtype(kind)], shape)))
        graph.append(_block(12, _value(output, 1, dims)))
        versions = b"".join(_block(8, _text(1, domain) + _varint_field(2, n)) for domain, n in opsets.items())
        # Joined once: the tensors are large.
        return b"".join([_varint_field(1, 8), versions, _begin(7, sum(map(len, graph))), *graph])

    def _name(self) -> str:
        self._names += 1
        return f"t{self._names}"


def _tensor(content: memoryview) -> tuple[str, Array]:
    dims: list[int] = []
    name, kind, raw = "", 0, memoryview(b"")
    for number, value in _fields(content):
        match number, value:
            case 1, int():
                dims.append(value)
            case 1, memoryview():
                dims += _packed(value)
            case 2, int():
                kind = value
            case 8, memoryview():
                name = bytes(value).decode()
            case 9, memoryview():
                raw = value
    if kind not in _DTYPES:
        return name, np.empty(0, dtype=np.bool_)  # flags of the original graph, which is not run
    return name, np.frombuffer(raw, dtype=_DTYPES[kind]).reshape(dims)


def _only(message: bytes, wanted: int) -> memoryview:
    for number, value in _fields(memoryview(message)):
        if number == wanted and isinstance(value, memoryview):
            return value
    raise ValueError(f"the model has no field {wanted}")


def _fields(message: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Number and content of each field: an integer, or a view of the bytes."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        match key & 7:
            case 0:
                value, at = _varint(message, at)
                yield key >> 3, value
            case 2:
                size, at = _varint(message, at)
                if at + size > len(message):
                    raise ValueError("the model ends in the middle of a field")
                yield key >> 3, message[at : at + size]
                at += size
            case 1 | 5 as kind:
                size = 8 if kind == _FIXED64 else 4
                yield key >> 3, message[at : at + size]
                at += size
            case kind:
                raise ValueError(f"the model has a field of the unknown kind {kind}")


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(message) or shift > 63:
            raise ValueError("the model ends in the middle of a number")
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _packed(content: memoryview) -> list[int]:
    found, at = [], 0
    while at < len(content):
        value, at = _varint(content, at)
        found.append(value)
    return found


def _number(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _varint_field(number: int, value: int) -> bytes:
    return _number(number << 3 | _VARINT) + _number(value)


def _begin(number: int, size: int) -> bytes:
    return _number(number << 3 | _BYTES) + _number(size)


def _block(number: int, content: bytes) -> bytes:
    return _begin(number, len(content)) + content


def _text(number: int, text: str) -> bytes:
    return _block(number, text.encode()) if text else b""


def _attribute(name: str, value: float) -> bytes:
    if isinstance(value, int):
        return _text(1, name) + _varint_field(3, value) + _varint_field(20, 2)
    return _text(1, name) + _number(2 << 3 | _FIXED32) + struct.pack("<f", value) + _varint_field(20, 1)


def _value(name: str, kind: int, shape: Iterable[str | int]) -> bytes:
    dims = b"".join(_block(1, _varint_field(1, d) if isinstance(d, int) else _text(2, d)) for d in shape)
    return _text(1, name) + _block(2, _block(1, _varint_field(1, kind) + _block(2, dims)))
