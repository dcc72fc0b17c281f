"""Truncating a call that is too long."""

from typing import Any

from pipeline.prompts.prompter import PromptLoad, truncate_load
from pipeline.stages.findings import SourcedFinding, collect_sentences
from pipeline.types import Conversation, Turn
from tests.pipeline.world import hit

SENTENCES = collect_sentences([hit("One. Two.", key="a"), hit("Three.", key="b"), hit("Four. Five.", key="c")])


def talk(*texts: str) -> Conversation:
    return Conversation(tuple(Turn("user", text) for text in texts))


def shrunk(load: PromptLoad | None) -> list[dict[str, Any]]:
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


def test_the_oldest_turns_go_first_then_the_last_passages_then_the_examples() -> None:
    """The question, the best passage and the instruction stay."""
    load = PromptLoad({"talk": talk("1", "2", "3", "4"), "claim": "It rings.", "sentences": SENTENCES})

    everything = ["One.", "Two.", "Three.", "Four.", "Five."]
    assert shrunk(load) == [
        {"talk": ["3", "4"], "sentences": everything, "examples": True},
        {"talk": ["4"], "sentences": everything, "examples": True},
        {"talk": ["4"], "sentences": ["One.", "Two.", "Three."], "examples": True},
        {"talk": ["4"], "sentences": ["One.", "Two."], "examples": True},
        {"talk": ["4"], "sentences": ["One.", "Two."], "examples": False},
    ]


def test_findings_go_by_their_passages() -> None:
    """Those of the last passage at once."""
    findings = tuple(SourcedFinding(sentence.text, (sentence,)) for sentence in SENTENCES)

    assert [step["findings"] for step in shrunk(PromptLoad({"findings": findings}))] == [
        ["One.", "Two.", "Three."],
        ["One.", "Two."],
        ["One.", "Two."],
    ]


def test_minimal_prompt_cannot_be_truncated() -> None:
    assert truncate_load(PromptLoad({"talk": talk("1"), "sentences": (), "draft": "It rings."}, examples=False)) is None
