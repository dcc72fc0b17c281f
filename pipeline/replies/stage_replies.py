"""Parse the replies of all stages except verdicts: a query, bullets, timed claims, a draft, feedback on it. Pure."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from pipeline.errors import UnreadableReply
from pipeline.replies.abstention import is_about_notes, is_abstention
from pipeline.replies.cited_sentences import MarkedSentence, SentenceSplitter, is_ended
from pipeline.replies.echo import has_delimiter, is_bare_date
from pipeline.replies.reply_format import (
    BOOLEAN,
    SENTENCE_NUMBERS,
    TIME,
    ReplyFormat,
    find_labelled,
    get_field,
    integer_schema,
    is_nothing,
    list_schema,
    object_schema,
    parse_number_list,
    parse_numbers,
    split_items,
    split_lines,
    string_schema,
    strip_emphasis_marks,
)
from storage.language.detection import detect_language
from storage.language.lazy_pattern import lazy_compile
from storage.types import QueryTime, SearchQuery

MAX_QUERY = 400  # characters of a query
_YEAR = lazy_compile(r"(?<!\d)(1\d{3}|20\d{2}|2100)(?!\d)")
_RECENT = lazy_compile(r"\b(?:recent|latest|newest|current|now)\b", re.IGNORECASE)
_YES = lazy_compile(r"[\W_]*(?:yes|true|y)\b", re.IGNORECASE)
_NO = lazy_compile(r"[\W_]*(?:no|false|n|none|not needed)\b", re.IGNORECASE)


def parse_time(text: str) -> QueryTime:
    if year := _YEAR.search(text):
        return int(year[1])
    return "recent" if _RECENT.search(text) else None


def _query_from_json(found: Any) -> SearchQuery | None:
    if not get_field(found, "search", bool):
        return None
    return _build_query(get_field(found, "query", str), str(get_field(found, "time", (str, int))))


def _query_from_text(text: str) -> SearchQuery | None:
    needed, query = find_labelled(text, "search", "search needed", "search needed?"), find_labelled(text, "query")
    if needed is not None and _NO.match(needed):
        return None
    if query is None and (needed is None or not _YES.match(needed)):
        raise UnreadableReply("the line “Search: yes” or “Search: no” is missing")
    return _build_query(query or "", find_labelled(text, "time", "year") or "")


def _build_query(text: str, time: str) -> SearchQuery:
    query = " ".join(text.split()).strip('"“”`')
    if is_nothing(query):
        raise UnreadableReply("the query is missing")
    return SearchQuery(query[:MAX_QUERY], parse_time(time))


@cache
def query_format() -> ReplyFormat[SearchQuery | None]:
    schema = object_schema(search=BOOLEAN, query=string_schema(MAX_QUERY), time=TIME)
    return ReplyFormat(schema, from_json=_query_from_json, from_text=_query_from_text)


_SENTENCE_LIST = r"\d{1,4}(?:\s*(?:[,;&–-]|and)\s*\d{1,4})*"
_NAMED_LIST = rf"(?:from )?sentences?:?\s*{_SENTENCE_LIST}"
_TRAILING_NUMBERS = lazy_compile(  # "(2004) [2]" ends with a part of the statement and one number
    rf"(?:(?:[\s,;]*(?:\[(?:{_NAMED_LIST}|{_SENTENCE_LIST})\]|\({_NAMED_LIST}\)))+"
    rf"|(?:\s*\((?!\d{{4}}\)){_SENTENCE_LIST}\))+)[.]?\s*$", re.IGNORECASE
)  # fmt: skip
_LEADING_NUMBERS = lazy_compile(rf"\[({_SENTENCE_LIST})\]:?\s*")


@dataclass(frozen=True, slots=True)
class Bullet:
    """A statement from a passage, and the numbers of the passage's sentences that support it."""

    text: str
    sentences: tuple[int, ...]


MAX_BULLETS = 8  # of one passage
MAX_STATEMENT = 600  # characters of a bullet, or of a claim; longer claims are dropped


def bullets_format(count: int, passages: int = 1) -> ReplyFormat[tuple[Bullet, ...]]:
    """Return the format of a reply in bullets that name the sentences they rest on, numbered from 1 to `count`.

    A reply without bullets is valid: no sentence is relevant. If there are bullets, one at least must name a sentence.
    """

    def from_json(found: Any) -> tuple[Bullet, ...]:
        bullets = []
        for item in get_field(found, "bullets", list):
            text, named = get_field(item, "text", str), get_field(item, "sentences", list)
            bullets.append(Bullet(strip_emphasis_marks(text), parse_number_list(named, count)))
        return _validate_bullets(bullets)

    bullet = object_schema(text=string_schema(MAX_STATEMENT), sentences={**SENTENCE_NUMBERS, "minItems": 1})
    schema = object_schema(bullets=list_schema(bullet, MAX_BULLETS * passages))
    return ReplyFormat(schema, from_json=from_json, from_text=lambda text: _bullets_from_text(text, count))


def _bullets_from_text(text: str, count: int) -> tuple[Bullet, ...]:
    if text.strip() and is_nothing(text):
        return ()
    lines = split_items(text) or filter(_TRAILING_NUMBERS.search, split_lines(text))
    bullets = _validate_bullets([_bullet_from_line(line, count) for line in lines])
    if not (bullets or _says_nothing(text)):
        raise UnreadableReply("there is no list of bullets in it, and no “None” either")
    return bullets


def _bullet_from_line(line: str, count: int) -> Bullet:
    behind, before = _TRAILING_NUMBERS.search(line), _LEADING_NUMBERS.match(line)
    if behind:
        return Bullet(line[: behind.start()].strip(), parse_numbers(behind[0], count))
    if before:
        return Bullet(line[before.end() :].strip(), parse_numbers(before[1], count))
    return Bullet(line, ())


def _validate_bullets(found: Sequence[Bullet]) -> tuple[Bullet, ...]:
    bullets = tuple(dict.fromkeys(bullet for bullet in found if not is_nothing(bullet.text)))
    if bullets and not any(bullet.sentences for bullet in bullets):
        raise UnreadableReply("no bullet names a numbered sentence that it rests on")
    own = tuple(bullet for bullet in bullets if not has_delimiter(bullet.text))
    if bullets and not own:
        raise UnreadableReply("no bullet says what a sentence says")
    return own


MAX_CLAIMS = 16
MAX_CLAIM_LIST = 8_000
"""Characters of a streamed list that are read, in whole lines: each new line causes all to be parsed again."""
_CLAIM_TIME = r"(?:time|year)?\s*[:=]?\s*[\"“]?(recent|none|\d{4})[\"”]?"
_NO_LIST_FAULT = "there is no list of claims in it, and no “Nothing” either"
_TRAILING_TIME = lazy_compile(rf"\s*(?:\||[(\[])\s*{_CLAIM_TIME}\s*[)\]]?\s*\.?\s*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TimedClaim:
    text: str
    time: QueryTime = None


def _claim_from_line(line: str) -> TimedClaim:
    behind = _TRAILING_TIME.search(line)
    return TimedClaim(line[: behind.start()].strip(), parse_time(behind[1])) if behind else TimedClaim(line)


def _claim_from_json(found: Any) -> TimedClaim:
    text, time = get_field(found, "text", str), get_field(found, "time", (str, int))
    return TimedClaim(strip_emphasis_marks(text), parse_time(str(time)))


def _claims_from_text(text: str) -> tuple[TimedClaim, ...]:
    if text.strip() and is_nothing(text):
        return ()
    claims = _parse_claim_list(text)
    if not claims and not _says_nothing(text):
        raise UnreadableReply(_NO_LIST_FAULT)
    return claims


def _parse_claim_list(text: str) -> tuple[TimedClaim, ...]:
    lines = split_items(text) or filter(_TRAILING_TIME.search, split_lines(text))
    return _keep_claims(_claim_from_line(line) for line in lines)


def _says_nothing(text: str) -> bool:
    """Return whether a line of a reply says that there is nothing, by the requested word or in prose."""
    return any(is_nothing(line) or is_abstention(line) for line in split_lines(text))


def _keep_claims(claims: Iterable[TimedClaim]) -> tuple[TimedClaim, ...]:
    by_text = {claim.text: claim for claim in claims if len(claim.text) <= MAX_STATEMENT}
    empty = (is_nothing, is_bare_date, has_delimiter)
    return tuple(claim for text, claim in by_text.items() if not any(test(text) for test in empty))


@cache
def claims_format() -> ReplyFormat[tuple[TimedClaim, ...]]:
    return ReplyFormat(
        object_schema(claims=list_schema(object_schema(text=string_schema(MAX_STATEMENT), time=TIME), MAX_CLAIMS)),
        from_json=lambda found: _keep_claims(map(_claim_from_json, get_field(found, "claims", list))),
        from_text=_claims_from_text,
    )


class ClaimSplitter:
    """Splits a list of claims as it arrives.

    A claim is certain once its line has ended with a time. Without a time it is certain once the next claim begins, as
    its line may continue.
    """

    def __init__(self) -> None:
        self._text = ""
        self._full = False
        self._given: set[str] = set()

    def feed(self, piece: str) -> tuple[TimedClaim, ...]:
        if self._full:
            return ()
        self._text += piece
        if len(self._text) > MAX_CLAIM_LIST:
            self._full, self._text = True, self._text[:MAX_CLAIM_LIST].rpartition("\n")[0]
            return self._new(_parse_claim_list(self._text))
        if "\n" not in piece:
            return ()
        ended = self._text[: self._text.rindex("\n")]
        last = ended.rstrip().rsplit("\n", 1)[-1]
        claims = _parse_claim_list(ended)
        return self._new(claims if _TRAILING_TIME.search(last) else claims[:-1])

    def close(self, *, cut: bool = False) -> tuple[TimedClaim, ...]:
        claims = self._new(_parse_claim_list(self._text.rpartition("\n")[0] if cut else self._text))
        if not self._given and not _says_nothing(self._text):
            raise UnreadableReply(_NO_LIST_FAULT)
        return claims

    def _new(self, found: Iterable[TimedClaim]) -> tuple[TimedClaim, ...]:
        new = tuple(claim for claim in found if claim.text not in self._given)
        self._given.update(claim.text for claim in new)
        return new


NOTHING_REPLY = "NOTHING"  # the reply if no note helps
EXAMPLE_LANGUAGES = frozenset({"en", "de"})  # of the worked examples, into which weak models drift
_LEAST_COPIED = 20  # characters of a sentence: shorter ones may be in any note
_SOURCE_BEHIND = lazy_compile(r"\s*\(from: [^()\n]*(?:\([^()\n]*\))?\)")


class DraftSplitter:
    """Splits a draft over `count` notes into sentences; yields none if the draft says that no note helps.

    A sentence without a mark borrows those of the next, as models often mark only the last sentence from a note; a
    block of code does not. Repeated sentences are skipped, and so are those in the language of a worked example that is
    none of the `spoken` ones, if these are known. A sentence without a mark that is copied from one of the `notes` has
    that note's number.
    """

    def __init__(self, count: int, spoken: frozenset[str] = frozenset(), notes: Sequence[str] = ()) -> None:
        self._splitter = SentenceSplitter(count)
        self._notes = [" ".join(note.split()) for note in notes]
        self._foreign = EXAMPLE_LANGUAGES - spoken if spoken else frozenset[str]()
        self._held: list[MarkedSentence] = []
        self._seen = set[str]()
        self._cites = False
        self._drifts = False

    def feed(self, piece: str) -> tuple[MarkedSentence, ...]:
        return tuple(self._release(self._splitter.feed(piece)))

    def close(self, *, cut: bool = False) -> tuple[MarkedSentence, ...]:
        left = self._splitter.close()
        incomplete = cut and bool(left) and not is_ended(left[-1].text)
        released = tuple(self._release(left[:-1] if incomplete else left))
        if self._cites:
            return released + tuple(_drop_nothing(self._held))
        if self._drifts:
            raise UnreadableReply("it is in another language than was asked for")
        if not any(_is_nothing_reply(sentence) or is_abstention(sentence.text) for sentence in self._held):
            raise UnreadableReply(
                "no sentence has the number of a note in square brackets behind it; "
                f"where no note helps, the whole reply is the one word {NOTHING_REPLY}"
            )
        return ()

    def _release(self, sentences: Iterable[MarkedSentence]) -> Iterator[MarkedSentence]:
        # Weak models copy the place that a note is from with the note.
        for sentence in (replace(one, text=_SOURCE_BEHIND.sub("", one.text)) for one in sentences):
            drifts = bool(self._foreign) and detect_language(sentence.text) in self._foreign
            self._drifts = self._drifts or drifts
            if drifts or sentence.text in self._seen or has_delimiter(sentence.text):
                continue
            self._seen.add(sentence.text)
            numbers = sentence.numbers or self._find_copied(sentence.text)
            if not numbers:
                self._held.append(sentence)
                continue
            self._cites = True
            borrowing, self._held = self._held, []
            for held in _drop_nothing(borrowing):
                whole = held.incomplete or "```" in held.text
                yield held if whole else replace(held, numbers=numbers, borrowed=True)
            yield from _drop_nothing([replace(sentence, numbers=numbers)])

    def _find_copied(self, text: str) -> tuple[int, ...]:
        if len(text) < _LEAST_COPIED:
            return ()
        return tuple(number for number, note in enumerate(self._notes, start=1) if text in note)[:1]


def _drop_nothing(sentences: Iterable[MarkedSentence]) -> Iterator[MarkedSentence]:
    """Yield the sentences that are not merely about the notes."""
    for sentence in sentences:
        if not _is_nothing_reply(sentence) and not is_about_notes(sentence.text):
            yield sentence


def _is_nothing_reply(sentence: MarkedSentence) -> bool:
    return sentence.text.strip(" .!*\"'") == NOTHING_REPLY


CRITERIA = ("relevant", "natural", "non-repetitive", "temporally correct")
PERFECT_SCORE = 100
MAX_REMARK = 400  # characters
GOOD_SCORE = 90  # a draft with this score by every criterion is not refined: that would cost a call and improve little
_SCORE = lazy_compile(r"(?<![\d.])(\d{1,3})(?:\.0)?\s*(?:/|out of)\s*100\b")


@dataclass(frozen=True, slots=True)
class CriterionScore:
    criterion: str
    remark: str
    score: int


@dataclass(frozen=True, slots=True)
class Feedback:
    points: tuple[CriterionScore, ...]

    @property
    def good(self) -> bool:
        """Whether the draft is good enough that refining it is not worth a call."""
        return all(point.score >= GOOD_SCORE for point in self.points)


def _criterion_key(criterion: str) -> str:
    return criterion.replace("-", "_").replace(" ", "_")


def _point_from_json(name: str, feedback: Any) -> CriterionScore:
    point = get_field(feedback, _criterion_key(name), dict)
    remark, score = get_field(point, "remark", str), get_field(point, "score", int)
    return CriterionScore(name, " ".join(remark.split()), max(0, min(score, PERFECT_SCORE)))


def _point_from_text(name: str, text: str) -> CriterionScore:
    line = find_labelled(text, name, name.replace("-", " "), name.replace("-", ""))
    scores = list(_SCORE.finditer(line or ""))
    if line is None or not scores:
        raise UnreadableReply(f"the line “{name.capitalize()}: … score/100” is missing")
    return CriterionScore(name, line[: scores[-1].start()].strip(), min(int(scores[-1][1]), PERFECT_SCORE))


@cache
def feedback_format(criteria: tuple[str, ...] = CRITERIA) -> ReplyFormat[Feedback]:
    point = object_schema(remark=string_schema(MAX_REMARK), score=integer_schema(0, PERFECT_SCORE))
    return ReplyFormat(
        object_schema(**{_criterion_key(name): point for name in criteria}),
        from_json=lambda found: Feedback(tuple(_point_from_json(name, found) for name in criteria)),
        from_text=lambda text: Feedback(tuple(_point_from_text(name, text) for name in criteria)),
    )


def criticism_format() -> ReplyFormat[Feedback]:
    return feedback_format(("supported", "complete"))
