"""Training data of the answer reader: answer tokens and their passages."""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.indexes.answer_reader import LONGEST_TEXT
from storage.indexes.minilm import TOKENIZER, find_model_folder, open_tokenizer
from tools.training.reader_data import (
    MOST_TOKENS,
    ReaderQuestion,
    ReadPassage,
    crop_passage,
    find_near,
    read_squad_questions,
)

FACTS = [f"Gate {number} was opened in {1900 + number} by the harbour master of the town." for number in range(12)]


@pytest.fixture(scope="module")
def read() -> tuple[list[ReaderQuestion], list[ReadPassage]]:
    tokenizer = open_tokenizer(find_model_folder() / TOKENIZER, LONGEST_TEXT)

    def tokenize(text: str) -> Any:
        return tokenizer.encode(text, add_special_tokens=False)

    context, passages = " ".join(FACTS), list[ReadPassage]()
    questions = [
        {"question": f"When was gate {number} opened?", "answers": [_answer(context, str(1900 + number))]}
        for number in range(len(FACTS))
    ]
    unknown = {"question": "When was gate 7 closed?", "answers": [], "is_impossible": True}
    articles = [{"title": "Gates_of_Norhaven", "paragraphs": [{"context": context, "qas": [*questions, unknown]}]}]
    return list(read_squad_questions(articles, passages, tokenize)), passages


def _answer(context: str, text: str) -> dict[str, Any]:
    return {"text": text, "answer_start": context.index(text)}


def test_answer_tokens_are_found_in_their_passage_only(read: Any) -> None:
    questions, passages = read

    *answered, unknown = questions
    assert len(passages) > 1
    for question in answered:
        ((number, tokens),) = question.gold.items()
        spans = [passages[number].offsets[token] for token in tokens]
        answer = passages[number].text[min(start for start, _ in spans) : max(end for _, end in spans)]
        assert answer == question.answers[0]
    assert not unknown.gold
    assert set(unknown.own) == set(range(len(passages)))


@given(seed=st.integers(0, 999))
def test_cropped_passage_keeps_the_answer(read: Any, seed: int) -> None:
    questions, passages = read
    chance = random.Random(seed)
    for question in questions[:-1]:
        ((number, tokens),) = question.gold.items()
        start, end = crop_passage(passages[number], tokens, chance)
        assert start <= min(tokens) <= max(tokens) < end
        assert end - start in range(1, MOST_TOKENS + 1) or (start, end) == (0, len(passages[number].ids))


def test_passages_that_share_words_are_near(read: Any) -> None:
    questions, passages = read

    find_near(questions, passages)

    assert questions[7].near[0] in questions[7].gold
