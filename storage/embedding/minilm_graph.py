"""The ONNX graph of all-MiniLM-L6-v2: a description of the sums, without the weights.

The weights stay in the safetensors file, whose tensors lie there as plain little-endian numbers: each initializer names
its offset in that file, and onnxruntime maps it. So the graph is 20 KB, is made in milliseconds, and nothing of 90 MB
is ever copied. It uses onnxruntime's fused operators (domain `com.microsoft`), which standard ONNX has no words for.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

LAYERS = 6
HEADS = 12
WIDTH = 384
EPSILON = 1e-12
FUSED = "com.microsoft"
LENGTH_BYTES = 8  # a safetensors file opens with its header's length


def minilm_graph(weights: Path) -> bytes:
    """The serialized graph over the safetensors file `weights`.

    Inputs: `ids` int32 (texts, tokens), padded on the right; `lengths` int32 (texts); `shares` float32 (texts, 1,
    tokens), the weight of each token in its text's mean. Output: `vectors` float32 (texts, 384), not yet of length 1.
    """
    graph = _Graph(weights)
    shape, states = graph.embeddings()
    for layer in range(LAYERS):
        states = graph.layer(f"encoder.layer.{layer}.", states, shape)
    graph.pool(states, shape)
    return graph.serialized()


class _Graph:
    """Nodes and initializers as they are added; every node is named after its output."""

    def __init__(self, weights: Path) -> None:
        self._file = weights.name
        self._tensors, self._start = _header(weights)
        self._nodes: list[Any] = []
        self._initializers: list[Any] = []
        self._flat = self._constant("flat", [-1, WIDTH])

    def embeddings(self) -> tuple[str, str]:
        """Adds the embedding of the ids; gives the names of their shape and of the states, (all tokens, WIDTH)."""
        names = ("word_embeddings.weight", "position_embeddings.weight", "token_type_embeddings.weight")
        tables = [self._weight(f"embeddings.{name}") for name in (*names, "LayerNorm.weight", "LayerNorm.bias")]
        size = self._add("Shape", ["ids"], "size")
        zero = helper.make_tensor("zero", TensorProto.INT32, [1], [0])
        segments = self._add("ConstantOfShape", [size], "segments", value=zero)
        shape = self._add("Concat", [size, self._constant("width", [WIDTH])], "shape", axis=0)
        inputs = ["ids", segments, *tables]
        embedded = self._fused("EmbedLayerNormalization", inputs, "embedded", "unused", epsilon=EPSILON)
        return shape, self._add("Reshape", [embedded, self._flat], "states")

    def layer(self, name: str, states: str, shape: str) -> str:
        """Adds one layer of the encoder; gives the name of its states."""
        parts = [self._projected(f"{name}attention.self.{part}", states, shape) for part in ("query", "key", "value")]
        seen = self._fused("MultiHeadAttention", [*parts, "", "lengths"], f"{name}seen", num_heads=HEADS)
        seen = self._add("Reshape", [seen, self._flat], f"{name}seen.flat")
        seen = self._joined(f"{name}attention.output.", seen, states)
        inner = self._dense(f"{name}intermediate.dense", seen)
        bias = self._weight(f"{name}intermediate.dense.bias")
        inner = self._fused("BiasGelu", [inner, bias], f"{name}gelu")
        return self._joined(f"{name}output.", inner, seen)

    def pool(self, states: str, shape: str) -> None:
        """Adds the weighted mean over each text's tokens."""
        states = self._add("Reshape", [states, shape], "tokens")
        mean = self._add("MatMul", ["shares", states], "mean")
        self._add("Squeeze", [mean, self._constant("second", [1])], "vectors")

    def serialized(self) -> bytes:
        """The finished model."""
        inputs = [
            helper.make_tensor_value_info("ids", TensorProto.INT32, ["texts", "tokens"]),
            helper.make_tensor_value_info("lengths", TensorProto.INT32, ["texts"]),
            helper.make_tensor_value_info("shares", TensorProto.FLOAT, ["texts", 1, "tokens"]),
        ]
        outputs = [helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["texts", WIDTH])]
        graph = helper.make_graph(self._nodes, "minilm", inputs, outputs, initializer=self._initializers)
        versions = [helper.make_opsetid("", 17), helper.make_opsetid(FUSED, 1)]
        model = helper.make_model(graph, opset_imports=versions, ir_version=8)
        return bytes(model.SerializeToString(deterministic=True))

    def _projected(self, name: str, states: str, shape: str) -> str:
        flat = self._add("Gemm", [states, self._weight(f"{name}.weight"), self._weight(f"{name}.bias")], name, transB=1)
        return self._add("Reshape", [flat, shape], f"{name}.tokens")

    def _dense(self, name: str, states: str) -> str:
        return self._add("Gemm", [states, self._weight(f"{name}.weight")], name, transB=1)

    def _joined(self, name: str, states: str, before: str) -> str:
        dense = self._dense(f"{name}dense", states)
        rest = [self._weight(name + part) for part in ("LayerNorm.weight", "LayerNorm.bias", "dense.bias")]
        return self._fused("SkipLayerNormalization", [dense, before, *rest], f"{name}joined", epsilon=EPSILON)

    def _add(self, operator: str, inputs: list[str], *outputs: str, **attributes: Any) -> str:
        self._nodes.append(helper.make_node(operator, inputs, outputs, name=outputs[0], **attributes))
        return outputs[0]

    def _fused(self, operator: str, inputs: list[str], *outputs: str, **attributes: Any) -> str:
        return self._add(operator, inputs, *outputs, domain=FUSED, **attributes)

    def _constant(self, name: str, values: list[int]) -> str:
        self._initializers.append(onnx.numpy_helper.from_array(np.array(values, np.int64), name))
        return name

    def _weight(self, name: str) -> str:
        tensor = self._tensors[name]
        first, end = tensor["data_offsets"]
        proto = TensorProto(name=name, dims=tensor["shape"], data_type=TensorProto.FLOAT)
        proto.data_location = TensorProto.EXTERNAL
        for key, value in (("location", self._file), ("offset", self._start + first), ("length", end - first)):
            proto.external_data.add(key=key, value=str(value))
        self._initializers.append(proto)
        return name


def _header(weights: Path) -> tuple[Mapping[str, Any], int]:
    """What a safetensors file says of its tensors, and where the first of them begins."""
    with weights.open("rb") as file:
        length = int.from_bytes(file.read(LENGTH_BYTES), "little")
        return json.loads(file.read(length)), LENGTH_BYTES + length
