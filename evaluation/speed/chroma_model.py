"""Gives Chroma's default embedding function its model without a download: the packaged weights as an ONNX file.

Chroma fetches an export of the same weights. This one is written the way such exports are, in the operators that an
exporter emits, so that onnxruntime does with it what it does with theirs; `storage.embedding.minilm_graph` is not used.
"""

import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import ArrayLike, NDArray
from onnx import TensorProto, helper
from safetensors.numpy import load_file

from storage.embedding.weights import WEIGHTS, check_model, packaged_model

LAYERS = 6
HEADS = 12
WIDTH = 384
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
BESIDE = ("config.json", "special_tokens_map.json", "tokenizer_config.json", "tokenizer.json", "vocab.txt")


def chroma_default(folder: Path) -> Any:
    """Chroma's `ONNXMiniLM_L6_V2`, which finds everything it would download in `folder`."""
    from chromadb.utils.embedding_functions import ONNXMiniLM_L6_V2

    function = ONNXMiniLM_L6_V2()
    function.DOWNLOAD_PATH = folder
    extracted = folder / function.EXTRACTED_FOLDER_NAME
    extracted.mkdir()
    model = packaged_model()
    check_model(model)
    for name in BESIDE:
        shutil.copy(model / name, extracted)
    (extracted / "model.onnx").write_bytes(_Export(load_file(model / WEIGHTS)).model())
    return function


class _Export:
    """The graph as an exporter writes it: matrix products and sums, norms and error function spelled out."""

    def __init__(self, tensors: dict[str, NDArray[np.float32]]) -> None:
        self._tensors = tensors
        self._nodes: list[Any] = []
        self._initializers: list[Any] = []
        integers = {"flat": [0], "first": [1], "heads": [0, 0, HEADS, WIDTH // HEADS], "width": [0, 0, WIDTH]}
        for name, values in integers.items():
            self._constant(name, np.array(values, np.int64))
        floats = {"one": 1, "two": 2, "half": 0.5, "epsilon": 1e-12, "masked": -1e4, "root": math.sqrt(2)}
        for name, value in {**floats, "scale": math.sqrt(WIDTH / HEADS)}.items():
            self._constant(name, np.float32(value))

    def model(self) -> bytes:
        """The serialized model: three int64 inputs (texts, tokens) to `last_hidden_state` (texts, tokens, WIDTH)."""
        states = self._embedded()
        for layer in range(LAYERS):
            states = self._layer(f"encoder.layer.{layer}", states)
        self._node("Identity", [states], "last_hidden_state")
        inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["texts", "tokens"]) for name in INPUTS]
        shape = ["texts", "tokens", WIDTH]
        outputs = [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, shape)]
        graph = helper.make_graph(self._nodes, "minilm", inputs, outputs, initializer=self._initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        return bytes(model.SerializeToString())

    def _embedded(self) -> str:
        tables = {part: f"embeddings.{part}_embeddings.weight" for part in ("word", "position", "token_type")}
        for table in tables.values():
            self._constant(table, self._tensors[table])
        words = self._node("Gather", [tables["word"], "input_ids"], "words")
        kinds = self._node("Gather", [tables["token_type"], "token_type_ids"], "kinds")
        size = self._node("Shape", ["input_ids"], "size")
        tokens = self._node("Slice", [size, "first", self._constant("second", np.array([2]))], "tokens")
        places = self._node("Slice", [tables["position"], "flat", tokens], "places")
        total = self._node("Add", [self._node("Add", [words, kinds], "words.kinds"), places], "embedded")
        axes = self._constant("axes", np.array([1, 2]))
        mask = self._node("Cast", [self._node("Unsqueeze", ["attention_mask", axes], "here")], "seen", to=1)
        self._node("Mul", [self._node("Sub", ["one", mask], "unseen"), "masked"], "mask")
        return self._norm("embeddings.LayerNorm", total)

    def _layer(self, name: str, states: str) -> str:
        seen = self._dense(f"{name}.attention.output.dense", self._attention(f"{name}.attention.self", states))
        states = self._norm(f"{name}.attention.output.LayerNorm", self._node("Add", [seen, states], f"{name}.sum"))
        inner = self._dense(f"{name}.intermediate.dense", states)
        error = self._node("Erf", [self._node("Div", [inner, "root"], f"{name}.over")], f"{name}.erf")
        share = self._node("Mul", [inner, self._node("Add", [error, "one"], f"{name}.plus")], f"{name}.share")
        inner = self._node("Mul", [share, "half"], f"{name}.gelu")
        total = self._node("Add", [self._dense(f"{name}.output.dense", inner), states], f"{name}.total")
        return self._norm(f"{name}.output.LayerNorm", total)

    def _attention(self, name: str, states: str) -> str:
        orders = {"query": [0, 2, 1, 3], "key": [0, 2, 3, 1], "value": [0, 2, 1, 3]}
        parts = {}
        for part, order in orders.items():
            split = self._node("Reshape", [self._dense(f"{name}.{part}", states), "heads"], f"{name}.{part}.split")
            parts[part] = self._node("Transpose", [split], f"{name}.{part}.turned", perm=order)
        scores = self._node("MatMul", [parts["query"], parts["key"]], f"{name}.scores")
        scores = self._node("Div", [scores, "scale"], f"{name}.scaled")
        scores = self._node("Add", [scores, "mask"], f"{name}.masked")
        shares = self._node("Softmax", [scores], f"{name}.shares", axis=-1)
        found = self._node("MatMul", [shares, parts["value"]], f"{name}.found")
        found = self._node("Transpose", [found], f"{name}.found.turned", perm=[0, 2, 1, 3])
        return self._node("Reshape", [found, "width"], f"{name}.found.joined")

    def _norm(self, name: str, states: str) -> str:
        mean = self._node("ReduceMean", [states], f"{name}.mean", axes=[-1])
        centred = self._node("Sub", [states, mean], f"{name}.centred")
        squares = self._node("Pow", [centred, "two"], f"{name}.squares")
        variance = self._node("ReduceMean", [squares], f"{name}.variance", axes=[-1])
        root = self._node("Sqrt", [self._node("Add", [variance, "epsilon"], f"{name}.safe")], f"{name}.root")
        scaled = self._node("Div", [centred, root], f"{name}.scaled")
        weight, bias = (
            self._constant(f"{name}.{part}", self._tensors[f"{name}.{part}"]) for part in ("weight", "bias")
        )
        return self._node("Add", [self._node("Mul", [scaled, weight], f"{name}.weighted"), bias], f"{name}.out")

    def _dense(self, name: str, states: str) -> str:
        weight = self._constant(f"{name}.weight", self._tensors[f"{name}.weight"].T)
        bias = self._constant(f"{name}.bias", self._tensors[f"{name}.bias"])
        return self._node("Add", [self._node("MatMul", [states, weight], f"{name}.product"), bias], f"{name}.out")

    def _node(self, operator: str, inputs: list[str], output: str, **attributes: Any) -> str:
        self._nodes.append(helper.make_node(operator, inputs, [output], name=output, **attributes))
        return output

    def _constant(self, name: str, values: ArrayLike) -> str:
        self._initializers.append(onnx.numpy_helper.from_array(np.array(values, order="C"), name))
        return name
