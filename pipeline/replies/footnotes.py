"""Number footnotes, and write the notes that may precede a sentence: its page, section, date, language. Pure.

Systems must write notes with these functions: the gate rejects any other note.
"""

from collections.abc import Iterable, Sequence

from pipeline.types import AnsweredSentence, CitedSentence
from storage.language.detection import own_name
from storage.types import Citation, Document, Evidence, Passage, Span


def describe_place(document: Document, passage: Passage) -> str:
    return f"{document.title} › {passage.section}" if passage.section else document.title


def write_dated_note(document: Document) -> str:
    """Return the page's title and its date, if it has one."""
    return f"{document.title}, {document.date.date().isoformat()}" if document.date else document.title


def write_language_note(document: Document) -> str:
    """Return the page's title and its language's own name, if known."""
    language = own_name(document.language)
    return f"{document.title}, {language}" if language else document.title


def is_own_note(note: str, evidence: Evidence) -> bool:
    """Return whether a note is empty, or is what `describe_place` or a function above writes for this evidence."""
    page, passage = evidence.document, evidence.passage
    return note in {"", describe_place(page, passage), write_dated_note(page), write_language_note(page)}


def number_footnotes(sentences: Sequence[CitedSentence]) -> tuple[tuple[AnsweredSentence, ...], tuple[Citation, ...]]:
    """Number the footnotes of a reply. Appended sentences change none. Passages cited for the same words share one."""
    by_passage, numbers, answered = dict[str, list[Evidence]](), dict[str, int](), list[AnsweredSentence]()
    for said in sentences:
        same = dict[str, int]()
        for piece in said.evidence:
            words, new = " ".join(piece.text.split()), max(numbers.values(), default=0) + 1
            same.setdefault(words, numbers.setdefault(piece.passage.id, same.get(words, new)))
            by_passage.setdefault(piece.passage.id, []).append(piece)
        cited = tuple(sorted({numbers[piece.passage.id] for piece in said.evidence}))
        answered.append(AnsweredSentence(said.text, cited, note=said.note, paragraph=said.paragraph))
    listed = sorted(by_passage.items(), key=lambda item: numbers[item[0]])
    return tuple(answered), tuple(_build_citation(numbers[passage_id], pieces) for passage_id, pieces in listed)


def quote_spans(text: str, spans: Iterable[Span]) -> str:
    """Join spans of a text in order. Adjacent spans are merged; an ellipsis separates the others."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and not text[merged[-1][1] : start].strip():
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return " … ".join(text[start:end] for start, end in merged)


def _build_citation(place: int, pieces: Sequence[Evidence]) -> Citation:
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
        quote=quote_spans(passage.text, (evidence.span for evidence in pieces)),
        passage_id=passage.id,
        passage_text=passage.text,
        passage_hash=passage.hash,
    )
