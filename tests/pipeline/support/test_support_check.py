"""The local support check: verbatim sentences, rules and scores."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.gate import is_judged, is_quoted, is_sure
from pipeline.support.rules import FindingKind, FindingOutcome, RuleFinding
from pipeline.support.scorer import EmbedTokens, load_scorer
from pipeline.support.support_check import (
    MAX_CHARACTERS,
    SentenceAnalysis,
    SupportChecker,
    check_verbatim,
    decide_support,
    find_verbatim_passage,
    lead_quotation,
)
from storage.indexes.embedding import TokenStates
from storage.indexes.packaged_embedder import open_minilm
from storage.types import Document, Evidence, Passage, PassageKind
from tests.pipeline.support import word_embeddings
from tests.pipeline.world import hit

OFFICE = hit("The office opens at nine. Nobody knows\nwhether it closes at six.\n\nDogs:\n- Rex\n- Bello").passage
TABLE = hit("Grade: 8; Leave: 25 days\nGrade: 9; Leave: 28 days", key="t", kind=PassageKind.TABLE).passage
MILL = hit(
    "Ingrid Solberg founded the paper mill in Lauvik in 1921. It employed 340 people, and it closed in May 1987 after "
    "a fire. Her son Halvard had led it since 1952.",
    key="mill.md",
    title="Lauvik Paper Mill",
).passage
WHOLE = [
    "The office opens at nine.",
    "Nobody knows whether it closes at six.",
    "The office opens at nine. Nobody knows whether it closes at six.",
    "Dogs:\n- Rex\n- Bello",
    "Bello",
    "Grade: 9; Leave: 28 days",
]


@pytest.fixture(scope="module")
def read() -> EmbedTokens:
    """The model of words that the check was trained with."""
    reader = open_minilm()

    async def states(texts: Sequence[str]) -> Sequence[TokenStates]:
        return reader.read(texts)

    return states


def evidence(*passages: Passage, title: str = "Page") -> tuple[Evidence, ...]:
    """Return passages as the evidence of a sentence."""
    page = Document("handbook", "page.md", title)
    return tuple(Evidence(passage.text, passage, page, (0, len(passage.text))) for passage in passages)


@pytest.mark.parametrize("sentence", WHOLE)
async def test_whole_sentences_are_supported(sentence: str) -> None:
    """Neighbouring sentences, items or rows of one passage hold, however their lines are broken."""
    for check in (check_verbatim, SupportChecker(_never)):
        support = await check(sentence, evidence(OFFICE, TABLE))
        assert (support.holds, support.score) == (True, 1.0)
        assert "word for word" in support.reasons[0]


DOTS = "Alert the team in […]. Its number ([…]) is long. It goes on, …"
LIST = "- Bring your badge. The desk {} and the gate, close at six.\n- Nobody waits."


@pytest.mark.parametrize(
    ("sentence", "text"),
    [
        ("However, the office opens at nine.", OFFICE.text),
        ("the office opens at nine", OFFICE.text),
        ("Nobody knows, whether it closes at six.", OFFICE.text),
        ("Alert the team in […].", DOTS),
        ("Its number ([...]) is long.", DOTS),
        ("It goes on, …", DOTS),
        *(("The desk ... and the gate close at six", LIST.format(dots)) for dots in ("...", "…")),
        *(("And the desk … and the gate close at six.", LIST.format(dots)) for dots in ("...", "…")),
    ],
)
async def test_almost_verbatim_sentence_is_verbatim(sentence: str, text: str) -> None:
    assert (await SupportChecker(_never)(sentence, evidence(hit(text).passage))).verbatim


@pytest.mark.parametrize(
    ("sentence", "passages"),
    [
        ("whether it closes at six.", [OFFICE]),
        ("Leave: 25 days", [TABLE]),
        ("The office opens at ten.", [OFFICE]),
        ("The office opens at nine.", [TABLE]),
        ("The office opens at nine.", []),
        ("Nobody knows whether it closes at six. Grade: 8; Leave: 25 days", [OFFICE, TABLE]),
        (" ", [OFFICE]),
    ],
)
async def test_partial_or_different_sentences_are_not_verbatim(sentence: str, passages: Sequence[Passage]) -> None:
    assert find_verbatim_passage(sentence, passages) == ""
    assert not (await check_verbatim(sentence, evidence(*passages))).holds


@pytest.mark.parametrize(
    "sentence",
    [
        "Ingrid Solberg founded the paper mill in Lauvik in 1921.",
        "The paper mill in Lauvik employed 340 people.",
        "The mill closed in May 1987 after a fire.",
        "Founded in 1921, the paper mill closed in 1987.",
        "Halvard led the mill since 1952.",
    ],
)
async def test_paraphrase_is_supported(read: EmbedTokens, sentence: str) -> None:
    support = await SupportChecker(read)(sentence, evidence(MILL))
    assert support.holds, support.reasons


@pytest.mark.parametrize(
    ("sentence", "said"),
    [
        ("Ingrid Solberg founded the paper mill in Lauvik in 1931.", "1931"),
        ("The paper mill in Lauvik employed 430 people.", "430"),
        ("Astrid Nygaard founded the paper mill in Lauvik in 1921.", "Astrid Nygaard"),
        ("The mill closed in June 1987 after a fire.", "June 1987"),
        ("The mill employed 340 people in Bergen.", "Bergen"),
    ],
)
async def test_missing_detail_decides_alone(read: EmbedTokens, sentence: str, said: str) -> None:
    support = await SupportChecker(read)(sentence, evidence(MILL))
    assert (support.holds, support.appealable) == (False, False)
    assert said in support.reasons[0]


async def test_repeated_check_is_cached(read: EmbedTokens) -> None:
    calls = list[Sequence[str]]()

    async def count(texts: Sequence[str]) -> Sequence[TokenStates]:
        calls.append(texts)
        return [*await read(texts)]

    check, sentence = SupportChecker(count), "Ingrid Solberg founded the mill in 1931."
    first = await check(sentence, evidence(MILL))
    assert await check(sentence, list(evidence(MILL))) is first
    assert len(calls) == 1
    await check(sentence, evidence(MILL, OFFICE))
    await check(sentence, evidence(MILL), asked=["Was it founded in 1931?"])
    assert len(calls) == 3


async def test_unrelated_sentence_is_appealable(read: EmbedTokens) -> None:
    support = await SupportChecker(read)("Whales sing to their young beneath frozen seas.", evidence(MILL))
    assert (support.holds, support.appealable) == (False, True)
    assert support.reasons[0].startswith("It says “Whales”")


LED = hit("She founded the mill in 1921 and led it for 31 years.", key="solberg.md").passage
YARD = hit("She leads the boat yard in Lauvik.", key="yard.md").passage
FOUNDED = "Ingrid Solberg founded the paper mill in Lauvik in 1921."
PARTS = (
    hit("Ingrid Solberg founded the paper mill in Lauvik.", key="a").passage,
    hit("The paper mill in Lauvik was founded in 1921.", key="b").passage,
)
LEAVE = hit("Whoever takes over 80 hours of unpaid leave needs the approval of their manager.", key="l").passage
APPROVAL = "For {} hours of unpaid leave you need the approval of your manager."
CLOSED = "At Brattvik Paper the mill closed in May 1987 after a fire."
PASSES = {"holds": True}
FAILS = {"holds": False, "appealable": False}
MAY_PASS = {"holds": False, "appealable": True}


@pytest.mark.parametrize(
    ("sentence", "passages", "more", "expected"),
    [
        ("Ingrid Solberg founded the mill in 1921.", (LED,), {"title": "Ingrid Solberg"}, PASSES),
        ("Ingrid Solberg founded the mill in 1921.", (LED,), {"title": "Astrid Nygaard"}, {"holds": False}),
        ("Oda Hagen leads the boat yard.", (YARD,), {"title": "The yard"}, MAY_PASS),
        (CLOSED, (MILL,), {"names": ("Brattvik Paper",)}, PASSES),
        (CLOSED, (MILL,), {}, {"holds": False}),
        (APPROVAL.format(100), (LEAVE,), {"asked": ("May I take 100 hours?",)}, {"holds": True, "doubtful": True}),
        (APPROVAL.format(100), (LEAVE,), {}, FAILS),
        (APPROVAL.format(60), (LEAVE,), {"asked": ("And for 60 hours?",)}, MAY_PASS | {"contradicted": False}),
        (FOUNDED, PARTS, {}, PASSES),
        (FOUNDED, PARTS[:1], {}, {"holds": False}),
        (FOUNDED.replace("1921", "1931"), (MILL,), {}, FAILS | {"contradicted": True}),
        *((text, (MILL,), {}, FAILS) for text in ("It is 340.", "All of it is so.", "And so on.", "Do it.")),
    ],
)
async def test_titles_names_and_questions_decide_support(
    read: EmbedTokens, sentence: str, passages: tuple[Passage, ...], more: dict[str, Any], expected: dict[str, bool]
) -> None:
    check = SupportChecker(read, names=more.get("names", ()))
    support = await check(sentence, evidence(*passages, title=more.get("title", "Page")), asked=more.get("asked", ()))
    assert {name: getattr(support, name) for name in expected} == expected


OURS = hit("We provide 12 weeks of parental leave at full pay. Ask our people team.", key="ours").passage


@pytest.mark.parametrize(
    ("passage", "corpus", "sentence", "final"),
    [
        (OURS, "handbook", "Parental leave at Brattvik Paper is 12 weeks at full pay.", False),
        (OURS, "handbook", "Brattvik Paper provides 12 weeks of parental leave at full pay.", False),
        (OURS, "handbook", "No, Brattvik Paper provides 12 weeks of parental leave at full pay.", False),
        (OURS, "handbook", "We provide 12 weeks of parental leave at full pay, and so does Brattvik Paper.", True),
        (OURS, "handbook", "We provide 12 weeks of parental leave at full pay in Brattvik.", True),
        (MILL, "handbook", "At Brattvik Paper the mill closed in May 1987 after a fire.", True),
        (MILL, "brattvikpaper", "At Brattvik Paper the mill closed in May 1987 after a fire.", False),
        (OURS, "openbridge", "Open Bridge provides 12 weeks of parental leave at full pay.", False),
        (MILL, "brattvik-handbook", "At Brattvik the mill closed in May 1987 after a fire.", False),
    ],
)
async def test_name_may_refer_to_the_pages_authors(
    read: EmbedTokens, passage: Passage, corpus: str, sentence: str, *, final: bool
) -> None:
    page = Document(corpus, "page.md", "Page")
    support = await SupportChecker(read)(sentence, [Evidence(passage.text, passage, page, (0, len(passage.text)))])
    assert (support.holds or support.appealable) is not final


async def test_narrow_support_is_doubtful(read: EmbedTokens) -> None:
    support = await SupportChecker(read)("The mill gave work to 340 people of the valley.", evidence(MILL))
    assert (support.holds, support.doubtful) == (True, support.score < load_scorer().thresholds["strict"])


async def test_sentences_are_doubtful_if_one_alone_is(read: EmbedTokens) -> None:
    """SmolLM2's note of two doubtful sentences was said, because both together shared enough words with a passage."""
    narrow, sure = "The mill in Lauvik gave 340 people work.", "Ingrid Solberg founded the paper mill in 1921."
    check = SupportChecker(read)
    verdicts = [await check(text, evidence(MILL)) for text in (narrow, sure, f"{narrow} {sure}")]
    assert [(support.holds, support.doubtful) for support in verdicts] == [(True, True), (True, False), (True, True)]


@pytest.mark.parametrize(
    ("sentence", "strange"),
    [
        ("The paper mill in Lauvik was founded in 1921 by a wealthy penguin, Ingrid Solberg.", True),
        ("The paper mill in Lauvik was established in 1921 by Ingrid Solberg.", False),
    ],
)
async def test_word_of_another_meaning_is_left_to_the_model(read: EmbedTokens, sentence: str, *, strange: bool) -> None:
    support = await SupportChecker(read)(sentence, evidence(MILL))
    assert (is_sure(support), is_quoted(support)) == (not strange, False)
    assert is_judged(support)


@pytest.mark.parametrize(
    ("sentence", "said", "quoted"),
    [
        ("{}visitors may bring a dog into the yard.", "Visitors may not bring a dog into the yard on Sundays.", True),
        ("{}the porter must ring twice.", "The porter must ring once.", True),
        (
            "{}the harbour pays for your coat if you leave.",
            "The harbour pays for your coat if you leave only if you sailed for two years.",
            True,
        ),
        ("{}the yard is closed to visitors in winter.", "The yard is open to visitors all year.", True),
        ("{}guests may park behind the mill.", "Guests may park behind the mill.", False),
    ],
)
@pytest.mark.parametrize("answer", ["Yes, ", "No, ", "Yes: ", "No. "])
async def test_sentence_behind_a_yes_or_no_is_held_to_the_same_rules(
    read: EmbedTokens, answer: str, sentence: str, said: str, *, quoted: bool
) -> None:
    cited, check = evidence(replace(MILL, text=said)), SupportChecker(read)
    support, plain = await check(sentence.format(answer), cited), await check(sentence.format(""), cited)
    assert (support.better_quoted or not (support.holds or support.appealable)) is quoted
    assert (plain.verbatim, support.verbatim) == (not quoted, False)


@pytest.mark.parametrize("answer", ["Yes", "No"])
async def test_quotation_led_by_a_yes_or_no_is_judged(read: EmbedTokens, answer: str) -> None:
    said = "Guests may park behind the mill only if they sleep here."
    cited = evidence(replace(MILL, text=said))
    led = lead_quotation(f"{answer}, guests may park behind the mill.", said, cited)
    assert led == f"{answer}: “{said}”"
    assert lead_quotation("Yes.", said, cited) == ""
    support = await SupportChecker(read)(led, cited)
    assert (support.better_quoted, support.doubtful or support.appealable) == (False, True)
    assert lead_quotation(f"{answer}, guests park here.", "Parking: guests.", cited) == f"{answer}: Parking: guests."
    for other in ("No guests may park.", "No. 12 guests may park.", "No-shows may park."):
        assert lead_quotation(other, said, cited) == ""


async def test_loose_strictness_ignores_wording(read: EmbedTokens) -> None:
    sentence = "Her son Halvard had always led it since 1952."
    loose, normal = [await SupportChecker(read, level)(sentence, evidence(MILL)) for level in ("loose", "normal")]
    assert (loose.holds, loose.doubtful) == (True, False)
    assert (normal.holds, normal.doubtful) == (True, True)


async def test_stricter_levels_accept_fewer_sentences(read: EmbedTokens) -> None:
    thresholds = load_scorer().thresholds
    assert 0 < thresholds["loose"] < thresholds["normal"] < thresholds["strict"] < 1
    sentence = "The mill gave work to 340 people of the valley."
    holding = [
        (await SupportChecker(read, level)(sentence, evidence(MILL))).holds for level in ("loose", "normal", "strict")
    ]
    assert holding == sorted(holding, reverse=True)


async def test_unreadable_sentences_are_refused_before_anything_is_read() -> None:
    check = SupportChecker(_never)
    assert "no text" in (await check(" \n", evidence(MILL))).reasons[0]
    assert "more than" in (await check("word " * MAX_CHARACTERS, evidence(MILL))).reasons[0]
    assert "It cites nothing." in (await check("The mill closed.", ())).reasons[0]


@given(st.text(max_size=300), st.lists(st.text(max_size=300), max_size=3))
async def test_any_text_can_be_judged(sentence: str, texts: list[str]) -> None:
    passages = [replace(OFFICE, id=str(place), text=text) for place, text in enumerate(texts)]
    support = await SupportChecker(word_embeddings.read)(sentence, evidence(*passages))
    assert 0 <= support.score <= 1
    assert support.holds or support.reasons
    assert not (support.contradicted and support.appealable)


async def _never(texts: Sequence[str]) -> Sequence[object]:
    raise AssertionError(f"nothing need be read: {texts}")


async def test_quotation_may_begin_with_its_list_mark() -> None:
    steps = hit("1. Charge the laptop.\n2. Sign in.")
    places = [Evidence(steps.passage.text, steps.passage, steps.document, (0, len(steps.passage.text)))]
    assert (await check_verbatim("1. Charge the laptop. 2. Sign in.", places)).holds
    assert not (await check_verbatim("3. Charge the laptop. 2. Sign in.", places)).holds


MARCH = RuleFinding(FindingKind.DATE, "March", FindingOutcome.FOUND)
LATE = RuleFinding(FindingKind.WORDING, "late", FindingOutcome.CHANGED, "early", grave=True)
GONE = RuleFinding(FindingKind.NAME, "Ruritania", FindingOutcome.ABSENT)
NEAREST = "The nearest sentence says “The mill closes in early March.”"


@pytest.mark.parametrize(("best", "sure"), [(0.8, True), (0.6, False)])
def test_sentence_of_words_from_several_sentences_is_not_sure(best: float, *, sure: bool) -> None:
    analysis = SentenceAnalysis({"overlap": 1.0, "overlap_best": best}, (MARCH,), "The mill closes in early March.")
    assert is_sure(decide_support(analysis, 0.9, 0.5, sure=0.8)) is sure


@pytest.mark.parametrize(
    ("found", "strange", "score", "reasons"),
    [
        ((MARCH,), True, 0.9, [MARCH.reason, "It says “sails”, which no passage mentions.", NEAREST]),
        ((MARCH, LATE), False, 0.9, ["It says “late”, but the passage says “early”.", NEAREST]),
        ((MARCH, LATE), False, 0.1, [LATE.reason, "It says “sails”, which no passage mentions.", NEAREST]),
        ((LATE, replace(LATE, instead=""), replace(LATE, said="")), True, 0.9, [LATE.reason, NEAREST]),
        ((MARCH, GONE), False, 0.9, ["It says “Ruritania”, which no passage mentions.", NEAREST]),
        ((MARCH,), False, 0.9, ["The passages say “March”.", NEAREST]),
    ],
    ids=["strange", "grave", "low score", "one difference", "absent", "holds"],
)
def test_reasons_name_what_differs_and_the_nearest_sentence(
    found: tuple[RuleFinding, ...], score: float, reasons: list[str], *, strange: bool
) -> None:
    analysis = SentenceAnalysis({}, found, "The mill closes in early March.", ("sails",), strange)
    assert list(decide_support(analysis, score, 0.5, sure=0.8).reasons) == reasons
