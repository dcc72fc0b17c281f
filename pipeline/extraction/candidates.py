"""Split found passages into sentences that could be quoted, and classify what a question asks for.

A line that ends in a colon forms one candidate with the list after it. Each item is also a candidate, read together
with that line. A question is not a candidate, but part of the sentence after it. Code is offered in whole blocks, and
only if it is asked for or nothing else was found.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache, lru_cache, partial
from importlib import resources
from typing import Any

from pipeline.support.support_check import find_quotable_spans, is_in_list
from storage.language.lazy_pattern import lazy_compile
from storage.language.scripts import is_unspaced
from storage.language.words import content_terms, count_words, fold_spelling, stop_words, words
from storage.types import Evidence, Hit, PassageKind, Span

LEAST_WORDS = 5
"""Words. A shorter line of prose is quotable only if it ends like a sentence, has a figure, or is in a list."""
SENTENCE_ENDS = (".", "!", "…", "。", "！", "।", "۔", ";", "；")
_COLON = (":", "：")
_QUESTION = ("?", "？", "؟")
_STEPS = lazy_compile(r"^[^\S\n]*[01][.)]\s+\S.*(?:\n+(?:[^\S\n]*\d{1,3}[.)]\s|[^\S\n]{2,}\S).*)+", re.MULTILINE)
_LETTERED_ANSWER = lazy_compile(r"[?？؟]\W*\n\s*(?:A|Answer)\d{0,3}:\s+(?=\S)")
_LINE = lazy_compile(r"\S.*\S")
_HOW_TO = lazy_compile(r"\bhow (?:to|(?:do|can|should|must) (?:i|we|you|one))\b|\bsteps\b", re.IGNORECASE)
_FOR_CODE = lazy_compile(
    r"\b(?:commands?|code|snippet|syntax|script|shell|terminal|how (?:to|(?:do|can|should|must) (?:i|we|you|one)))\b",
    re.IGNORECASE,
)
_CODE_BLOCK = lazy_compile(r"\S.*(?:\n+(?!(?<=\n\n)\S.*[:：]\n\n).*\S)*")  # to the next introduction
_NAME = lazy_compile(r"(?<=[^\s.!?:] )[A-Z][\w&-]+(?: [A-Z][\w&-]+)*")
_LEAST_NAME = 3  # letters
_LETTER = lazy_compile(r"[^\W\d_]")
_DIGIT = lazy_compile(r"[\d一二两三四五六七八九十百千万亿半]")
_SPACED_CASELESS = lazy_compile(r"[^\W\d_A-Za-z\u00c0-\u04ff]")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A part of a found passage that could be quoted."""

    hit: Hit
    rank: int  # the place of its passage among the hits, from 0
    span: Span
    lead: str = ""  # the line that announces the list it is an item of

    @property
    def text(self) -> str:
        """Return the passage's own words."""
        return self.hit.passage.text[slice(*self.span)]

    @property
    def is_fragment(self) -> bool:
        """Return whether it is an item of the list that begins its passage, but neither a sentence nor labelled."""
        text = self.hit.passage.text
        above = text[: text.find("\n", self.span[1]) + 1 or None].splitlines()
        listed = all(is_in_list(line, (0, 0)) for line in above if line.strip())
        return listed and not (": " in self.text or self.text.rstrip("\"'”’»)*_").endswith(SENTENCE_ENDS))

    @property
    def kind(self) -> PassageKind:
        """Return the kind of its passage; what introduces code is prose."""
        passage = self.hit.passage
        introduced = passage.kind is PassageKind.CODE and self.span[1] <= len(_find_introduction(passage.text))
        return PassageKind.PROSE if introduced else passage.kind

    @property
    def context(self) -> str:
        """Return the text below its page's title, section and lead-in line."""
        return write_context(self.hit, self.lead, self.text)

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """Return its words; those of an item below those of its lead, with the list's mark."""
        text, spans = self.hit.passage.text, [self.span]
        if self.lead:
            start, line = text.rfind(self.lead, 0, self.span[0]), text.rfind("\n", 0, self.span[0]) + 1
            line += len(text[line:]) - len(text[line:].lstrip())
            spans = [(start, start + len(self.lead)), (line, self.span[1])]
        return tuple(Evidence(text[slice(*span)], self.hit.passage, self.hit.document, span) for span in spans)


def write_context(hit: Hit, *lines: str) -> str:
    """Return lines of a hit below its page's title and its section, without empty ones."""
    return "\n".join(filter(None, (hit.document.title, hit.passage.section, *lines)))


def find_candidates(hits: Sequence[Hit], question: str = "", around: Sequence[Hit] = ()) -> tuple[Candidate, ...]:
    """Return the candidates of all hits, in the order of the hits and of their text.

    Those about the opposite of what is asked about are left out, and so are fragments of lists that begin in a passage
    that was found, too, or is `around`.
    """
    ranked, before = list(enumerate(hits)), {_place_after(hit, 1) for hit in (*hits, *around)}
    coded = bool(_FOR_CODE.search(question)) or all(hit.passage.kind is PassageKind.CODE for hit in hits)
    found = (one for rank, hit in ranked for one in _find_in_passage(rank, hit, coded=coded))
    whole = (one for one in found if not (_place_after(one.hit) in before and one.is_fragment))
    return tuple(one for one in whole if not is_contrary(one, question))


def _place_after(hit: Hit, passages: int = 0) -> tuple[str, str, str, int]:
    passage = hit.passage
    return passage.corpus, passage.document, passage.section, passage.position + passages


def keep_named(hits: Sequence[Hit], question: str, language: str) -> Sequence[Hit]:
    """Return only the hits that may be about the names in a question: "at Ketel".

    If corpora or top folders are named so, these are theirs and those that mention the name. Otherwise they are all of
    the corpora of which any mentions it.
    """
    for match in () if language == "de" else _NAME.finditer(question):
        name = " ".join(_fold_words(match[0]))
        if is_date(name) or name in stop_words():
            continue
        shelves = ((hit, *hit.passage.document.split("/")[:-1][:1], hit.passage.corpus) for hit in hits)
        owned = [hit for hit, *shelf in shelves if any(map(partial(_is_named, name), shelf))]
        texts = (" ".join(_fold_words(write_context(hit, hit.passage.text))) for hit in hits)
        mentioning = [hit for hit, text in zip(hits, texts, strict=True) if f" {name} " in f" {text} "]
        corpora = {hit.passage.corpus for hit in mentioning}
        kept = [hit for hit in hits if hit in owned or (hit in mentioning if owned else hit.passage.corpus in corpora)]
        hits = kept or hits
    return hits


@lru_cache(maxsize=64)
def _list_opposites(question: str) -> Sequence[tuple[str, str]]:
    """Return words of a question, each with its opposite, if that is not in the question, too."""
    asked = f" {_space_caseless(question)} "
    pairs = (pair.split("/") for pair in load_table("answer_types.json")["opposites"])
    both = [(word, opposite) for pair in pairs for word, opposite in (pair, pair[::-1])]
    return [(word, opposite) for word, opposite in both if f" {word} " in asked and f" {opposite} " not in asked]


def is_contrary(candidate: Candidate, question: str) -> bool:
    """Return whether a candidate is about the opposite of what is asked about: the second keeper, not the first."""
    opposites = _list_opposites(question)
    context = f" {_space_caseless(candidate.context)} " if opposites else ""
    return any(f" {word} " not in context and f" {opposite} " in context for word, opposite in opposites)


def _is_named(name: str, shelf: str) -> bool:
    one, other = name.replace(" ", ""), "".join(_fold_words(shelf))
    return len(min(one, other, key=len)) >= _LEAST_NAME and (one.startswith(other) or other.startswith(one))


def widen_steps(candidate: Candidate) -> Candidate:
    """Return the whole numbered list that a candidate is a step of, else the candidate."""
    text = candidate.hit.passage.text
    lists = (match.span() for match in _STEPS.finditer(text))
    return next(
        (
            replace(candidate, span=(start, start + len(text[start:end].rstrip())), lead="")
            for start, end in lists
            if start <= candidate.span[0] < candidate.span[1] <= end
        ),
        candidate,
    )


def narrow_rows(candidate: Candidate, asked: Sequence[str]) -> Candidate:
    """Return only the table row with most words of the question; the candidate if rows tie or it is not a table."""
    if candidate.hit.passage.kind is not PassageKind.TABLE:
        return candidate
    lines = list(_LINE.finditer(candidate.text))[1:]
    language = candidate.hit.document.language
    having = [len(set(asked).intersection(content_terms(line[0], language))) for line in lines]
    if not having or having.count(max(having)) > 1:
        return candidate
    start, line = candidate.span[0], lines[having.index(max(having))]
    return replace(candidate, span=(start + line.start(), start + line.end()))


def drop_asked(candidate: Candidate) -> Candidate:
    """Return only the answer of a candidate of the form "Q: ... A: ...", else the candidate."""
    answer = _LETTERED_ANSWER.search(candidate.text)
    return replace(candidate, span=(candidate.span[0] + answer.end(), candidate.span[1])) if answer else candidate


def asks_for_steps(question: str) -> bool:
    """Return whether a question asks how to do something."""
    return bool(_HOW_TO.search(question))


def _find_in_passage(rank: int, hit: Hit, *, coded: bool) -> Iterator[Candidate]:
    text, spans = hit.passage.text, find_quotable_spans(hit.passage)
    if hit.passage.kind is PassageKind.CODE:
        introduction = replace(hit.passage, text=_find_introduction(text), kind=PassageKind.PROSE)
        yield from (Candidate(hit, rank, span) for span in find_quotable_spans(introduction)[:-1])
        if not coded:
            return
        blocks = (block for block in _CODE_BLOCK.finditer(text) if _LETTER.search(block[0]))
        yield from (Candidate(hit, rank, block.span()) for block in blocks if not block[0].endswith(_COLON))
        return
    lead, asked_at = "", -1
    for place, (start, end) in enumerate(spans):
        words = text[start:end]
        lead = lead if is_in_list(text, (start, end)) else ""
        begin, asked_at = (asked_at if asked_at >= 0 else start), -1
        if words.endswith(_QUESTION):
            asked_at = begin
        elif words.endswith(_COLON):
            table = hit.passage.kind is PassageKind.TABLE
            last = spans[-1][1] if table else _find_list_end(text, spans[place:])
            if last > end:  # the list may be in another passage
                yield Candidate(hit, rank, (begin, last))
            lead = words
        elif lead or begin < start or _is_informative(words, hit.passage.kind):
            yield Candidate(hit, rank, (begin, end), lead)


def _find_introduction(code: str) -> str:
    """Return the paragraph that introduces code, with a colon at its end; empty if there is none."""
    first, _, rest = code.partition("\n\n")
    return first if rest and first.endswith(_COLON) else ""


def _is_informative(words: str, kind: PassageKind) -> bool:
    """Return whether a line is more than a heading or the text of a link."""
    ends = words.rstrip("\"'”’»)*_").endswith(SENTENCE_ENDS)
    return bool(_LETTER.search(words)) and (
        ends or kind is not PassageKind.PROSE or count_words(words) >= LEAST_WORDS or any(map(str.isdigit, words))
    )


def _find_list_end(text: str, spans: Sequence[Span]) -> int:
    """Return the end of the list that the first span announces, or of the next span if that is not a list item."""
    end = next((stop for _, stop in spans[1:]), spans[0][1])
    for span in spans[2:]:
        if not (is_in_list(text, span) and is_in_list(text, spans[1])):
            break
        end = span[1]
    return end


class AnswerType(StrEnum):
    NUMBER = "number"
    DATE = "date"
    PERSON = "person"
    PLACE = "place"


def classify_question(question: str) -> AnswerType | None:
    """Return the type of answer that a question asks for first; None if it asks for none of these types."""
    text = _space_caseless(question)
    asked_kinds = [(match.start(), kind) for kind in AnswerType if (match := _compile_questions(kind).search(text))]
    return min(asked_kinds)[1] if asked_kinds else None


def has_answer_type(sentence: str, kind: AnswerType, question: str) -> bool:
    """Return whether a sentence contains something of this type that the question does not mention."""
    known = frozenset(_fold_words(question))
    new = [word for word, folded in zip(words(sentence), _fold_words(sentence), strict=True) if folded not in known]
    if kind is AnswerType.NUMBER:
        return any(map(is_number, new))
    if kind is AnswerType.DATE:
        return any(is_number(word) or is_date(word) for word in new)
    named = any(not is_date(name) for name in find_capitalized_names(sentence, known=known))
    return named or bool(_SPACED_CASELESS.search("".join(new)))


@lru_cache(maxsize=64)
def find_measures(question: str) -> frozenset[str]:
    """Return the dimensions of the quantity that a question requests ("money", "time"); empty if it requests none."""
    text = _space_caseless(question)
    return frozenset(
        kind for kind in load_table("answer_types.json")["measures"] if _compile_measure(kind).search(text)
    )


@lru_cache(maxsize=16_384)
def is_number(word: str) -> bool:
    return bool(_DIGIT.search(word)) or fold_spelling(word) in _compile_list("numbers")


def is_date(word: str) -> bool:
    return fold_spelling(word) in _compile_list("dates")


def find_capitalized_names(text: str, *, known: frozenset[str] | set[str] = frozenset()) -> list[str]:
    """Return the capitalised words that are neither stop words nor `known`, which holds folded spellings."""
    common = stop_words()
    capitalized = ((word, fold_spelling(word)) for word in words(text) if word[0].isupper())
    return [word for word, folded in capitalized if folded not in common and folded not in known]


def _space_caseless(text: str) -> str:
    return " ".join(_fold_words(text))


@lru_cache(maxsize=256)
def _fold_words(text: str) -> tuple[str, ...]:
    return tuple(map(fold_spelling, words(text)))


@cache
def load_table(name: str) -> Any:
    return json.loads(resources.files(__package__).joinpath(name).read_text(encoding="utf-8"))


@cache
def _compile_list(key: str) -> frozenset[str]:
    return frozenset(map(fold_spelling, load_table("answer_types.json")[key]))


@cache
def _compile_questions(kind: AnswerType) -> re.Pattern[str]:
    return _compile_phrases(load_table("answer_types.json")[f"asks for a {kind}"])


@cache
def _compile_measure(kind: str) -> re.Pattern[str]:
    return _compile_phrases(load_table("answer_types.json")["measures"][kind])


def _compile_phrases(listed: Sequence[str]) -> re.Pattern[str]:
    """Return a pattern for any of the phrases; `*` in a phrase matches any words."""
    phrases = [" * ".join(map(_space_caseless, phrase.split(" * "))) for phrase in listed]
    patterns = ((phrase, re.escape(phrase).replace(r"\*", ".*")) for phrase in phrases)
    return re.compile("|".join(found if is_unspaced(phrase[0]) else rf"\b{found}\b" for phrase, found in patterns))
