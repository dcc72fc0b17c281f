"""Tests of the answer reader with its packaged weights on passages written for the tests."""

from pathlib import Path

import pytest

from storage.errors import EmbeddingUnavailable
from storage.indexes.answer_reader import MOST_TOKENS, UNREAD, AnswerReader, open_answer_reader
from storage.language.sentences import sentence_spans
from storage.types import Evidence
from tests.pipeline.world import hit

PUMP = (
    "Pump A was built in 1931. It costs 199 euros and has a warranty of three years. "
    "The engineer Mara Lind designed it for small gardens. It is painted green."
)
QUESTIONS = {"Who designed pump A?": 2, "How much is pump A?": 1, "When was the pump made?": 0, "What colour is it?": 3}
ELSEWHERE = "What is the capital of France?"


def split(text: str, title: str = "Pumps") -> list[Evidence]:
    candidate = hit(text, key=title, title=title)
    return [Evidence(text[slice(*span)], candidate.passage, candidate.document, span) for span in sentence_spans(text)]


@pytest.fixture(scope="module")
def reader() -> AnswerReader:
    return open_answer_reader()


@pytest.mark.parametrize(("question", "place"), QUESTIONS.items())
def test_answering_sentence_scores_highest(reader: AnswerReader, question: str, place: int) -> None:
    scores = reader.read(question, split(PUMP))

    assert max(range(len(scores)), key=scores.__getitem__) == place
    assert max(scores) > max(reader.read(ELSEWHERE, split(PUMP))) + 2
    assert scores == reader.read(question, split(PUMP))


def test_scores_are_in_the_order_of_the_sentences(reader: AnswerReader) -> None:
    other = split("The canteen opens at noon. Dogs stay outside.", "Canteen")
    mixed = [split(PUMP)[2], other[1], split(PUMP)[0], other[0]]

    scores = reader.read("Who designed pump A?", mixed)

    assert max(scores) == scores[0]
    assert len(scores) == len(mixed)


def test_long_passages_are_read_completely(reader: AnswerReader) -> None:
    long = split("The gate was painted again. " * MOST_TOKENS + PUMP)

    assert reader.read("", []) == ()
    assert all(
        score > UNREAD for score in reader.read("\ud800 " * 500, split("\ud800 猫はマットの上に座った。 " + PUMP, ""))
    )
    assert max(scores := reader.read("Who designed pump A?", long)) == scores[-2]


@pytest.mark.parametrize("content", [None, b"", b"no weights"])
def test_missing_and_damaged_weights_are_reported(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "reader.onnx"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(EmbeddingUnavailable, match="reader") as raised:
        open_answer_reader(path)
    assert "restore" in raised.value.hint
