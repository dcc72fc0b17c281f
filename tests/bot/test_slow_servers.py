"""Turns over slow model servers: at quick effort one short call, and progress until its reply."""

import io
from functools import partial
from itertools import accumulate

import pytest
from rich.console import Console

from bot.answering.question_answering import answer
from bot.cli.rendering.turn_progress import watch_turn
from bot.cli.terminal_output import Output
from bot.settings.tables.settings_tables import LimitSettings
from bot.views.view_reducer import apply_event, start_view
from evaluation.simulated_model.chat_protocol import count_prompt_tokens
from evaluation.simulated_model.model_pace import ServerPace, SimulatedModel
from evaluation.simulated_model.paced_model import PacedModel
from pipeline.llm.server_load import CallSample
from pipeline.types import SentencePassed, Status, Turn
from tests.bot.model_app import find_stage, make_request, open_model_app

SYSTEM = "retrieve-then-generate"
TOKENS = 1_200  # of a turn at quick effort, so that a server that reads 20 tokens a second answers within a minute
SLOW = SimulatedModel(ServerPace(first_token=0.0, prompt=2_000, out=500))  # a hundredth of a minute
quick = partial(make_request, system=SYSTEM, effort="quick")


@pytest.mark.parametrize("earlier", [(), (Turn("user", "What is Skarholm? " * 150), Turn("bot", "A harbour. " * 300))])
async def test_quick_effort_makes_one_short_call(tmp_path, earlier):
    async with open_model_app(tmp_path) as (app, server):
        done = await answer(app, quick(earlier=earlier), lambda _: None)
        (request,) = server.requests

    assert (done.answer.status, done.usage.llm_calls) == (Status.ANSWERED, 1)
    assert "Skarholm lighthouse was built in 1887. [1]" in done.text
    assert [find_stage(request), len(request.body["messages"])] == ["answer", 2]
    assert count_prompt_tokens(request.body) + request.body["max_tokens"] <= TOKENS


@pytest.mark.parametrize("draft", ["The lighthouse was built in 1890 [1].", "", "It is tall. It is tall."])
async def test_quick_effort_quotes_instead_of_calling_again(tmp_path, draft):
    async with open_model_app(tmp_path, {"draft": draft}) as (app, server):
        done = await answer(app, quick(), lambda _: None)

    assert (done.answer.status, len(server.requests)) == (Status.ANSWERED, 1)
    assert "1887" in done.text
    assert "1890" not in done.text


async def test_effort_lowered_by_a_slow_server_keeps_verdicts_of_the_model(tmp_path):
    async with open_model_app(tmp_path, {"draft": "It was erected in 1887 [1]."}) as (app, server):
        for _ in range(20):
            app.load.observe(CallSample(0.0, 4.0, reading=6.0, tokens=60))
        done = await answer(app, make_request(system=SYSTEM), lambda _: None)

    assert (done.effort, done.answer.status) == ("quick", Status.ANSWERED)
    assert "verdicts" in map(find_stage, server.requests)


async def test_waiting_for_a_slow_server_shows_the_step_and_a_quotation(tmp_path):
    events, screen = [], io.StringIO()
    console = Console(file=screen, force_terminal=True, width=200)
    async with open_model_app(tmp_path, PacedModel(SLOW)) as (app, server):
        with watch_turn(Output(console, console, as_json=False)) as show:
            done = await answer(app, quick(), lambda event: (events.append(event), show(event)))

    assert (done.answer.status, len(server.requests)) == (Status.ANSWERED, 1)
    first = next(place for place, event in enumerate(events) if isinstance(event, SentencePassed))
    waiting = [*accumulate(events[:first], apply_event, initial=start_view(1, "en"))][-1]
    assert waiting.quote.quote == "Skarholm lighthouse was built in 1887."
    assert waiting.status in screen.getvalue()
    assert "Meanwhile, a quotation (not an answer yet): “Skarholm lighthouse was built in 1887.”" in screen.getvalue()


async def test_server_that_is_too_slow_is_stopped_in_time_to_quote(tmp_path):
    slower = PacedModel(SimulatedModel(ServerPace(first_token=0.0, prompt=20)))
    async with open_model_app(tmp_path, slower, limits=LimitSettings(seconds=1)) as (app, _):
        done = await answer(app, quick(), lambda _: None)
        calls = [entry.body for entry in await app.audit.turn(done.answer_id) if "template" in entry.body]

    assert (done.answer.status, done.quoted_because.kind) == (Status.ANSWERED, "too_slow")
    assert [call["error"].partition(":")[0] for call in calls] == ["BudgetExceeded"]
    assert "Skarholm lighthouse was built in 1887. [1]" in done.text
