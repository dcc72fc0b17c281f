"""How a prompt that is too long is shortened."""

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


def test_truncation_drops_old_turns_then_passages_then_examples() -> None:
    load = PromptLoad({"talk": talk("1", "2", "3", "4"), "claim": "It rings.", "sentences": SENTENCES})

    everything = ["One.", "Two.", "Three.", "Four.", "Five."]
    assert shrunk(load) == [
        {"talk": ["3", "4"], "sentences": everything, "examples": True},
        {"talk": ["4"], "sentences": everything, "examples": True},
        {"talk": ["4"], "sentences": ["One.", "Two.", "Three."], "examples": True},
        {"talk": ["4"], "sentences": ["One.", "Two."], "examples": True},
        {"talk": ["4"], "sentences": ["One.", "Two."], "examples": False},
    ]


def test_truncation_drops_all_findings_of_the_last_passage() -> None:
    findings = tuple(SourcedFinding(sentence.text, (sentence,)) for sentence in SENTENCES)

    assert [step["findings"] for step in shrunk(PromptLoad({"findings": findings}))] == [
        ["One.", "Two.", "Three."],
        ["One.", "Two."],
        ["One.", "Two."],
    ]


def test_minimal_prompt_cannot_be_truncated() -> None:
    assert truncate_load(PromptLoad({"talk": talk("1"), "sentences": (), "draft": "It rings."}, examples=False)) is None
