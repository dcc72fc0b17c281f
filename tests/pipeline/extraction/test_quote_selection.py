"""How quotes are selected and ordered, and which sentences repeat or contradict each other."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.extraction.answer_ranking import CandidateFeatures, ScoredCandidate
from pipeline.extraction.candidates import find_candidates
from pipeline.extraction.quote_selection import (
    CLOSE_SCORE,
    OTHER_PAGE_CHANCE,
    SAME_PAGE_CHANCE,
    is_contradiction,
    is_repetition,
    parse_statement,
    select_quotes,
)
from pipeline.replies.footnotes import number_footnotes
from pipeline.support.support_check import find_verbatim_passage
from storage.types import Hit, PassageKind
from tests.pipeline.world import hit

NOTHING = CandidateFeatures(*[0.0] * len(CandidateFeatures.__dataclass_fields__))


def ranked(hits: Sequence[Hit], *best: str) -> list[ScoredCandidate]:
    """Return the sentences of the hits as scored candidates: those named come first, the others far behind."""
    candidates = find_candidates(hits)
    scores = {text: 10 - 0.1 * place for place, text in enumerate(best)}
    made = [
        ScoredCandidate(candidate, NOTHING, scores.get(candidate.text, 10 - CLOSE_SCORE - 1))
        for candidate in candidates
    ]
    return sorted(made, key=lambda one: -one.score)


def quote(scored: Sequence[ScoredCandidate], limit: int = 3) -> list[str]:
    return [quote.text for quote in select_quotes(scored, limit, "en")]


PAGE = hit("First comes this line. Then comes that line. Last comes another one. It ends here.", title="Page")


def test_best_quote_comes_first_and_the_rest_in_text_order() -> None:
    scored = ranked([PAGE], "Last comes another one.", "Then comes that line.", "First comes this line.")
    assert quote(scored) == ["Last comes another one.", "First comes this line.", "Then comes that line."]


def test_limit_bounds_the_number_of_quotes() -> None:
    assert quote(ranked([PAGE], "Last comes another one.", "Then comes that line."), limit=1) == [
        "Last comes another one."
    ]


def test_rivals_of_the_same_day_are_ordered_by_score() -> None:
    old = hit("The ferry costs 12 crowns.", key="old.md", date=datetime(2026, 3, 1, 10, 0, 4, tzinfo=UTC))
    new = hit("The ferry costs 15 crowns.", key="new.md", date=datetime(2026, 3, 1, 10, 0, 5, tzinfo=UTC))
    better = ["The ferry costs 12 crowns.", "The ferry costs 15 crowns."]
    assert quote(ranked([old, new], *better)) == better


def test_low_scores_are_not_quoted() -> None:
    assert quote(ranked([PAGE], "Then comes that line.")) == ["Then comes that line."]


def test_further_sentence_of_another_page_needs_a_higher_chance_of_answering() -> None:
    other = hit("Five minutes later he joined him.", key="other.md")
    scored = ranked([PAGE, other], "Then comes that line.", "Five minutes later he joined him.", "It ends here.")
    unsure = [replace(candidate, chance=(SAME_PAGE_CHANCE + OTHER_PAGE_CHANCE) / 2) for candidate in scored]
    poor = [replace(candidate, chance=SAME_PAGE_CHANCE / 2) for candidate in scored]
    assert quote(scored) == ["Then comes that line.", "It ends here.", "Five minutes later he joined him."]
    assert quote(unsure) == ["Then comes that line.", "It ends here."]
    assert quote(poor) == ["Then comes that line."]


def test_table_row_with_fewer_question_words_is_not_quoted() -> None:
    rows = hit("Pump: A; Price: 199 euros\nPump: B; Price: 349 euros", kind=PassageKind.TABLE)
    scored = ranked([rows], "Pump: B; Price: 349 euros", "Pump: A; Price: 199 euros")
    named = [replace(one, features=replace(NOTHING, terms=1 - 0.5 * place)) for place, one in enumerate(scored)]
    assert quote(named) == ["Pump B | Price: 349 euros"]
    assert quote(scored) == ["Pump B | Price: 349 euros", "Pump A | Price: 199 euros"]


def test_requested_table_row_is_quoted() -> None:
    rows = hit("These are the fares:\nTo: Vik; Price: 4 crowns\nTo: Lundey; Price: 9 crowns", kind=PassageKind.TABLE)
    best = [ScoredCandidate(find_candidates([rows])[0], NOTHING, 1.0)]
    whole = "These are the fares:\nVik | Price: 4 crowns\nLundey | Price: 9 crowns"
    assert [quote.text for quote in select_quotes(best, 1, "en", question="What is the fare to Vik?")] == [
        "Vik | Price: 4 crowns"
    ]
    assert [quote.text for quote in select_quotes(best, 1, "en", question="What is the fare?")] == [whole]
    assert [quote.text for quote in select_quotes(best, 1, "en", question="Fares of Vik and Lundey?")] == [whole]


def test_question_before_a_lettered_answer_is_not_quoted() -> None:
    page = hit("Q: Where are the oars kept?\n\nA: They hang in the shed. Nobody lends them.")
    (best,) = (candidate for candidate in find_candidates([page]) if "oars" in candidate.text)
    assert best.text.startswith("Where are the oars kept?")
    assert quote([ScoredCandidate(best, NOTHING, 1.0)]) == ["They hang in the shed."]


def test_answers_to_further_parts_follow_the_first() -> None:
    scored = ranked([PAGE], "Then comes that line.")
    (last,) = (candidate.candidate for candidate in scored if candidate.candidate.text == "It ends here.")
    sentences = select_quotes(scored, 3, "en", [last, scored[0].candidate])
    assert [sentence.text for sentence in sentences] == ["Then comes that line.", "It ends here."]


def test_repetition_on_another_page_is_not_quoted() -> None:
    other = hit("Then comes that line!", key="copy.md")
    assert quote(ranked([PAGE, other], "Then comes that line.", "Then comes that line!")) == ["Then comes that line."]


def test_item_of_a_quoted_list_is_not_quoted_again() -> None:
    page = hit("Bring with you:\n- a badge\n- a laptop")
    assert quote(ranked([page], "Bring with you:\n- a badge\n- a laptop", "a badge")) == [
        "Bring with you:\n- a badge\n- a laptop"
    ]


def test_list_starts_a_paragraph() -> None:
    page = hit("You need a few things. Bring with you:\n- a badge\n- a laptop\n\nThat is all there is to it.")
    scored = ranked(
        [page], "You need a few things.", "Bring with you:\n- a badge\n- a laptop", "That is all there is to it."
    )
    assert [quote.paragraph for quote in select_quotes(scored, 3, "en")] == [False, True, True]


def test_opening_pronoun_and_lone_item_get_a_note_with_page_and_section() -> None:
    page = hit("It ends here.\n\n- Bring a badge.", title="Office", section="Hours")
    sentences = select_quotes(ranked([page], "It ends here.", "Bring a badge."), 3, "en")
    assert [(sentence.text, sentence.note) for sentence in sentences] == [
        ("It ends here.", "Office › Hours"),
        ("Bring a badge.", "Office › Hours"),
    ]


def test_list_items_are_quoted_below_their_introduction() -> None:
    page = hit("Bring with you:\n\n- a badge\n- a laptop\n- a hat\n\nIt ends here.", title="Office")
    one, other = select_quotes(ranked([page], "a hat", "a badge", "It ends here."), 3, "en")
    assert (one.text, one.note) == ("Bring with you:\n- a hat\n- a badge", "")
    assert [piece.text for piece in one.evidence] == ["Bring with you:", "- a hat", "- a badge"]
    assert other.paragraph
    assert find_verbatim_passage("Bring with you:\n- a badge\n- a hat", [page.passage]) == page.passage.id
    assert not find_verbatim_passage("Bring with you:\n- a badge\n- a coat", [page.passage])
    assert not find_verbatim_passage("Bring with you:\n- a badge\nIt ends here.", [page.passage])


def test_pages_with_the_same_sentence_share_a_footnote() -> None:
    pages = [hit(f"The fee is 20 euros. Ask Tove about {key}.", key=key, title=key) for key in ("boats", "oars")]
    (said,) = select_quotes(ranked(pages, "The fee is 20 euros."), 3, "en")
    (sentence,), citations = number_footnotes([said])
    assert sentence.citations == (1,)
    assert [(one.number, one.title, one.quote) for one in citations] == [
        (1, "boats", "The fee is 20 euros."),
        (1, "oars", "The fee is 20 euros."),
    ]


def test_pronoun_note_is_omitted_after_its_antecedent() -> None:
    page = hit("The ferry is new. It sails at nine.", title="Ferry")
    sentences = select_quotes(ranked([page], "The ferry is new.", "It sails at nine."), 3, "en")
    assert [sentence.note for sentence in sentences] == ["", ""]


OLD = hit("The fee is 20 euros.", key="2024.md", title="Rules 2024", date=datetime(2024, 2, 5, tzinfo=UTC))
NEW = hit("The fee is 25 euros.", key="2026.md", title="Rules 2026", date=datetime(2026, 1, 9, tzinfo=UTC))
UNDATED = hit("The fee is 30 euros.", key="undated.md", title="Rules")


def test_disagreeing_sources_are_quoted_newest_first() -> None:
    sentences = select_quotes(
        ranked([OLD, NEW, PAGE], OLD.passage.text, "First comes this line.", NEW.passage.text), 3, "en"
    )
    assert [(sentence.text, sentence.note, sentence.paragraph) for sentence in sentences] == [
        ("The fee is 25 euros.", "Rules 2026, 2026-01-09", False),
        ("The fee is 20 euros.", "Rules 2024, 2024-02-05", True),
        ("First comes this line.", "", False),
    ]


OTHER = replace(
    NEW,
    passage=replace(NEW.passage, corpus="b", document=OLD.document.key),
    document=replace(NEW.document, corpus="b", key=OLD.document.key),
)
DATED = ["Rules 2026, 2026-01-09", "Rules 2024, 2024-02-05", "Rules"]


@pytest.mark.parametrize(
    ("hits", "limit", "notes"),
    [
        ([UNDATED, OLD], 3, DATED[1:]),
        ([OLD, UNDATED, NEW], 1, DATED),
        ([OLD, OTHER], 3, DATED[:2]),
        ([hit("The fee is 20 euros. The fee is 25 euros.", title="Rules")], 3, ["", ""]),
    ],
    ids=["undated last", "beyond the limit", "one name in two corpora", "one document"],
)
def test_rival_documents_are_noted_with_their_dates(hits: list[Hit], limit: int, notes: list[str]) -> None:
    best = [text for source in hits for text in source.passage.text.replace("s. T", "s.|T").split("|")]
    assert [quote.note for quote in select_quotes(ranked([*hits, PAGE], *best), limit, "en")] == notes


def test_no_candidates_give_no_quotes() -> None:
    assert select_quotes([], 3, "en") == ()


DISAGREE = [
    ("The office opens at 9:00.", "The office opens at 8:30."),
    ("The office is closed on Friday.", "The office is closed on Monday."),
    ("Probation lasts three months.", "Probation lasts six months."),
    ("Full-time employees receive 25 days of annual leave.", "Everyone gets 28 days of annual leave per year."),
    ("The firm was founded in 1911.", "The firm was founded in 1913."),
    ("Dogs are allowed in the office.", "Dogs are not allowed in the office."),
    ("Du hast 25 Tage Urlaub.", "Du hast 30 Tage Urlaub im Jahr."),
    ("公司提供15天年假。", "公司提供20天年假。"),
    ("狗可以进办公室。", "狗不可以进办公室。"),
    ("Lamps cost two crowns.", "Lamps cost 3 crowns."),
]
AGREE = [
    ("The fee is 20 euros.", "The fee is 20 euros and is paid by 5 May."),
    ("The office opens at 9:00.", "The office closes at 18:00 after a long day of work by everyone."),
    ("Bergen opened in 2004.", "From 1 June to 31 August the Bergen office closes at 15:00."),
    ("The office is in Ghent.", "The canteen is in Bruges."),
    ("Notice of termination is two weeks.", "Notice of termination is 14 days."),
    ("A lamp costs at most 1,500 euros.", "A lamp costs no more than 1500 euros."),
    ("Send bills no later than five days after the trip.", "Send bills within five days after the trip."),
    ("Do not forget to lock the shed.", "Remember to lock the shed."),
    ("The club pays half of the fare.", "The club pays 50% of the fare."),
    ("Keepers cannot go home before noon.", "Keepers can go home only after noon."),
    ("You get 25 days.", ""),
    ("", ""),
]


@pytest.mark.parametrize(("one", "other"), DISAGREE)
def test_different_values_for_the_same_thing_contradict(one: str, other: str) -> None:
    assert is_contradiction(parse_statement(one), parse_statement(other))
    assert is_contradiction(parse_statement(other), parse_statement(one))


@pytest.mark.parametrize(("one", "other"), AGREE)
def test_additional_or_unrelated_statements_do_not_contradict(one: str, other: str) -> None:
    assert not is_contradiction(parse_statement(one), parse_statement(other))


def test_same_words_and_values_are_a_repetition() -> None:
    statement = parse_statement("You get 25 days of leave")
    assert is_repetition(statement, parse_statement("You get 25 days of leave."))
    assert not is_repetition(statement, parse_statement("You get 26 days of leave."))
    assert not is_repetition(statement, parse_statement("You do not get 25 days of leave."))


@given(st.text(max_size=100), st.text(max_size=100))
def test_no_statement_both_repeats_and_contradicts(one: str, other: str) -> None:
    first, second = parse_statement(one), parse_statement(other)
    assert not (is_repetition(first, second) and is_contradiction(first, second))
    assert not is_contradiction(first, first)
    assert is_contradiction(first, second) == is_contradiction(second, first)
