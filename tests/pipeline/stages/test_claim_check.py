"""The check of one claim or of a whole text, by rules and by a model."""

from dataclasses import replace

import pytest

from pipeline.errors import ModelUnavailable, NotAClaim, SearchUnavailable
from pipeline.kit import Limits
from pipeline.stages import claim_check
from pipeline.stages.claim_check import (
    PassageSupport,
    check_claim_by_model,
    check_claim_by_rules,
    decide_verdict,
    extract_statements,
    validate_claim,
)
from pipeline.stages.findings import collect_sentences
from pipeline.support.support_check import MAX_CHARACTERS, SupportChecker
from pipeline.types import ClaimChecked, Status, Support
from storage.types import CheckedClaim, PassageKind, Verdict, VerdictReason
from tests.pipeline.scripted import ScriptedLLM
from tests.pipeline.support.word_embeddings import read
from tests.pipeline.world import Outcome, Shelf, Stage, hit, question, reads_alike, run

LIGHT = hit("Skarholm lighthouse was built in 1887. A keeper lives beside it.", key="light.md", title="Skarholm light")
PIER = hit("The pier of Skarholm is made of oak.", key="pier.md", title="Pier")
SHELF = Shelf([LIGHT, PIER])
HOLDS = Support(0.9, holds=True, reasons=("The passages say it.",))
DOUBTFUL = Support(0.2, holds=False, reasons=("too little of it",), appealable=True)
ABSENT = Support(0.2, holds=False, reasons=("No passage mentions it.",))
ALTERED = Support(0.9, holds=True, reasons=("It says “may”, but the passage says “must”.",), altered=True)
REPLACED = Support(0.9, holds=True, reasons=("It says “tax”, which no passage mentions.",), replaced=True)
CONTRADICTED = Support(0.2, holds=False, reasons=("It says 2, but the passage says 3.",), contradicted=True)


def held(support: Support, found=LIGHT, coverage=1.0) -> PassageSupport:
    return PassageSupport(support, collect_sentences([found])[:1], coverage)


async def check(
    claim, system=check_claim_by_rules, llm=None, supports=reads_alike, shelf=SHELF
) -> tuple[Outcome, CheckedClaim]:
    """Check a claim; return the turn's outcome, and the claim with its verdict."""
    stage = Stage(shelf, question(claim), Limits(), llm, supports)
    outcome = stage.finish(await system(question(claim), stage.kit))
    (checked,) = [event.checked for event in outcome.events if isinstance(event, ClaimChecked)]
    return outcome, checked


@pytest.mark.parametrize(
    ("alone", "together", "verdict", "reasoning"),
    [
        ([HOLDS, DOUBTFUL], HOLDS, Verdict.SUPPORTS, "The passages say it."),
        ([DOUBTFUL, HOLDS], HOLDS, Verdict.SUPPORTS, "The passages say it."),
        ([HOLDS, DOUBTFUL], DOUBTFUL, Verdict.NOT_ENOUGH_INFO, "too little of it"),
        (
            [DOUBTFUL, DOUBTFUL],
            HOLDS,
            Verdict.NOT_ENOUGH_INFO,
            "No single passage says all of it. The passages say it.",
        ),
        ([ABSENT, CONTRADICTED], ABSENT, Verdict.REFUTES, "It says 2, but the passage says 3."),
        ([ABSENT], ABSENT, Verdict.NOT_ENOUGH_INFO, "No passage mentions it."),
        (
            [HOLDS, CONTRADICTED],
            HOLDS,
            Verdict.SUPPORTS,
            "The passages say it. Yet a passage of “Skarholm light” differs: It says 2, but the passage says 3.",
        ),
    ],
)
def test_single_and_joint_support_decide_the_verdict(alone, together, verdict, reasoning):
    judgement = decide_verdict([held(support) for support in alone], held(together))
    assert (judgement.verdict, judgement.reasoning) == (verdict, reasoning)
    assert bool(judgement.evidence) == (verdict is not Verdict.NOT_ENOUGH_INFO)
    assert judgement.evidence or judgement.nearest


@pytest.mark.parametrize(
    ("alone", "verdict"),
    [
        ([(ABSENT, 0.8), (HOLDS, 0.8)], Verdict.NOT_ENOUGH_INFO),
        ([(ABSENT, 0.5), (HOLDS, 0.8)], Verdict.SUPPORTS),
        ([(HOLDS, 0.8), (ABSENT, 1.0)], Verdict.SUPPORTS),
        ([(HOLDS, 0.5), (CONTRADICTED, 0.8)], Verdict.REFUTES),
        ([(CONTRADICTED, 0.5), (HOLDS, 0.8)], Verdict.SUPPORTS),
        ([(DOUBTFUL, 1.0), (HOLDS, 0.8)], Verdict.SUPPORTS),
        ([(ALTERED, 1.0)], Verdict.NOT_ENOUGH_INFO),
        ([(ALTERED, 1.0), (HOLDS, 0.8)], Verdict.NOT_ENOUGH_INFO),
        ([(ALTERED, 0.5), (HOLDS, 0.8)], Verdict.SUPPORTS),
        ([(REPLACED, 1.0)], Verdict.NOT_ENOUGH_INFO),
        ([(REPLACED, 0.5), (HOLDS, 0.8)], Verdict.SUPPORTS),
        ([(HOLDS, 0.3)], Verdict.NOT_ENOUGH_INFO),
    ],
)
def test_passage_covering_more_of_a_claim_outweighs_apparent_support(alone, verdict):
    judgement = decide_verdict([held(support, coverage=coverage) for support, coverage in alone], held(HOLDS))
    assert judgement.verdict is verdict


def test_contradicting_passage_of_a_supported_claim_is_shown():
    prices = hit("Tickets are sold at the pier. A ticket costs 38 euros.", key="prices.md", title="Prices")
    other = Support(
        0.2, holds=False, reasons=("It says “45 euros”, but the passage says “38 euros”.",), contradicted=True
    )
    judgement = decide_verdict([held(HOLDS), PassageSupport(other, collect_sentences([prices]))], held(HOLDS))
    assert "a passage of “Prices” differs: It says “45 euros”" in judgement.reasoning
    assert [piece.text for piece in judgement.evidence][-1] == "A ticket costs 38 euros."
    assert judgement.evidence[0].document.title == "Skarholm light"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "no words"),
        ("?! 🎉", "no words"),
        ("Was it built in 1887?", "a question"),
        ("Wurde er 1887 gebaut? »", "a question"),
        ("它建于1887年吗？", "a question"),
        ("It was built in 1887. It is made of oak.", "2 sentences"),
        ("word " * MAX_CHARACTERS, "characters"),
        ("45", "does not state"),
        ("Bergen", "does not state"),
        ("the nights", "does not state"),
        ("ab.", "does not state"),
        ("卑尔根", "does not state"),
    ],
)
def test_invalid_claims_are_refused_with_a_hint(text, expected):
    with pytest.raises(NotAClaim, match=expected) as caught:
        validate_claim(text)
    assert caught.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "Dr. Hagen lives in St. Olav at No. 5 since 1990.",
        "它建于1887年。",
        "the pier is oak",
        "E = mc² is his.",
        "She was Norwegian.",
    ],
)
def test_valid_claims_are_accepted(text):
    validate_claim(text)


async def test_supported_claim_quotes_its_evidence():
    outcome, checked = await check("Skarholm lighthouse was built in 1887.")
    assert (checked.verdict, checked.claim.origin) == (Verdict.SUPPORTS, "user")
    assert checked.evidence == (LIGHT.passage.id,)
    assert outcome.answer.status is Status.ANSWERED
    assert [citation.quote for citation in outcome.answer.citations] == ["Skarholm lighthouse was built in 1887."]


async def test_claim_without_hits_is_not_enough_info():
    outcome, checked = await check("Kangaroos sleep standing.")
    assert (checked.verdict, checked.reasoning) == (
        Verdict.NOT_ENOUGH_INFO,
        "No passage was found to check it against.",
    )
    assert (outcome.answer.status, outcome.answer.citations) == (Status.ABSTAINED, ())


async def test_model_verdict_cites_numbered_sentences():
    reply = "Reasoning: It says oak.\nSentences: 3\nVerdict: REFUTES"
    llm = ScriptedLLM({"verify": reply})
    outcome, checked = await check("Skarholm lighthouse has a pier of stone.", check_claim_by_model, llm)
    assert (checked.verdict, checked.reasoning) == (Verdict.REFUTES, "It says oak.")
    assert [citation.quote for citation in outcome.answer.citations] == ["The pier of Skarholm is made of oak."]
    assert "Claim: Skarholm lighthouse has a pier of stone." in llm.asked("verify")


async def test_rules_overrule_a_model_that_accepts_a_missing_number():
    reply = "Reasoning: Sure.\nSentences: 1\nVerdict: SUPPORTS"
    _, checked = await check(
        "Skarholm lighthouse was built in 1999.", check_claim_by_model, ScriptedLLM({"verify": reply})
    )
    assert checked.verdict is Verdict.NOT_ENOUGH_INFO
    assert "a number is not in its passages" in checked.reasoning


async def test_wrongly_named_sentence_does_not_refute_a_supported_claim():
    reply = "Reasoning: Sure.\nSentences: 3\nVerdict: SUPPORTS"
    outcome, checked = await check(
        "Skarholm lighthouse was built in 1887.", check_claim_by_model, ScriptedLLM({"verify": reply})
    )
    assert checked.verdict is Verdict.SUPPORTS
    assert "1887" in outcome.answer.citations[0].quote


async def test_outage_during_a_check_is_raised():
    class Broken(Shelf):
        async def search(self, *_):
            raise SearchUnavailable("The index is gone.")

    with pytest.raises(SearchUnavailable):
        await check("The pier is made of oak.", shelf=Broken([]))
    with pytest.raises(ModelUnavailable):
        await check("The pier is made of oak.", check_claim_by_model, ScriptedLLM({"verify": ModelUnavailable("gone")}))


BOTH = "Skarholm lighthouse was built in 1887. The pier of Skarholm is made of oak."


async def check_text(text, system=claim_check.check_text_by_rules, llm=None, shelf=None, limits=None) -> Outcome:
    stage = Stage(shelf or SHELF, question(text), limits or Limits(), llm, reads_alike)
    return stage.finish(await system(question(text), stage.kit))


def claims(outcome):
    return [event.checked for event in outcome.events if isinstance(event, ClaimChecked)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Good morning! The pier is oak. Is it? Yes.", ("The pier is oak.",)),
        ("The pier is oak. The pier is oak.", ("The pier is oak.",)),
        ("- The pier is oak.\n- It was built in 1887.", ("- The pier is oak.", "- It was built in 1887.")),
        ("The pier is oak", ("The pier is oak",)),
    ],
)
def test_only_statements_are_extracted_from_a_text(text, expected):
    assert tuple(statement.removeprefix("- ") for statement in extract_statements(text)) == tuple(
        item.removeprefix("- ") for item in expected
    )


@pytest.mark.parametrize("text", ["", "🎉", "Is it oak?", "Is it oak? Was it built in 1887?", "Yes. No."])
def test_text_without_statements_is_refused(text):
    with pytest.raises(NotAClaim) as caught:
        extract_statements(text)
    assert caught.value.hint


async def test_each_statement_gets_its_own_verdict_in_order():
    outcome = await check_text(
        "Skarholm lighthouse was built in 1887. Kangaroos sleep standing. The pier of Skarholm is made of oak."
    )
    verdicts = [(claim.claim.text, claim.claim.origin, claim.verdict) for claim in claims(outcome)]
    assert [origin for _, origin, _ in verdicts] == ["user"] * 3
    assert [verdict for *_, verdict in verdicts] == [Verdict.SUPPORTS, Verdict.NOT_ENOUGH_INFO, Verdict.SUPPORTS]
    assert claims(outcome)[2].evidence == (PIER.passage.id,)
    assert outcome.answer.status is Status.ANSWERED
    assert {citation.quote for citation in outcome.answer.citations} >= {"The pier of Skarholm is made of oak."}


async def test_number_of_checked_statements_is_limited():
    assert len(claims(await check_text(BOTH, limits=Limits(claims=1)))) == 1
    assert len(claims(await check_text(BOTH, limits=Limits(claims=0)))) == 1


@pytest.mark.parametrize("claim", ["Skarholm lighthouse was built in 1887.", "Kangaroos sleep standing."])
async def test_text_of_one_statement_is_checked_like_a_claim(claim):
    alone, outcome = await check_text(claim, claim_check.check_claim_by_rules), await check_text(claim)
    assert (outcome.answer, outcome.events) == (alone.answer, alone.events)


async def test_model_verifies_each_statement_separately():
    llm = ScriptedLLM({"verify": "Reasoning: It says so.\nSentences: 1\nVerdict: REFUTES"})
    outcome = await check_text(BOTH, claim_check.check_text_by_model, llm)
    assert [claim.verdict for claim in claims(outcome)] == [Verdict.REFUTES] * 2


PARENTS = hit(
    "You are entitled to 12 weeks of paid time off when a child comes. It must be taken within 12 months.",
    key="parents.md",
    title="Time off",
)
LAMPS = hit(
    "Lamp: Lamp A; Price: 199 crowns\nLamp: Lamp B; Price: 349 crowns\nLamp: Lamp C; Price: 500 crowns",
    key="lamps.md",
    title="Lamps",
    kind=PassageKind.TABLE,
)
BOILER = hit("The boiler of the boat hall is blue. It is serviced twice a year.", key="boiler.md", title="Boiler")


@pytest.mark.parametrize(
    ("claim", "verdict", "cited"),
    [
        ("Lamp A costs 349 crowns.", Verdict.REFUTES, ["Lamp: Lamp A; Price: 199 crowns"]),
        ("The boiler is serviced once a year.", Verdict.REFUTES, ["It is serviced twice a year."]),
        ("Bananas are blue on Mars.", Verdict.NOT_ENOUGH_INFO, []),
        ("The kitchen has a swimming pool.", Verdict.NOT_ENOUGH_INFO, []),
    ],
)
async def test_local_check_cites_the_sentence_that_decides(claim: str, verdict: Verdict, cited: list[str]) -> None:
    shelf = Shelf([PARENTS, LAMPS, BOILER])
    outcome = await run(check_claim_by_rules, question(claim), shelf, supports=SupportChecker(read))
    assert outcome.recorder.claims[0].verdict is verdict
    assert [citation.quote for citation in outcome.answer.citations] == cited


def test_reason_never_denies_words_that_a_passage_has() -> None:
    said = Support(0.5, holds=False, because=(VerdictReason("elsewhere", ("12 weeks", "12 months")),))
    judgement = decide_verdict([], PassageSupport(said, (), 0.6, collect_sentences([PARENTS])))
    assert judgement.because == (VerdictReason("scattered"),)
    other = replace(said, because=(VerdictReason("absent", ("12 days",)),))
    assert decide_verdict([], PassageSupport(other, (), 0.6, collect_sentences([PARENTS]))).because == other.because


def test_doubtful_claim_needs_more_of_its_words_in_one_sentence() -> None:
    sure = PassageSupport(Support(0.5, holds=True), collect_sentences([PARENTS])[:1], 0.5)
    doubtful = replace(sure, support=replace(sure.support, doubtful=True))
    assert decide_verdict([sure], sure).verdict is Verdict.SUPPORTS
    assert decide_verdict([doubtful], doubtful).verdict is Verdict.NOT_ENOUGH_INFO


OARS = hit(
    "Guests and keepers - oars are currently replaced every 3 years, according to the age of the oar, not its length. "
    "Generally, they row Monday to Friday (40 hours) in all boats. Crates typically arrive after 3-4 weeks. They may "
    "not stay on the pier longer than 15 days. Within any season, a guest can keep up to two weeks (10 days) of berth. "
    "All lost oars come back to the guests via Skarholm.",
    key="oars.md",
    title="Oars",
)


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        ("Oars of guests are replaced every 5 years.", Verdict.REFUTES),
        ("Oars of guests are replaced every 3 years.", Verdict.SUPPORTS),
        ("They row 35 hours from Monday to Friday in all boats.", Verdict.REFUTES),
        ("Crates of oars typically arrive after 6-8 weeks.", Verdict.REFUTES),
        ("Crates typically arrive after 3-4 weeks.", Verdict.SUPPORTS),
        ("Oars of guests are not replaced every 5 years.", Verdict.NOT_ENOUGH_INFO),
        ("Lamps of guests are painted every 5 years.", Verdict.NOT_ENOUGH_INFO),
        ("Oars may not stay on the pier longer than 25 days.", Verdict.REFUTES),
        ("Oars may stay on the pier longer than 25 days.", Verdict.REFUTES),
        ("All lost oars come back to the guests via Lindvik.", Verdict.REFUTES),
        ("Guests can keep as many as ten days of berth within any season.", Verdict.SUPPORTS),
        ("Guests can keep more than ten days of berth within any season.", Verdict.NOT_ENOUGH_INFO),
    ],
)
async def test_lone_amount_of_the_sentence_about_the_rest_refutes_another(claim: str, verdict: Verdict) -> None:
    outcome = await run(check_claim_by_rules, question(claim), Shelf([OARS, PIER]), supports=SupportChecker(read))
    assert outcome.recorder.claims[0].verdict is verdict
