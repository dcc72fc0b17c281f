"""What only the fast system has: claims verified while others are written, together where they wait, reasons later."""

import asyncio
import re
from dataclasses import replace
from functools import partial

import pytest

from pipeline.errors import BudgetExceeded, ModelUnavailable, ReplyBroken
from pipeline.kit import Limits, WrittenQuery
from pipeline.model import ModelCall
from pipeline.systems import wikichat_fast
from pipeline.types import ClaimChecked, ClaimExplained, DraftStarted, SearchStarted, Status, Turn
from storage.types import Verdict
from tests.pipeline import skarholm
from tests.pipeline.skarholm import BUILT, QUESTION, WRITTEN, lines, staged, until, verdicts
from tests.pipeline.world import answered, question

run = partial(skarholm.run, system=wikichat_fast.answer)
stage_for = partial(staged, system=wikichat_fast.answer)
THREE = (
    "- Oda Hagen designed the lighthouse of Skarholm. | none\n"
    "- Skarholm lighthouse was built in 1887. | 1887\n"
    "- The pier of Skarholm is made of oak. | none"
)


def supporting(call: ModelCall) -> str:
    """Support every claim by the first sentence, and say why."""
    numbers = re.findall(r"^Claim (\d+): ", call.messages[-1].text, re.MULTILINE)
    return "\n".join(f"{number}. SUPPORTS [1] The first sentence says so." for number in numbers)


async def test_a_turn_takes_three_rounds() -> None:
    """Claims and the query go out at once; verification and summaries wait for these alone; the draft for all."""
    waits = {stage: asyncio.Event() for stage in ("query", "generate", "summarise", "verify", "draft")}
    stage, llm = stage_for(QUESTION, {**BUILT, "split": THREE, "verify": supporting}, WRITTEN, waits=waits)
    turn = asyncio.create_task(wikichat_fast.answer(question(QUESTION), stage.kit))

    for opened, begun in [
        ((), ["generate", "query"]),
        (("query", "generate"), ["summarise"] * 3 + ["verify"] * 2),
        (("summarise", "verify"), ["draft"]),
    ]:
        before = len(llm.calls)
        for name in opened:
            waits[name].set()
        await until(lambda before=before, begun=begun: len(llm.calls) == before + len(begun))
        assert sorted(call.stage for call in llm.calls[-len(begun) :]) == begun
    waits["draft"].set()
    assert await turn is Status.ANSWERED


@pytest.mark.parametrize("query", ["auto", "never"])
async def test_a_question_that_stands_alone_is_searched_as_it_is(query: WrittenQuery) -> None:
    """Its passages are read while claims are written, and no query is asked for; the search is on record."""
    stage, llm = stage_for(QUESTION, BUILT, Limits(query=query), waits={"generate": asyncio.Event()})
    turn = asyncio.create_task(wikichat_fast.answer(question(QUESTION), stage.kit))
    await until(lambda: len(llm.of("summarise")) == 3)
    llm.waits["generate"].set()

    assert await turn is Status.ANSWERED
    assert (llm.of("query"), [step.stage for step in stage.recorder.steps].count("search")) == ([], 1)


TOLD = (Turn("user", "Who designed the lighthouse?"), Turn("bot", "Oda Hagen did."))


@pytest.mark.parametrize(
    ("text", "earlier", "asked"),
    [(QUESTION, (), 0), ("And when was it built?", TOLD, 1), ("The lighthouse of Skarholm is a beauty.", (), 1)],
)
async def test_a_query_is_written_only_where_the_question_does_not_stand_alone(
    text: str, earlier: tuple[Turn, ...], asked: int
) -> None:
    """A follow-up or a remark; never where the settings say so."""
    for query, calls in (("auto", asked), ("always", 1), ("never", 0)):
        _, llm = await run(question(text, *earlier), BUILT, Limits(query=query))
        assert len(llm.of("query")) == calls


async def test_what_the_question_does_not_find_is_looked_up_by_a_written_query() -> None:
    """Passages that told nothing are not read again."""
    script = {**BUILT, "query": "Search: yes\nQuery: lighthouse northern point keeper 1887\nTime: none"}
    asked = "How expensive is Skarholm pier oak?"
    told, llm = await run(asked, script, Limits(looked_up=1))

    assert answered(told) == ["Skarholm lighthouse was built in 1887."]
    assert [stage for stage in (call.stage for call in llm.calls) if stage in {"query", "summarise"}] == [
        "summarise", "query", "summarise",
    ]  # fmt: skip
    silent, llm = await run(asked, {**script, "query": f"Search: yes\nQuery: {asked}"}, Limits(looked_up=1))
    assert (silent.answer.status, len(llm.of("summarise"))) == (Status.ABSTAINED, 1)
    chatted, llm = await run(asked, {**script, "query": "Search: no"}, Limits(looked_up=1))
    assert (chatted.answer.status, len(llm.of("query"))) == (Status.CHATTED, 1)


async def test_a_claim_is_verified_while_the_next_is_still_written() -> None:
    """Its evidence is sought as soon as its line has ended."""
    stage, llm = stage_for(QUESTION, {**BUILT, "split": THREE + "\n" + "- And so on." * 100, "verify": supporting})
    turn = asyncio.create_task(wikichat_fast.answer(question(QUESTION), stage.kit))
    await until(lambda: bool(llm.of("verify")))

    assert "generate" not in {step.stage for step in stage.recorder.steps}
    await turn


async def test_claims_beyond_those_that_are_verified_are_not_waited_for() -> None:
    """Their call is ended, so that a model that never comes to an end holds nothing up."""
    many = "".join(f"- Skarholm has {number} piers. | none\n" for number in range(100))
    told, llm = await run(QUESTION, {**BUILT, "split": many, "verify": supporting}, Limits(claims=2))

    assert [text for text, _ in verdicts(told)] == ["Skarholm has 0 piers.", "Skarholm has 1 piers."]
    assert (llm.ended, answered(told)) == (["generate"], ["Skarholm lighthouse was built in 1887."])


async def test_claims_that_wait_for_a_place_are_verified_together() -> None:
    """One call for all, no passage in it twice; the same claims are kept as in several calls."""
    script = {**BUILT, "split": THREE, "verify": supporting}
    alone, single = await run(QUESTION, script)
    together, shared = await run(QUESTION, script, is_busy=True)

    assert (len(single.of("verify")), len(shared.of("verify"))) == (2, 1)
    assert len(shared.of("summarise")) == 1 < len(single.of("summarise"))
    assert verdicts(alone) == verdicts(together)
    sources = re.findall(r"^From: (.*)$", shared.asked("verify"), re.MULTILINE)
    assert len(sources) == len(set(sources))
    assert [told.answer.status for told in (alone, together)] == [Status.ANSWERED] * 2


async def test_every_verdict_is_there_before_the_draft_begins() -> None:
    """The reason of one may come later, and is on record all the same."""
    told, _ = await run(QUESTION, {**BUILT, "split": THREE, "verify": supporting})

    kinds = [type(event) for event in told.events]
    begun = kinds.index(DraftStarted)
    assert [place < begun for place, kind in enumerate(kinds) if kind is ClaimChecked] == [True] * 3
    assert kinds.count(ClaimExplained) == 3
    assert [one.reasoning for one in told.recorder.claims] == ["The first sentence says so."] * 3


async def test_the_draft_does_not_wait_for_a_reason() -> None:
    """A reason that is long in coming: the draft is asked for meanwhile."""
    reason = "The first sentence says so. " * 60
    stage, llm = stage_for(QUESTION, {**BUILT, "split": THREE.splitlines()[0], "verify": f"1. SUPPORTS [1] {reason}"})
    turn = asyncio.create_task(wikichat_fast.answer(question(QUESTION), stage.kit))
    await until(lambda: bool(llm.of("draft")))

    assert "verify" not in {step.stage for step in stage.recorder.steps}
    await turn
    assert stage.recorder.claims[0].reasoning == reason.strip()


async def test_claims_that_break_off_are_verified_as_far_as_they_came() -> None:
    """What was written before the connection was lost is used; where nothing comes of it the loss is said."""
    stage, llm = stage_for(QUESTION, {**BUILT, "split": THREE, "verify": supporting})
    whole = stage.kit.stream

    async def broken(template, splitter, *, stage, **facts):
        async for value in whole(template, splitter, stage=stage, **facts):
            yield value
            if template == "claims":
                raise ReplyBroken("the connection was lost")

    kit = replace(stage.kit, stream=broken)
    status = await wikichat_fast.answer(question(QUESTION), kit)
    assert status is Status.ANSWERED
    assert [one.claim.text for one in stage.recorder.claims] == ["Oda Hagen designed the lighthouse of Skarholm."]

    silent, _ = stage_for(QUESTION, {"split": THREE})
    whole = silent.kit.stream
    with pytest.raises(ReplyBroken):
        await wikichat_fast.answer(question(QUESTION), replace(silent.kit, stream=broken))
    assert llm.of("draft")


@pytest.mark.parametrize(
    ("alone", "verdict"),
    [("1. SUPPORTS [1] So it is.", Verdict.SUPPORTS), ("I cannot tell.", Verdict.NOT_ENOUGH_INFO)],
)
async def test_a_claim_of_several_without_a_verdict_is_asked_again_alone(alone: str, verdict: Verdict) -> None:
    """The others of the same call have theirs; what gets none alone either is not known."""
    built, oak = "Skarholm lighthouse was built in 1887.", "The pier of Skarholm is made of oak."
    both = f"- {built} | 1887\n- {oak} | none"

    def verify(call: ModelCall) -> str:
        shared = any(f"Claim 2: {oak}" in message.text for message in call.messages)
        return "1. SUPPORTS [1] So it is." if shared else alone

    told, llm = await run(QUESTION, {**BUILT, "split": both, "verify": verify}, is_busy=True)

    assert dict(verdicts(told)) == {built: Verdict.SUPPORTS, oak: verdict}
    assert len(llm.of("verify")) == (2 if verdict is Verdict.SUPPORTS else 3)
    told_why = [one.reasoning for one in told.recorder.claims if one.reasoning.startswith("it could not be verified")]
    assert len(told_why) == (verdict is Verdict.NOT_ENOUGH_INFO)


async def test_cancelling_in_the_midst_of_verification_leaves_no_call_open() -> None:
    """Those that were waiting too."""
    stage, llm = stage_for(QUESTION, {**BUILT, "split": THREE}, waits={"verify": asyncio.Event()})
    turn = asyncio.create_task(wikichat_fast.answer(question(QUESTION), stage.kit))
    await until(lambda: len(llm.of("verify")) == 2)

    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn

    assert sorted(llm.ended) == ["verify"] * 2
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.parametrize("pauses", range(10, 35))
async def test_a_budget_that_is_used_up_while_verdicts_come_is_said(pauses: int) -> None:
    """At whatever moment: a verdict that nobody waits for any more is no fault of ours."""
    stage, _ = stage_for(QUESTION, {**BUILT, "split": THREE, "verify": supporting})
    ask = stage.kit.ask

    async def asked(template, form, *, stage, **facts):
        if template != "bullets":
            return await ask(template, form, stage=stage, **facts)
        for _ in range(pauses):
            await asyncio.sleep(0)
        raise BudgetExceeded("all used up")

    with pytest.raises(BudgetExceeded):
        await wikichat_fast.answer(question(QUESTION), replace(stage.kit, ask=asked))


async def test_a_query_that_is_the_question_is_looked_up_once() -> None:
    """Its passages are there already; another is searched for."""
    same, _ = await run(QUESTION, {**BUILT, "query": f"Search: yes\nQuery: {QUESTION}\nTime: none"}, WRITTEN)
    other, _ = await run(QUESTION, BUILT, WRITTEN)

    sought = [[event.query for event in told.events if isinstance(event, SearchStarted)] for told in (same, other)]
    assert sought == [[QUESTION], [QUESTION, "Skarholm lighthouse built"]]
    assert answered(same) == answered(other)


async def test_no_claims_are_asked_for_where_none_may_be_verified() -> None:
    """What is looked up answers alone."""
    told, llm = await run(QUESTION, BUILT, Limits(claims=0))

    assert (answered(told), llm.of("generate")) == (["Skarholm lighthouse was built in 1887."], [])


async def test_a_model_that_is_away_for_all_verdicts_leaves_what_was_looked_up() -> None:
    """And the claims are on record as not known."""
    told, _ = await run(QUESTION, {**BUILT, "split": THREE, "verify": ModelUnavailable("away")})

    assert answered(told) == ["Skarholm lighthouse was built in 1887."]
    assert {verdict for _, verdict in verdicts(told)} == {Verdict.NOT_ENOUGH_INFO}


def test_the_script_of_both_systems_is_one() -> None:
    """What one splits, the other claims."""
    assert lines({"split": THREE}, wikichat_fast.answer)["generate"] == THREE
