"""All that a turn checked and said, as pages: each claim with its verdict, why, and the passages' own words; pure."""

from datetime import UTC, tzinfo

from bot.showing.blocks import evidence_blocks
from bot.showing.fitting import paged
from bot.showing.parts import Limits, Page
from bot.showing.view import EvidenceView


def fit_evidence(view: EvidenceView, limits: Limits, language: str, zone: tzinfo = UTC) -> tuple[Page, ...]:
    """Return the pages that show a turn's evidence, with our own words in the reader's language."""
    return paged(evidence_blocks(view, language, zone), limits)
