"""Replaying what a model played by hand once replied, and what is said of it today."""

from collections.abc import Sequence

from evaluation.simulated_model.transcripts import (
    OWN_TRANSCRIPTS,
    TranscriptTurn,
    TurnOutcome,
    build_transcript_model,
    count_outcomes,
    fingerprint,
    replay_file,
    restore_reply,
)
from pipeline.types import Status

LINE = "The pier was built in 1911 by four brothers from the island."
NOTES = f"Notes:\n[1] It rains. (from: Weather)\n[2] {LINE} (from: Pier › Building (2026-01-02))\nWrite."
SENTENCES = f"=== a begins ===\n1: It rains.\n2: {LINE}\n=== a ends ===\n"
CITED = f"[@{fingerprint(LINE)}]"


def test_a_reply_takes_words_and_numbers_from_its_prompt() -> None:
    """Wherever they stand in it now; what is not there any more is left out."""
    stretch = f"{{9:{fingerprint('the pier was built in 1911 by four brothers')}}}"

    assert restore_reply(f"{stretch} {CITED}.", NOTES) == "The pier was built in 1911 by four brothers [2]."
    assert restore_reply(f"{stretch} {CITED}.", "[1] It rains.") == "[…] ."


def test_bullets_and_verdicts_are_found_by_what_a_prompt_shows() -> None:
    """A verdict that nobody gave is as a reader labelled the sentence; else nothing is known."""
    claim, seen = "Four brothers built it.", "It is from 1911."
    turn = TranscriptTurn(
        "Who built it?",
        answerable=True,
        planted="",
        replies={"query": ["Search: no"]},
        bullets=[f"Four brothers built the pier. {CITED}"],
        rulings={fingerprint(claim): ["REFUTES", CITED]},
        labels={fingerprint(seen): "supported"},
    )
    say = build_transcript_model(turn).replies

    assert say["query"]("") == "Search: no"
    assert say["summarise"](SENTENCES) == "- Four brothers built the pier. [2]"
    assert say["summarise"]("1: It rains.") == "None"
    asked = f"{SENTENCES}Claim 1: {claim}\nClaim 2: {seen}\nClaim 3: It is red."
    assert say["verify"](asked).splitlines() == [
        "1. REFUTES [2] So it is.",
        "2. SUPPORTS [2] So it is.",
        "3. NOT ENOUGH INFO So it is.",
    ]
    assert say["verify"](f"{SENTENCES}Claim: {claim}").endswith("Sentences: 2\nVerdict: REFUTES")


def test_outcomes_are_counted_by_their_labels() -> None:
    """An answer that was lost, a planted detail that was said, a sentence that nobody has seen."""
    turn = TranscriptTurn("Who?", answerable=True, planted="six", replies={}, answer=frozenset({fingerprint("Four.")}))
    right = TurnOutcome(turn, Status.ANSWERED, (("Four.", "supported"), ("Indeed.", "unknown")))
    wrong = TurnOutcome(turn, Status.ANSWERED, (("Six.", "planted"),))
    silent = TurnOutcome(turn, Status.ABSTAINED, ())

    assert list(count_outcomes([right, wrong, silent]).values()) == [
        *((1, 2), (1, 3), (1, 3), (1, 3), (1, 3), (0, 0), (1, 3)),
    ]


async def test_our_own_transcripts_hold() -> None:
    """Over the example handbook: nothing false is said, no planted detail, and nothing where nothing is known."""
    assert_held(await replay_file(OWN_TRANSCRIPTS), lost=1)  # a sum that the model worked out itself


def assert_held(outcomes: Sequence[TurnOutcome], *, lost: int) -> None:
    found = count_outcomes(outcomes)
    supported, said = found["said sentences that are supported"]
    abstained, unknown = found["unanswerable and abstained"]
    assert (said - supported, found["turns that say their planted detail"][0]) == (0, 0)
    assert abstained == unknown
    assert found["answered without the answer that the model gave"][0] <= lost
