"""Build MiniLM's ONNX graphs over the packaged weights, with 32 or 8 bits.

The weights stay in the safetensors file, which stores tensors as plain little-endian numbers: each initializer names
the byte where it begins, and onnxruntime maps it. So the graph is 30 KB, built in 2 ms, and none of the 90 MB is
copied. All operators are standard ONNX; onnxruntime's fused operators for attention and for adding before a layer norm
were measured as slower.

With eight bits, the weights of products are rounded when the graph is built, with one scale per row; their inputs are
rounded at run time. Everything else stays in 32 bits.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import ArrayLike, NDArray
from onnx import TensorProto, helper

LAYER_COUNT = 6
HEADS = 12
WIDTH = 384
EPSILON = 1e-12
UNSEEN = -1e9  # added to the score of padding, so that attention ignores it
LENGTH_BYTES = 8  # a safetensors file begins with its header's length


def build_vector_graph(weights: Path, largest: int = 0) -> bytes:
    """Serialize the graph of text vectors over the safetensors file `weights`.

    With `largest`, weights are rounded to integers up to it. Inputs: `ids` int32 (texts, tokens), 0 after a text's end;
    `unseen` float32 (texts, 1, 1, tokens), `UNSEEN` after a text's end and 0 elsewhere; `shares` float32 (texts, 1,
    tokens), the weight of each token in its text's mean. Output: `vectors` float32 (texts, 1, WIDTH), not yet of length
    1.
    """
    graph = _Graph(weights, largest)
    *_, last = graph.states()
    pooled = graph.pooled(last)
    unseen = helper.make_tensor_value_info("unseen", TensorProto.FLOAT, ["texts", 1, 1, "tokens"])
    shares = helper.make_tensor_value_info("shares", TensorProto.FLOAT, ["texts", 1, "tokens"])
    vectors = helper.make_tensor_value_info(pooled, TensorProto.FLOAT, ["texts", 1, WIDTH])
    return bytes(graph.model([unseen, shares], [vectors]).SerializeToString())


def build_states_graph(weights: Path, layers: Sequence[int], largest: int = 0) -> bytes:
    """Serialize the graph of single tokens' states after some of the layers; layer 0 is the word table.

    Several texts are packed into one row, which reads the weights once. Inputs: `ids` int32 (1, tokens); `positions`
    int32 (tokens), each token's place in its own text; `unseen` float32 (1, 1, tokens, tokens), `UNSEEN` where the
    tokens are of different texts. Outputs: one per layer, float32 (tokens, WIDTH), in the order of `layers`.
    """
    graph = _Graph(weights, largest)
    states = graph.states(packed=True)
    outputs = [helper.make_tensor_value_info(states[layer], TensorProto.FLOAT, ["flat", WIDTH]) for layer in layers]
    positions = helper.make_tensor_value_info("positions", TensorProto.INT32, ["tokens"])
    unseen = helper.make_tensor_value_info("unseen", TensorProto.FLOAT, [1, 1, "tokens", "tokens"])
    return bytes(graph.model([positions, unseen], outputs).SerializeToString())


def build_reader_model(weights: Path) -> Any:
    """Build the ONNX model of the answer reader from its `weights`, which add a last layer, "head", to MiniLM's layers.

    Inputs: `ids` int32 (texts, tokens); `kinds` int32 (texts, tokens), 0 in the question and 1 in the passage; `unseen`
    float32 (texts, 1, 1, tokens). Output: `found` float32 (texts, tokens, 2): the score of each token as the answer,
    and, for a text's first token, the score of "no answer".
    """
    graph = _Graph(weights)
    logits = graph.found(graph.states(kinds=True)[-1])
    kinds = helper.make_tensor_value_info("kinds", TensorProto.INT32, ["texts", "tokens"])
    unseen = helper.make_tensor_value_info("unseen", TensorProto.FLOAT, ["texts", 1, 1, "tokens"])
    return graph.model(
        [kinds, unseen], [helper.make_tensor_value_info(logits, TensorProto.FLOAT, ["texts", "tokens", 2])]
    )


class _Graph:
    """A graph that is being built. A method that adds nodes returns the name of their output.

    Between layers, states are flat, (texts * tokens, WIDTH), because `Gemm` needs a matrix and reads the weights as
    they are stored, one row per output.
    """

    def __init__(self, weights: Path, largest: int = 0) -> None:
        self._path = weights
        self._largest = largest
        self._arrays = read_tensors(weights) if largest else {}
        self._tensors, self._start = _read_header(weights)
        self._nodes: list[Any] = []
        self._initializers: list[Any] = []
        self._flat = self._constant("flat", [-1, WIDTH])
        self._zero = self._constant("zero", [0])
        self._one = self._constant("one", [1])
        self._scale = self._constant("scale", np.float32((WIDTH / HEADS) ** -0.5))
        self._size = size = self._node("Shape", ["ids"], "size")
        self._tokens = self._node("Slice", [size, self._one, self._constant("two", [2])], "tokens")
        self._by_text = self._node("Concat", [size, self._constant("width", [WIDTH])], "by_text", axis=0)
        heads = self._constant("heads", [HEADS, WIDTH // HEADS])
        self._by_head = self._node("Concat", [size, heads], "by_head", axis=0)

    def states(self, *, packed: bool = False, kinds: bool = False) -> list[str]:
        """Add all layers; return the names of the tokens' states after the word table and after each layer."""
        heights = [self._embedded(packed=packed, kinds=kinds)]
        for layer in range(LAYER_COUNT):
            heights.append(self._layer(f"encoder.layer.{layer}.", heights[-1]))
        return heights

    def _embedded(self, *, packed: bool, kinds: bool) -> str:
        """Add the sum of the embeddings of word, position and token type.

        A token's position is its index in the row, or with `packed`, that in the input `positions`. Its type is the
        first one, or with `kinds`, that in the input `kinds`.
        """
        table = "embeddings.{}_embeddings.weight".format
        words = self._node("Gather", [self._weight(table("word")), "ids"], "words")
        positions = self._weight(table("position"))
        if packed:
            places = self._node("Gather", [positions, "positions"], "places")
        else:
            places = self._node("Slice", [positions, self._zero, self._tokens], "places")
        table_of_kinds = self._weight(table("token_type"))
        if kinds:
            kind = self._node("Gather", [table_of_kinds, "kinds"], "kind")
        else:
            kind = self._node("Slice", [table_of_kinds, self._zero, self._one], "kind")
        rest = self._node("Add", [places, kind], "places.kind")
        total = self._node("Add", [words, rest], "embedded")
        return self._normed("embeddings.", self._node("Reshape", [total, self._flat], "embedded.flat"))

    def _layer(self, name: str, states: str) -> str:
        """Add an encoder layer: attention, then two dense steps, each added to its input."""
        seen = self._attention(f"{name}attention.self.", states)
        states = self._joined(f"{name}attention.output.", seen, states)
        inner = self._dense(f"{name}intermediate.", states)
        return self._joined(f"{name}output.", self._node("Gelu", [inner], f"{name}gelu"), states)

    def pooled(self, states: str) -> str:
        """Add the weighted mean over each text's tokens."""
        return self._node("MatMul", ["shares", self._node("Reshape", [states, self._by_text], "pooling")], "vectors")

    def found(self, states: str) -> str:
        """Add the reader's two scores for each token."""
        by_token = self._node("Concat", [self._size, self._constant("found.width", [2])], "by_token", axis=0)
        return self._node("Reshape", [self._gemm("head.", states), by_token], "found")

    def model(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
        """Finish the model with the input `ids` and the other inputs."""
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
        if self._largest:
            return self._rounded_gemm(name, states)
        dense = [self._weight(f"{name}{part}") for part in ("weight", "bias")]
        return self._node("Gemm", [states, *dense], f"{name}out", transB=1)

    def _rounded_gemm(self, name: str, states: str) -> str:
        """Add a layer's matrix product in integers, in the form that onnxruntime fuses to one operator."""
        weight = self._arrays[f"{name}weight"]
        steps = np.maximum(np.abs(weight).max(axis=1), EPSILON) / self._largest
        whole = self._constant(f"{name}whole", np.rint(weight / steps[:, np.newaxis]).astype(np.int8).T)
        given, step, zero = self._rounded(states)
        product = self._node("MatMulInteger", [given, whole, zero], f"{name}product")
        steps_of = self._node("Mul", [step, self._constant(f"{name}steps", steps.astype(np.float32))], f"{name}scales")
        number = self._node("Cast", [product], f"{name}number", to=TensorProto.FLOAT)
        scaled = self._node("Mul", [number, steps_of], f"{name}real")
        return self._node("Add", [scaled, self._weight(f"{name}bias")], f"{name}out")

    def _rounded(self, states: str) -> list[str]:
        """Add the rounding of states to eight bits, done once for all products that use them.

        Return the names of the rounded states, their scale, and their zero point.
        """
        names = [f"{states}.{part}" for part in ("rounded", "step", "zero")]
        if all(node.name != names[0] for node in self._nodes):
            self._nodes.append(helper.make_node("DynamicQuantizeLinear", [states], names, name=names[0]))
        return names

    def _node(self, operator: str, inputs: list[str], output: str, **attributes: Any) -> str:
        self._nodes.append(helper.make_node(operator, inputs, [output], name=output, **attributes))
        return output

    def _constant(self, name: str, values: ArrayLike) -> str:
        self._initializers.append(onnx.numpy_helper.from_array(np.array(values, order="C"), name))
        return name

    def _weight(self, name: str) -> str:
        tensor = self._tensors[name]
        first, end = tensor["data_offsets"]
        proto = TensorProto(name=name, dims=tensor["shape"], data_type=TensorProto.FLOAT)
        proto.data_location = TensorProto.EXTERNAL
        for key, value in (("location", self._path.name), ("offset", self._start + first), ("length", end - first)):
            proto.external_data.add(key=key, value=str(value))
        self._initializers.append(proto)
        return name


def read_tensors(weights: Path) -> dict[str, NDArray[np.float32]]:
    """Map the float tensors of a safetensors file, by name."""
    tensors, start = _read_header(weights)
    return {
        name: np.memmap(weights, np.float32, "r", start + one["data_offsets"][0], tuple(one["shape"]))
        for name, one in tensors.items()
        if one.get("dtype") == "F32"
    }


def _read_header(weights: Path) -> tuple[Mapping[str, Any], int]:
    """Return a safetensors file's description of its tensors, and the byte where the first one begins."""
    with weights.open("rb") as file:
        length = int.from_bytes(file.read(LENGTH_BYTES), "little")
        return json.loads(file.read(length)), LENGTH_BYTES + length
