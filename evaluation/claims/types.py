"""The plain form that every set of labelled claims is read into, and the error of a file that cannot be."""

from dataclasses import dataclass

from evaluation.errors import EvaluationError
from storage.types import Verdict


class UnreadableClaims(EvaluationError):
    """A file is in none of the known forms, or a row of it is malformed."""

    kind = "unreadable_claims"


@dataclass(frozen=True, slots=True)
class LabelledClaim:
    """A claim, the passages offered for it, and what people found they say of it."""

    id: str
    source: str
    """The set it is from; what stands before a slash names the family of sets that share claims."""
    claim: str
    evidence: tuple[str, ...]
    """The texts of the passages; several may have to be read together."""
    label: Verdict
    group: str
    """Claims of one group share an article, a passage or a question: cross-validation keeps groups whole."""
    title: str = ""
    """What the page of the evidence is called, where a set says so. It does not stand in the passages."""
    weight: float = 1.0
    """What it counts where something is fitted to it; measures count every claim once."""

    @property
    def supported(self) -> bool:
        """Whether the evidence says all of it."""
        return self.label is Verdict.SUPPORTS

    @property
    def family(self) -> str:
        """What its source shares claims with: a threshold chosen on others must leave out all of these."""
        return self.source.partition("/")[0]


@dataclass(frozen=True, slots=True)
class SplitSentence:
    """A sentence, and the single facts into which a person split it, in order."""

    id: str
    text: str
    facts: tuple[str, ...]
    topic: str
    """Whom or what it is about; the pronouns in it mean that."""
