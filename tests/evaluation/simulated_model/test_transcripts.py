"""Replays of hand-written replies, and their known faults."""

import json
from pathlib import Path

import pytest

from evaluation.answers.question_sets import UnreadableSet
from evaluation.simulated_model.transcripts import (
    CONTINUED,
    MORE_COMING,
    OWN_TRANSCRIPTS,
    TranscriptTurn,
    TurnOutcome,
    build_replies,
    count_outcomes,
    fingerprint,
    read_documents,
    replay_file,
    restore_reply,
)
from pipeline.prompts.prompt_templates import TEMPLATE_FOLDER
from pipeline.types import Status
from tests.handbook import copy_home
from tests.thorough import THOROUGH

LINE = "The pier was built in 1911 by four brothers from the island."
NOTES = f"Notes:\n[1] It rains. (from: Weather)\n[2] {LINE} (from: Pier › Building (2026-01-02))\nWrite."
SENTENCES = f"=== a begins ===\n1: It rains.\n2: {LINE}\n=== a ends ===\n"
CITED = f"[@{fingerprint(LINE)}]"


def test_reply_takes_words_and_numbers_from_its_prompt() -> None:
    stretch = f"{{9:{fingerprint('the pier was built in 1911 by four brothers')}}}"

    assert restore_reply(f"{stretch} {CITED}.", NOTES) == "The pier was built in 1911 by four brothers [2]."
    assert restore_reply(f"{stretch} {CITED}.", "[1] It rains.") == "[…] ."


def test_reworded_note_is_found_by_its_words() -> None:
    changed = NOTES.replace(LINE, "Four brothers built the pier.")
    reply = f"It rains. The brothers built it {CITED}."

    assert restore_reply(reply, changed, nearest=True) == "It rains. The brothers built it [2]."
    assert restore_reply(reply, "[1] It rains.", nearest=True) == "It rains. The brothers built it ."


def test_bullets_and_verdicts_follow_the_lines_of_the_prompt() -> None:
    claim, seen = "Four brothers built it.", "It is from 1911."
    turn = TranscriptTurn(
        "Who built it?",
        answerable=True,
        planted="",
        replies={"query": ["Search: no"], "draft": [f"Four did {CITED}."]},
        bullets=[f"Four brothers built the pier. {CITED}"],
        rulings={fingerprint(claim): ["REFUTES", CITED]},
        labels={fingerprint(seen): "supported"},
    )
    say = build_replies(turn)

    assert say["query"]("") == "Search: no"
    assert (say["draft"](NOTES), say["draft"]("[1] It rains.")) == ("Four did [2].", "NOTHING")
    assert say["summarise"](SENTENCES) == "- Four brothers built the pier. [2]"
    assert say["summarise"]("1: It rains.") == "None"
    prompt = f"{SENTENCES}Claim 1: {claim}\nClaim 2: {seen}\nClaim 3: It is red."
    assert say["verify"](prompt).splitlines() == [
        "1. [2] who: built four brothers; if: -; REFUTES",
        "2. [2] who: 1911; how many: 1911 by; if: -; SUPPORTS",
        "3. who: -; if: -; NOT ENOUGH INFO",
    ]
    assert say["verify"](f"{SENTENCES}Claim: {claim}").startswith("Sentences: 2\nWho: built four")


@pytest.mark.parametrize(("words", "template"), [(MORE_COMING, "answer"), (CONTINUED, "continuation")])
def test_words_that_identify_a_draft_template_are_in_no_other_template(words: str, template: str) -> None:
    telling = [file.stem for file in TEMPLATE_FOLDER.glob("*.j2") if words in file.read_text("utf-8")]

    assert telling == [template]


def test_outcomes_are_counted_by_label() -> None:
    turn = TranscriptTurn("Who?", answerable=True, planted="six", replies={}, held_by=frozenset({fingerprint("Four.")}))
    right = TurnOutcome(turn, Status.ANSWERED, (("Four.", "supported"), ("Indeed.", "unknown")))
    wrong = TurnOutcome(turn, Status.ANSWERED, (("Six.", "planted"),))
    silent = TurnOutcome(turn, Status.ABSTAINED, ())

    assert list(count_outcomes([right, wrong, silent]).values()) == [
        *((1, 2), (1, 3), (1, 3), (1, 3), (1, 3), (0, 0), (1, 3)),
    ]
    assert list(count_faults([right, wrong, silent]).values()) == [1, 1, 1, 1, 2, 0]


def count_faults(outcomes: list[TurnOutcome]) -> dict[str, int]:
    """Return the number of faults by measure; unlabelled sentences are not faults."""
    wanted = ("said sentences that are supported", "right main answers", "unanswerable and abstained")
    measures = list(count_outcomes(outcomes).items())[:-1]
    return {name: whole - part if name in wanted else part for name, (part, whole) in measures}


def test_another_sentence_with_the_answer_is_right() -> None:
    turn = TranscriptTurn("Who?", answerable=True, planted="", replies={}, answer=("four",))
    right = TurnOutcome(turn, Status.ANSWERED, (("There were four.", "quoted"),))

    assert right.right
    assert not TurnOutcome(turn, Status.ANSWERED, (*right.said, ("Six.", "unsupported"))).right


@pytest.mark.parametrize("path", sorted(OWN_TRANSCRIPTS.parent.glob("*.json")), ids=lambda path: path.stem)
async def test_transcripts_have_no_new_faults(path: Path, handbook: Path, tmp_path: Path) -> None:
    if not THOROUGH and path.stem != "example_handbook":
        pytest.skip("make thorough replays it")
    try:
        read_documents(path)
    except UnreadableSet as error:
        pytest.skip(str(error))
    copy_home(handbook, tmp_path / path.stem)
    faults = count_faults(await replay_file(path, tmp_path))
    known = _kept_faults(path)

    assert {name: number for name, number in faults.items() if number > known[name]} == {}


def _kept_faults(path: Path) -> dict[str, int]:
    faults: dict[str, int] = json.loads(path.read_text("utf-8"))["faults"]
    return faults
