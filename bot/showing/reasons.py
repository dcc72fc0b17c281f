"""Why a claim has its verdict, in the reader's language where rules decided; in the model's own words else; pure."""

from collections.abc import Mapping
from types import MappingProxyType

from bot.words import has, say
from storage.types import CheckedClaim, Reason

_FACTS: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "absent": ("said",),
    "contradicted": ("said", "instead"),
    "differs": ("title",),
    "nearest": ("quote",),
    "said": ("quote",),
    "unnamed": ("said", "instead"),
})  # fmt: skip
"""What each kind quotes; the others quote nothing."""


def reason_said(found: CheckedClaim, language: str) -> str:
    """Return why a claim has its verdict: without ids and scores, which say nothing to a reader."""
    said = [sentence for one in found.because if (sentence := _sentence(one, language))]
    return " ".join(said) or found.reasoning


def _sentence(reason: Reason, language: str) -> str:
    """Return a reason as a sentence; empty for one that this version does not know."""
    occasion, names = f"reason_{reason.kind}", _FACTS.get(reason.kind, ())
    if not has(occasion) or len(names) != len(reason.facts):
        return ""
    return say(occasion, language, **dict(zip(names, reason.facts, strict=True)))
