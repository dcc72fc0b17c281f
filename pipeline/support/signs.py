"""All that the scorer reads of a sentence and the passages it cites, by name: words, meaning and rules."""

from collections import Counter
from collections.abc import Mapping, Sequence

from pipeline.support import alignment
from pipeline.support.findings import Finding, Kind, Outcome
from pipeline.support.likeness import likeness
from pipeline.support.states import States

MOST_COUNTED = 3.0
"""More findings of a kind than this say no more."""


def signs(
    sentence: str,
    passages: Sequence[Sequence[str]],
    *,
    states: States,
    source: Sequence[States],
    found: Sequence[Finding],
) -> Mapping[str, float]:
    """Return every sign of a sentence.

    Args:
        sentence: What is to be said.
        passages: The sentences of each passage it cites.
        states: The tokens of the sentence.
        source: The tokens of those sentences of the passages that are read word by word.
        found: What the rules found.
    """
    return {**likeness(sentence, passages), **alignment.alignment(states, source), **_counted(found)}


def _counted(found: Sequence[Finding]) -> Mapping[str, float]:
    counts = Counter((finding.kind, finding.outcome) for finding in found)
    return {
        f"{kind}_{outcome}": min(MOST_COUNTED, float(counts[kind, outcome])) for kind in Kind for outcome in Outcome
    }
