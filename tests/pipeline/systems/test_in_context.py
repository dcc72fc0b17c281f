"""The system that shows worked examples, with a scripted model, and the limits of its examples."""

from dataclasses import replace
from datetime import date

import pytest

from pipeline.kit import Limits
from pipeline.llm.model import ModelCall
from pipeline.systems.in_context import answer
from pipeline.types import DemoClaim, DemoNote, Demonstration, Status, Turn
from tests.pipeline.scripted import ScriptedLLM, accept
from tests.pipeline.world import Outcome, Shelf, answered, hit, question, reads_alike, run

SHELF = Shelf([
    hit("Milo Karst plays for Ostrava. Milo Karst is a midfielder.", key="karst", title="Milo Karst"),
    hit("Ostrava was founded in 1922.", key="ostrava", title="Ostrava"),
    hit("The canteen opens at noon.", key="canteen", title="Canteen"),
])  # fmt: skip
TALK = question("Do you know Milo Karst?", Turn("user", "I like football."), Turn("bot", "Which club do you follow?"))
SCRIPT = {
    "query": "Search: yes\nQuery: Milo Karst midfielder\nTime: none",
    "draft": "Milo Karst is a midfielder and plays for Ostrava [1][2].",
    "verify": accept(1, 2),
}


def made(name: str, asked: str, note: str, **more: object) -> Demonstration:
    notes, claims = (DemoNote(note, name),), (DemoClaim(note, notes=(1,)),)
    return Demonstration(name, (("user", asked),), date(2026, 1, 5), notes, f"{note[:-1]} [1].", claims, asked, **more)


STRIKER = made("striker", "Do you know Ines Vale?", "Ines Vale is a striker and plays for Porto.")
TWIN = made("twin", "Do you know Ines Vale, too?", "Ines Vale is a striker and plays for Porto as well.")
RECORD = made("record", "Who plays for Ostrava?", "Ostrava has eleven players.")
STRANGER = made("stranger", "How deep is the dock?", "The dock is 6 metres deep.")
POOL = (STRANGER, TWIN, RECORD, STRIKER)


async def ask(llm: ScriptedLLM, **more: object) -> Outcome:
    return await run(answer, TALK, SHELF, llm=llm, supports=reads_alike, **{"pool": POOL, **more})


def shown(call: ModelCall) -> list[str]:
    """Return the examples shown before a call, in order."""
    texts = [message.text for message in call.messages[:-1]]
    return [demo.id for text in texts for demo in POOL if f"User: {demo.turns[-1][1]}\n" in text]


async def test_in_context_turn_follows_the_papers_steps() -> None:
    llm = ScriptedLLM(SCRIPT)
    outcome = await ask(llm, limits=Limits(examples=2))

    assert answered(outcome) == ["Milo Karst is a midfielder and plays for Ostrava."]
    query, draft, judged = (llm.of(stage)[0] for stage in ("query", "draft", "verify"))
    assert len(shown(query)) == len(shown(draft)) == 2
    assert shown(draft) == shown(judged)  # the gate's question has those of the draft
    assert "stranger" not in shown(draft)
    example, reply, turn = draft.messages[-3:]
    assert (example.role, reply.role, turn.role) == ("user", "assistant", "user")
    assert reply.text == next(demo.answer for demo in POOL if demo.id == shown(draft)[-1])
    assert "[1] Milo Karst plays for Ostrava. (from: Milo Karst)" in turn.text
    assert "User: I like football.\nChatbot: Which club do you follow?\nUser: Do you know Milo Karst?" in turn.text
    steps = [step.facts for step in outcome.recorder.steps if "demos" in step.facts]
    assert [step["demos"] for step in steps] == [shown(query), shown(draft), shown(judged)]


async def test_examples_correct_a_model_that_errs_without_them() -> None:
    lines = {
        "draft": lambda call: f"Milo Karst is a {'midfielder' if shown(call) else 'goalkeeper'} [2].",
        "verify": lambda call: f"1. {'REFUTES' if 'is a goalkeeper' in call.messages[-1].text else 'SUPPORTS'} [1]",
    }
    bare = await ask(ScriptedLLM({**SCRIPT, **lines}), limits=Limits(examples=0))
    assert bare.answer.sentences == ()
    assert [sentence.text for sentence in bare.gate.withheld] == ["Milo Karst is a goalkeeper."]
    taught = await ask(ScriptedLLM({**SCRIPT, **lines}))
    assert answered(taught) == ["Milo Karst is a midfielder."]
    assert not taught.gate.withheld


async def test_diverse_example_replaces_a_near_duplicate() -> None:
    alike, apart = ScriptedLLM(SCRIPT), ScriptedLLM(SCRIPT)
    await ask(alike, limits=Limits(examples=2, example_relevance=1.0), pool=(TWIN, STRIKER, STRANGER))
    await ask(apart, limits=Limits(examples=2, example_relevance=0.0), pool=(TWIN, STRIKER, STRANGER))
    assert sorted(shown(alike.of("draft")[0])) == ["striker", "twin"]
    assert "stranger" in shown(apart.of("draft")[0])


async def test_notes_and_examples_are_shown_as_triples_if_set() -> None:
    llm = ScriptedLLM(SCRIPT)
    outcome = await ask(llm, limits=Limits(examples=1, example_notes="triples"), pool=(RECORD,))
    *_, example, _, turn = llm.of("draft")[0].messages
    assert "(Ostrava, has, eleven players)" in example.text
    assert "(Milo Karst, is, a midfielder)" in turn.text
    assert answered(outcome) == ["Milo Karst is a midfielder and plays for Ostrava."]


async def test_nearest_passages_are_knowledge_next_to_query_hits() -> None:
    llm = ScriptedLLM(SCRIPT)
    talk = question("Since when has Ostrava, where he plays, been there?", *TALK.turns)
    await run(answer, talk, SHELF, llm=llm, supports=reads_alike, limits=Limits(looked_up=1, passages=2))
    assert "Ostrava was founded in 1922." in llm.of("draft")[0].messages[-1].text


@pytest.mark.parametrize("limits", [Limits(examples=0), Limits(student=True)])
async def test_answer_without_examples_is_possible(limits: Limits) -> None:
    llm = ScriptedLLM(SCRIPT)
    assert answered(await ask(llm, limits=limits))
    assert not any(shown(call) for call in llm.calls)


async def test_copied_example_text_never_passes() -> None:
    llm = ScriptedLLM({**SCRIPT, "draft": "The dock is 6 metres deep [1].", "verify": accept(1)})
    outcome = await ask(llm, pool=(replace(STRANGER, pinned=True),))
    assert not any("dock" in sentence.text for sentence in outcome.answer.sentences)
    assert {citation.document for citation in outcome.answer.citations} <= {"karst", "ostrava"}


async def test_question_is_not_answered_without_a_wanted_fact_or_hits() -> None:
    assert (await ask(ScriptedLLM({**SCRIPT, "query": "Search: no"}))).answer.status is Status.CHATTED
    nothing = await run(answer, TALK, Shelf([]), llm=ScriptedLLM(SCRIPT), pool=POOL)
    assert nothing.answer.status is Status.ABSTAINED
