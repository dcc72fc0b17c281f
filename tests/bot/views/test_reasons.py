"""Why a claim has its verdict, as a reader reads it."""

import pytest

from bot.views.catalog import render_reason
from pipeline.support.rules import FindingKind, FindingOutcome, RuleFinding
from pipeline.support.support_check import SentenceAnalysis, decide_support
from storage.types import CheckedClaim, Claim, Verdict, VerdictReason
from tests.bot.fake_services import citation

LANGUAGES = ["en", "de", "fr", "es", "it", "pt", "nl", "ru", "zh", "ja", "ar"]
KINDS = {
    "verbatim": (), "not_verbatim": (), "said": ("Quote.",), "otherwise": ("Quote.",), "so": (), "not_said": (),
    "nearest": ("Quote.",), "absent": ("five",), "contradicted": ("five", "four"), "unnamed": ("Ana", "she"),
    "differs": ("Page",), "elsewhere": ("five", "four"), "scattered": (), "overruled": (), "says_little": (),
    "unreadable": (), "nothing": (), "unverified": (),
}  # fmt: skip


def said(*because: VerdictReason, language: str = "en") -> str:
    checked = CheckedClaim(Claim("It is.", "user"), Verdict.REFUTES, reasoning="p1 (0.17)", because=because)
    return render_reason(checked, language)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_reason_has_a_sentence_in_every_language(language: str) -> None:
    for kind, facts in KINDS.items():
        text = said(VerdictReason(kind, facts), language=language)
        assert text
        assert all(fact in text for fact in facts)
        assert language == "en" or text != said(VerdictReason(kind, facts))


@pytest.mark.parametrize("because", [(), (VerdictReason("of another version"),)])
@pytest.mark.parametrize(("verdict", "cited", "uncited"), [
    (Verdict.SUPPORTS, "The documents say so: “The quay opens at seven.”", "The documents say so."),
    (Verdict.REFUTES, "The documents say otherwise: “The quay opens at seven.”", ""),
    (Verdict.NOT_ENOUGH_INFO, "The documents do not say so. Nearest to it: “The quay opens at seven.”",
     "The documents do not say so."),
])  # fmt: skip
def test_verdict_of_a_model_is_explained_by_its_evidence(
    verdict: Verdict, cited: str, uncited: str, because: tuple[VerdictReason, ...]
) -> None:
    settled = verdict is not Verdict.NOT_ENOUGH_INFO
    evidence, nearest = (("p0", "p1"), ()) if settled else ((), ("p1",))
    checked = CheckedClaim(Claim("It is.", "user"), verdict, evidence, "Made up.", nearest, because)

    assert render_reason(checked, "en", (citation(),)) == cited
    assert render_reason(checked, "en") == uncited


def test_reasons_of_the_local_check_have_no_scores() -> None:
    five = RuleFinding(FindingKind.NUMBER, "five", FindingOutcome.CONTRADICTED, "four")
    missed = decide_support(SentenceAnalysis({}, (five, five), "It has four."), 0.9, 0.5, sure=0.8)
    doubted = decide_support(SentenceAnalysis({}, (), "It has four."), 0.17, 0.52, sure=0.8)

    assert said(*missed.because) == "It says “five”; the documents say “four”."
    assert said(*doubted.because) == "The documents do not say so. Nearest to it: “It has four.”"
