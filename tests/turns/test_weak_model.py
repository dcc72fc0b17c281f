"""Turns with a model that has the habits of a weak one: the asker gets no less than without a model."""

import math
from pathlib import Path

import pytest

from bot.answering.question_answering import answer, check
from evaluation.simulated_model.model_pace import HabitRates, ServerPace, SimulatedModel
from evaluation.simulated_model.paced_model import PacedModel
from pipeline.systems import SYSTEMS
from pipeline.types import Event, Status
from tests.bot.model_app import make_request, open_model_app

AT_ONCE = ServerPace(first_token=0, out=math.inf, prompt=math.inf)
HABITS = {
    "loops": HabitRates(loop=1),
    "cuts": HabitRates(cut=1),
    "drift": HabitRates(drift=1),
    "echoes": HabitRates(echo=1),
    "all": HabitRates(0.25, 0.25, 0.25, 0.25),
}
QUESTION = "When was Skarholm lighthouse built?"


def ignore(_: Event) -> None:
    """Ignore events."""


@pytest.mark.parametrize("system", [name for name, entry in SYSTEMS.items() if entry.calls])
@pytest.mark.parametrize("habit", HABITS)
async def test_weak_model_never_leaves_less_than_a_quotation(tmp_path: Path, system: str, habit: str) -> None:
    structured = "auto" if habit in {"loops", "cuts"} else "text"
    model = PacedModel(SimulatedModel(AT_ONCE, habits=HABITS[habit]))
    async with open_model_app(tmp_path, model, structured=structured) as (app, server):
        done = await answer(app, make_request(QUESTION, system=system), ignore)
        unknown = await answer(app, make_request("Who painted the Mona Lisa?", system=system), ignore)

    assert server.rejected == []
    assert (done.failure, unknown.failure) == (None, None)
    assert done.answer.status is Status.ANSWERED
    assert "1887" in done.text
    passages = {citation.number: citation.passage_text for citation in done.answer.citations}
    for sentence in done.answer.sentences:
        said = sentence.text.removesuffix(", and that is so.").rstrip(".")
        assert any(said in passages[number] for number in sentence.citations)


@pytest.mark.parametrize("habit", HABITS)
async def test_check_by_a_weak_model_ends_in_a_verdict(tmp_path: Path, habit: str) -> None:
    async with open_model_app(tmp_path, PacedModel(SimulatedModel(AT_ONCE, habits=HABITS[habit]))) as (app, _):
        done = await check(app, make_request("Skarholm lighthouse was built in 1887.", system="wikichat"), ignore)

    assert done.failure is None
    assert done.answer.claims
