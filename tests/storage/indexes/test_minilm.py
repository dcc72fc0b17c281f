"""Tests that MiniLM's vectors are right and do not depend on other texts, and of its tokens' states."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.errors import EmbeddingUnavailable
from storage.indexes.embedders import MINILM, MODELS, are_comparable, locate_graph
from storage.indexes.packaged_embedder import (
    LAYERS,
    MOST_SENTENCE_TOKENS,
    UNSEEN,
    MiniLM,
    open_minilm,
)
from storage.indexes.packaged_files import load_tokenizer, open_session
from tests.thorough import sample

MODEL = MODELS[MINILM]
WEIGHTS = MODEL.weights
WIDTH = MODEL.dimensions
TEXTS = (
    "The lighthouse at Vardmouth was lit for the first time in 1871.",
    "",
    "Who pays for the train when I visit a customer?",
    "Ünïcödé, 東京 and Ελλάδα: 3.5 % of 1,200 €!",
    "Leave is counted in working days. " * 12,
)


@pytest.fixture(scope="module")
def tokenizer():
    return load_tokenizer()


def test_vectors_are_nearly_those_of_the_packaged_graph(minilm: MiniLM, tokenizer) -> None:
    """That graph has the same weights, and computes in 32 bits."""
    session, expected = open_session(WEIGHTS.locate()), list[np.ndarray]()
    for text in TEXTS:
        ids = np.array([tokenizer.encode(text).ids])
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        expected.append(session.run(None, inputs)[0][0].mean(axis=0))

    cosines = (minilm.embed(TEXTS) * expected).sum(axis=1) / np.linalg.norm(expected, axis=1)
    assert cosines.min() > 0.98


def test_processors_that_sum_in_16_bits_give_the_same_vectors(minilm: MiniLM, tokenizer) -> None:
    session = open_session(locate_graph(MODEL).read_bytes(), WEIGHTS.locate().parent, sums_in_16_bits=True)

    np.testing.assert_allclose(MiniLM(MODEL, session, tokenizer).embed(TEXTS), minilm.embed(TEXTS), atol=1e-4)


def test_vectors_have_the_order_of_their_texts(minilm: MiniLM) -> None:
    expected = [minilm.embed([text])[0] for text in TEXTS]

    np.testing.assert_allclose(minilm.embed(TEXTS), expected, atol=1e-5)


def test_vectors_are_single_precision_rows_of_length_one(minilm: MiniLM) -> None:
    vectors = minilm.embed(["", " ", "\x00", "A word."])

    assert vectors.dtype == np.float32
    assert vectors.shape == (4, minilm.dimensions)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_no_texts_give_no_vectors(minilm: MiniLM) -> None:
    assert minilm.embed([]).shape == (0, minilm.dimensions)


@given(texts=st.lists(st.text(max_size=80), min_size=1, max_size=8), polite=st.booleans())
@settings(max_examples=sample(30), deadline=None)
def test_vector_does_not_depend_on_other_texts(minilm: MiniLM, texts: list[str], *, polite: bool) -> None:
    alone = np.array([minilm.embed([text])[0] for text in texts])

    np.testing.assert_array_equal(minilm.embed(texts, polite=polite), alone)


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


def test_indexes_of_earlier_releases_stay_comparable(minilm: MiniLM) -> None:
    assert all(are_comparable(minilm.name, f"all-MiniLM-L6-v2{bits}/53aa51172d14") for bits in ("", "-int8"))
    assert not are_comparable(minilm.name, "all-MiniLM-L6-v2/5c38ec7c405e")


def test_attention_is_limited_to_each_text(tokenizer) -> None:
    class Session:
        def __init__(self) -> None:
            self.masks = list[list[list[float]]]()

        def get_outputs(self) -> list[SimpleNamespace]:
            return [SimpleNamespace(name="top")]

        def run(self, _: object, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
            self.masks.append(inputs["unseen"].tolist())
            return [np.ones((len(inputs["ids"]), WIDTH), np.float32)] * len(LAYERS)

    model = MiniLM(MODEL, session := Session(), tokenizer, 1)
    model.embed(["one", ""])
    model.read(["one", ""])

    apart = [[0] * 3 + [UNSEEN] * 2] * 3 + [[UNSEEN] * 3 + [0] * 2] * 2
    assert session.masks == [[[0] * 3] * 3, [[0] * 2] * 2, np.float32(apart).tolist()]


SENTENCES = [
    "The harbour master closed the gate.",
    "Ein Hund bellte.",
    "猫はマットの上に座った。",
    "",
    "word " * 500,
    "\ud800",
]


def test_every_token_has_a_state_per_layer(minilm: MiniLM) -> None:
    """Longer texts are cut; rows have length 1."""
    states = minilm.read(SENTENCES)

    assert max(len(text.ids) for text in states) == MOST_SENTENCE_TOKENS - 2
    for text in states:
        assert [layer.shape for layer in text.layers] == [(len(text.ids), WIDTH)] * len(LAYERS)
        assert np.allclose(np.linalg.norm(text.layers[-1], axis=1), 1, atol=1e-5)


def test_mean_of_token_states_is_nearly_the_vector(minilm: MiniLM) -> None:
    means = np.array([text.mean for text in minilm.read(SENTENCES[:3])])

    assert (minilm.embed(SENTENCES[:3]) * means).sum(axis=1).min() > 0.98


def test_states_hardly_depend_on_other_texts(minilm: MiniLM) -> None:
    (alone,) = minilm.read(["The gate is closed."])
    together = minilm.read(["The harbour master went home early.", "The gate is closed.", "Ein Hund bellte."])[1]

    assert np.array_equal(alone.ids, together.ids)
    assert float((alone.layers[-1] * together.layers[-1]).sum(axis=1).min()) > 0.97


def test_damaged_weights_are_refused(tmp_path: Path) -> None:
    (tmp_path / WEIGHTS.path).write_bytes(b"no weights")

    with pytest.raises(EmbeddingUnavailable, match="damaged"):
        open_minilm(tmp_path)


def test_onnxruntime_sends_no_telemetry(tmp_path: Path) -> None:
    """Telemetry would store an id of the machine and pending reports in the user's folder."""
    command = [sys.executable, "-c", "import storage.indexes.packaged_embedder"]
    subprocess.run(command, check=True, env={"HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)})

    assert list(tmp_path.iterdir()) == []
