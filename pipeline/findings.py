"""What a draft may say: statements bound to sentences of passages. Pure.

A statement is a bullet taken from a passage, or a claim of the model's own that a passage supports. The sentences it
rests on are evidence; the statement is only what is shown to the model that writes the draft.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC

from pipeline.extraction.disagreement import contradicts, statement
from pipeline.spans import quotable_spans
from storage.types import Evidence, Hit


@dataclass(frozen=True, slots=True)
class Finding:
    """A statement, and the sentences that say it: at least one."""

    text: str
    evidence: tuple[Evidence, ...]


def sentences_of(places: Iterable[Hit | Evidence]) -> tuple[Evidence, ...]:
    """Return the sentences of passages, each passage once, in order: what a model is shown with numbers."""
    passages = {one.passage.id: one for one in places}
    return tuple(
        Evidence(one.passage.text[start:end], one.passage, one.document, (start, end))
        for one in passages.values()
        for start, end in quotable_spans(one.passage)
    )


def quoted(evidence: Iterable[Evidence]) -> tuple[Finding, ...]:
    """Return sentences as findings that say exactly what they say."""
    return tuple(Finding(one.text, (one,)) for one in evidence)


def distinct(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings without those that say in the same words what another says of the same passage."""
    kept: dict[tuple[str, str], Finding] = {}
    for finding in findings:
        kept.setdefault((" ".join(finding.text.split()).casefold(), finding.evidence[0].passage.id), finding)
    return tuple(kept.values())


def newest_of_rivals_first(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return findings in their order, except that of those that disagree the newer stand where the first stood."""
    rivals = disagreeing(findings)
    ordered = iter(sorted(rivals, key=lambda place: _age(findings[place]), reverse=True))
    return tuple(findings[next(ordered)] if place in rivals else one for place, one in enumerate(findings))


def disagreeing(findings: Sequence[Finding]) -> tuple[int, ...]:
    """Return the places of findings from different documents that give other values for the same thing."""
    said = [statement(one.text, one.evidence[0].document.language) for one in findings]
    found = {
        place
        for first in range(len(said))
        for second in range(first)
        if _document(findings[first]) != _document(findings[second]) and contradicts(said[first], said[second])
        for place in (first, second)
    }
    return tuple(sorted(found))


def _document(finding: Finding) -> tuple[str, str]:
    document = finding.evidence[0].document
    return document.corpus, document.key


def _age(finding: Finding) -> float:
    """Return when a finding's document was last changed; what nobody dated is oldest."""
    date = finding.evidence[0].document.date
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() if date else float("-inf")
