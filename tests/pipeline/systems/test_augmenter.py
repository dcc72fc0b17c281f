"""The loop of LLM-Augmenter: the model calls of each action, and what ends the loop."""

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest

from pipeline.errors import BudgetExceeded, ModelUnavailable, PipelineError, SearchUnavailable
from pipeline.kit import Limits, Supports
from pipeline.llm.model import ModelCall
from pipeline.stages.augmentation.policies import PolicySigns
from pipeline.stages.augmentation.working_memory import open_memory
from pipeline.stages.turn_context import TurnContext
from pipeline.systems import augmenter
from pipeline.types import Conversation, Status, Support
from storage.types import Evidence, Hit, SearchQuery, Step
from tests.pipeline.scripted import Line, Script, ScriptedLLM
from tests.pipeline.world import Outcome, Shelf, Stage, answered, hit, question, reads_alike

SHELF = Shelf([
    hit("In 2013 Skarholm IF signed the keeper Jon Vik, who had played for Lysvik BK.", key="2013.md",
        title="Skarholm IF in 2013"),
    hit("Lysvik BK is a football team of the northern islands. Seven national cups went to Lysvik BK.", key="lysvik.md",
        title="Lysvik BK"),
    hit("The stadium of Skarholm IF has 900 seats.", key="stadium.md", title="Stadium"),
])  # fmt: skip
ASKED = "Which keeper did Skarholm IF sign in 2013, and what has his former side won?"
LOOK_UP = "Search: yes\nQuery: Skarholm IF keeper signed 2013\nTime: 2013"
ENOUGH = "Search: no"
WRONG = (
    "Skarholm IF signed the keeper Jon Vik of Lysvik BK in 2013, who has won seven national and 2 world cups [1][@]."
)
RIGHT = "In 2013 Skarholm IF signed the keeper Jon Vik [1]. Seven national cups went to Lysvik BK [@]."
GOOD = "Supported: All of it. 100/100\nComplete: It is. 95/100"
POOR = "Supported: Note 1 has no world cups. 30/100\nComplete: It is. 95/100"


def noted(call: ModelCall, words: str) -> str:
    """Return the number of the note that contains some words."""
    mark = re.search(rf"^\[(\d+)\] .*{words}", call.messages[-1].text, re.MULTILINE)
    return mark[1] if mark else "9"


def verify(call: ModelCall) -> str:
    """Support each claim by the sentence that shares the most words with it, if it shares more than two."""
    shown = re.findall(r"^(\d+): (.*)$", call.messages[-1].text, re.MULTILINE)
    lines = []
    for number, claim in re.findall(r"^Claim (\d+): (.*)$", call.messages[-1].text, re.MULTILINE):
        shared, line = max((len(set(text.split()) & set(claim.split())), line) for line, text in shown)
        lines.append(f"{number}. SUPPORTS [{line}] So it is." if shared > 2 else f"{number}. NOT ENOUGH INFO No.")
    return "\n".join(lines)


def writing(*drafts: str) -> list[Line]:
    return [lambda call, draft=draft: draft.replace("@", noted(call, "Seven national")) for draft in drafts]


async def run(
    script: Script, talk: Conversation | str = ASKED, *, supports: Supports = reads_alike, **limits
) -> tuple[Outcome, ScriptedLLM]:
    llm = ScriptedLLM({"query": LOOK_UP, "verify": verify, **script})
    conversation = question(talk) if isinstance(talk, str) else talk
    stage = Stage(SHELF, conversation, Limits(**{"policy": "always", **limits}), llm, supports)
    return stage.finish(await augmenter.answer(conversation, stage.kit)), llm


async def test_augmenter_redrafts_with_feedback_until_the_gate_passes() -> None:
    outcome, llm = await run({"draft": writing(WRONG, RIGHT)})

    # evidence: the question, the query, and names in question and evidence
    queries = [step.facts["query"] for step in outcome.recorder.steps if step.stage == "search"]
    assert queries == [ASKED, "Skarholm IF keeper signed 2013", "Skarholm IF", "Jon Vik", "Lysvik BK"]
    first, second = (call.messages[-1].text for call in llm.of("draft"))
    assert "In 2013 Skarholm IF signed the keeper Jon Vik" in first
    assert "Seven national cups went to Lysvik BK." in first
    # the first candidate is not said; the second is requested with the fault of the first, over the same notes
    assert "What is to be mended: The notes that it cites do not say this: “Skarholm IF signed" in second
    assert "2 world cups" not in first
    assert re.findall(r"^\[\d+\] .*", first, re.MULTILINE) == re.findall(r"^\[\d+\] .*", second, re.MULTILINE)
    assert answered(outcome) == [
        "In 2013 Skarholm IF signed the keeper Jon Vik.",
        "Seven national cups went to Lysvik BK.",
    ]
    assert {citation.title for citation in outcome.answer.citations} == {"Skarholm IF in 2013", "Lysvik BK"}


@pytest.mark.parametrize("rounds", [1, 3])
@pytest.mark.parametrize("utility", ["kf1", "criticism"])
@pytest.mark.parametrize("draft", [WRONG, "Bananas, who are yellow, grow in Spain [1]."])
async def test_augmenter_abstains_after_the_last_round_without_a_passing_draft(
    draft: str, utility: str, rounds: int
) -> None:
    other = [draft, draft.replace("2 world", "3 world").replace("Spain", "Bergen"), draft.replace("who", "and")]
    outcome, llm = await run({"draft": writing(*other), "refine": GOOD}, rounds=rounds, utility=utility)
    assert (outcome.answer.status, outcome.answer.sentences) == (Status.ABSTAINED, ())
    assert len(llm.of("draft")) == min(rounds, len(set(other)))


@pytest.mark.parametrize(("policy", "explore", "acquires"), [
    ("always", 0.0, True), ("always", 1.0, False), ("never", 1.0, True), ("never", 0.0, False),
])  # fmt: skip
async def test_first_decision_is_reversed_and_recorded_with_its_probability(
    policy: str, explore: float, *, acquires: bool
) -> None:
    outcome, llm = await run({"draft": writing(RIGHT)}, policy=policy, explore=explore)

    (step,) = [step.facts["facts"] for step in outcome.recorder.steps if step.stage == "policy"]
    assert (step["policy"], step["acquires"], step["propensity"]) == (policy, acquires, 1.0)
    assert (bool(llm.of("query")), step["signs"].keys()) == (acquires, set(PolicySigns.__dataclass_fields__))
    assert outcome.recorder.usage.llm_calls == len(llm.calls)


def test_decisions_are_reversed_as_often_as_set_and_never_by_default() -> None:
    kit = Stage(SHELF, question(ASKED), Limits(policy="always", explore=0.2), None, reads_alike).kit
    noted, memory = list[Step](), open_memory(TurnContext(question(ASKED), nearest=SHELF.hits), 3)
    kit = replace(kit, note=lambda step, _: noted.append(step))
    explored = [augmenter.decide_first(memory, kit).explores for _ in range(1_000)]
    untouched = replace(kit, limits=Limits(policy="self-ask", explore=0.2))

    assert 160 < sum(explored) < 240
    assert [step.facts["facts"]["propensity"] for step in noted] == [0.2 if one else 0.8 for one in explored]
    assert augmenter.decide_first(memory, untouched) == memory  # the model decides
    assert augmenter.decide_first(replace(memory, evidence=()), kit).explores is False
    assert len(noted) == 1_000
    state = kit.random.getstate()
    assert augmenter.decide_first(memory, replace(kit, limits=Limits())) == memory
    assert kit.random.getstate() == state


async def test_draft_repeated_unchanged_ends_the_rounds_of_the_augmenter() -> None:
    outcome, llm = await run({"draft": writing(WRONG)}, rounds=9)
    assert (outcome.answer.status, len(llm.of("draft"))) == (Status.ABSTAINED, 2)


async def test_best_candidate_is_sent_after_the_last_round() -> None:
    half = f"{WRONG} Seven national cups went to Lysvik BK [@]."
    outcome, llm = await run({"draft": writing(WRONG, half, WRONG.replace("2", "3"))})
    assert len(llm.of("draft")) == 3
    assert "Seven national cups went to Lysvik BK." in answered(outcome)
    assert not any("world cups" in text for text in answered(outcome))


async def test_draft_that_can_be_quoted_needs_no_other_round() -> None:
    async def better_quoted(sentence: str, evidence: Sequence[Evidence], *, asked: Sequence[str] = ()) -> Support:
        support = await reads_alike(sentence, evidence, asked=asked)
        return support if support.verbatim else replace(support, appealable=True, better_quoted=True)

    outcome, llm = await run(
        {"draft": writing("Seven national cups once went to Lysvik BK [@].")}, supports=better_quoted
    )

    assert (answered(outcome), len(llm.of("draft"))) == (["Seven national cups went to Lysvik BK."], 1)


@pytest.mark.parametrize(
    ("policy", "need", "stages"),
    [
        ("never", ENOUGH, ["draft"]),
        ("always", ENOUGH, ["query", "draft"]),
        ("self-ask", ENOUGH, ["query", "draft"]),
        ("self-ask", "Search: yes\nQuery: Lysvik BK\nTime: none", ["query", "draft"]),
    ],
)
async def test_each_policy_makes_its_calls(policy: str, need: str, stages: list[str]) -> None:
    query = need if policy == "self-ask" else LOOK_UP
    outcome, llm = await run({"query": query, "draft": writing("In 2013 Skarholm IF signed the keeper Jon Vik [1].")},
                          policy=policy)  # fmt: skip
    assert [call.stage for call in llm.calls if call.stage != "verify"] == stages
    looked_up = sum(step.stage == "search" for step in outcome.recorder.steps) > 1
    assert looked_up == (policy == "always" or "yes" in need)
    assert ("whether the notes are enough" in "".join(m.text for call in llm.of("query") for m in call.messages[:1])
            ) == (policy == "self-ask")  # fmt: skip


@pytest.mark.parametrize("policy", ["never", "self-ask"])
async def test_unhelpful_notes_are_replaced_once_unless_policy_is_never(policy: str) -> None:
    outcome, llm = await run({"query": [ENOUGH, LOOK_UP] if policy == "self-ask" else LOOK_UP,
                           "draft": writing("NOTHING", RIGHT)}, policy=policy)  # fmt: skip
    consolidated = len({step.facts["query"] for step in outcome.recorder.steps if step.stage == "search"}) > 1
    assert consolidated == (policy != "never")
    assert outcome.answer.status is (Status.ABSTAINED if policy == "never" else Status.ANSWERED)
    assert len(llm.of("draft")) == (1 if policy == "never" else 2)


async def test_criticism_becomes_feedback_for_the_next_draft() -> None:
    outcome, llm = await run({"draft": writing(WRONG, RIGHT), "refine": [POOR, GOOD]}, utility="criticism")
    assert "What is to be mended: Note 1 has no world cups. Write" in llm.of("draft")[1].messages[-1].text
    assert (len(llm.of("refine")), outcome.gate.withheld) == (2, ())
    assert len(answered(outcome)) == 2


@pytest.mark.parametrize("fault", [ModelUnavailable("away"), BudgetExceeded("used up")])
async def test_model_failure_leaves_the_best_candidate_so_far(fault: PipelineError) -> None:
    half = f"{WRONG} Seven national cups went to Lysvik BK [@]."
    outcome, _ = await run({"draft": [*writing(half), fault]})
    assert "Seven national cups went to Lysvik BK." in answered(outcome)
    for script in ({"draft": fault}, {"query": fault}, {"draft": [*writing(WRONG), fault]}):
        with pytest.raises(type(fault)):
            await run(script)


class Lost(Shelf):
    """Finds passages for the question, and fails for every other query."""

    async def search(self, query: SearchQuery, k: int) -> tuple[Hit, ...]:
        if query.text != ASKED:
            raise SearchUnavailable("down")
        return await super().search(query, k)


async def test_search_outage_is_raised() -> None:
    stage = Stage(
        Lost(SHELF.hits), question(ASKED), Limits(policy="always"), ScriptedLLM({"query": LOOK_UP}), reads_alike
    )
    with pytest.raises(SearchUnavailable):
        await augmenter.answer(question(ASKED), stage.kit)


async def test_question_without_a_fact_to_search_requests_no_draft() -> None:
    outcome, llm = await run({"query": "Search: no"}, "That is a nice keeper of Skarholm IF")
    assert (outcome.answer.status, llm.of("draft")) == (Status.CHATTED, [])
