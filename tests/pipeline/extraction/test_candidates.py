"""Candidates for quotation, and the answer types of questions and sentences."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.extraction.candidates import (
    AnswerType,
    classify_question,
    find_candidates,
    has_answer_type,
)
from pipeline.extraction.designations import is_about_others
from storage.types import PassageKind
from tests.pipeline.world import hit


def texts(*lines: str, kind: PassageKind = PassageKind.PROSE) -> list[str]:
    return [candidate.text for candidate in find_candidates([hit("\n".join(lines), kind=kind)])]


def test_sentences_are_candidates() -> None:
    candidates = find_candidates(
        [hit("The office opens at nine. It closes at six."), hit("Dogs are welcome here, too.", key="2")]
    )
    assert [(candidate.rank, candidate.text, candidate.span) for candidate in candidates] == [
        (0, "The office opens at nine.", (0, 25)),
        (0, "It closes at six.", (26, 43)),
        (1, "Dogs are welcome here, too.", (0, 27)),
    ]


def test_list_with_its_lead_in_and_each_item_are_candidates() -> None:
    candidates = find_candidates([hit("Bring with you:\n\n- your badge\n- your laptop\n\nThe door is never locked.")])
    assert [(candidate.text, candidate.lead) for candidate in candidates] == [
        ("Bring with you:\n\n- your badge\n- your laptop", ""),
        ("your badge", "Bring with you:"),
        ("your laptop", "Bring with you:"),
        ("The door is never locked.", ""),
    ]


def test_lead_in_and_following_sentence_form_a_candidate() -> None:
    assert texts("Remember this:", "", "Doors close at six.", "", "Then they lock.")[0] == (
        "Remember this:\n\nDoors close at six."
    )


def test_lead_in_without_a_list_is_not_a_candidate() -> None:
    assert [
        candidate.text for candidate in find_candidates([hit("The shed is shut. Bring what is in this list:")])
    ] == ["The shed is shut."]


def test_question_forms_one_candidate_with_its_answer() -> None:
    assert texts("May I bring my dog? Yes, if it is friendly. Cats stay at home.", "Why is that so?") == [
        "May I bring my dog? Yes, if it is friendly.",
        "Cats stay at home.",
    ]


def test_headings_and_link_texts_are_not_candidates() -> None:
    assert texts("- Parental Leave", "- Dress code", "- Leave: 25 days", "- It is fine.") == [
        "Leave: 25 days",
        "It is fine.",
    ]


def test_table_rows_are_candidates() -> None:
    rows = ["Grade: 8; Leave: 25 days. Half days too.", "Grade: 9; Leave: 28 days"]
    assert texts(*rows, kind=PassageKind.TABLE) == rows


def test_code_is_a_candidate_only_if_nothing_else_was_found() -> None:
    code = hit("make install", key="code", kind=PassageKind.CODE)
    assert [candidate.text for candidate in find_candidates([code, hit("Install it first, with make.")])] == [
        "Install it first, with make."
    ]
    assert [candidate.text for candidate in find_candidates([code])] == ["make install"]


def test_fragment_of_a_list_that_began_in_the_passage_before_is_not_a_candidate() -> None:
    items = "- the street of the guest\n- Ask Tove.\n- Lunch: a bowl of soup\n\nThe shed of the boats is shut."
    before, after = hit("Send us:\n- a name"), hit(items, position=1)
    sentences = ["Ask Tove.", "Lunch: a bowl of soup", "The shed of the boats is shut."]
    assert [candidate.text for candidate in find_candidates([after], around=[before])] == sentences
    assert [candidate.text for candidate in find_candidates([after])] == ["the street of the guest", *sentences]


def test_candidate_context_includes_its_headings() -> None:
    candidates = find_candidates([hit("Bring:\n- a badge", title="Office", section="First day › Morning")])
    assert candidates[1].context == "Office\nFirst day › Morning\nBring:\na badge"


pieces = st.lists(
    st.sampled_from(["Bring:", "- a badge", "Yes. No!", "Why?", "", "1. one", "  - sub", "终于来了。", "a"])
)


@given(pieces.map("\n".join), st.sampled_from(list(PassageKind)))
def test_candidate_text_is_a_stripped_span_of_its_passage(text: str, kind: PassageKind) -> None:
    for candidate in find_candidates([hit(text, kind=kind)]):
        start, end = candidate.span
        assert candidate.evidence[-1].text.endswith(candidate.text)
        assert candidate.text == text[start:end]
        assert candidate.text == candidate.text.strip()
        assert any(map(str.isalpha, candidate.text))


@pytest.mark.parametrize(
    ("question", "text", "others"),
    [
        ("What does Pump A cost?", "Pump B costs 349 euros.", True),
        ("What does Pump A cost?", "Pump A costs 199 euros, Pump B 349.", False),
        ("When did Maria A. Lind come?", "Maria B. Lind came in May.", False),
        ("How much people does room 7 hold?", "Room 12 holds eight people.", True),
        ("How much people does room 7 hold?", "Room 7 holds eight people.", False),
        ("How many people does room 7 hold?", "Rooms 5 to 9 hold eight people.", False),
        ("How much does form b7 cost?", "Form B2 costs four euros.", True),
        ("How much does form B7 cost?", "Forms B2 and B7 cost four euros.", False),
        ("What is the price of thing 9999?", "The price of thing 12 is 9999 euros.", True),
        ("How long may I keep 7 books?", "You may keep 5 books.", False),
        ("Can managers invite 7 people?", "Managers may invite 5 people.", False),
        ("How much does a Curlew cost?", "Curlews are for hire: a Curlew is 50 euros, a Heron costs 35.", False),
        ("Do I get 7 days off?", "You get 5 days off.", False),
    ],
)
def test_designations_distinguish_things_of_a_kind(question: str, text: str, *, others: bool) -> None:
    (found,) = find_candidates([hit(text, title="Page")])
    assert is_about_others(found, question) is others


@pytest.mark.parametrize(
    ("kind", "text", "title", "section", "others"),
    [
        (PassageKind.PROSE, "It holds eight people.", "Rooms", "Room 12", True),
        (PassageKind.PROSE, "It holds more than Room 12 does.", "Rooms", "Room 7", False),
        (PassageKind.PROSE, "Room 12 holds eight people.", "Rooms", "Rooms 5-20", True),
        (PassageKind.TABLE, "Room: 12; People: 7", "Rooms", "", True),
        (PassageKind.TABLE, "Room: 7; People: 12", "Rooms", "", False),
    ],
)
def test_section_or_row_designates_the_thing(
    kind: PassageKind, text: str, title: str, section: str, *, others: bool
) -> None:
    (found,) = find_candidates([hit(text, title=title, section=section, kind=kind)])
    assert is_about_others(found, "How many people does room 7 hold?") is others


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("How many days of leave do I get?", AnswerType.NUMBER),
        ("What does a hotel in Oslo cost?", AnswerType.NUMBER),
        ("What is the referral bonus?", AnswerType.NUMBER),
        ("Wie viele Tage Urlaub habe ich?", AnswerType.NUMBER),
        ("公司有多少天年假？", AnswerType.NUMBER),
        ("When did the office open?", AnswerType.DATE),
        ("¿Cuándo abrió la oficina?", AnswerType.DATE),
        ("متى فتح المكتب؟", AnswerType.DATE),
        ("Who approves the budget?", AnswerType.PERSON),
        ("谁是经理？", AnswerType.PERSON),
        ("Where is the office?", AnswerType.PLACE),
        ("What is Old Margaret?", None),
        ("Whoever painted it was good", None),
    ],
)
def test_question_words_decide_the_answer_type(question: str, kind: AnswerType | None) -> None:
    assert classify_question(question) is kind


@pytest.mark.parametrize(
    ("sentence", "kind", "offered"),
    [
        ("You get 25 days.", AnswerType.NUMBER, True),
        ("You get twenty days.", AnswerType.NUMBER, True),
        ("You get the 3 days.", AnswerType.NUMBER, False),
        ("You get days.", AnswerType.NUMBER, False),
        ("It opened in May.", AnswerType.DATE, True),
        ("It opened early.", AnswerType.DATE, False),
        ("It is led by Ada Lovelace.", AnswerType.PERSON, True),
        ("It is led by Anna.", AnswerType.PERSON, False),
        ("It is shut from Monday, 1 June to August.", AnswerType.PLACE, False),
        ("It is led by a woman.", AnswerType.PERSON, False),
    ],
)
def test_answer_type_needs_a_value_that_the_question_lacks(sentence: str, kind: AnswerType, *, offered: bool) -> None:
    assert has_answer_type(sentence, kind, "What did Anna get for the 3 days?") is offered


@given(st.text(max_size=80), st.text(max_size=80), st.sampled_from(list(AnswerType)))
def test_any_text_can_be_classified(sentence: str, question: str, kind: AnswerType) -> None:
    assert classify_question(question) in {None, *AnswerType}
    assert isinstance(has_answer_type(sentence, kind, question), bool)


@pytest.mark.parametrize(("question", "blocks"), [("When is a release made?", 0), ("Which command rolls it back?", 1)])
def test_sentence_before_the_introduction_of_code_is_prose(question: str, blocks: int) -> None:
    code = hit("A release is made every Tuesday. To roll it back, run:\n\nboatctl rollback", kind=PassageKind.CODE)
    sentence, *others = find_candidates([code, hit("The canteen opens at noon.", key="c.md")], question)
    assert (sentence.text, sentence.kind) == ("A release is made every Tuesday.", PassageKind.PROSE)
    assert [other.kind for other in others].count(PassageKind.CODE) == blocks
