"""Build findings: statements, each once, with their supporting sentences. If some disagree, the newer come first."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby

from pipeline.extraction.candidates import SENTENCE_ENDS
from pipeline.extraction.quote_selection import TopicStatement, is_contradiction, parse_statement
from pipeline.kit import Supports
from pipeline.stages.question_analysis import leans_back
from pipeline.support.support_check import find_quotable_spans, is_in_list
from storage.language.detection import detect_language
from storage.language.words import content_terms
from storage.types import Document, Evidence, Hit, PassageKind, Span


@dataclass(frozen=True, slots=True)
class SourcedFinding:
    text: str
    evidence: tuple[Evidence, ...]

    @property
    def statement(self) -> TopicStatement:
        return parse_statement(self.text, self.evidence[0].document.language)


def collect_sentences(places: Iterable[Hit | Evidence]) -> tuple[Evidence, ...]:
    """Return the sentences of passages, each passage once, in order."""
    by_passage = {place.passage.id: place for place in places}
    return tuple(
        Evidence(place.passage.text[start:end], place.passage, place.document, (start, end))
        for place in by_passage.values()
        for start, end in find_quotable_spans(place.passage)
    )


def passage_ids(evidence: Iterable[Evidence]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(piece.passage.id for piece in evidence))


LEAST_RELATED = 2  # content words that a sentence shares with a statement if it is related to it


def select_context(statement: str, cited: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """Return the sentences of the cited passages that can decide whether a statement is true, in order.

    These are the cited sentences and all that share two words with the statement, each with the sentence before it. Of
    251 verdicts made by hand over whole passages, none depends on another sentence. Tables, code and other languages
    stay whole.
    """
    terms, language, context = set(content_terms(statement)), detect_language(statement), list[Evidence]()
    cited = tuple(cited)
    for _, group in groupby(collect_sentences(cited), key=lambda one: one.passage.id):
        sentences = tuple(group)
        first = sentences[0]
        if first.passage.kind is not PassageKind.PROSE or first.document.language not in {"", language}:
            context += sentences
            continue
        related = [
            any(_overlap(sentence, other) for other in cited)
            or len(terms & set(content_terms(sentence.text))) >= LEAST_RELATED
            for sentence in sentences
        ]
        context += [one for one, *near in zip(sentences, related, (*related[1:], False), strict=True) if any(near)]
    return tuple(context)


MAX_LED = 3  # sentences before one that may be added to explain its pronoun
MAX_LIST = 500  # characters from a list's lead-in to the end of an item; a longer lead-in is not added
_CONTINUED = re.compile(r"\b(?:will|should|must|can|cannot|may|to|not|never|who|for|by|or)$")  # lead-in: "they will"
_LABELLED = re.compile(r"\S+(?: [^\s:]+){0,4}:\s+\S")  # an item without a bullet: "Decor: plants, rugs"


def bind_subjects(evidence: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """Return evidence in the order of its passages. Each piece is extended backwards until it can be understood.

    A sentence that begins with a pronoun or a connective is extended to the sentence that it leans on. An item of a
    list is extended to the list's lead-in, which may negate it. Overlapping evidence is merged.
    """
    bound: dict[str, list[Evidence]] = {}
    for piece in map(_bind_subject, evidence):
        bound.setdefault(piece.passage.id, []).append(piece)
    return tuple(piece for places in bound.values() for piece in _merge_overlapping(places))


def _merge_overlapping(places: Iterable[Evidence]) -> list[Evidence]:
    merged: list[Evidence] = []
    for piece in sorted(places, key=lambda place: place.span):
        if merged and piece.span[0] < merged[-1].span[1]:
            last = merged.pop()
            merged.append(_quote_span(last, (last.span[0], max(last.span[1], piece.span[1]))))
        else:
            merged.append(piece)
    return merged


def _quote_span(one: Evidence, span: Span) -> Evidence:
    return Evidence(one.passage.text[slice(*span)], one.passage, one.document, span)


def _bind_subject(one: Evidence) -> Evidence:
    if one.passage.kind is not PassageKind.PROSE:
        return one
    before = [span for span in find_quotable_spans(one.passage) if span[1] <= one.span[0]]
    lead = _find_lead_in(one.passage.text, before, one.span)
    if lead is not None and one.span[1] - lead <= MAX_LIST:
        return _quote_span(one, (lead, one.span[1]))
    line = one.passage.text.rfind("\n", 0, one.span[0]) + 1 if is_in_list(one.passage.text, one.span) else 0
    start, before = one.span[0], [span for span in before[-MAX_LED:] if span[0] >= line]
    while _leans_back(one, start) and before:
        start = before.pop()[0]
    # If the earlier sentences lean on others, too, it is extended to the beginning of its passage, or stays as it is.
    return one if start and _leans_back(one, start) else _quote_span(one, (start, one.span[1]))


def _find_lead_in(text: str, before: Sequence[Span], item: Span) -> int | None:
    """Return where the lead-in of an item's list starts; None if it is not an item, or has no lead-in."""
    marked = is_in_list(text, item)
    for start, end in reversed(before if marked or _LABELLED.match(text[slice(*item)]) else ()):
        if marked and not is_in_list(text, (start, end)):
            return start if text[start:end].endswith(":") else None
        if not marked and "\n" in text[end : item[0]]:
            return None
        if not (marked or _LABELLED.match(text[start:end])):
            return start if ":" in text[start:end] else None
    return None


def _leans_back(one: Evidence, start: int) -> bool:
    return leans_back(one.passage.text[start : one.span[1]], one.document.language)


def quote_evidence(evidence: Iterable[Evidence]) -> tuple[SourcedFinding, ...]:
    """Return sentences as findings. If a sentence does not name its subject, its page's title is put in front."""
    return tuple(SourcedFinding(_name_subject(subject), (subject,)) for subject in bind_subjects(evidence))


def _name_subject(one: Evidence) -> str:
    text = " ".join(_join_items(one.text).split())
    alone = one.passage.kind is PassageKind.TABLE and ";" not in text  # a row of one cell has no subject
    return f"{one.document.title}: {text}" if alone or _leans_back(one, one.span[0]) else text


def _join_items(text: str) -> str:
    """Return a list on one line, with commas instead of bullets: "Bring a badge, a laptop"."""
    first, *lines = text.splitlines()
    comma = ";" if any("," in line for line in lines) else ","
    for line in lines:
        item = is_in_list(line, (0, len(line))) and first.rstrip()[-1:] not in ".,:;!?…"
        first = f"{first.rstrip()}{comma if item else ''} {_MARK.sub('', line, 1)}"
    return _MARK.sub("", first, 1)


_MARK = re.compile(r"^\s*(?:[-•*✓]|\d{1,3}[.)])\s+")


def quote_passages(hits: Iterable[Hit]) -> tuple[SourcedFinding, ...]:
    """Return the sentences of passages as findings. If some disagree, the newer of them come first."""
    return order_rivals_by_date(quote_evidence(collect_sentences(hits)))


def join_quotes(evidence: Sequence[Evidence]) -> SourcedFinding:
    """Return sentences as one finding, in the order of their passages."""
    bound = bind_subjects(evidence)
    return SourcedFinding(" ".join(map(_name_subject, bound)), bound)


async def bind_finding(
    text: str, evidence: Sequence[Evidence], supports: Supports, *, checked: bool = False, asked: Sequence[str] = ()
) -> tuple[SourcedFinding, ...]:
    """Return a statement as a finding. If its sentences do not support it, return these as one finding instead.

    A statement that resolves a pronoun is kept despite doubts of the local check. It must name its subject, the table
    row that it is about, or unless a model has `checked` it, the lead-in that its item continues. One that changes a
    fact of a sentence is replaced by the sentence.
    """
    support = await supports(text, evidence, asked=asked)
    unbound = any(_leans_back(piece, piece.span[0]) for piece in evidence)
    holds = support.holds or (support.appealable and unbound)
    named = not leans_back(text, evidence[0].document.language)
    named = named and all(_names_subject(text, piece, checked=checked) for piece in evidence)
    if holds and named and not support.better_quoted:
        return (SourcedFinding(text, bind_subjects(evidence)),)
    return (join_quotes(evidence),)


def _names_subject(text: str, one: Evidence, *, checked: bool) -> bool:
    """Return whether a statement has a word of its table row's first cell, or of the lead-in that its item continues.

    True for other evidence. A statement that a model has `checked` need not name a lead-in.
    """
    label = ""
    if one.passage.kind is PassageKind.TABLE:
        label = one.text.partition(";")[0].rpartition(": ")[2]
    elif not checked and is_in_list(one.passage.text, one.span):
        lead = one.passage.text[_bind_subject(one).span[0] : one.span[0]].partition(":")[0]
        label = lead if _CONTINUED.search(lead) or not one.text.endswith(SENTENCE_ENDS) else ""
    terms = set(content_terms(label))
    return not terms or not terms.isdisjoint(content_terms(text))


MOSTLY_SAME = 0.8  # the share of the shorter statement's words in the longer one from which both say the same


def deduplicate_findings(findings: Iterable[SourcedFinding]) -> tuple[SourcedFinding, ...]:
    """Return findings without repetitions; of two about the same sentence, the longer one is kept.

    Repetitions from different passages are kept, because both can be cited. A finding is dropped if a quotation of its
    sentences negates it.
    """
    kept, findings = list[SourcedFinding](), tuple(findings)
    quotations = [finding for finding in findings if finding.text == join_quotes(finding.evidence).text]
    for finding in findings:
        if any(_denies(quotation, finding) for quotation in quotations):
            continue
        same = next((place for place, other in enumerate(kept) if _say_the_same(finding, other)), None)
        if same is None:
            kept.append(finding)
        elif len(set(content_terms(finding.text))) > len(set(content_terms(kept[same].text))):
            kept[same] = finding
    return tuple(kept)


def _denies(quotation: SourcedFinding, other: SourcedFinding) -> bool:
    """Return whether a quotation has all evidence of a finding, and exactly one of the two is negated."""
    for piece in other.evidence:
        if not any(_overlap(piece, quoted) and len(piece.text) <= len(quoted.text) for quoted in quotation.evidence):
            return False
    return quotation.statement.negated != other.statement.negated


def _say_the_same(one: SourcedFinding, other: SourcedFinding) -> bool:
    # Items of a list share their lead-in but say different things.
    few, many = sorted((one.evidence, other.evidence), key=len)
    if not all(any(_overlap(first, second) for second in many) for first in few):
        return False
    fewer, more = sorted((one.text, other.text), key=lambda text: len(set(content_terms(text))))
    return has_same_words(fewer, more)


def has_same_words(text: str, other: str, least: float = MOSTLY_SAME) -> bool:
    """Return whether `other` has at least the share `least` of a text's content words, and all of its numbers."""
    said, known = set(content_terms(text)), set(content_terms(other))
    numbers = {term for term in said if any(char.isdigit() for char in term)}
    return len(said & known) >= least * len(said) and numbers <= known


def _overlap(one: Evidence, other: Evidence) -> bool:
    return one.passage.id == other.passage.id and one.span[0] < other.span[1] and other.span[0] < one.span[1]


def order_rivals_by_date(findings: Sequence[SourcedFinding]) -> tuple[SourcedFinding, ...]:
    """Return findings in the same order, except that those that disagree are sorted, the newest first."""
    rivals = find_disagreeing(findings)
    by_date = sorted(rivals, key=lambda place: document_day(findings[place].evidence[0].document), reverse=True)
    ordered = iter(by_date)
    return tuple(findings[next(ordered)] if place in rivals else one for place, one in enumerate(findings))


def find_disagreeing(findings: Sequence[SourcedFinding]) -> tuple[int, ...]:
    """Return the indexes of findings from different documents that give different values for the same thing."""
    disagreeing = {
        place
        for (first, one), (second, other) in combinations(enumerate(findings), 2)
        if one.evidence[0].document != other.evidence[0].document and is_contradiction(one.statement, other.statement)
        for place in (first, second)
    }
    return tuple(sorted(disagreeing))


def document_day(document: Document) -> int:
    """Return the day of a document's last change; 0 if undated. Files copied together have the same day."""
    return document.date.toordinal() if document.date else 0
