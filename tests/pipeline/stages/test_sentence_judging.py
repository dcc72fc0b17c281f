"""Sentences of an answer that a scripted model judges, together if they wait."""

import asyncio
import re
from collections.abc import Callable

import pytest

from pipeline.errors import ModelUnavailable, UnreadableReply
from pipeline.gate import Coming
from pipeline.kit import Limits
from pipeline.llm.model import ModelCall
from pipeline.stages.draft.sentence_judging import SentenceJudge
from pipeline.stages.findings import collect_sentences
from storage.types import CheckedClaim, Verdict
from tests.pipeline.scripted import Line, ScriptedLLM
from tests.pipeline.skarholm import wait_until
from tests.pipeline.world import Shelf, Stage, hit, question, reads_alike

BELL = collect_sentences([hit("The bell was cast in 1887. It hangs on the quay.", key="bell.md")])
PIER = collect_sentences([hit("The pier is made of oak.", key="pier.md")])
TALK = question("May I ring the bell at ten?")
SUPPORTED = "1. [1] who: it; how many: -; if: -; when: -; SUPPORTS"


def judged_by(line: Line | list[Line], **options: object) -> tuple[SentenceJudge, ScriptedLLM, Stage]:
    llm = ScriptedLLM({"verify": line}, **options)
    stage = Stage(Shelf([]), TALK, Limits(), llm, reads_alike)
    return SentenceJudge(stage.kit.stream, TALK, gather=0), llm, stage


def ask(
    judge: SentenceJudge, text: str, evidence: tuple = BELL, coming: Callable[[], Coming] = lambda: Coming.LATER
) -> asyncio.Task[CheckedClaim | None]:
    return asyncio.create_task(judge(text, evidence, coming=coming))


def all_supported(call: ModelCall) -> str:
    numbers = re.findall(r"^Claim (\d+): ", turn(call), re.MULTILINE)
    return "\n".join(f"{number}. [1] who: it; how many: 1887; SUPPORTS" for number in numbers)


def turn(call: ModelCall) -> str:
    return call.messages[-1].text


async def test_the_judge_sees_question_passages_and_sentence() -> None:
    judge, llm, _ = judged_by(SUPPORTED.replace("[1]", "[2]"))
    checked = await ask(judge, "Rung from the quay.")
    assert checked
    assert (checked.verdict, checked.evidence, checked.claim.origin) == (Verdict.SUPPORTS, ("bell.md#0",), "retrieved")
    for part in ("User: May I ring the bell at ten?", "1: The bell was cast in 1887.", "Claim 1: Rung from the quay."):
        assert part in llm.asked("verify")


async def test_pronoun_is_judged_with_the_previous_sentence() -> None:
    judge, llm, _ = judged_by(all_supported)
    first, second = "The bell was cast in 1887.", "It hangs on the quay."
    later = asyncio.create_task(judge(second, BELL, coming=lambda: Coming.NEVER, before=first, place=1))
    sooner = asyncio.create_task(judge(first, BELL, coming=lambda: Coming.NEVER, before="Yes.", place=0))
    await asyncio.gather(later, sooner)
    prompt = llm.asked("verify")
    assert f"Claim 1: {first}\nBefore claim 2" in prompt
    assert f"mean: {first}\nClaim 2: {second}" in prompt
    assert "Before claim 1" not in prompt


async def test_rejecting_verdict_waits_for_its_reason() -> None:
    judge, _, _ = judged_by("1. NOT ENOUGH INFO Nobody says who rings it.")
    checked = await ask(judge, "The keeper rings it.")
    assert checked
    assert (checked.verdict, checked.reasoning) == (Verdict.NOT_ENOUGH_INFO, "Nobody says who rings it.")


async def test_supporting_verdict_does_not_wait_for_its_reason() -> None:
    judge, llm, stage = judged_by(f"{SUPPORTED}\nBecause " + "it is so, " * 100)
    assert await ask(judge, "It is so.")
    assert llm.ended == ["verify"]
    assert [step.stage for step in stage.recorder.steps] == ["verify"]


async def test_sentences_waiting_for_a_call_are_judged_together() -> None:
    opened = asyncio.Event()
    judge, llm, _ = judged_by(all_supported, waits={"verify": opened})
    first = ask(judge, "One.")
    await wait_until(lambda: len(llm.calls) == 1)
    other = ask(judge, "Two.")
    await asyncio.sleep(0.01)
    assert len(llm.calls) == 1
    others = [ask(judge, "Three."), ask(judge, "Four.")]
    opened.set()
    await asyncio.gather(first, other, *others)

    assert [turn(call).count("Claim ") for call in llm.calls] == [1, 2, 1]
    assert turn(llm.calls[1]).count("The bell was cast") == 1


@pytest.mark.parametrize(
    ("waiting", "coming", "calls"), [(1, "LATER", 1), (1, "NEVER", 2), (2, "LATER", 2), (3, "LATER", 3)]
)
async def test_two_sentences_or_the_last_do_not_wait_for_a_running_call(waiting: int, coming: str, calls: int) -> None:
    opened = asyncio.Event()
    judge, llm, _ = judged_by(all_supported, waits={"verify": opened})
    tasks = [ask(judge, "First.")]
    await wait_until(lambda: len(llm.calls) == 1)
    tasks += [ask(judge, f"No. {place}.", coming=lambda: Coming[coming]) for place in range(waiting)]
    await asyncio.sleep(0.01)
    assert len(llm.calls) == calls
    opened.set()
    assert all(await asyncio.gather(*tasks))


async def test_verdict_that_copies_nothing_or_not_enough_does_not_count() -> None:
    judge, _, _ = judged_by(["1. SUPPORTS [1]", "1. [1] who: -; if: -; SUPPORTS", "1. [1] who: the bell; SUPPORTS"])
    for reply in ("SUPPORTS alone", "nothing copied"):
        with pytest.raises(UnreadableReply, match="does not show"):
            await ask(judge, f"Rung in 1888: {reply}.")
    checked = await ask(judge, "Rung in 1888.")
    assert checked
    assert (checked.verdict, checked.evidence) == (Verdict.NOT_ENOUGH_INFO, ())
    assert checked.reasoning == "who: the bell. It says “1888” of which nothing was copied."


async def test_sentences_that_come_at_once_share_a_call() -> None:
    checking = [Coming.AT_ONCE]
    judge, llm, _ = judged_by(all_supported)
    tasks = [ask(judge, "One.", coming=lambda: checking[0])]
    tasks.append(ask(judge, "Two.", coming=lambda: checking[0]))
    for _ in range(3):
        await asyncio.sleep(0)
    checking[0] = Coming.LATER
    await asyncio.gather(*tasks)
    assert len(llm.calls) == 1


async def test_judge_sees_only_related_sentences() -> None:
    page = collect_sentences([hit("Bells ring at ten. Dogs may come. The pier closes. Fog lifts.", key="x.md")])
    judge, llm, _ = judged_by("1. [2] who: dogs; SUPPORTS\n2. [2] who: dogs; SUPPORTS")
    judgements = [
        ask(judge, "They ring.", page[:1], lambda: Coming.NEVER),
        ask(judge, "The pier shuts.", page[2:3], lambda: Coming.NEVER),
    ]
    assert [claim and claim.evidence for claim in await asyncio.gather(*judgements)] == [("x.md#0",)] * 2
    assert "1: Bells ring at ten.\n2: Dogs may come.\n3: The pier closes.\n===" in llm.asked("verify")


async def test_verdict_that_cites_another_sentences_passage_is_requested_again_alone() -> None:
    def verdicts(call: ModelCall) -> str:
        return all_supported(call) if "Claim 2" in turn(call) else "1. NOT ENOUGH INFO No."

    judge, llm, _ = judged_by(verdicts)
    tasks = [ask(judge, "It is old."), ask(judge, "It is oak.", PIER)]
    old, oak = await asyncio.gather(*tasks)

    assert (old.verdict, oak.verdict) == (Verdict.SUPPORTS, Verdict.NOT_ENOUGH_INFO)
    assert len(llm.calls) == 2
    assert "The bell" not in turn(llm.calls[1])


async def test_model_failure_reaches_all_waiters() -> None:
    judge, _, _ = judged_by([ModelUnavailable("away"), SUPPORTED])
    results = await asyncio.gather(ask(judge, "One."), ask(judge, "Two."), return_exceptions=True)
    assert [type(result) for result in results] == [ModelUnavailable] * 2
    assert await ask(judge, "Three.")


async def test_base_exception_of_a_call_reaches_its_waiters() -> None:
    def panic(_: ModelCall) -> str:
        raise BaseException("panic")  # noqa: TRY002 - what no `except Exception` catches

    judge, _, _ = judged_by(panic)
    with pytest.raises(BaseException, match="panic"):
        await asyncio.wait_for(ask(judge, "One."), 60)


async def test_cancelled_turn_ends_the_judging_call() -> None:
    judge, llm, _ = judged_by(SUPPORTED, waits={"verify": asyncio.Event()})
    task = ask(judge, "One.")
    await wait_until(lambda: len(llm.calls) == 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert llm.ended == ["verify"]
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_cancelled_sentence_is_not_judged() -> None:
    judge, llm, _ = judged_by(all_supported)
    given_up = ask(judge, "One.")
    await asyncio.sleep(0)
    given_up.cancel()
    assert await ask(judge, "Two.")
    assert "One." not in llm.asked("verify")


async def test_uncited_sentence_is_not_judged() -> None:
    judge, llm, _ = judged_by(SUPPORTED)
    assert (await ask(judge, "It is so.", ()), llm.calls) == (None, [])
