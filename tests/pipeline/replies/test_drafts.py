"""Drafts as they arrive: the notes that each sentence cites, and statements that the notes do not answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import UnreadableReply
from pipeline.replies.abstention import is_about_notes, is_abstention
from pipeline.replies.cited_sentences import MarkedSentence
from pipeline.replies.stage_replies import DraftSplitter, bullets_format, claims_format

SILENT = (
    "I'm sorry, but the notes don't mention a wifi password.",
    "The provided information does not include the opening hours of the pool.",
    "There is nothing in the notes that tells when the ferry sails.",
    "None of the sentences says when it was opened.",
    "Dazu steht in den Notizen leider nichts.",
    "Les notes ne précisent pas le prix du billet.",
    "Las notas no indican quién firma.",
    "Le note non dicono nulla del traghetto.",
    "As notas não mencionam o preço.",
    "De notities vermelden niet wie er tekent.",
    "В заметках об этом ничего не сказано.",
    "笔记中没有提到价格。",
    "メモには料金についての記載がありません。",
    "لا تذكر الملاحظات سعر التذكرة.",
)
UNKNOWN = ("I don't know.", "I could not find that out.", "Das lässt sich leider nicht sagen.", "我不知道。")
TELLING = (
    "Notes may not be left on the board overnight.",
    "Passages of the Skarholm ferry are not given to groups of more than 20.",
    "Guests do not get a badge of their own.",
    "Les notes de frais ne sont pas remboursées en décembre.",
    "Notizen dürfen nicht im Flur liegen.",
    "No bell of the museum was cast before 1700.",
)


def draft(text: str, size: int = 9) -> list[MarkedSentence]:
    splitter = DraftSplitter(3)
    sentences = [sentence for at in range(0, len(text), size) for sentence in splitter.feed(text[at : at + size])]
    return [*sentences, *splitter.close()]


@pytest.mark.parametrize("text", [*SILENT, *UNKNOWN])
def test_abstaining_prose_yields_no_sentences(text: str) -> None:
    assert is_abstention(text)
    assert draft(text) == []
    assert bullets_format(3).from_text(text) == claims_format().from_text(text) == ()


@pytest.mark.parametrize("text", SILENT)
def test_sentence_that_the_notes_are_silent_is_dropped(text: str) -> None:
    assert [sentence.text for sentence in draft(f"{text[:-1]} [2]{text[-1]} The pier is made of oak [1].")] == [
        "The pier is made of oak."
    ]


@pytest.mark.parametrize("text", TELLING)
def test_sentence_that_only_resembles_a_remark_about_the_notes_is_yielded(text: str) -> None:
    assert not is_about_notes(text)
    assert draft(f"{text[:-1]} [1].") == [MarkedSentence(text, (1,), paragraph=False)]


def test_sentence_without_numbers_borrows_those_of_the_next_sentence() -> None:
    sentences = draft("The pier is old. It is made of oak [2]. It was lost. That was in 1953 [1][3]. So it goes.")
    assert [(sentence.text, sentence.numbers, sentence.borrowed) for sentence in sentences] == [
        ("The pier is old.", (2,), True),
        ("It is made of oak.", (2,), False),
        ("It was lost.", (1, 3), True),
        ("That was in 1953.", (1, 3), False),
        ("So it goes.", (), False),
    ]


@given(
    st.lists(
        st.sampled_from(
            ["It is old. ", "The pier is of oak [2]. ", "NOTHING ", f"{SILENT[0]} ", "So it goes [1][3]. ", "\n"]
        )
    ),
    st.integers(1, 60),
)
def test_streamed_draft_equals_the_whole_draft(pieces: list[str], size: int) -> None:
    text = "".join(pieces)
    try:
        whole = draft(text, max(1, len(text)))
    except UnreadableReply:
        with pytest.raises(UnreadableReply):
            draft(text, size)
        return

    assert draft(text, size) == whole
    marked = [bool(sentence.numbers) for sentence in whole]
    assert marked == sorted(marked, reverse=True)


def test_error_about_an_unmarked_draft_names_both_remedies() -> None:
    with pytest.raises(UnreadableReply, match=r"square brackets behind it; where no note helps, .* NOTHING"):
        draft("The pier is made of oak. It is long.")
