"""The report on a real model: what was said, withheld and unreadable, and whether the promises hold."""

from evaluation.answers.real_model import hold_conversation, summarize_turns
from evaluation.system_variants import parse_variant
from tests.bot.model_app import open_model_app

ASKED = ("When was Skarholm lighthouse built?", "And where does the keeper live?")
SYSTEMS = ("extractive", "retrieve-then-generate:effort=quick")


async def hold(app):
    return [turn for label in SYSTEMS for turn in await hold_conversation(app, parse_variant(label), ASKED)]


async def test_report_shows_what_was_said_and_withheld(tmp_path, capsys):
    false = "The lighthouse was built in 1890 [1]."
    async with open_model_app(tmp_path, {"draft": false}) as (app, _):
        turns = await hold(app)
    lines, promises = summarize_turns(turns)

    shown = capsys.readouterr().out
    assert all(promises.values())
    assert "retrieve-then-generate:effort=quick: answered" in shown
    assert "    said: Skarholm lighthouse was built in 1887.\n" in shown
    assert "    withheld: The lighthouse was built in 1890." in shown
    assert lines[0].startswith("extractive: 2 answered; 3 sentences said, 0 withheld")


async def test_error_shown_to_the_asker_breaks_the_promise(tmp_path, capsys):
    async with open_model_app(tmp_path) as (app, _):
        turns = await hold_conversation(app, parse_variant(SYSTEMS[1]), ("?!",))
    _, promises = summarize_turns(turns)

    assert [*promises.values()] == [False, True, True]
    assert "ERROR SHOWN: " in capsys.readouterr().out
