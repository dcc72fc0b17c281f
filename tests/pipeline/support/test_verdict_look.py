"""What a model copies before it accepts a claim, held against the sentences and the claim."""

import pytest

from pipeline.stages.findings import collect_sentences
from pipeline.support.verdict_look import Verification, build_look, hold_to_look, parse_look
from storage.types import Verdict
from tests.pipeline.world import hit

LEAVE = collect_sentences([
    hit(
        "Permanent staff get ten days of leave for immediate family. "
        "Permanent staff get three days for extended family. "
        "You may carry leave over only if your lead agrees. "
        "Temporary staff get no study leave. "
        "Guests pay unless they live here. "
        "The office is open from 9 am. "
        "A parking space is paid, except on Mondays. "
        "The bell was cast in 1887. "
        "The vault has a lock of Class 199.",
        title="Leave",
    )
])  # fmt: skip


def decide(claim: str, sentence: int, *look: str, asked: str = "") -> Verification:
    """Hold a model that accepts a claim by one sentence to the values that it copied from it."""
    found = Verification(Verdict.SUPPORTS, (sentence,), "So it is.", build_look(look))
    return hold_to_look(claim, LEAVE, found, [asked])


@pytest.mark.parametrize(
    ("claim", "sentence", "look"),
    [
        ("For close relatives you get 10 days.", 1, ("permanent staff", "ten days", "for immediate family", "")),
        ("Permanent employees get 3 days.", 2, ("permanent staff", "three days", "", "")),
        ("Leave is carried over once your lead agrees.", 3, ("you", "", "only if your lead agrees", "")),
        ("Carrying leave over needs your lead's consent.", 3, ("you", "", "your lead agrees", "")),
        ("You are given leave for your family.", 1, ("permanent staff", "ten days", "for immediate family", "")),
        ("Visitors who do not live here pay.", 5, ("guests", "", "unless they live here", "")),
        ("It was made in 1887.", 8, ("the bell", "", "", "in 1887")),
        ("Guests pay, but those who live here do not.", 5, ("guests pay", "", "unless they live here", "")),
        ("Staff get 13 days for both.", 1, ("permanent staff", "ten days", "", "")),
        ("It was made in May 1887.", 8, ("the bell", "", "", "1887")),
        ("No other lock than one of Class 199 is on the vault.", 9, ("the vault", "", "", "")),
        ("Permanent staff get ten days.", 1, ("permanent staff", "", "", "")),
        ("For immediate family you get leave.", 1, ("the following family", "", "", "")),
        (
            "After one year you may carry leave over if your lead agrees.",
            3,
            ("you", "", "only if your lead agrees", ""),
        ),
        ("Six of them pay unless they live here.", 5, ("guests", "", "unless they live here", "")),
        ("Die Glocke ist von 1887.", 8, ("the bell", "", "", "1887")),
    ],
)
def test_claim_in_other_words_is_kept(claim: str, sentence: int, look: tuple[str, ...]) -> None:
    assert decide(claim, sentence, *look).verdict is Verdict.SUPPORTS


@pytest.mark.parametrize(
    ("claim", "sentence", "look", "fault"),
    [
        ("You get leave.", 1, ("all contractors worldwide", "", "", ""), "do not say “all contractors worldwide”"),
        ("Staff get 12 days.", 1, ("staff", "12 days", "", ""), "do not say “12 days”"),
        ("Staff get ten days.", 2, ("staff", "ten days", "", ""), "cited sentences do not say “ten days”"),
        ("Staff get ten days.", 2, ("staff", "three days", "", ""), "It says “ten days”, but the sentences say “three"),
        ("Staff get 13 days.", 1, ("permanent staff", "", "", ""), "“13 days” of which nothing was copied"),
        ("Leave can be carried over.", 3, ("you", "", "only if your lead agrees", ""), "It leaves out “only if"),
        ("Guests pay.", 5, ("guests", "", "unless they live here", ""), "It leaves out “unless they live here”"),
        ("Parking is paid.", 7, ("a parking space", "", "except on Mondays", ""), "It leaves out “except on Mondays”"),
        (
            "Temporary staff get study leave.",
            4,
            ("temporary staff get no study leave", "", "", ""),
            "It leaves out “temp",
        ),
        ("Temporary staff get leave.", 1, ("permanent staff", "", "", ""), "“Temporary staff”, but “permanent staff”"),
        ("Leave for extended family.", 1, ("staff", "", "for immediate family", ""), ""),
        (
            "Extended family gives leave.",
            1,
            ("immediate family", "", "", ""),
            "“Extended family”, but “immediate family”",
        ),
    ],
)
def test_claim_that_differs_from_the_copy_is_not_supported(
    claim: str, sentence: int, look: tuple[str, ...], fault: str
) -> None:
    found = decide(claim, sentence, *look)
    assert found.verdict is (Verdict.NOT_ENOUGH_INFO if fault else Verdict.SUPPORTS)
    assert fault in found.reasoning


def test_askers_own_number_need_not_be_copied() -> None:
    claim, look = "For three nights you get leave.", ("permanent staff", "ten days", "", "")
    assert decide(claim, 1, *look).verdict is Verdict.NOT_ENOUGH_INFO
    assert decide(claim, 1, *look, asked="I am away for three nights.").verdict is Verdict.SUPPORTS


def test_only_accepted_claims_with_a_copy_are_compared() -> None:
    for found in (Verification(Verdict.REFUTES, (1,), "", ("bees", "", "", "")), Verification(Verdict.SUPPORTS, (1,))):
        assert hold_to_look("Staff get 12 days.", LEAVE, found) == found


@pytest.mark.parametrize(
    ("text", "look"),
    [
        (
            "who: staff; how many: 10 days; if: only after a year; when: -",
            ("staff", "10 days", "only after a year", ""),
        ),
        ("[2] WHO: “staff” | If: none. When: 1887", ("staff", "", "", "1887")),
        ("who: a; who: b", ("a", "", "", "")),
        ("who: -; how many: N/A; if: -; when: -", ()),
        ("", ()),
    ],
)
def test_copied_values_are_parsed_by_their_labels(text: str, look: tuple[str, ...]) -> None:
    assert parse_look(text) == look
