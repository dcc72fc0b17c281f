"""Build the ONNX graph of MiniLM's token states over the packaged 8-bit weights: storage/indexes/minilm.onnx.

The graph has no weights: each initializer names its bytes in the package's `model.onnx`, and onnxruntime maps them.
That file's own graph multiplies in 32 bits; here inputs of products are rounded to eight bits as well, which is more
than twice as fast. All operators are standard ONNX, in the form that onnxruntime fuses to one for each product.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import onnx
import typer
from numpy.typing import ArrayLike
from onnx import TensorProto, helper

from storage.indexes.minilm import GRAPH, LAYERS, WEIGHTS, WIDTH

LAYER_COUNT = 6
HEADS = 12
EPSILON = 1e-12
PRODUCTS = (
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "intermediate.dense",
    "output.dense",
)  # of a layer, in the order of their weights in the package's file


def main(output: Annotated[Path, typer.Argument()] = GRAPH) -> None:
    """Write the graph over the installed package's weights.

    Example: python -m tools.training.minilm_graph
    """
    output.write_bytes(build_graph(WEIGHTS.locate(), LAYERS))


def build_graph(weights: Path, layers: Sequence[int]) -> bytes:
    """Serialize the graph of single tokens' states after some of the layers; layer 0 is the word table.

    Several texts may be packed into one row. Inputs: `ids` int32 (tokens); `positions` int32 (tokens), each token's
    place in its own text; `unseen` float32 (tokens, tokens), a large negative number where the tokens are of different
    texts. Outputs: one per layer, float32 (tokens, WIDTH), in the order of `layers`.
    """
    graph = _Graph(weights)
    states = graph.states()
    inputs = [
        helper.make_tensor_value_info("ids", TensorProto.INT32, ["tokens"]),
        helper.make_tensor_value_info("positions", TensorProto.INT32, ["tokens"]),
        helper.make_tensor_value_info("unseen", TensorProto.FLOAT, ["tokens", "tokens"]),
    ]
    outputs = [helper.make_tensor_value_info(states[layer], TensorProto.FLOAT, ["tokens", WIDTH]) for layer in layers]
    made = helper.make_graph(graph.nodes, "minilm", inputs, outputs, initializer=graph.initializers)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    return bytes(model.SerializeToString())


class _Graph:
    """A graph under construction; each method adds nodes to it, and returns the name of their output."""

    def __init__(self, weights: Path) -> None:
        self._content, self._location = weights.read_bytes(), weights.name
        self._tensors = dict(_name_tensors(onnx.load(str(weights))))
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        # With a first dimension of 1, onnxruntime fuses no transpose into a product, which would be 1.6 times as slow.
        self._by_head = self._constant("by_head", [1, -1, HEADS, WIDTH // HEADS])
        self._flat = self._constant("flat", [-1, WIDTH])
        self._scale = self._constant("scale", np.float32((WIDTH / HEADS) ** -0.5))
        self._first = self._constant("first", 0)

    def states(self) -> list[str]:
        """Add all layers; return the names of the tokens' states after the word table and after each layer."""
        words, places = self._row("word", "ids"), self._row("position", "positions")
        kinds = self._node("Gather", [self._weight("embeddings.token_type_embeddings.weight"), self._first], "kind")
        total = self._node("Add", [self._node("Add", [words, places], "words.placed"), kinds], "embedded")
        heights = [self._normed("embeddings.", total)]
        for layer in range(LAYER_COUNT):
            heights.append(self._layer(f"encoder.layer.{layer}.", heights[-1]))
        return heights

    def _row(self, table: str, places: str) -> str:
        """Add the rows of a rounded table: whole numbers times the scale of each row."""
        name = f"embeddings.{table}_embeddings.weight"
        whole = self._node("Gather", [self._weight(f"{name}_q"), places], f"{table}.whole")
        number = self._node("Cast", [whole], f"{table}.number", to=TensorProto.FLOAT)
        steps = self._node("Gather", [self._weight(f"{name}_scale"), places], f"{table}.steps")
        return self._node("Mul", [number, steps], table)

    def _layer(self, name: str, states: str) -> str:
        """Add an encoder layer: attention, then two products, each added to its input."""
        attention, by_head = f"{name}attention.self.", [0, 2, 1, 3]
        query, value = (self._heads(f"{attention}{part}", states, by_head) for part in ("query", "value"))
        key = self._heads(f"{attention}key", states, [0, 2, 3, 1])
        scores = self._node("MatMul", [self._node("Mul", [query, self._scale], f"{name}query"), key], f"{name}scores")
        shares = self._node("Softmax", [self._node("Add", [scores, "unseen"], f"{name}seen")], f"{name}shares", axis=-1)
        mixed = self._node("MatMul", [shares, value], f"{name}mixed")
        mixed = self._node("Transpose", [mixed], f"{name}mixed.by_token", perm=by_head)
        mixed = self._node("Reshape", [mixed, self._flat], f"{name}mixed.flat")
        states = self._joined(f"{name}attention.output.", mixed, states)
        inner = self._product(f"{name}intermediate.dense", states)
        return self._joined(f"{name}output.", self._node("Gelu", [inner], f"{name}gelu"), states)

    def _heads(self, name: str, states: str, order: list[int]) -> str:
        parts = self._node("Reshape", [self._product(name, states), self._by_head], f"{name}.by_head")
        return self._node("Transpose", [parts], f"{name}.transposed", perm=order)

    def _joined(self, name: str, states: str, before: str) -> str:
        return self._normed(name, self._node("Add", [self._product(f"{name}dense", states), before], f"{name}total"))

    def _normed(self, name: str, states: str) -> str:
        norm = [self._weight(f"{name}LayerNorm.{part}") for part in ("weight", "bias")]
        return self._node("LayerNormalization", [states, *norm], f"{name}normed", epsilon=EPSILON)

    def _product(self, name: str, states: str) -> str:
        """Add a product of whole numbers."""
        rounded, step, zero = self._rounded(states)
        product = self._node("MatMulInteger", [rounded, self._weight(f"{name}_q"), zero], f"{name}.product")
        steps = self._node("Mul", [step, self._weight(f"{name}_scale")], f"{name}.steps")
        number = self._node("Cast", [product], f"{name}.number", to=TensorProto.FLOAT)
        scaled = self._node("Mul", [number, steps], f"{name}.scaled")
        return self._node("Add", [scaled, self._weight(f"{name}.bias")], f"{name}.out")

    def _rounded(self, states: str) -> list[str]:
        """Round states to eight bits, once for all products; return the names of the numbers, scale, and zero."""
        names = [f"{states}.{part}" for part in ("rounded", "step", "zero")]
        if all(node.name != names[0] for node in self.nodes):
            self.nodes.append(helper.make_node("DynamicQuantizeLinear", [states], names, name=names[0]))
        return names

    def _node(self, operator: str, inputs: list[str], output: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(operator, inputs, [output], name=output, **attributes))
        return output

    def _constant(self, name: str, values: ArrayLike) -> str:
        self.initializers.append(onnx.numpy_helper.from_array(np.array(values), name))
        return name

    def _weight(self, name: str) -> str:
        tensor = self._tensors[name]
        # Of a product's scales, which are one row, onnxruntime fuses only the flat form.
        dims = tensor.dims[1:] if name.endswith("_scale") and tensor.dims[0] == 1 else tensor.dims
        proto = TensorProto(name=name, dims=dims, data_type=tensor.data_type, data_location=TensorProto.EXTERNAL)
        found = (("location", self._location), ("offset", self._content.index(tensor.raw_data)))
        for key, value in (*found, ("length", len(tensor.raw_data))):
            proto.external_data.add(key=key, value=str(value))
        self.initializers.append(proto)
        return name


def _name_tensors(model: Any) -> Iterator[tuple[str, Any]]:
    """Yield the weights of the package's graph by name; those of products are only numbered there."""
    products = iter([f"encoder.layer.{layer}.{product}" for layer in range(LAYER_COUNT) for product in PRODUCTS])
    name = ""
    for tensor in model.graph.initializer:
        *_, kind = tensor.name.rpartition("_")
        if tensor.name.startswith("val_") and kind in {"q", "scale"}:
            name = next(products) if kind == "q" else name
            yield f"{name}_{kind}", tensor
        else:
            yield tensor.name.removeprefix("inner."), tensor


if __name__ == "__main__":
    typer.run(main)
