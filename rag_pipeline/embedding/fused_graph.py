"""The local model's graph, written again over its own weights with onnxruntime's fused operators.

The published graph came out of a tracer: what a transformer does in one step stands there as five (attention masks that
guard against NaN, GELU as a division, an error function, an addition and two multiplications), and between steps the
whole activations go through memory. Half the time goes by outside the matrix products. The graph written here computes
the same function; vectors differ by rounding only (a test holds that).
Operators: https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from rag_pipeline.embedding.onnx_wire import Array, Graph, read_tensors

_FUSED: Final = "com.microsoft"
_LAYERS: Final = 6
_HEADS: Final = 12
_EPSILON: Final = 1e-12
_MATRICES: Final = ("query", "key", "value", "attention.output", "intermediate", "output")
"""Of each layer, in the order of the file."""


def fused_model(content: bytes) -> bytes:
    """The model to run in place of the published one.

    Inputs: `input_ids` (int32, windows × longest), `positions` (int32, 0 to longest - 1) and `lengths` (int32, one for
    each window; what stands behind it is padding). Output: `last_hidden_state` (float32, windows × longest × 384), of
    which the rows of padding mean nothing.

    Raises:
        ValueError: another model than the one this was written for.
    """
    tensors = read_tensors(content)
    graph = Graph()
    hidden = _embedded(graph, tensors)
    matrices = [name.removesuffix("_q") for name in tensors if name.startswith("val_") and name.endswith("_q")]
    if len(matrices) != _LAYERS * len(_MATRICES):
        raise ValueError(f"the model has {len(matrices)} matrices, not {_LAYERS * len(_MATRICES)}")
    for layer in range(_LAYERS):
        names = matrices[layer * len(_MATRICES) :][: len(_MATRICES)]
        last = "last_hidden_state" if layer == _LAYERS - 1 else ""
        hidden = _layer(graph, tensors, hidden, f"inner.encoder.layer.{layer}", names, name=last)
    return graph.model(
        inputs={
            "input_ids": (np.int32, ("windows", "tokens")),
            "positions": (np.int32, ("tokens",)),
            "lengths": (np.int32, ("windows",)),
        },
        output=hidden,
        dims=("windows", "tokens", 384),
        opsets={"": 17, _FUSED: 1},
    )


def _embedded(graph: Graph, tensors: Mapping[str, Array]) -> str:
    """Words, positions and the one type of token that we use; words stay int8 in memory, a fourth of float32."""
    words = "inner.embeddings.word_embeddings.weight"
    rows = graph.node("Gather", graph.constant(tensors[f"{words}_q"]), "input_ids")
    scales = graph.node("Gather", graph.constant(tensors[f"{words}_scale"]), "input_ids")
    word = graph.node("Mul", graph.node("Cast", rows, to=1), scales)
    place = _weight(tensors, "inner.embeddings.position_embeddings.weight")
    place = place + tensors["inner.embeddings.token_type_embeddings.weight"][0]
    position = graph.node("Gather", graph.constant(place), "positions")
    normed = [graph.constant(tensors[f"inner.embeddings.LayerNorm.{part}"]) for part in ("weight", "bias")]
    return graph.node("LayerNormalization", graph.node("Add", word, position), *normed, epsilon=_EPSILON)


def _layer(
    graph: Graph, tensors: Mapping[str, Array], hidden: str, layer: str, names: Sequence[str], *, name: str
) -> str:
    query, key, value, attended, intermediate, output = (_weight(tensors, one) for one in names)
    biases = [tensors[f"{layer}.attention.self.{part}.bias"] for part in _MATRICES[:3]]
    context = graph.node(
        "Attention", hidden, graph.constant(np.concatenate([query, key, value], axis=1)),
        graph.constant(np.concatenate(biases)), "lengths", domain=_FUSED, num_heads=_HEADS,
    )  # fmt: skip
    mixed = graph.node("MatMul", context, graph.constant(attended))
    hidden = _added(graph, tensors, mixed, hidden, f"{layer}.attention.output")
    wide = graph.node("MatMul", hidden, graph.constant(intermediate))
    bent = graph.node("BiasGelu", wide, graph.constant(tensors[f"{layer}.intermediate.dense.bias"]), domain=_FUSED)
    narrow = graph.node("MatMul", bent, graph.constant(output))
    return _added(graph, tensors, narrow, hidden, f"{layer}.output", name=name)


def _added(graph: Graph, tensors: Mapping[str, Array], new: str, old: str, part: str, *, name: str = "") -> str:
    """What was there before and what is new, normalised."""
    weights = [tensors[f"{part}.{one}"] for one in ("LayerNorm.weight", "LayerNorm.bias", "dense.bias")]
    constants = map(graph.constant, weights)
    return graph.node("SkipLayerNormalization", new, old, *constants, domain=_FUSED, name=name, epsilon=_EPSILON)


def _weight(tensors: Mapping[str, Array], name: str) -> Array:
    """A weight in float32: int8 times the scale of its column, or of its row."""
    weight: Array = tensors[f"{name}_q"].astype(np.float32) * tensors[f"{name}_scale"]
    return weight
