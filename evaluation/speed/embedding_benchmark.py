"""Compare the rate of embedding, with 32 bits and with 8, with that of Chroma's function over the same weights."""

import json
import math
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random
from typing import Annotated, Any

import numpy as np
import onnx
import typer
from numpy.typing import ArrayLike, NDArray
from onnx import TensorProto, helper

from evaluation.speed.workload import generate_texts
from storage.indexes.embedding import MINILM, Embedder, open_embedder
from storage.indexes.minilm import WEIGHTS, check_model, find_model_folder
from storage.indexes.minilm_graph import EPSILON, HEADS, LAYER_COUNT, WIDTH, read_tensors

INPUTS = ("input_ids", "attention_mask", "token_type_ids")
BESIDE = ("config.json", "special_tokens_map.json", "tokenizer_config.json", "tokenizer.json", "vocab.txt")
BITS = (32, 8)
LENGTHS = (55, 120)


@dataclass(frozen=True)
class RateComparison:
    """Both on texts of one length. Rates are the medians of all rounds, in texts a second."""

    bits: int
    words: int
    tokens: float  # a text, on average
    ours: float
    chromas: float
    ratio: float
    """The median of the rounds' ratios."""
    least_cosine: float
    mean_cosine: float


def embedding(
    source: Annotated[Path | None, typer.Argument(exists=True, help="A text file; else made-up text.")] = None,
    texts: Annotated[int, typer.Option(help="How many, of each length.", min=1)] = 64,
    rounds: Annotated[int, typer.Option(help="How often each embeds them.", min=1)] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Compare the rate of embedding, with 32 bits and with 8, with that of Chroma's default function.

    Example: footnote evaluate speed embedding --texts 16 --rounds 1
    """
    with tempfile.TemporaryDirectory() as folder:
        chromas = build_chroma_default(Path(folder))
        ours = {bits: open_embedder(MINILM, {}, bits) for bits in BITS}
        compared = [one for words in LENGTHS for one in _compare(ours, chromas, _texts(source, words, texts), rounds)]
    if as_json:
        print(json.dumps({"schema": 1, "compared": [asdict(one) for one in compared]}))
    else:
        print("\n".join(map(_line, compared)))
        print("Chroma's function ran an ONNX file of the same weights, made here, not its download.")


def build_chroma_default(folder: Path) -> Any:
    """Build Chroma's `ONNXMiniLM_L6_V2`, which finds everything it would download in `folder`."""
    from chromadb.utils.embedding_functions import ONNXMiniLM_L6_V2

    function = ONNXMiniLM_L6_V2()
    function.DOWNLOAD_PATH = folder
    extracted = folder / function.EXTRACTED_FOLDER_NAME
    extracted.mkdir()
    model = find_model_folder()
    check_model(model)
    for name in BESIDE:
        shutil.copy(model / name, extracted)
    (extracted / "model.onnx").write_bytes(_Export(read_tensors(model / WEIGHTS)).model())
    return function


def _texts(source: Path | None, words: int, count: int) -> list[str]:
    made = generate_texts(Random(words), words) if source is None else _cut_texts(source, words)
    found = list(islice(made, count))
    if len(found) < count:
        raise typer.BadParameter(f"{source} has only {len(found)} texts of {words} words; ask for fewer with --texts")
    return found


def _cut_texts(source: Path, words: int) -> Iterator[str]:
    every = source.read_text("utf-8", errors="replace").split()
    return (" ".join(every[start : start + words]) for start in range(0, len(every) - words + 1, words))


def _compare(ours: dict[int, Embedder], chromas: Any, texts: list[str], rounds: int) -> Iterator[RateComparison]:
    for each in (*(one.embed for one in ours.values()), chromas):
        each(texts[:1])
    calls = [*(partial(one.embed, texts) for one in ours.values()), partial(chromas, texts)]
    *mine, theirs = zip(*([_seconds(call) for call in calls] for _ in range(rounds)), strict=True)
    exact = np.array(chromas(texts))
    tokens = statistics.mean(sum(chromas.tokenizer.encode(text).attention_mask) for text in texts)
    for (bits, one), seconds in zip(ours.items(), mine, strict=True):
        cosines = (one.embed(texts) * exact).sum(axis=1)
        yield RateComparison(
            bits,
            len(texts[0].split()),
            round(tokens, 1),
            round(len(texts) / statistics.median(seconds), 1),
            round(len(texts) / statistics.median(theirs), 1),
            round(statistics.median(other / own for own, other in zip(seconds, theirs, strict=True)), 2),
            round(float(cosines.min()), 6),
            round(float(cosines.mean()), 6),
        )


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _line(one: RateComparison) -> str:
    return (
        f"{one.bits} bits, texts of {one.words} words ({one.tokens} tokens): {one.ours} texts/s, Chroma's default "
        f"function {one.chromas}: {one.ratio} times; cosine at least {one.least_cosine}, mean {one.mean_cosine}"
    )


class _Export:
    """A graph as an exporter writes it: matrix products and sums, norms and error function spelled out."""

    def __init__(self, tensors: dict[str, NDArray[np.float32]]) -> None:
        self._tensors = tensors
        self._nodes: list[Any] = []
        self._initializers: list[Any] = []
        integers = {
            "flat": [0],
            "first": [1],
            "heads": [0, 0, HEADS, WIDTH // HEADS],
            "width": [0, 0, WIDTH],
        }
        for name, values in integers.items():
            self._constant(name, np.array(values, np.int64))
        floats = {"one": 1, "two": 2, "half": 0.5, "epsilon": EPSILON, "masked": -1e4, "root": math.sqrt(2)}
        for name, value in {**floats, "scale": math.sqrt(WIDTH / HEADS)}.items():
            self._constant(name, np.float32(value))

    def model(self) -> bytes:
        """Serialize the model: three int64 inputs (texts, tokens) to `last_hidden_state` (texts, tokens, WIDTH)."""
        states = self._embedded()
        for layer in range(LAYER_COUNT):
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
