"""Footnotes: sentences and their evidence in, numbered sentences and citations out. Pure.

There is one footnote for each passage, numbered densely from 1 in the order in which the reply first cites them.
All that a footnote shows comes from the stored passage and its document.
"""

from collections.abc import Iterable, Sequence

from pipeline.types import AnsweredSentence, CitedSentence
from storage.types import Citation, Evidence, Span


def number(sentences: Sequence[CitedSentence]) -> tuple[tuple[AnsweredSentence, ...], tuple[Citation, ...]]:
    """Number the footnotes of a reply; more sentences at its end never change the numbers before."""
    by_passage: dict[str, list[Evidence]] = {}
    for evidence in (piece for sentence in sentences for piece in sentence.evidence):
        by_passage.setdefault(evidence.passage.id, []).append(evidence)
    numbers = {passage_id: place for place, passage_id in enumerate(by_passage, start=1)}
    answered = tuple(_answered(sentence, numbers) for sentence in sentences)
    return answered, tuple(_citation(numbers[passage_id], pieces) for passage_id, pieces in by_passage.items())


def quote(text: str, spans: Iterable[Span]) -> str:
    """Quote stretches of a text in its own order: those that touch as one, others joined by an ellipsis."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and not text[merged[-1][1] : start].strip():
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return " … ".join(text[start:end] for start, end in merged)


def _answered(sentence: CitedSentence, numbers: dict[str, int]) -> AnsweredSentence:
    cited = sorted({numbers[evidence.passage.id] for evidence in sentence.evidence})
    return AnsweredSentence(sentence.text, tuple(cited), note=sentence.note, paragraph=sentence.paragraph)


def _citation(place: int, pieces: Sequence[Evidence]) -> Citation:
    passage, document = pieces[0].passage, pieces[0].document
    return Citation(
        number=place,
        corpus=passage.corpus,
        document=passage.document,
        title=document.title,
        section=passage.section,
        url=document.url,
        revision=document.revision,
        date=document.date,
        quote=quote(passage.text, (evidence.span for evidence in pieces)),
        passage_id=passage.id,
        passage_text=passage.text,
        passage_hash=passage.hash,
    )
