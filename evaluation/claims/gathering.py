"""Labelled claims as rows of signs, for training: read once, judged by rule, and beside them the two baselines."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evaluation.claims.types import LabelledClaim
from evaluation.claims.verifying import evidence_of
from evaluation.fitting import Booleans, Floats
from pipeline.supporting import examined
from storage.embedding.states import TokenStates, open_states

_NEWS = 1_000


@dataclass(frozen=True)
class Gathered:
    """The claims, and what is known of each; one row a claim everywhere."""

    claims: Sequence[LabelledClaim]
    names: tuple[str, ...]
    rows: Floats
    """(claims, names)"""
    denied: Booleans
    """Whether a rule decides against it."""

    @property
    def supported(self) -> Booleans:
        """Which of them their evidence supports."""
        return np.array([claim.supported for claim in self.claims])

    @property
    def groups(self) -> list[str]:
        """What must not be torn apart between training and testing."""
        return [f"{claim.family}/{claim.group}" for claim in self.claims]

    @property
    def sources(self) -> tuple[str, ...]:
        """The sets, in order."""
        return tuple(dict.fromkeys(claim.source for claim in self.claims))

    @property
    def overlap(self) -> Floats:
        """The share of each claim's content terms found in its evidence: a baseline."""
        return self._column("overlap")

    @property
    def likeness(self) -> Floats:
        """The cosine of each claim with the nearest sentence read: a baseline."""
        return self._column("cosine")

    def _column(self, name: str) -> NDArray[np.float64]:
        column: Floats = self.rows[:, self.names.index(name)]
        return column


async def gathered(claims: Sequence[LabelledClaim], home: Path) -> Gathered:
    """Read every claim as the check at the gate does."""
    reader = open_states(home)

    async def read(texts: Sequence[str]) -> tuple[TokenStates, ...]:
        return reader.read(texts)

    rows, denied = [], []
    for place, claim in enumerate(claims):
        found = await examined(claim.claim, evidence_of(claim.evidence, title=claim.title), read)
        rows.append(found.signs)
        denied.append(bool(found.against))
        if place % _NEWS == 0:
            print(f"{place:,} of {len(claims):,} claims", file=sys.stderr)
    names = tuple(rows[0])
    return Gathered(claims, names, np.array([[row[name] for name in names] for row in rows]), np.array(denied))
