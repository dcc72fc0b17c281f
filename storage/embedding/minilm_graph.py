"""The ONNX graph of all-MiniLM-L6-v2: what is computed, without the weights.

The weights stay in the safetensors file, where tensors lie as plain little-endian numbers: each initializer says at
which byte of that file it begins, and onnxruntime maps it. So the graph is 30 KB, made in 2 ms, and nothing of 90 MB is
ever copied. All operators are standard ONNX; onnxruntime's fused ones were measured, and those for attention and for
adding before a layer norm are slower on a processor than the operators they stand for.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import ArrayLike
from onnx import TensorProto, helper

LAYERS = 6
HEADS = 12
WIDTH = 384
EPSILON = 1e-12
UNSEEN = -1e9  # added to the score of padding, so that attention passes it by
LENGTH_BYTES = 8  # a safetensors file opens with its header's length


def minilm_graph(weights: Path) -> bytes:
    """The serialized graph over the safetensors file `weights`.

    Inputs: `ids` int32 (texts, tokens), 0 where a text has ended; `unseen` float32 (texts, 1, 1, tokens), `UNSEEN`
    there and 0 elsewhere; `shares` float32 (texts, 1, tokens), the weight of each token in its text's mean. Output:
    `vectors` float32 (texts, 1, WIDTH), not yet of length 1.
    """
    graph = _Graph(weights)
    *_, last = graph.states()
    pooled = graph.pooled(last)
    unseen = helper.make_tensor_value_info("unseen", TensorProto.FLOAT, ["texts", 1, 1, "tokens"])
    shares = helper.make_tensor_value_info("shares", TensorProto.FLOAT, ["texts", 1, "tokens"])
    vectors = helper.make_tensor_value_info(pooled, TensorProto.FLOAT, ["texts", 1, WIDTH])
    return bytes(graph.model([unseen, shares], [vectors]).SerializeToString())


def states_model(weights: Path, layers: Sequence[int]) -> Any:
    """The ONNX model that gives what single tokens are after some of the layers, 0 being the table of words.

    Several texts go through it as one row, which streams the weights once. Inputs: `ids` int32 (1, tokens);
    `positions` int32 (tokens), each token's place in its own text; `unseen` float32 (1, 1, tokens, tokens), `UNSEEN`
    where a token must not see another, as it stands in another text. Outputs: one a layer, float32 (tokens, WIDTH), in
    the order asked for.
    """
    graph = _Graph(weights)
    states = graph.states(packed=True)
    outputs = [helper.make_tensor_value_info(states[layer], TensorProto.FLOAT, ["flat", WIDTH]) for layer in layers]
    positions = helper.make_tensor_value_info("positions", TensorProto.INT32, ["tokens"])
    unseen = helper.make_tensor_value_info("unseen", TensorProto.FLOAT, [1, 1, "tokens", "tokens"])
    return graph.model([positions, unseen], outputs)


class _Graph:
    """Nodes and initializers as they are added; a method gives the name of what its nodes compute.

    Between layers states are flat, (texts * tokens, WIDTH), because `Gemm` wants a matrix and reads the weights as they
    lie in the file, one row an output.
    """

    def __init__(self, weights: Path) -> None:
        self._file = weights.name
        self._tensors, self._start = _header(weights)
        self._nodes: list[Any] = []
        self._initializers: list[Any] = []
        self._flat = self._constant("flat", [-1, WIDTH])
        self._zero = self._constant("zero", [0])
        self._one = self._constant("one", [1])
        self._scale = self._constant("scale", np.float32((WIDTH / HEADS) ** -0.5))
        size = self._node("Shape", ["ids"], "size")
        self._tokens = self._node("Slice", [size, self._one, self._constant("two", [2])], "tokens")
        self._by_text = self._node("Concat", [size, self._constant("width", [WIDTH])], "by_text", axis=0)
        heads = self._constant("heads", [HEADS, WIDTH // HEADS])
        self._by_head = self._node("Concat", [size, heads], "by_head", axis=0)

    def states(self, *, packed: bool = False) -> list[str]:
        """What the tokens are at the table of words, and after each layer."""
        found = [self.embedded(packed=packed)]
        for layer in range(LAYERS):
            found.append(self.layer(f"encoder.layer.{layer}.", found[-1]))
        return found

    def embedded(self, *, packed: bool) -> str:
        """The sum of what stands in the tables for word, position and kind of text, which is always the first.

        A token's position is its place in the row, or where rows are packed what the input `positions` says.
        """
        table = "embeddings.{}_embeddings.weight".format
        words = self._node("Gather", [self._weight(table("word")), "ids"], "words")
        positions = self._weight(table("position"))
        if packed:
            places = self._node("Gather", [positions, "positions"], "places")
        else:
            places = self._node("Slice", [positions, self._zero, self._tokens], "places")
        kind = self._node("Slice", [self._weight(table("token_type")), self._zero, self._one], "kind")
        rest = self._node("Add", [places, kind], "places.kind")
        total = self._node("Add", [words, rest], "embedded")
        return self._normed("embeddings.", self._node("Reshape", [total, self._flat], "embedded.flat"))

    def layer(self, name: str, states: str) -> str:
        """One layer of the encoder: attention, then two dense steps, each added to what came before it."""
        seen = self._attention(f"{name}attention.self.", states)
        states = self._joined(f"{name}attention.output.", seen, states)
        inner = self._dense(f"{name}intermediate.", states)
        return self._joined(f"{name}output.", self._node("Gelu", [inner], f"{name}gelu"), states)

    def pooled(self, states: str) -> str:
        """The weighted mean over each text's tokens."""
        return self._node("MatMul", ["shares", self._node("Reshape", [states, self._by_text], "pooling")], "vectors")

    def model(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
        """The finished model: it reads `ids` and what else is given."""
        ids = helper.make_tensor_value_info("ids", TensorProto.INT32, ["texts", "tokens"])
        graph = helper.make_graph(self._nodes, "minilm", [ids, *inputs], list(outputs), initializer=self._initializers)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)

    def _attention(self, name: str, states: str) -> str:
        query, value = (self._by_heads(f"{name}{part}.", states, [0, 2, 1, 3]) for part in ("query", "value"))
        key = self._by_heads(f"{name}key.", states, [0, 2, 3, 1])
        query = self._node("Mul", [query, self._scale], f"{name}query.scaled")
        scores = self._node("MatMul", [query, key], f"{name}scores")
        scores = self._node("Add", [scores, "unseen"], f"{name}scores.seen")
        shares = self._node("Softmax", [scores], f"{name}shares", axis=-1)
        seen = self._node("MatMul", [shares, value], f"{name}values")
        seen = self._node("Transpose", [seen], f"{name}values.by_token", perm=[0, 2, 1, 3])
        return self._node("Reshape", [seen, self._flat], f"{name}values.flat")

    def _by_heads(self, name: str, states: str, order: list[int]) -> str:
        parts = self._node("Reshape", [self._gemm(name, states), self._by_head], f"{name}by_head")
        return self._node("Transpose", [parts], f"{name}transposed", perm=order)

    def _joined(self, name: str, states: str, before: str) -> str:
        return self._normed(name, self._node("Add", [self._dense(name, states), before], f"{name}total"))

    def _normed(self, name: str, states: str) -> str:
        norm = [self._weight(f"{name}LayerNorm.{part}") for part in ("weight", "bias")]
        return self._node("LayerNormalization", [states, *norm], f"{name}normed", epsilon=EPSILON)

    def _dense(self, name: str, states: str) -> str:
        return self._gemm(f"{name}dense.", states)

    def _gemm(self, name: str, states: str) -> str:
        dense = [self._weight(f"{name}{part}") for part in ("weight", "bias")]
        return self._node("Gemm", [states, *dense], f"{name}out", transB=1)

    def _node(self, operator: str, inputs: list[str], output: str, **attributes: Any) -> str:
        self._nodes.append(helper.make_node(operator, inputs, [output], name=output, **attributes))
        return output

    def _constant(self, name: str, values: ArrayLike) -> str:
        self._initializers.append(onnx.numpy_helper.from_array(np.array(values), name))
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
