"""Compare the rate of embedding with Chroma's default function over the same weights."""

import itertools
import json
import math
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Annotated, Any

import numpy as np
import onnx
import typer
from numpy.typing import ArrayLike, NDArray
from onnx import TensorProto, helper
from safetensors.numpy import load_file

from evaluation.speed.workload import generate_texts
from storage.indexes.embedding import Embedder, open_embedder
from storage.indexes.minilm import WEIGHTS, check_model, find_model_folder

LAYERS = 6
HEADS = 12
VECTOR_WIDTH = 384
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
BESIDE = ("config.json", "special_tokens_map.json", "tokenizer_config.json", "tokenizer.json", "vocab.txt")


def build_chroma_default(folder: Path) -> Any:
    """Chroma's `ONNXMiniLM_L6_V2`, which finds everything it would download in `folder`."""
    from chromadb.utils.embedding_functions import ONNXMiniLM_L6_V2

    function = ONNXMiniLM_L6_V2()
    function.DOWNLOAD_PATH = folder
    extracted = folder / function.EXTRACTED_FOLDER_NAME
    extracted.mkdir()
    model = find_model_folder()
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
        integers = {
            "flat": [0],
            "first": [1],
            "heads": [0, 0, HEADS, VECTOR_WIDTH // HEADS],
            "width": [0, 0, VECTOR_WIDTH],
        }
        for name, values in integers.items():
            self._constant(name, np.array(values, np.int64))
        floats = {"one": 1, "two": 2, "half": 0.5, "epsilon": 1e-12, "masked": -1e4, "root": math.sqrt(2)}
        for name, value in {**floats, "scale": math.sqrt(VECTOR_WIDTH / HEADS)}.items():
            self._constant(name, np.float32(value))

    def model(self) -> bytes:
        """The serialized model: three int64 inputs (texts, tokens) to `last_hidden_state` (texts, tokens, WIDTH)."""
        states = self._embedded()
        for layer in range(LAYERS):
            states = self._layer(f"encoder.layer.{layer}", states)
        self._node("Identity", [states], "last_hidden_state")
        inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["texts", "tokens"]) for name in INPUTS]
        shape = ["texts", "tokens", VECTOR_WIDTH]
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


MARKS = {55: 3.0, 120: 1.4}  # words of a text: how many times Chroma's rate it has to be
QUESTION = "How many days of holiday are there in the first year?"
QUESTIONS = 100
SUFFIXES = frozenset({".md", ".rst", ".txt"})


@dataclass(frozen=True)
class RateComparison:
    """Both on texts of one length. Rates are the medians of all rounds, in texts a second."""

    words: int
    texts: int
    tokens: float
    """A text, on average."""
    ours: float
    chromas: float
    ratio: float
    """The median of the rounds' ratios."""
    mark: float
    least_cosine: float
    mean_cosine: float


def embedding(
    source: Annotated[
        Path | None, typer.Argument(exists=True, help="A text file or a folder; else made-up text.")
    ] = None,
    texts: Annotated[int, typer.Option(help="How many, of each length.", min=1)] = 96,
    rounds: Annotated[int, typer.Option(help="How often each embeds them.", min=1)] = 3,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Compare the rate of embedding with that of Chroma's default function.

    Example: python -m tools.benchmarks.embedding_rate --texts 32 --rounds 1
    """
    started = time.perf_counter()
    ours = open_embedder("minilm", {})
    loaded = time.perf_counter() - started
    with tempfile.TemporaryDirectory() as folder:
        chromas = build_chroma_default(Path(folder))
        compared = [_compare(ours, chromas, _texts(source, words, texts), words, rounds) for words in MARKS]
    report = {
        "schema": 1,
        "source": str(source or "made up"),
        "seconds_to_load": round(loaded, 3),
        "compared": [asdict(each) for each in compared],
        "question_ms": {
            "alone": _questions(ours),
            "beside_polite": _question_times_beside(ours, list(_texts(source, 120, texts))),
        },
    }
    print(json.dumps(report) if as_json else _lines(report))


def _texts(source: Path | None, words: int, count: int) -> list[str]:
    made = generate_texts(Random(words), words) if source is None else _cut_texts(source, words)
    found = list(itertools.islice(made, count))
    if len(found) < count:
        raise typer.BadParameter(f"{source} has only {len(found)} texts of {words} words; ask for fewer with --texts")
    return found


def _cut_texts(source: Path, words: int) -> Iterator[str]:
    files = sorted(path for path in source.rglob("*") if path.suffix in SUFFIXES) if source.is_dir() else [source]
    every = [word for file in files for word in file.read_text("utf-8", errors="replace").split()]
    return (" ".join(every[start : start + words]) for start in range(0, len(every) - words + 1, words))


def _compare(ours: Embedder, chromas: Any, texts: list[str], words: int, rounds: int) -> RateComparison:
    ours.embed(texts[:1])
    chromas(texts[:1])
    pairs = [(_seconds(lambda: ours.embed(texts)), _seconds(lambda: chromas(texts))) for _ in range(rounds)]
    mine, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
    cosines = (ours.embed(texts) * np.array(chromas(texts))).sum(axis=1)
    return RateComparison(
        words=words,
        texts=len(texts),
        tokens=round(statistics.mean(sum(chromas.tokenizer.encode(text).attention_mask) for text in texts), 1),
        ours=round(len(texts) / mine, 1),
        chromas=round(len(texts) / theirs, 1),
        ratio=round(statistics.median(second / first for first, second in pairs), 2),
        mark=MARKS[words],
        least_cosine=round(float(cosines.min()), 6),
        mean_cosine=round(float(cosines.mean()), 6),
    )


def _questions(embedder: Embedder) -> dict[str, float]:
    times = sorted(_seconds(lambda: embedder.embed([QUESTION])) * 1000 for _ in range(QUESTIONS))
    return {"p50": round(times[len(times) // 2], 1), "p95": round(times[len(times) * 95 // 100], 1)}


def _question_times_beside(embedder: Embedder, texts: Sequence[str]) -> dict[str, float]:
    done = threading.Event()

    def bulk() -> None:
        while not done.is_set():
            embedder.embed(texts, polite=True)

    thread = threading.Thread(target=bulk, name="bulk")
    thread.start()
    try:
        return _questions(embedder)
    finally:
        done.set()
        thread.join()


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _lines(report: dict[str, Any]) -> str:
    alone, beside = report["question_ms"]["alone"], report["question_ms"]["beside_polite"]
    return "\n".join(
        (
            f"MiniLM loaded in {report['seconds_to_load']} s; texts: {report['source']}",
            *map(_line, report["compared"]),
            f"one question alone: p50 {alone['p50']} ms, p95 {alone['p95']} ms",
            f"one question while a polite batch runs: p50 {beside['p50']} ms, p95 {beside['p95']} ms",
            "Chroma's function ran an ONNX file of the same weights, made here, not its download.",
        )
    )


def _line(each: dict[str, Any]) -> str:
    return (
        f"{each['texts']} texts of {each['words']} words ({each['tokens']} tokens): {each['ours']} texts/s, "
        f"Chroma's default function {each['chromas']}: {each['ratio']} times (to reach: {each['mark']}); "
        f"cosine at least {each['least_cosine']}, mean {each['mean_cosine']}"
    )


if __name__ == "__main__":
    typer.run(embedding)
