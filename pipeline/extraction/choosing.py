"""What is said of the candidates: the best first, then what adds to it, in the order of the documents. Pure.

Where the best is contradicted by another document both come first, the newer before the older, each with its page and
date. What repeats or overlaps another sentence is dropped. A sentence that opens with "It" or "They", and an item of a
list, name the page and section that they stand in.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from pipeline import notes
from pipeline.extraction.candidates import Candidate
from pipeline.extraction.disagreement import contradicts, repeats, statement
from pipeline.extraction.scoring import Scored
from pipeline.follow_ups import opens_with_pronoun
from pipeline.types import CitedSentence

CLOSE = 4.0
"""How far behind the best a sentence may be, by score, and still be said."""
LOOKED_AT = 12
"""How many of the best candidates are held against each other."""
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


def chosen(ranked: Sequence[Scored], limit: int, language: str) -> tuple[CitedSentence, ...]:
    """Choose at most `limit` sentences of the candidates, which come best first; none of none."""
    if not ranked:
        return ()
    close = [one for one in ranked[:LOOKED_AT] if one.score >= ranked[0].score - CLOSE]
    best, *others = [one.candidate for one in close]
    opening = sorted([best, *_rivals(best, others, language)], key=_date, reverse=True)
    rest = _additions(opening, others, max(0, limit - len(opening)), language)
    disputed = opening if len(opening) > 1 else ()
    said = [*opening, *sorted(rest, key=_in_document_order)]
    return tuple(
        CitedSentence(
            text=one.text,
            evidence=(one.evidence,),
            note=notes.dated(one.hit.document) if one in disputed else _place(one, language),
            paragraph=before is not None and (one in disputed or "\n" in f"{before.text}{one.text}"),
        )
        for before, one in zip([None, *said], said, strict=False)
    )


def _rivals(best: Candidate, others: Sequence[Candidate], language: str) -> list[Candidate]:
    """Return the best candidate of each other document that contradicts the best; all are said, whatever the limit.

    Half of a disagreement would pass for the truth.
    """
    said = statement(best.text, language)
    rivals: dict[tuple[str, str], Candidate] = {}
    for other in others:
        if _document(other) != _document(best) and contradicts(said, statement(other.text, language)):
            rivals.setdefault(_document(other), other)
    return list(rivals.values())


def _document(candidate: Candidate) -> tuple[str, str]:
    return candidate.hit.document.corpus, candidate.hit.document.key


def _additions(opening: Sequence[Candidate], others: Sequence[Candidate], limit: int, language: str) -> list[Candidate]:
    """Return the best of the others that neither overlap nor repeat what is said already."""
    kept = list(opening)
    for other in others:
        if len(kept) == len(opening) + limit:
            break
        if not any(_overlap(other, one) or _repeat(other, one, language) for one in kept):
            kept.append(other)
    return kept[len(opening) :]


def _overlap(one: Candidate, other: Candidate) -> bool:
    same = one.hit.passage.id == other.hit.passage.id
    return same and one.span[0] < other.span[1] and other.span[0] < one.span[1]


def _repeat(one: Candidate, other: Candidate, language: str) -> bool:
    return repeats(statement(one.text, language), statement(other.text, language))


def _place(candidate: Candidate, language: str) -> str:
    leans = bool(candidate.lead) or opens_with_pronoun(candidate.text, language)
    return notes.place(candidate.hit.document, candidate.hit.passage) if leans else ""


def _date(candidate: Candidate) -> datetime:
    return candidate.hit.document.date or _LONG_AGO


def _in_document_order(candidate: Candidate) -> tuple[str, str, int, int]:
    passage = candidate.hit.passage
    return passage.corpus, passage.document, passage.position, candidate.span[0]
