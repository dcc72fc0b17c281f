"""Why a claim has its verdict, as a reader reads it."""

import pytest

from bot.views.catalog import render_reason
from pipeline.support.rules import FindingKind, FindingOutcome, RuleFinding
from pipeline.support.support_check import SentenceAnalysis, decide_support
from storage.types import CheckedClaim, Claim, Verdict, VerdictReason

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
    "elsewhere": ("five", "four"),
    "scattered": (),
    "overruled": (),
    "says_little": (),
    "unreadable": (),
    "nothing": (),
    "unverified": (),
}


def said(*because: VerdictReason, language: str = "en", reasoning: str = "p1 (0.17)") -> str:
    checked = CheckedClaim(Claim("It is.", "user"), Verdict.REFUTES, reasoning=reasoning, because=because)
    return render_reason(checked, language)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_kind_is_said_in_every_language(language: str) -> None:
    """With what it quotes, and in words of its own."""
    for kind, facts in KINDS.items():
        text = said(VerdictReason(kind, facts), language=language)
        assert text
        assert all(fact in text for fact in facts)
        assert language == "en" or text != said(VerdictReason(kind, facts))


def test_what_a_model_says_stands_as_it_is() -> None:
    """So does what an older record or a newer version says."""
    assert said(reasoning="Sentence 1 says so.") == "Sentence 1 says so."
    assert said(VerdictReason("of another version"), reasoning="Because.") == "Because."


def test_what_the_local_check_finds_is_said_without_scores() -> None:
    """Several reasons are several sentences."""
    five = RuleFinding(FindingKind.NUMBER, "five", FindingOutcome.CONTRADICTED, "four")
    missed = decide_support(SentenceAnalysis({}, (five, five), "It has four."), 0.9, 0.5, sure=0.8)
    doubted = decide_support(SentenceAnalysis({}, (), "It has four."), 0.17, 0.52, sure=0.8)

    assert said(*missed.because) == "It says “five”; the documents say “four”."
    assert said(*doubted.because) == "The documents do not say so. Nearest to it: “It has four.”"
