"""Tests that MiniLM's vectors are right and do not depend on the other texts of a batch."""

import math
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from storage.indexes.embedding import are_comparable
from storage.indexes.minilm import (
    LARGEST_WITHOUT_VNNI,
    TOKENIZER,
    WEIGHTS,
    MiniLM,
    find_model_folder,
    open_session,
    open_tokenizer,
)
from storage.indexes.minilm_graph import UNSEEN, WIDTH, build_vector_graph
from tests.thorough import sample

TEXTS = (
    "The lighthouse at Vardmouth was lit for the first time in 1871.",
    "",
    "Who pays for the train when I visit a customer?",
    "Ünïcödé, 東京 and Ελλάδα: 3.5 % of 1,200 €!",
    "Leave is counted in working days. " * 12,
)

Array = NDArray[np.float64]


def by_hand(tensors: Mapping[str, NDArray[np.float32]], ids: list[int]) -> Array:
    """Compute BERT's forward pass for one text in plain numpy, without batch, padding or mask."""

    def dense(name: str, states: Array) -> Array:
        return states @ tensors[f"{name}.weight"].T.astype(np.float64) + tensors[f"{name}.bias"]

    def norm(name: str, states: Array) -> Array:
        centred = states - states.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
        return scaled * tensors[f"{name}.weight"] + tensors[f"{name}.bias"]

    def attend(name: str, states: Array) -> Array:
        query, key, value = (
            dense(f"{name}.{part}", states).reshape(len(ids), 12, 32).swapaxes(0, 1)
            for part in ("query", "key", "value")
        )
        scores = np.exp(query @ key.swapaxes(1, 2) / math.sqrt(32))
        return (scores / scores.sum(-1, keepdims=True) @ value).swapaxes(0, 1).reshape(len(ids), 384)

    words, places, kinds = (
        tensors[f"embeddings.{table}_embeddings.weight"] for table in ("word", "position", "token_type")
    )
    states = norm("embeddings.LayerNorm", words[ids].astype(np.float64) + places[: len(ids)] + kinds[0])
    for layer in (f"encoder.layer.{number}" for number in range(6)):
        seen = dense(f"{layer}.attention.output.dense", attend(f"{layer}.attention.self", states))
        states = norm(f"{layer}.attention.output.LayerNorm", seen + states)
        inner = dense(f"{layer}.intermediate.dense", states)
        inner = inner * (1 + np.vectorize(math.erf)(inner / math.sqrt(2))) / 2
        states = norm(f"{layer}.output.LayerNorm", dense(f"{layer}.output.dense", inner) + states)
    mean = states.mean(0)
    return mean / np.linalg.norm(mean)


def test_vectors_are_those_of_a_forward_pass_by_hand(minilm: MiniLM) -> None:
    tensors = load_file(find_model_folder() / WEIGHTS)
    tokenizer = Tokenizer.from_file(str(find_model_folder() / TOKENIZER))
    tokenizer.no_padding()

    expected = [by_hand(tensors, tokenizer.encode(text).ids) for text in TEXTS]

    np.testing.assert_allclose(minilm.embed(TEXTS), expected, atol=1e-4)


def test_vectors_have_the_order_of_their_texts(minilm: MiniLM) -> None:
    expected = [minilm.embed([text])[0] for text in TEXTS]

    np.testing.assert_allclose(minilm.embed(TEXTS), expected, atol=1e-5)


def test_vectors_are_single_precision_rows_of_length_one(minilm: MiniLM) -> None:
    vectors = minilm.embed(["", " ", "\x00", "A word."])

    assert vectors.dtype == np.float32
    assert vectors.shape == (4, minilm.dimensions)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_eight_bits_give_nearly_the_same_vectors(minilm: MiniLM, rounded: MiniLM) -> None:
    vectors = rounded.embed(TEXTS)

    assert (vectors * minilm.embed(TEXTS)).sum(axis=1).min() > 0.97
    np.testing.assert_array_equal(vectors, [rounded.embed([text], polite=True)[0] for text in TEXTS])


def test_seven_bit_weights_give_nearly_the_same_vectors(minilm: MiniLM) -> None:
    """Processors without byte products use 7 bits, as their sums would overflow with 8."""
    folder = find_model_folder()
    session = open_session(build_vector_graph(folder / WEIGHTS, LARGEST_WITHOUT_VNNI), folder)
    vectors = MiniLM(session, open_tokenizer(folder / TOKENIZER), 8).embed(TEXTS)

    assert (vectors * minilm.embed(TEXTS)).sum(axis=1).min() > 0.95


def test_no_texts_give_no_vectors(minilm: MiniLM) -> None:
    assert minilm.embed([]).shape == (0, minilm.dimensions)


@given(texts=st.lists(st.text(max_size=80), min_size=1, max_size=8), polite=st.booleans())
@settings(max_examples=sample(30), deadline=None)
def test_vector_does_not_depend_on_other_texts(minilm: MiniLM, texts: list[str], *, polite: bool) -> None:
    alone = np.array([minilm.embed([text])[0] for text in texts])

    assert (minilm.embed(texts, polite=polite) * alone).sum(axis=1).min() > 0.99999


@pytest.mark.parametrize("text", ["holiday " * 20_000, "x" * 100_000, "\N{GRINNING FACE}" * 100_000, "長" * 100_000])
def test_huge_text_is_truncated(minilm: MiniLM, text: str) -> None:
    """A text of 100,000 characters or more has the vector of its beginning."""
    np.testing.assert_allclose(minilm.embed([text]), minilm.embed([text[:50_000]]), atol=1e-6)


def test_lone_surrogate_is_embedded(minilm: MiniLM) -> None:
    assert np.isfinite(minilm.embed(["\ud83d and more"])).all()


def test_concurrent_embedding_gives_the_same_vectors(minilm: MiniLM) -> None:
    expected = minilm.embed(TEXTS)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: minilm.embed(TEXTS), range(8)))

    np.testing.assert_allclose(results, [expected] * 8, atol=1e-5)


def test_similar_meanings_have_similar_vectors(minilm: MiniLM) -> None:
    question, answer, other = minilm.embed(
        ["How much holiday do I get?", "Everyone has 28 days of paid leave.", "The printer is on the second floor."]
    )

    assert question @ answer > question @ other + 0.2


def test_only_latin_script_is_known(minilm: MiniLM) -> None:
    assert minilm.knows("How much?") == 1
    assert minilm.knows("Сколько?") == 0


def test_model_name_states_weights_and_bits(minilm: MiniLM, rounded: MiniLM) -> None:
    assert minilm.name == "all-MiniLM-L6-v2/53aa51172d14"
    assert rounded.name == "all-MiniLM-L6-v2-int8/53aa51172d14"
    assert are_comparable(rounded.name, minilm.name)
    assert not are_comparable(rounded.name, "all-MiniLM-L6-v2/5c38ec7c405e")


def test_model_input_masks_only_padding() -> None:
    class Session:
        def __init__(self) -> None:
            self.masks = list[list[list[float]]]()

        def run(self, _: object, inputs: dict[str, np.ndarray]) -> tuple[np.ndarray]:
            self.masks.append(inputs["unseen"][:, 0, 0].tolist())
            return (np.ones((len(inputs["ids"]), 1, WIDTH), np.float32),)

    tokenizer = open_tokenizer(find_model_folder() / TOKENIZER)
    MiniLM(session := Session(), tokenizer).embed(["one two", "one", "one"])

    assert session.masks == [[[0, 0, 0, 0], [0, 0, 0, UNSEEN]], [[0, 0, 0]]]
