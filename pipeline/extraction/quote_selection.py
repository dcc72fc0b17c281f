"""Select the candidates to quote: the best one, those that contradict it, and those that add to it.

If another document contradicts the best, both come first, the newer before the older, each with its page and date.
Candidates that overlap or repeat a chosen one are dropped; the pages of copies are cited, too. A list item comes with
its introduction. Without one it gets a note with page and section, as does a sentence that opens with "It" or "They".
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache, partial
from itertools import islice, pairwise

from pipeline.extraction.answer_ranking import ScoredCandidate
from pipeline.extraction.candidates import (
    Candidate,
    asks_for_steps,
    drop_asked,
    is_date,
    is_number,
    narrow_rows,
    widen_steps,
)
from pipeline.replies import footnotes
from pipeline.stages.question_analysis import leans_back
from pipeline.support.rules import FindingOutcome, check_rules
from pipeline.support.support_check import is_in_list, write_rows
from pipeline.types import CitedSentence
from storage.language.detection import detect_language
from storage.language.lazy_pattern import lazy_compile
from storage.language.words import content_terms, fold_spelling, words
from storage.types import PassageKind

MOST_COPIES = 3  # other pages with the same sentence that are cited
MOST_COMPARED = 12  # how many of the best candidates may be quoted
SAME_SHARE = 0.85  # the least share of all terms that two sentences share if one repeats the other
ALIKE_SHARES = (0.6, 0.5)
"""The least shared terms of two sentences about one thing, as shares of the shorter one's and of all terms."""
ALIKE_MEASURED_SHARES = (0.5, 0.3)  # the same for sentences that count in the same unit
CLOSE_SCORE = 5.0  # how far a sentence's score may be below the best and still be quoted
SAME_PAGE_CHANCE = 0.01  # the least chance of answering for a further sentence of the best one's page to be quoted
OTHER_PAGE_CHANCE = 0.3  # the same for another page
_RULED_LANGUAGES = frozenset({"", "en", "de", "fr", "es"})  # whose denials the rules read
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_YEAR = lazy_compile(r"(?:19|20)\d\d")
_NEGATION = lazy_compile(
    r"\b(?:not|no|never|none|nobody|cannot|without|neither|nor|\w+n['’]t|nicht|kein\w*|nie|niemals|ohne|nunca|jamás|"
    r"tampoco|pas|jamais|aucun\w*|non|mai|não|niet|geen|inte|не|нет|никогда|لا|لم|لن|ليس\w*|غير)\b|[不没未无非]",
    re.IGNORECASE,
)
_LIMIT = lazy_compile(  # words by which a denial can say the same as a sentence without one
    r"\b(?:only|unless|except|without|before|until|after|during|over|under|above|below|more|less|fewer|off|yet|closed|"
    r"forbidden|prohibited|optional|nur|außer|ohne|vor|nach|bis|über|unter|mehr|weniger|verboten|solo|sólo|salvo|sin|"
    r"antes|después|más|menos|prohibid[oa]s?|seulement|sauf|sans|avant|après|plus|moins|interdit\w*)\b"
)
_SHARES = {"half": "50", "quarter": "25"}  # percent


@dataclass(frozen=True, slots=True)
class TopicStatement:
    """A sentence parsed into its topic and the values that it states."""

    topic: frozenset[str]
    values: Mapping[str, frozenset[str]]
    """Sort ("year", "clock", "calendar", "number", or "number of UNIT") -> the values of that sort."""
    negated: bool
    text: str = field(default="", compare=False)


@lru_cache(maxsize=1_024)
def parse_statement(text: str, language: str = "") -> TopicStatement:
    topic = [
        term for word in words(text) if not (is_number(word) or is_date(word)) for term in content_terms(word, language)
    ]
    found = tuple(_find_values(text, language))
    values = {sort: frozenset(value for other, value in found if other == sort) for sort, _ in found}
    return TopicStatement(frozenset(topic), values, bool(_NEGATION.search(text)), text)


def is_repetition(one: TopicStatement, other: TopicStatement) -> bool:
    same = one.values == other.values and one.negated == other.negated
    return same and len(one.topic & other.topic) >= SAME_SHARE * len(one.topic | other.topic)


def is_contradiction(one: TopicStatement, other: TopicStatement) -> bool:
    """Return whether two sentences about one thing give different values of a sort, or only one is negated.

    Each must have a value that the other lacks: one that says more, or the same in other words, does not disagree.
    """
    both = one.values.keys() & other.values.keys()
    differing = [
        sort for sort in both if one.values[sort] - other.values[sort] and other.values[sort] - one.values[sort]
    ]
    measured = any(sort.startswith("number of ") for sort in differing)
    of_one, of_both = ALIKE_MEASURED_SHARES if measured else ALIKE_SHARES
    shared, least = len(one.topic & other.topic), min(len(one.topic), len(other.topic))
    if not shared or shared < of_one * least or shared < of_both * len(one.topic | other.topic):
        return False
    limits = [set(_LIMIT.findall(statement.text.lower())) for statement in (one, other)]
    denied = one.negated != other.negated and one.values == other.values and limits[0] == limits[1]
    return (bool(differing) or denied) and _misses(one.text, other.text) and _misses(other.text, one.text)


def _misses(text: str, other: str) -> bool:
    """Return whether the rules miss a part of a text in another, or know too little of its language."""
    missed = {FindingOutcome.ABSENT, FindingOutcome.CONTRADICTED, FindingOutcome.DISPUTED}
    known = detect_language(text) in _RULED_LANGUAGES
    return not known or any(finding.outcome in missed for finding in check_rules(text, [other]))


def _find_values(text: str, language: str) -> Iterator[tuple[str, str]]:
    """Yield each value with its sort; a number followed by what it counts is yielded with two sorts."""
    for match in re.finditer(r"\d{1,2}:\d\d", text):
        yield "clock", match[0]
    for word, following in pairwise([*words(re.sub(r"\d{1,2}:\d\d", " ", text)), ""]):
        value = _SHARES.get(fold_spelling(word), fold_spelling(word))
        if _YEAR.fullmatch(value):
            yield "year", value
        elif is_date(word):
            yield "calendar", value
        elif is_number(word):
            yield "number", value
            if unit := content_terms(following, language):
                yield f"number of {unit[0]}", value


def select_quotes(
    ranked: Sequence[ScoredCandidate], limit: int, language: str, parts: Sequence[Candidate] = (), *, question: str = ""
) -> tuple[CitedSentence, ...]:
    """Choose at most `limit` sentences from the candidates, which are ordered best first.

    `parts` answer the further parts of the question and follow the first answer. If the question asks how to do
    something, a step is widened to its list; otherwise a table is narrowed to the row that the question names.
    """
    if not ranked:
        return ()
    shape = widen_steps if asks_for_steps(question) else partial(narrow_rows, asked=content_terms(question, language))
    close = [
        replace(candidate_, candidate=shape(drop_asked(candidate_.candidate)))
        for candidate_ in ranked[:MOST_COMPARED]
        if candidate_.score >= ranked[0].score - CLOSE_SCORE
    ]
    best, *others = [scored.candidate for scored in close]
    good = [
        scored.candidate
        for scored in close[1:]
        if scored.chance >= _least_chance(scored.candidate, best) and not _is_other_row(scored, close[0])
    ]
    opening = sorted(
        [best, *_find_rivals(best, others, language)],
        key=lambda one: (one.hit.document.date or _LONG_AGO).date(),
        reverse=True,
    )
    disputed = tuple(opening) if len(opening) > 1 else ()
    opening += _find_additions(opening, parts, limit, language) if len(opening) == 1 else []
    rest = _find_additions(opening, good, max(0, limit - len(opening)), language)
    quoted = [*opening, *sorted(rest, key=lambda quote: (_document_of(quote) != _document_of(best), _order_key(quote)))]
    sentences = list[CitedSentence]()
    for before, one in zip([None, *quoted], quoted, strict=False):
        if before and one.lead and (one.lead, one.hit.passage.id) == (before.lead, before.hit.passage.id):
            last, item = sentences.pop(), one.evidence[-1]
            sentences.append(replace(last, text=f"{last.text}\n{item.text}", evidence=(*last.evidence, item)))
            continue
        listed = "\n".join(piece.text for piece in one.evidence)
        text = listed if one.lead else write_rows(one.text, one.kind)
        apart = one in disputed or PassageKind.TABLE in {each.hit.passage.kind for each in (before, one) if each}
        note = (
            footnotes.write_dated_note(one.hit.document) if one in disputed else _describe_place(one, before, language)
        )
        copies = (other.candidate.evidence for other in ranked if _is_copy(other.candidate, one))
        evidence = (*one.evidence, *(piece for pieces in islice(copies, MOST_COPIES) for piece in pieces))
        paragraph = bool(sentences) and (apart or "\n" in f"{sentences[-1].text}{text}")
        sentences.append(CitedSentence(text, evidence, note, paragraph=paragraph))
    return tuple(sentences)


def _find_rivals(best: Candidate, others: Sequence[Candidate], language: str) -> list[Candidate]:
    """Return the best candidate of each other document that contradicts the best one.

    All are quoted, whatever the limit, because one side alone would look like the truth.
    """
    statement = parse_statement(best.text, language)
    rivals: dict[tuple[str, str], Candidate] = {}
    for other in others:
        document, said = _document_of(other), list(rivals.values())
        if document == _document_of(best) or document in rivals or _repeats(other, said, language):
            continue
        if is_contradiction(statement, parse_statement(other.text, language)):
            rivals[document] = other
    return list(rivals.values())


def _find_additions(
    opening: Sequence[Candidate], others: Sequence[Candidate], limit: int, language: str
) -> list[Candidate]:
    """Return up to `limit` of the other candidates, best first, that neither overlap nor repeat chosen ones."""
    chosen = list(opening)
    for other in others:
        if len(chosen) == len(opening) + limit:
            break
        if not (any(_is_overlapping(other, quote) for quote in chosen) or _repeats(other, chosen, language)):
            chosen.append(other)
    return chosen[len(opening) :]


def _least_chance(candidate: Candidate, best: Candidate) -> float:
    return SAME_PAGE_CHANCE if _document_of(candidate) == _document_of(best) else OTHER_PAGE_CHANCE


def _is_other_row(one: ScoredCandidate, best: ScoredCandidate) -> bool:
    """Return whether both are table rows and `one` has fewer of the question's words: it names another row."""
    row = one.candidate.hit.passage.kind is PassageKind.TABLE is best.candidate.hit.passage.kind
    return row and one.features.terms < best.features.terms


def _document_of(candidate: Candidate) -> tuple[str, str]:
    return candidate.hit.passage.corpus, candidate.hit.passage.document


def _is_overlapping(one: Candidate, other: Candidate) -> bool:
    same = one.hit.passage.id == other.hit.passage.id
    return same and one.span[0] < other.span[1] and other.span[0] < one.span[1]


def _repeats(one: Candidate, others: Sequence[Candidate], language: str) -> bool:
    """Return whether a candidate says the same as one of the others, or has all of its words or is a part of it."""
    statement, text = parse_statement(one.text, language), " ".join(one.text.split())
    texts = [" ".join(other.text.split()) for other in others]
    return any(text in known or known in text for known in texts) or any(
        is_repetition(statement, parse_statement(other.text, language)) for other in others
    )


def _is_copy(one: Candidate, other: Candidate) -> bool:
    """Return whether another document has the same words, with the same introduction."""
    same = (one.lead, one.text.split()) == (other.lead, other.text.split())
    return same and _document_of(one) != _document_of(other)


def _describe_place(candidate: Candidate, before: Candidate | None, language: str) -> str:
    """Return the page and section of a bare list item, or of a pronoun that the previous quote does not explain."""
    leans = is_in_list(candidate.hit.passage.text, candidate.span) and "\n" not in candidate.text and not candidate.lead
    leans = leans or (leans_back(candidate.text, language) and not _follows(candidate, before))
    return footnotes.describe_place(candidate.hit.document, candidate.hit.passage) if leans else ""


def _follows(candidate: Candidate, before: Candidate | None) -> bool:
    """Return whether a candidate directly follows the previous quote in its passage."""
    if before is None or before.hit.passage.id != candidate.hit.passage.id:
        return False
    return not candidate.hit.passage.text[before.span[1] : candidate.span[0]].strip()


def _order_key(candidate: Candidate) -> tuple[str, str, int, int]:
    passage = candidate.hit.passage
    return passage.corpus, passage.document, passage.position, candidate.span[0]
