"""Gold cases: what a stage is asked, and what a good reply to it has. Written for this alone, never shown in a prompt.

The data have the shape of the prompts' worked examples (`pipeline.examples`), and dates that follow the day.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from pipeline.examples import Example, examples

FOLDER = Path(__file__).parent / "gold"


@dataclass(frozen=True, slots=True)
class Case:
    """One case of a stage."""

    name: str
    facts: Mapping[str, Any]
    """What the stage's template is given."""
    expected: Any
    """What a right reply has, as the stage's judge reads it; None where the case has no right reply."""
    reply: str = ""
    """A right reply, for stages whose replies are free text."""


def read(file: str, day: date) -> tuple[Case, ...]:
    """Return the cases of a file, as of a day."""
    return tuple(_case(example) for example in examples(FOLDER / f"{file}.json", day, "expected"))


def _case(example: Example) -> Case:
    facts = {name: value for name, value in example.facts.items() if name not in {"name", "reply"}}
    if "claim" in facts:
        facts["claims"] = (facts["claim"],)  # some calls take several
    return Case(example.facts["name"], facts, example.reply, example.facts.get("reply", ""))
