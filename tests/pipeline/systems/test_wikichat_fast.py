"""Features of the fast system only: concurrent and joint verification, and later reasons."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from evaluation.simulated_model.model_replies import CLAIM_LINE, SENTENCE_LINE
from pipeline.errors import BudgetExceeded, ModelUnavailable, ReplyBroken
from pipeline.kit import Limits, WrittenQuery
from pipeline.llm.model import ModelCall
from pipeline.stages.draft.continuation import select_late
from pipeline.stages.findings import SourcedFinding, collect_sentences
from pipeline.stages.model_claims import TOO_LATE
from pipeline.systems import wikichat_fast
from pipeline.types import ClaimChecked, ClaimExplained, DraftStarted, SearchStarted, Status, Support, Turn
from storage.types import Evidence, Verdict
from tests.pipeline import skarholm
from tests.pipeline.scripted import ScriptedLLM, line_name
from tests.pipeline.skarholm import BUILT, QUESTION, SHELF, WRITTEN, lines, set_up_turn, turn_of, verdicts, wait_until
from tests.pipeline.world import Shelf, Stage, answered, hit, question, reads_alike

run = partial(skarholm.run, system=wikichat_fast.answer)
stage_for = partial(set_up_turn, system=wikichat_fast.answer)
FARE = "What does the ferry to Skarholm cost?"
THREE = (
    "- Oda Hagen designed the lighthouse of Skarholm. | none\n"
    "- Skarholm lighthouse was built in 1887. | 1887\n"
    "- The pier of Skarholm is made of oak. | none"
)


def supporting(call: ModelCall) -> str:
    """Support every claim by the sentence with most of its words, with a reason."""
    sentences = dict(SENTENCE_LINE.findall(turn_of(call)))
    lines = []
    for number, claim in CLAIM_LINE.findall(turn_of(call)):
        words = set(claim.split())
        nearest = max(sentences, key=lambda place: len(words.intersection(sentences[place].split())))
        year = re.search(r"\d{4}", claim)
        lines.append(f"{number}. [{nearest}] who: it; when: {year[0] if year else '-'}; if: -; SUPPORTS So it says.")
    return "\n".join(lines)


BUILT_LINE = "Skarholm lighthouse was built in 1887."
HAGEN = "Oda Hagen designed the lighthouse of Skarholm."
OAK = "The pier of Skarholm is made of oak."
CLAIMING = {**BUILT, "split": THREE, "verify": supporting}


async def test_calls_of_a_turn_wait_only_for_what_they_need() -> None:
    names = ("query", "generate", "summarise", "verify", "draft", "continuation")
    waits = {stage: asyncio.Event() for stage in names}
    stage, llm = stage_for(QUESTION, CLAIMING, WRITTEN, waits=waits)
    turn = asyncio.create_task(wikichat_fast.answer(question(QUESTION), stage.kit))

    for opened, begun in [
        ((), ["generate", "query"]),
        (("query", "generate"), ["summarise"] * 3 + ["verify"]),
        (("summarise",), ["draft"]),
        (("verify",), ["continuation"]),
    ]:
        before = len(llm.calls)
        for name in opened:
            waits[name].set()
        await wait_until(lambda before=before, begun=begun: len(llm.calls) == before + len(begun))
        assert sorted(map(line_name, llm.calls[before:])) == begun
    waits["draft"].set()
    waits["continuation"].set()
    assert await turn is Status.ANSWERED


@pytest.mark.parametrize("query", ["auto", "never"])
async def test_self_contained_question_is_searched_unchanged(query: WrittenQuery) -> None:
    stage, llm = stage_for(QUESTION, BUILT, Limits(query=query), waits={"generate": asyncio.Event()})
    turn = asyncio.create_task(wikichat_fast.answer(question(QUESTION), stage.kit))
    await wait_until(lambda: len(llm.of("summarise")) == 3)
    llm.waits["generate"].set()
    assert await turn is Status.ANSWERED
    assert (llm.of("query"), [step.stage for step in stage.recorder.steps].count("search")) == ([], 1)


async def test_passages_that_the_cross_encoder_prefers_are_read() -> None:
    async def rerank(_: str, texts: Sequence[str]) -> Sequence[float]:
        return [3.0 if "1887" in text else -3.0 for text in texts]

    index = (
        "Lighthouse of Skarholm: built, lighthouses built, when lighthouses were built; an index of lighthouses built"
    )
    places = [hit(index, key="index.md", title="Lighthouse"), *SHELF.hits]
    llm = ScriptedLLM(lines(BUILT, wikichat_fast.answer))
    stage = Stage(Shelf(places), question(QUESTION), Limits(looked_up=1), llm, reads_alike)
    await wikichat_fast.answer(question(QUESTION), replace(stage.kit, rerank=rerank))

    (read,) = [turn_of(call) for call in llm.of("summarise")]
    assert "1887" in read


TOLD = (Turn("user", "Who designed the lighthouse?"), Turn("bot", "Oda Hagen did."))


@pytest.mark.parametrize(
    ("text", "earlier", "asked"),
    [(QUESTION, (), 0), ("And when was it built?", TOLD, 1), ("The lighthouse of Skarholm is a beauty.", (), 1)],
)
async def test_query_is_written_only_for_dependent_questions(text: str, earlier: tuple[Turn, ...], asked: int) -> None:
    for query, calls in (("auto", asked), ("always", 1), ("never", 0)):
        _, llm = await run(question(text, *earlier), BUILT, Limits(query=query))
        assert len(llm.of("query")) == calls


async def test_query_written_by_the_model_finds_passages_that_the_question_misses() -> None:
    script = {**BUILT, "query": "Search: yes\nQuery: lighthouse northern point keeper 1887\nTime: none"}
    text = "How expensive is Skarholm pier oak?"
    outcome, llm = await run(text, script, Limits(looked_up=1))

    assert answered(outcome) == [BUILT_LINE]
    assert [stage for stage in (call.stage for call in llm.calls) if stage in {"query", "summarise"}] == [
        "summarise", "query", "summarise",
    ]  # fmt: skip
    again, llm = await run(text, {**script, "query": f"Search: yes\nQuery: {text}"}, Limits(looked_up=1))
    first, second = [turn_of(call) for call in llm.of("summarise")]  # what was read does not count again
    assert first != second
    assert again.answer.status is Status.ABSTAINED
    chatted, llm = await run(text, {**script, "query": "Search: no"}, Limits(looked_up=1))
    assert (chatted.answer.status, len(llm.of("query"))) == (Status.CHATTED, 1)


async def test_claims_are_verified_while_others_are_still_written() -> None:
    many = "\n".join(f"- The {letter} pier of Skarholm is lost. | none" for letter in "ABCD")
    stage, llm = stage_for(QUESTION, {**BUILT, "split": many + "\n" + "- And so on." * 100, "verify": supporting})
    turn = asyncio.create_task(wikichat_fast.answer(question(QUESTION), stage.kit))
    await wait_until(lambda: bool(llm.of("verify")))
    assert "generate" not in {step.stage for step in stage.recorder.steps}
    await turn


async def test_generating_call_is_ended_once_the_claim_limit_is_reached() -> None:
    many = "".join(f"- Skarholm has {number} piers. | none\n" for number in range(100))
    outcome, llm = await run(QUESTION, {**BUILT, "split": many, "verify": supporting}, Limits(claims=2))
    assert [text for text, _ in verdicts(outcome)] == ["Skarholm has 0 piers.", "Skarholm has 1 piers."]
    assert (llm.ended, answered(outcome)) == (["generate"], [BUILT_LINE])


async def test_waiting_claims_are_verified_in_one_call() -> None:
    script = CLAIMING
    alone, single = await run(QUESTION, script)
    together, shared = await run(QUESTION, script, is_busy=True)
    assert (len(single.of("verify")), len(shared.of("verify"))) == (1, 1)
    assert len(shared.of("summarise")) == 1 < len(single.of("summarise"))
    assert verdicts(alone) == verdicts(together)
    sources = re.findall(r"^From: (.*)$", shared.asked("verify"), re.MULTILINE)
    assert len(sources) == len(set(sources))
    assert [outcome.answer.status for outcome in (alone, together)] == [Status.ANSWERED] * 2


FARES = {
    **BUILT,
    "query": "Search: yes\nQuery: ferry Skarholm\nTime: none",
    "summarise": lambda call: (
        "- The ferry to Skarholm costs 12 crowns. [1]" if "12 crowns" in turn_of(call) else "None"
    ),
    "split": "- The ferry to Skarholm costs 15 crowns. | recent",
    "verify": lambda call: (
        "1. SUPPORTS [1]" if "1: The ferry to Skarholm costs 15" in turn_of(call) else "1. REFUTES [1]"
    ),
}
BOTH = "The ferry to Skarholm costs 15 crowns [1]. The ferry to Skarholm costs 12 crowns [2]."


async def test_claims_verified_after_the_draft_began_continue_the_reply() -> None:
    script = {**CLAIMING, "continuation": f"{HAGEN[:-1]} [1]."}
    outcome, llm = await run(QUESTION, script)

    kinds = [type(event) for event in outcome.events]
    assert kinds.index(DraftStarted) < kinds.index(ClaimChecked)
    assert kinds.count(ClaimExplained) == 3
    assert answered(outcome) == [BUILT_LINE, HAGEN]
    reasons = [claim.reasoning for claim in outcome.recorder.claims]
    assert [reason.endswith("So it says.") for reason in reasons] == [True] * 3
    more = turn_of(next(call for call in llm.calls if line_name(call) == "continuation"))
    assert "- Skarholm lighthouse was built in 1887." in more.partition("New notes:")[0]
    assert "1887" not in more.partition("New notes:")[2]


@pytest.mark.parametrize("verified", [True, False])
async def test_first_sentence_waits_for_contradicting_claims(verified: bool) -> None:  # noqa: FBT001 - a parameter of the test
    waits = {"verify": asyncio.Event()}
    verify = FARES["verify"] if verified else "1. NOT ENOUGH INFO"
    lines_ = {**FARES, "verify": verify, "draft": ["The ferry to Skarholm costs 12 crowns [1].", BOTH]}
    stage, llm = stage_for(FARE, lines_, waits=waits)
    turn = asyncio.create_task(wikichat_fast.answer(question(FARE), stage.kit))
    await wait_until(lambda: bool(llm.of("draft")))
    for _ in range(200):
        await asyncio.sleep(0)
    assert not stage.gate.answer(Status.ANSWERED).sentences

    waits["verify"].set()
    outcome = stage.finish(await turn)
    assert answered(outcome) == [
        f"The ferry to Skarholm costs {price} crowns." for price in ([15, 12] if verified else [12])
    ]
    assert len(llm.of("draft")) == 1 + verified


@pytest.mark.parametrize(
    ("claim", "asked"),
    [
        ("The lighthouse of Skarholm was built in 1887.", 0),
        ("Skarholm has a lighthouse, on an island, that was built in 1887.", 0),
        ("The lighthouse of Skarholm was not built in 1887.", 1),
        ("The lighthouse of Skarholm was built by 12 people.", 1),
    ],
)
async def test_redundant_claims_get_no_second_wave(claim: str, asked: int) -> None:
    known, late = (finding_of(text, key) for text, key in ((BUILT_LINE, "a.md"), (claim, "b.md")))
    assert len(select_late([known], [late])) == asked
    outcome, llm = await run(QUESTION, {**BUILT, "split": f"- {BUILT_LINE} | none", "verify": supporting})
    assert "continuation" not in map(line_name, llm.calls)
    assert answered(outcome) == [BUILT_LINE]


def finding_of(text: str, key: str) -> SourcedFinding:
    return SourcedFinding(text, collect_sentences([hit(text, key=key)])[:1])


@pytest.mark.parametrize(
    ("text", "changes", "expected", "drafts"),
    [
        *(
            (QUESTION, {"continuation": line}, [BUILT_LINE], 1)
            for line in (
                *("NOTHING", "I cannot say.", ModelUnavailable("it is down"), "Oak it is [7]."),
                "The lighthouse of Skarholm was built in 1887 [1].",
            )
        ),
        (QUESTION, {"draft": ["NOTHING", f"{HAGEN[:-1]} [2]."]}, [HAGEN], 2),
        (
            QUESTION,
            {"continuation": f"{HAGEN[:-1]} [1]. {OAK[:-1]} [2]. Oda Hagen was an engineer from Bergen [1]."},
            [BUILT_LINE, HAGEN, OAK],
            1,
        ),
        (
            "What is known of the lighthouse of Skarholm?",
            {"draft": f"{HAGEN[:-1]} [2]. {BUILT_LINE[:-1]} [1]."},
            [HAGEN, BUILT_LINE],
            1,
        ),
        (QUESTION, {"verify": ModelUnavailable("away")}, [BUILT_LINE], 1),
    ],
)
async def test_second_wave_adds_only_new_sentences(
    text: str, changes: dict[str, Any], expected: list[str], drafts: int
) -> None:
    outcome, llm = await run(text, {**CLAIMING, **changes})
    assert answered(outcome) == expected
    assert [*map(line_name, llm.calls)].count("draft") == drafts
    assert "continuation" not in map(line_name, llm.calls) or text == QUESTION
    away = isinstance(changes.get("verify"), ModelUnavailable)
    assert ({verdict for _, verdict in verdicts(outcome)} == {Verdict.NOT_ENOUGH_INFO}) == away


async def test_replaced_first_draft_restarts_its_continuation() -> None:
    script = {
        **BUILT,
        "split": THREE,
        "verify": supporting,
        "draft": [f"{BUILT_LINE[:-5]}1999 [1].", f"{BUILT_LINE[:-1]} [1]."],
        "continuation": lambda call: "Oak it is [2]." if "1999" in turn_of(call) else f"{HAGEN[:-1]} [1].",
    }
    written = asyncio.Event()
    llm = ScriptedLLM(lines(script, wikichat_fast.answer), waits={"continuation": written})

    async def check_late(sentence: str, evidence: Sequence[Evidence], *, asked: Sequence[str] = ()) -> Support:
        if "1999" in sentence:
            await wait_until(lambda: "continuation" in map(line_name, llm.calls))
        return await reads_alike(sentence, evidence, asked=asked)

    stage, ended = Stage(SHELF, question(QUESTION), Limits(), llm, check_late), list[int]()

    def behind() -> list[str]:
        return [turn_of(call) for call in llm.calls if line_name(call) == "continuation"]

    kit = replace(stage.kit, end_draft=lambda: ended.append(1))
    turn = asyncio.create_task(wikichat_fast.answer(question(QUESTION), kit))
    await wait_until(lambda: len(behind()) > 1)
    assert not ended  # an abandoned wave does not end the draft

    written.set()
    outcome = stage.finish(await turn)
    assert ended
    assert ["1999" in prompt for prompt in behind()] == [True, False]
    assert answered(outcome) == [BUILT_LINE, HAGEN]


@pytest.mark.parametrize("late", ["verify", "continuation"])
async def test_late_second_wave_does_not_lose_the_answer(late: str) -> None:
    outcome, _ = await run(QUESTION, CLAIMING, waits={late: asyncio.Event()})
    assert answered(outcome) == [BUILT_LINE]
    ends = [
        claim.reasoning.endswith(TOO_LATE if late == "verify" else "So it says.") for claim in outcome.recorder.claims
    ]
    assert ends == [True] * 3
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_student_drafts_over_all_findings() -> None:
    verify = "1. SUPPORTS [1]\n2. SUPPORTS [1]\n3. SUPPORTS [1]"
    _, llm = await run(QUESTION, {**BUILT, "split": THREE, "verify": verify}, Limits(student=True))
    assert HAGEN in llm.asked("draft")


async def test_draft_does_not_wait_for_a_reason() -> None:
    reason = "The first sentence says so. " * 60
    stage, llm = stage_for(QUESTION, {**BUILT, "split": THREE.splitlines()[0], "verify": f"1. SUPPORTS [1] {reason}"})
    turn = asyncio.create_task(wikichat_fast.answer(question(QUESTION), stage.kit))
    await wait_until(lambda: bool(llm.of("draft")))
    assert "verify" not in {step.stage for step in stage.recorder.steps}
    await turn
    assert stage.recorder.claims[0].reasoning == reason.strip()


async def test_claims_before_a_broken_stream_are_verified() -> None:
    stage, llm = stage_for(QUESTION, CLAIMING)
    whole = stage.kit.stream

    async def broken(template, splitter, *, stage, **facts):
        async for value in whole(template, splitter, stage=stage, **facts):
            yield value
            if template == "claims":
                raise ReplyBroken("the connection was lost")

    kit = replace(stage.kit, stream=broken)
    status = await wikichat_fast.answer(question(QUESTION), kit)
    assert status is Status.ANSWERED
    assert [claim.claim.text for claim in stage.recorder.claims] == ["Oda Hagen designed the lighthouse of Skarholm."]

    silent, _ = stage_for(QUESTION, {"split": THREE})
    whole = silent.kit.stream
    with pytest.raises(ReplyBroken):
        await wikichat_fast.answer(question(QUESTION), replace(silent.kit, stream=broken))
    assert llm.of("draft")


@pytest.mark.parametrize(
    ("alone", "verdict"), [("1. SUPPORTS [1] So it is.", Verdict.SUPPORTS), ("I cannot tell.", Verdict.NOT_ENOUGH_INFO)]
)
async def test_claim_without_a_shared_verdict_is_verified_alone(alone: str, verdict: Verdict) -> None:
    both = f"- {BUILT_LINE} | 1887\n- {OAK} | none"

    def verify(call: ModelCall) -> str:
        shared = any(f"Claim 2: {OAK}" in message.text for message in call.messages)
        return "1. SUPPORTS [1] So it is." if shared else alone

    outcome, llm = await run(QUESTION, {**BUILT, "split": both, "verify": verify}, is_busy=True)

    assert dict(verdicts(outcome)) == {BUILT_LINE: Verdict.SUPPORTS, OAK: verdict}
    assert len(llm.of("verify")) == (2 if verdict is Verdict.SUPPORTS else 3)
    unverified = [claim for claim in outcome.recorder.claims if claim.reasoning.startswith("It could not be verified")]
    assert len(unverified) == (verdict is Verdict.NOT_ENOUGH_INFO)


async def test_cancelled_turn_ends_verification() -> None:
    stage, llm = stage_for(QUESTION, {**BUILT, "split": THREE}, waits={"verify": asyncio.Event()})
    turn = asyncio.create_task(wikichat_fast.answer(question(QUESTION), stage.kit))
    await wait_until(lambda: len(llm.of("verify")) == 1)
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert "verify" in llm.ended
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.parametrize("pauses", range(10, 35))
async def test_budget_exceeded_during_verdicts_is_raised(pauses: int) -> None:
    stage, _ = stage_for(QUESTION, CLAIMING)
    ask = stage.kit.ask

    async def asked(template, form, *, stage, **facts):
        if template != "bullets":
            return await ask(template, form, stage=stage, **facts)
        for _ in range(pauses):
            await asyncio.sleep(0)
        raise BudgetExceeded("all used up")

    with pytest.raises(BudgetExceeded):
        await wikichat_fast.answer(question(QUESTION), replace(stage.kit, ask=asked))


async def test_query_equal_to_the_question_is_searched_once() -> None:
    same, _ = await run(QUESTION, {**BUILT, "query": f"Search: yes\nQuery: {QUESTION}\nTime: none"}, WRITTEN)
    other, _ = await run(QUESTION, BUILT, WRITTEN)
    searches = [[event.query for event in run.events if isinstance(event, SearchStarted)] for run in (same, other)]
    assert searches == [[QUESTION], [QUESTION, "Skarholm lighthouse built"]]
    assert answered(same) == answered(other)


async def test_claim_limit_of_zero_requests_no_claims() -> None:
    outcome, llm = await run(QUESTION, BUILT, Limits(claims=0))
    assert (answered(outcome), llm.of("generate")) == ([BUILT_LINE], [])
