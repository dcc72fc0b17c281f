"""Build the ONNX graphs of the embedders and the cross-encoder over their packages' weights, in storage/indexes/.

The graphs have no weights: each initializer names its bytes in the package's `model.onnx`, and onnxruntime maps them.
Those of e5 are made in memory from the package's 4-bit weights.
The graphs in those files are slower: MiniLM's multiplies in 32 bits, and that of the cross-encoder takes twice as long
to open and a quarter longer to run. All operators here are standard ONNX, in the form that onnxruntime fuses to one for
each product.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import ArrayLike
from onnx import TensorProto, helper

from storage.indexes import cross_encoder, e5
from storage.indexes.embedders import BGE, E5, MINILM, MODELS, locate_graph
from storage.indexes.packaged_embedder import LAYERS

HEADS = 12
WIDTH = 384
EPSILON = 1e-12
KINDS = "embeddings.token_type_embeddings"
PRODUCTS = (
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "intermediate.dense",
    "output.dense",
)  # of a layer, in the order of their weights in the packages' files


def main() -> None:
    """Write the graphs over the installed packages' weights."""
    for key, layers in ((MINILM, LAYERS), (BGE, (12,))):
        locate_graph(MODELS[key]).write_bytes(build_states_graph(MODELS[key].weights.locate(), layers))
    locate_graph(MODELS[E5]).write_bytes(build_e5_graph(MODELS[E5].weights.locate()))
    cross_encoder.GRAPH.write_bytes(build_score_graph(cross_encoder.WEIGHTS.locate()))


def build_states_graph(weights: Path, layers: Sequence[int]) -> bytes:
    """Serialize the graph of single tokens' states after some of the layers; layer 0 is the word table.

    Several texts may be packed into one row. Inputs: `ids` int32 (tokens); `positions` int32 (tokens), each token's
    place in its own text; `unseen` float32 (tokens, tokens), a large negative number where the tokens are of different
    texts. Outputs: one per layer, float32 (tokens, WIDTH), in the order of `layers`.
    """
    graph = _Graph(weights, layers=layers[-1], mask="unseen")
    states = graph.states([graph.rows("word", "ids"), graph.rows("position", "positions"), graph.first_kind()])
    inputs = {"ids": (TensorProto.INT32, 1), "positions": (TensorProto.INT32, 1), "unseen": (TensorProto.FLOAT, 2)}
    return graph.serialize(inputs, [states[layer] for layer in layers])


def build_score_graph(weights: Path) -> bytes:
    """Serialize the graph of the score of one pair of texts.

    Inputs: `ids`, `positions` and `kinds`, int32 (tokens); the kind is 0 in the question and 1 in the text. Output: one
    score, float32 (1, 1).
    """
    graph = _Graph(weights, layers=12)
    tables = {"word": "ids", "position": "positions", "token_type": "kinds"}
    *_, top = graph.states([graph.rows(table, places) for table, places in tables.items()])
    pooled = graph.node("Tanh", [graph.product("pooler.dense", graph.first_row(top, states=True))], "pooled")
    return graph.serialize(
        dict.fromkeys(tables.values(), (TensorProto.INT32, 1)), [graph.product("classifier", pooled)]
    )


def build_e5_graph(weights: Path) -> bytes:
    """Serialize the graph of single tokens' states after the last layer.

    Input: `embedded` float32 (tokens, WIDTH), the sum of the rows of all tables for each token.
    """
    graph = _MemoryGraph(e5.WeightFile(np.memmap(weights, np.uint8, "r")))
    *_, top = graph.states(["embedded"])
    return graph.serialize({"embedded": (TensorProto.FLOAT, 2)}, [top])


class _Graph:
    """A graph under construction; a method adds nodes and returns the name of their output."""

    def __init__(self, weights: Path, *, layers: int, mask: str = "") -> None:
        self._content, self._location = weights.read_bytes(), weights.name
        self._tensors = dict(_name_tensors(onnx.load(str(weights)), layers))
        self._begin(layers, mask)

    def _begin(self, layers: int, mask: str = "") -> None:
        self._layers = layers
        self._mask = mask
        self._nodes: list[Any] = []
        self._initializers: list[Any] = []
        # With a first dimension of 1, onnxruntime fuses no transpose into a product, which would be 1.6 times as slow.
        self._by_head = self._constant("by_head", [1, -1, HEADS, WIDTH // HEADS])
        self._flat = self._constant("flat", [-1, WIDTH])
        self._scale = self._constant("scale", np.float32((WIDTH / HEADS) ** -0.5))

    def rows(self, table: str, places: str) -> str:
        """Add rows of a table that was rounded with a scale for each row, or with one scale and one offset."""
        name = f"embeddings.{table}_embeddings"
        whole = self.node("Gather", [self._weight(f"{name}_q"), places], f"{table}.whole")
        if f"{name}_zero" in self._tensors:
            zero = self._constant(f"{name}_zero", np.uint8(self._tensors[f"{name}_zero"].int32_data[0]))
            return self.node("DequantizeLinear", [whole, self._weight(f"{name}_scale"), zero], table)
        number = self.node("Cast", [whole], f"{table}.number", to=TensorProto.FLOAT)
        steps = self.node("Gather", [self._weight(f"{name}_scale"), places], f"{table}.steps")
        return self.node("Mul", [number, steps], table)

    def first_kind(self) -> str:
        """Add the row of the first kind of text."""
        if f"{KINDS}.weight" in self._tensors:
            return self.first_row(f"{KINDS}.weight")
        return self.rows("token_type", self._constant("zeroth", np.array([0], np.int32)))

    def first_row(self, name: str, *, states: bool = False) -> str:
        """Add the first row of a table of weights, or of `states`, as a table of one row."""
        rows = name if states else self._weight(name)
        return self.node("Gather", [rows, self._constant(f"{name}.zeroth", [0])], f"{name}.first")

    def states(self, embedded: Sequence[str]) -> list[str]:
        """Add all layers over the sum of the embedded parts; return the names of the states below and after each."""
        total, *others = embedded
        for part, name in zip(others, ("words.placed", "embedded"), strict=False):
            total = self.node("Add", [total, part], name)
        heights = [self._normed("embeddings.", total)]
        for layer in range(self._layers):
            heights.append(self._layer(f"encoder.layer.{layer}.", heights[-1]))
        return heights

    def product(self, name: str, states: str) -> str:
        """Add a product of whole numbers."""
        rounded, step, zero = self._rounded(states)
        product = self.node("MatMulInteger", [rounded, self._weight(f"{name}_q"), zero], f"{name}.product")
        steps = self.node("Mul", [step, self._weight(f"{name}_scale")], f"{name}.steps")
        number = self.node("Cast", [product], f"{name}.number", to=TensorProto.FLOAT)
        scaled = self.node("Mul", [number, steps], f"{name}.scaled")
        return self.node("Add", [scaled, self._weight(f"{name}.bias")], f"{name}.out")

    def node(self, operator: str, inputs: list[str], output: str, **attributes: Any) -> str:
        self._nodes.append(helper.make_node(operator, inputs, [output], name=output, **attributes))
        return output

    def serialize(self, inputs: dict[str, tuple[int, int]], outputs: Sequence[str]) -> bytes:
        """Serialize the model, whose `inputs` have a type and a number of dimensions."""
        taken = [helper.make_tensor_value_info(name, kind, ["tokens"] * size) for name, (kind, size) in inputs.items()]
        given = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["rows", None]) for name in outputs]
        graph = helper.make_graph(self._nodes, "bert", taken, given, initializer=self._initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
        return bytes(model.SerializeToString())

    def _layer(self, name: str, states: str) -> str:
        """Add an encoder layer: attention, then two products, each added to its input."""
        attention, by_head = f"{name}attention.self.", [0, 2, 1, 3]
        query, value = (self._heads(f"{attention}{part}", states, by_head) for part in ("query", "value"))
        key = self._heads(f"{attention}key", states, [0, 2, 3, 1])
        scores = self.node("MatMul", [self.node("Mul", [query, self._scale], f"{name}query"), key], f"{name}scores")
        scores = self.node("Add", [scores, self._mask], f"{name}seen") if self._mask else scores
        shares = self.node("Softmax", [scores], f"{name}shares", axis=-1)
        mixed = self.node("MatMul", [shares, value], f"{name}mixed")
        mixed = self.node("Transpose", [mixed], f"{name}mixed.by_token", perm=by_head)
        mixed = self.node("Reshape", [mixed, self._flat], f"{name}mixed.flat")
        states = self._joined(f"{name}attention.output.", mixed, states)
        inner = self.product(f"{name}intermediate.dense", states)
        return self._joined(f"{name}output.", self.node("Gelu", [inner], f"{name}gelu"), states)

    def _heads(self, name: str, states: str, order: list[int]) -> str:
        parts = self.node("Reshape", [self.product(name, states), self._by_head], f"{name}.by_head")
        return self.node("Transpose", [parts], f"{name}.transposed", perm=order)

    def _joined(self, name: str, states: str, before: str) -> str:
        return self._normed(name, self.node("Add", [self.product(f"{name}dense", states), before], f"{name}total"))

    def _normed(self, name: str, states: str) -> str:
        norm = [self._weight(f"{name}LayerNorm.{part}") for part in ("weight", "bias")]
        return self.node("LayerNormalization", [states, *norm], f"{name}normed", epsilon=EPSILON)

    def _rounded(self, states: str) -> list[str]:
        """Round states to eight bits, once for all products; return the names of the numbers, scale, and zero."""
        names = [f"{states}.{part}" for part in ("rounded", "step", "zero")]
        if all(node.name != names[0] for node in self._nodes):
            self._nodes.append(helper.make_node("DynamicQuantizeLinear", [states], names, name=names[0]))
        return names

    def _constant(self, name: str, values: ArrayLike) -> str:
        self._initializers.append(onnx.numpy_helper.from_array(np.array(values), name))
        return name

    def _weight(self, name: str) -> str:
        tensor = self._tensors[name]
        # Of a product's scales, which are one row, onnxruntime fuses only the flat form.
        dims = tensor.dims[1:] if name.endswith("_scale") and tensor.dims[:1] == [1] else tensor.dims
        proto = TensorProto(name=name, dims=dims, data_type=tensor.data_type, data_location=TensorProto.EXTERNAL)
        offset, length = self._find(tensor)
        for key, value in (("location", self._location), ("offset", offset), ("length", length)):
            proto.external_data.add(key=key, value=str(value))
        self._initializers.append(proto)
        return name

    def _find(self, tensor: Any) -> tuple[int, int]:
        """Return where a tensor's bytes begin in the package's file, and their number."""
        if tensor.raw_data:
            return self._content.index(tensor.raw_data), len(tensor.raw_data)
        whole, values = tensor.SerializeToString(), np.array(tensor.float_data, np.float32).tobytes()
        return self._content.index(whole) + whole.index(values), len(values)


class _MemoryGraph(_Graph):
    """A graph whose weights are given by name when it is opened."""

    def __init__(self, file: e5.WeightFile) -> None:
        self._tensors = dict(file.list_weights())
        self._begin(e5.LAYERS)

    def _weight(self, name: str) -> str:
        kind = helper.np_dtype_to_tensor_dtype(self._tensors[name].dtype)
        proto = TensorProto(
            name=name, dims=self._tensors[name].shape, data_type=kind, data_location=TensorProto.EXTERNAL
        )
        proto.external_data.add(key="location", value="memory")
        self._initializers.append(proto)
        return name


def _name_tensors(model: Any, layers: int) -> Iterator[tuple[str, Any]]:
    """Yield the weights of a package's graph by name; those of products inside layers are only numbered there."""
    products = iter([f"encoder.layer.{layer}.{product}" for layer in range(layers) for product in PRODUCTS])
    names, kinds = dict[str, str](), {"quantized": "q", "point": "zero"}
    for tensor in model.graph.initializer:
        name, _, kind = tensor.name.removeprefix("inner.").removeprefix("bert.").rpartition("_")
        name = name.removesuffix("_zero").removesuffix(".weight")
        if kind not in {"q", "scale", *kinds}:
            yield tensor.name.removeprefix("inner.").removeprefix("bert."), tensor
        elif name.startswith(("val_", "onnx::MatMul_")):
            if name not in names:
                names[name] = next(products)
            yield f"{names[name]}_{kinds.get(kind, kind)}", tensor
        else:
            yield f"{name}_{kinds.get(kind, kind)}", tensor


if __name__ == "__main__":
    main()
