"""The context of a turn: earlier turns, and the languages of question and library."""

import pytest

from pipeline.kit import Limits
from pipeline.stages.turn_context import TurnContext, find_library_language, prepare_context
from pipeline.types import Turn
from tests.pipeline.scripted import ScriptedLLM
from tests.pipeline.world import Shelf, Stage, hit, question, reads_alike


@pytest.mark.parametrize(
    ("spoken", "found", "expected"),
    [
        ("de", ["en"] * 10, "en"),
        ("de", ["en"] * 9 + ["de"], "en"),
        ("de", ["en"] * 6 + ["de"] * 4, ""),
        ("en", ["de"] * 10, "de"),
        ("en", ["en"] * 10, ""),
        ("de", ["", ""], ""),
        ("de", [], ""),
        ("", ["en"] * 10, ""),
    ],
)
def test_library_language_is_that_of_most_hits(spoken: str, found: list[str], expected: str) -> None:
    assert find_library_language(spoken, [hit("Text.", language=language) for language in found]) == expected


async def test_turn_context_contains_only_the_last_turns_of_the_conversation() -> None:
    talk = question("Where does it stand?", *(Turn("user", f"turn {number}") for number in range(9)))
    stage = Stage(Shelf([]), talk, Limits(turns=3), ScriptedLLM({}), reads_alike)
    scene = await prepare_context(talk, stage.kit)
    assert [turn.text for turn in scene.talk.turns] == ["turn 7", "turn 8", "Where does it stand?"]


def test_languages_are_named_for_prompts() -> None:
    talk = question("Warum?")
    assert (TurnContext(talk, "de", "en").language, TurnContext(talk, "de", "en").reading) == ("German", "English")
    assert (TurnContext(talk).language, TurnContext(talk).reading) == ("", "")
