"""Why a claim has its verdict, as a reader reads it."""

import pytest

from bot.showing.reasons import reason_said
from pipeline.support.findings import Finding, Kind, Outcome
from pipeline.supporting import Examined, decided
from storage.types import CheckedClaim, Claim, Reason, Verdict

LANGUAGES = ["en", "de", "fr", "es", "it", "pt", "nl", "ru", "zh", "ja", "ar"]
KINDS = {
    "verbatim": (),
    "not_verbatim": (),
    "said": ("Quote.",),
    "so": (),
    "not_said": (),
    "nearest": ("Quote.",),
    "absent": ("five",),
    "contradicted": ("five", "four"),
    "unnamed": ("Ana", "she"),
    "differs": ("Page",),
    "scattered": (),
    "overruled": (),
    "says_little": (),
    "unreadable": (),
    "nothing": (),
    "unverified": (),
}


def said(*because: Reason, language: str = "en", reasoning: str = "p1 (0.17)") -> str:
    checked = CheckedClaim(Claim("It is.", "user"), Verdict.REFUTES, reasoning=reasoning, because=because)
    return reason_said(checked, language)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_kind_is_said_in_every_language(language: str) -> None:
    """With what it quotes, and in words of its own."""
    for kind, facts in KINDS.items():
        text = said(Reason(kind, facts), language=language)
        assert text
        assert all(fact in text for fact in facts)
        assert language == "en" or text != said(Reason(kind, facts))


def test_what_a_model_says_stands_as_it_is() -> None:
    """So does what an older record or a newer version says."""
    assert said(reasoning="Sentence 1 says so.") == "Sentence 1 says so."
    assert said(Reason("of another version"), reasoning="Because.") == "Because."


def test_what_the_local_check_finds_is_said_without_scores() -> None:
    """Several reasons are several sentences."""
    five = Finding(Kind.NUMBER, "five", Outcome.CONTRADICTED, "four")
    missed = decided(Examined({}, (five, five), "It has four."), 0.9, 0.5, sure=0.8)
    doubted = decided(Examined({}, (), "It has four."), 0.17, 0.52, sure=0.8)

    assert said(*missed.because) == "It says “five”; the documents say “four”."
    assert said(*doubted.because) == "The documents do not say so. Nearest to it: “It has four.”"
