"""Model calls of a stage: which errors end the turn, how prompts are shortened, and what is recorded."""

import asyncio
import json
from random import Random
from typing import Any, Literal

import pytest

from pipeline.errors import BudgetExceeded, ModelUnavailable, PromptTooLong, SchemaNotOffered, UnreadableReply
from pipeline.gate import Recorder
from pipeline.llm.model import BudgetMeter, ModelReply
from pipeline.prompts.prompter import Prompter, PromptLoad, reference_facts, truncate_load
from pipeline.replies.stage_replies import (
    Bullet,
    CriterionScore,
    DraftSplitter,
    Feedback,
    bullets_format,
    query_format,
)
from pipeline.replies.verdict_replies import verification_format
from pipeline.stages.findings import SourcedFinding, collect_sentences
from pipeline.types import Conversation, Turn
from storage.types import SearchQuery, Step, Verdict
from tests.pipeline.scripted import Line, ScriptedLLM
from tests.pipeline.weak_model import HOURS, LOOPS, PARTY, repeat_bullets
from tests.pipeline.world import NOW, Shelf, hit

TALK = Conversation(tuple(Turn("user", f"question {number}") for number in range(5)))
SENTENCES = collect_sentences([
    hit("The bell was cast in 1887. It hangs on the quay.", key="bell.md"),
    hit("The quay is long.", key="quay.md"),
])  # fmt: skip
READABLE = "Search: yes\nQuery: bell\nTime: none"


def prompter(lines: Line | list[Line], **options: Any) -> tuple[Prompter, ScriptedLLM, Recorder]:
    llm = ScriptedLLM({"stage": lines}, **options)
    recorder = Recorder(Shelf([]).search, report=lambda _: None)
    return Prompter(llm, BudgetMeter(), note=recorder.note, now=NOW, random=Random(1)), llm, recorder


async def ask(caller: Prompter, talk: Conversation = TALK) -> SearchQuery | None:
    return await caller.ask("query", query_format(), stage="stage", talk=talk, reading="")


def facts(recorder: Recorder) -> list[dict[str, Any]]:
    return [dict(step.facts) for step in recorder.steps]


async def test_call_is_recorded_with_its_facts_and_reply() -> None:
    reply = ModelReply(
        "Sentences: 1\nVerdict: SUPPORTS", "tiny-1", reasoning="hm", prompt_tokens=900, completion_tokens=9,
        cached_tokens=700, cost=0.25, attempts=2,
    )  # fmt: skip
    caller, _, recorder = prompter(reply)

    verification = await caller.ask(
        "verify",
        verification_format(3, reasoned=True),
        stage="stage",
        talk=TALK,
        claim="It rings.",
        sentences=SENTENCES,
    )

    (step,) = recorder.steps
    assert verification.verdict is Verdict.SUPPORTS
    assert step == Step(
        "stage",
        {
            "template": "verify",
            "facts": {
                "talk": 5,
                "claim": "It rings.",
                "sentences": ["bell.md#0:0-26", "bell.md#0:27-48", "quay.md#0:0-17"],
            },
            "format": "text",
            "examples": True,
            "model": "tiny-1",
            "reply": "Sentences: 1\nVerdict: SUPPORTS",
            "reasoning": "hm",
            "finish": "stop",
            "prompt_tokens": 900,
            "completion_tokens": 9,
            "cached_tokens": 700,
            "estimated": False,
            "cost": 0.25,
            "attempts": 2,
        },
        step.milliseconds,
    )
    assert step.milliseconds > 0


async def test_schema_is_sent_to_a_server_that_supports_it() -> None:
    caller, llm, recorder = prompter(
        'Sure:\n```json\n{"search": true, "query": "bell", "time": "1887"}\n```', schemas=True
    )
    assert await ask(caller) == SearchQuery("bell", 1887)
    assert llm.calls[0].schema == query_format().schema
    assert facts(recorder)[0]["format"] == "schema"


async def test_rejected_schema_is_retried_as_text() -> None:
    caller, llm, recorder = prompter(READABLE, schemas=True, keeps=False)
    assert await ask(caller) == SearchQuery("bell")
    assert [call.schema is None for call in llm.calls] == [False, True]
    assert "JSON" not in llm.calls[1].messages[0].text
    assert [fact.get("error", "")[:16] for fact in facts(recorder)] == ["SchemaNotOffered", ""]
    assert recorder.usage.llm_calls == 1


@pytest.mark.parametrize(("deadline", "counted"), [(None, 0), (0.0, 1)])
async def test_call_refused_by_the_budget_is_recorded_but_not_counted(deadline: float | None, counted: int) -> None:
    recorder = Recorder(Shelf([]).search, report=lambda _: None)
    llm, spent = ScriptedLLM({"stage": BudgetExceeded("used up")}), BudgetMeter(deadline=deadline)
    caller = Prompter(llm, spent, note=recorder.note, now=NOW, random=Random(1))
    with pytest.raises(BudgetExceeded):
        await ask(caller)
    with pytest.raises(BudgetExceeded):
        await anext(caller.stream("query", DraftSplitter(1), stage="stage", talk=TALK, reading=""))
    assert [fact["error"] for fact in facts(recorder)] == ["BudgetExceeded: used up"] * 2
    assert recorder.usage.llm_calls == 2 * counted


async def test_unreadable_reply_is_retried_with_its_fault() -> None:
    caller, llm, recorder = prompter(["Well, let me see.", READABLE])

    assert await ask(caller) == SearchQuery("bell")
    first, again = (call.messages for call in llm.calls)
    assert again[: len(first)] == first
    assert [(message.role, message.text[:40]) for message in again[len(first) :]] == [
        ("assistant", "Well, let me see."),
        ("user", "This reply cannot be read: the line “Sea"),
    ]
    assert facts(recorder)[0]["reply"] == "Well, let me see."
    assert facts(recorder)[0]["error"].startswith("UnreadableReply: the line")


@pytest.mark.parametrize("reply", ["", "   ", "Hm.", "x" * 200_000, "{" * 5_000, '{"search": tru'])
@pytest.mark.parametrize("schemas", [False, True])
async def test_second_unreadable_reply_raises(reply: str, schemas: bool) -> None:  # noqa: FBT001 - cases
    caller, llm, _ = prompter(reply, schemas=schemas)
    with pytest.raises(UnreadableReply, match=r"“stage” could not be read, twice"):
        await ask(caller)
    assert len(llm.calls) == 2
    assert len(llm.calls[1].messages[-2].text) < 10_000


async def test_cut_reply_is_retried_with_a_request_for_brevity() -> None:
    caller, llm, _ = prompter([ModelReply("Well", "tiny-1", finish="length"), READABLE])
    await ask(caller)
    assert "be briefer" in llm.calls[1].messages[-1].text


def looping(text: str) -> ModelReply:
    return ModelReply(text, "tiny-1", finish="loop")


@pytest.mark.parametrize("finish", ["loop", "stop"])
async def test_loop_is_retried_with_a_penalty_and_without_a_message(finish: Literal["loop", "stop"]) -> None:
    caller, llm, recorder = prompter([looping("Sentence 1 says so. "), ModelReply(READABLE, "tiny-1", finish=finish)])
    assert await ask(caller) == SearchQuery("bell")
    assert [call.varied for call in llm.calls] == [False, True]
    assert llm.calls[0].messages == llm.calls[1].messages
    assert facts(recorder)[0]["error"] == "UnreadableReply: it repeats itself"


async def test_second_loop_raises_unless_it_has_complete_items() -> None:
    form = bullets_format(3)
    caller, llm, _ = prompter(looping(repeat_bullets(2) + ', {"text": "The'), schemas=True)
    bullets = await caller.ask("bullets", form, stage="stage", query="bell", sentences=SENTENCES)
    assert bullets == (Bullet(HOURS, (1,)), Bullet(HOURS, (2,)))
    assert len(llm.calls) == 2

    caller, llm, _ = prompter(looping(LOOPS["parcel"]), schemas=True)
    verdict = verification_format(3, reasoned=True)
    with pytest.raises(UnreadableReply, match="twice"):
        await caller.ask("verify", verdict, stage="stage", talk=TALK, sentences=SENTENCES, claim="It rings.")
    assert len(llm.calls) == 2


async def test_items_before_the_end_of_a_cut_list_are_read() -> None:
    text = "- The bell was cast in 1887. [1]\n- The quay is"
    caller, llm, _ = prompter(ModelReply(text, "tiny-1", finish="length"))
    bullets = await caller.ask("bullets", bullets_format(3), stage="stage", query="bell", sentences=SENTENCES)
    assert bullets == (Bullet("The bell was cast in 1887.", (1,)),)
    assert len(llm.calls) == 1


async def test_too_long_prompt_loses_its_oldest_turns() -> None:
    caller, llm, recorder = prompter([PromptTooLong("no"), READABLE])
    await ask(caller)
    assert "question 0" not in llm.calls[1].messages[-1].text
    assert "question 1" not in llm.calls[1].messages[-1].text
    assert "User: question 2\nUser: question 3\nUser: question 4" in llm.calls[1].messages[-1].text
    assert [fact["facts"]["talk"] for fact in facts(recorder)] == [5, 3]


async def test_prompt_that_cannot_be_truncated_raises() -> None:
    caller, llm, _ = prompter(PromptTooLong("no"))
    with pytest.raises(PromptTooLong):
        await ask(caller)
    assert len(llm.calls) == 5


@pytest.mark.parametrize(
    "error", [ModelUnavailable("away"), BudgetExceeded("spent"), SchemaNotOffered("odd"), KeyError("x")]
)
async def test_other_errors_are_raised_and_recorded(error: Exception) -> None:
    caller, _, recorder = prompter(error)
    with pytest.raises(type(error)):
        await ask(caller)
    assert facts(recorder)[0]["error"].startswith(f"{type(error).__name__}: ")


async def test_cancelled_call_is_recorded() -> None:
    caller, _, recorder = prompter(READABLE, waits={"stage": asyncio.Event()})
    task = asyncio.create_task(ask(caller))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert facts(recorder)[0]["error"] == "CancelledError"


async def test_delimiters_are_the_same_within_a_turn_and_differ_between_turns() -> None:
    fences = set()
    for seed in (1, 2):
        llm = ScriptedLLM({"verify": "Reasoning: So.\nSentences: 1\nVerdict: SUPPORTS"})
        caller = Prompter(llm, BudgetMeter(), note=lambda *_: None, now=NOW, random=Random(seed))
        for claim in ("One.", "Two."):
            form = verification_format(1, reasoned=True)
            await caller.ask("verify", form, stage="verify", talk=TALK, sentences=SENTENCES, claim=claim)
        one, other = (call.messages[-1].text.partition("Claim")[0] for call in llm.calls)
        assert one == other
        fences.add(one)
    assert len(fences) == 2


class TestStreams:
    """Replies that are read as they arrive."""

    FINDINGS = (SourcedFinding("The bell was cast in 1887.", SENTENCES[:1]),)

    def stream(self, caller: Prompter) -> Any:
        talk = Conversation((Turn("user", "When?"),))
        return caller.stream(
            "draft", DraftSplitter(1), stage="stage", talk=talk, findings=self.FINDINGS, language="English"
        )

    @pytest.mark.parametrize("text", [LOOPS["draft without marks"], LOOPS["german"], LOOPS["dialogue"]])
    async def test_loop_without_a_value_is_retried_with_a_penalty(self, text: str) -> None:
        caller, llm, _ = prompter([looping(text[:300]), "The bell was cast in 1887 [1]."])
        assert [sentence.text async for sentence in self.stream(caller)] == ["The bell was cast in 1887."]
        assert [call.varied for call in llm.calls] == [False, True]
        assert llm.calls[0].messages == llm.calls[1].messages

    async def test_loop_after_a_value_ends_the_stream(self) -> None:
        caller, llm, _ = prompter(
            looping("The bell was cast in 1887 [1]. It rings at noon [1]. " + "It rings [1]. " * 9)
        )
        assert [sentence.text async for sentence in self.stream(caller)] == [
            "The bell was cast in 1887.",
            "It rings at noon.",
            "It rings.",
        ]
        assert len(llm.calls) == 1

    async def test_echo_of_the_fault_is_unreadable(self) -> None:
        caller, llm, recorder = prompter([
            "The bell was cast in 1887.",
            lambda call: f"{call.messages[-1].text} Yes [1]. And so it goes on and on, as ever, in the very same way.",
        ])  # fmt: skip
        with pytest.raises(UnreadableReply, match="twice"):
            _ = [sentence async for sentence in self.stream(caller)]
        assert "[" not in llm.calls[1].messages[-1].text
        assert facts(recorder)[1]["error"] == "UnreadableReply: it repeats the instructions"

    async def test_echo_after_a_sentence_ends_the_reply(self) -> None:
        caller, llm, _ = prompter(f"The bell was cast in 1887 [1]. {'It rings. ' * 6}\n{PARTY}And so on [1].")
        assert [sentence.text async for sentence in self.stream(caller)] == ["The bell was cast in 1887."]
        assert len(llm.calls) == 1

    async def test_stream_yields_values_as_they_become_certain(self) -> None:
        caller, _, recorder = prompter("The bell was cast in 1887 [1]. It rings.")
        sentences = [(sentence.text, sentence.numbers) async for sentence in self.stream(caller)]
        assert sentences == [("The bell was cast in 1887.", (1,)), ("It rings.", ())]
        assert facts(recorder)[0]["reply"] == "The bell was cast in 1887 [1]. It rings."
        assert recorder.usage.prompt_tokens == 100

    @pytest.mark.parametrize(
        ("first", "shown"), [("It was cast in 1887.", "It was cast in 1887."), (PromptTooLong("no"), "")]
    )
    async def test_recoverable_fault_is_retried(self, first: Line, shown: str) -> None:
        caller, llm, _ = prompter([first, "The bell was cast in 1887 [1]."])
        assert [sentence.text async for sentence in self.stream(caller)] == ["The bell was cast in 1887."]
        retry = llm.calls[1].messages
        assert retry[-2].text == shown if shown else len(retry) == 2

    async def test_closing_the_stream_ends_the_call(self) -> None:
        caller, llm, recorder = prompter("The bell was cast in 1887 [1]. " * 50)
        stream = self.stream(caller)
        await anext(stream)
        await stream.aclose()
        assert llm.ended == ["stage"]
        assert "error" not in facts(recorder)[0]
        assert facts(recorder)[0]["finish"] == "stopped"
        assert facts(recorder)[0]["reply"].startswith("The bell was cast in 1887 [1].")

    async def test_error_during_a_stream_is_raised(self) -> None:
        caller, _, recorder = prompter(ModelUnavailable("away"))
        with pytest.raises(ModelUnavailable):
            [sentence async for sentence in self.stream(caller)]
        assert facts(recorder)[0]["error"] == "ModelUnavailable: away"


THREE_PAGES = collect_sentences([hit("One. Two.", key="a"), hit("Three.", key="b"), hit("Four. Five.", key="c")])


def conversation(*texts: str) -> Conversation:
    return Conversation(tuple(Turn("user", text) for text in texts))


def truncate_fully(load: PromptLoad | None) -> list[dict[str, Any]]:
    """Return the remaining facts after each step."""
    steps = []
    while load := truncate_load(load):
        step: dict[str, Any] = {"examples": load.examples}
        for name, value in load.facts.items():
            if isinstance(value, Conversation):
                step[name] = [turn.text for turn in value.turns]
            elif isinstance(value, tuple):
                step[name] = [piece.text for piece in value]
        steps.append(step)
    return steps


def test_truncation_drops_old_turns_then_passages_then_examples() -> None:
    load = PromptLoad({"talk": conversation("1", "2", "3", "4"), "claim": "It rings.", "sentences": THREE_PAGES})
    everything = ["One.", "Two.", "Three.", "Four.", "Five."]
    assert truncate_fully(load) == [
        {"talk": ["3", "4"], "sentences": everything, "examples": True},
        {"talk": ["4"], "sentences": everything, "examples": True},
        {"talk": ["4"], "sentences": ["One.", "Two.", "Three."], "examples": True},
        {"talk": ["4"], "sentences": ["One.", "Two."], "examples": True},
        {"talk": ["4"], "sentences": ["One.", "Two."], "examples": False},
    ]


def test_truncation_drops_all_findings_of_the_last_passage() -> None:
    findings = tuple(SourcedFinding(sentence.text, (sentence,)) for sentence in THREE_PAGES)
    assert [step["findings"] for step in truncate_fully(PromptLoad({"findings": findings}))] == [
        ["One.", "Two.", "Three."],
        ["One.", "Two."],
        ["One.", "Two."],
    ]


def test_prompt_with_nothing_left_to_drop_cannot_be_truncated() -> None:
    facts = {"talk": conversation("1"), "sentences": (), "draft": "It rings."}
    assert truncate_load(PromptLoad(facts, examples=False)) is None


BELL = hit("The bell was cast in 1887. It rings.", key="bell.md")


def test_passages_and_sentences_are_recorded_as_references() -> None:
    sentences = collect_sentences([BELL])
    assert reference_facts(BELL) == reference_facts(BELL.passage) == "bell.md#0"
    assert reference_facts(sentences) == ["bell.md#0:0-26", "bell.md#0:27-36"]
    assert reference_facts(Conversation((Turn("user", "Hi"), Turn("user", "Ho")))) == 2


def test_finding_is_recorded_with_its_text() -> None:
    finding = SourcedFinding("Cast in 1887.", collect_sentences([BELL])[:1])
    assert reference_facts((finding,)) == [{"text": "Cast in 1887.", "evidence": ["bell.md#0:0-26"]}]


def test_other_facts_are_recorded_as_plain_json() -> None:
    fact = {
        "feedback": Feedback((CriterionScore("natural", "Fine.", 90),)),
        "n": [1, None, True, 0.5],
        "at": NOW,
        3: {"a"},
    }

    assert json.loads(json.dumps(reference_facts(fact))) == {
        "feedback": {"points": [{"criterion": "natural", "remark": "Fine.", "score": 90}]},
        "n": [1, None, True, 0.5],
        "at": str(NOW),
        "3": "{'a'}",
    }
