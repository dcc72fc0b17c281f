"""Align a sentence with its source, the passage sentence that shares most with it, and compare their subjects.

A sentence is refuted only if the source has another value of the same attribute of the same subject. A statement about
another product, place or person, or under a condition that the sentence does not name, does not refute it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from pipeline.support.analysis.parsed_sentence import ParsedSentence, find_exception, strip_possessive
from pipeline.support.analysis.proper_names import ProperName, find_name_forms, load_name_tables
from pipeline.support.analysis.quantity_parser import is_same_dimension
from pipeline.support.analysis.tokenizer import TokenSpan, find_stem, is_mark, load_table, tokenize
from pipeline.support.passage_facts import PER_WORDS, PRONOUNS, PassageFacts, is_same_value

_FUNCTION_WORD_WEIGHT = 0.3  # the weight of a matched function word; a content word weighs 1
_LARGEST_MATRIX = 15_000
"""Pairs of words above which two texts are not matched word by word: no sentence of prose is so long."""
_LEAST_SHARED = 0.4
_NEARLY_THE_SAME = 0.65  # the least share of a near copy's words that its source has in the same order
_SPARE = 4  # how many tokens more the source may have in a gap that is tight
_CONDITIONS = frozenset({"for", "if", "when", "during", "unless", "while", "with", "without", "where"})
_LONGEST_CONDITION = 4  # tokens after "for" or "if" among which its first content word is
_ADJUNCTS = frozenset({"in", "at", "on", "near", "by", "with", "from", "to", "of"})
_JOINS = frozenset({"and", "or", "but"})
_DEMONSTRATIVES = frozenset({"this", "these", "such"})
_ARTICLES = frozenset({"the", "a", "an", "mr", "mrs", "ms", "dr"})
_COPULAS = frozenset({"is", "was", "are", "were"})
_PLACED = frozenset({
    "born", "died", "killed", "buried", "located", "situated", "based", "founded", "held", "lies", "published",
})  # fmt: skip
"""Participles of events and states that happen in one place for each subject."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Tokens between the same two matches: `said` in the sentence, `given` in the source.

    `tight`: the source has hardly more tokens there than the sentence.
    """

    said: tuple[int, int]
    given: tuple[int, int]
    tight: bool


@dataclass(frozen=True, slots=True)
class Alignment:
    """A sentence and its source."""

    sentence: ParsedSentence
    source: ParsedSentence
    pairs: tuple[tuple[int, int], ...]  # matched tokens, in order
    coverage: float
    """The share of the sentence's content words that the source has."""

    @property
    def copied(self) -> float:
        """Return the share of the sentence's words that its source has in the same order."""
        return len(self.pairs) / sum(map(bool, self.sentence.stems))

    @property
    def is_near_copy(self) -> bool:
        """Return whether the sentence almost repeats its source, so that any difference is a change."""
        return self.copied >= _NEARLY_THE_SAME

    def coverage_without(self, first: int, last: int) -> float:
        """Return the coverage of a sentence without the words at tokens `first` to `last`."""
        rest = self.sentence.content.difference(self.sentence.stems[first:last])
        return len(rest & self.source.content) / len(rest) if rest else 0.0

    def place_of(self, first: int, last: int, *, phrase: bool = False) -> Gap:
        """Return the source's tokens that correspond to those from `first` to `last`, matched ones included.

        If no match follows, they extend to the end of the source, or with `phrase` to the end of the phrase.
        """
        before = max((pair for pair in self.pairs if pair[0] < first), default=(-1, -1))
        after = min((pair for pair in self.pairs if pair[0] >= last), default=None)
        if after is None:
            end = _find_phrase_end(self.source, before[1] + 1) if phrase else len(self.source.text)
            after = len(self.sentence.text), end
        return _build_gap(before, after)

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """Return the gaps between matched words in which either text has tokens."""
        ends = [(-1, -1), *self.pairs, (len(self.sentence.text), len(self.source.text))]
        return tuple(_build_gap(one, two) for one, two in pairwise(ends) if two[0] - one[0] > 1 or two[1] - one[1] > 1)


def _build_gap(one: tuple[int, int], two: tuple[int, int]) -> Gap:
    return Gap((one[0] + 1, two[0]), (one[1] + 1, two[1]), two[1] - one[1] <= two[0] - one[0] + _SPARE)


def _find_phrase_end(source: ParsedSentence, start: int) -> int:
    """Return the end of the phrase that begins at a token: a mark or function word after content words."""
    inside = False
    for place in range(start, len(source.text)):
        substance = source.stems[place] in source.content
        if inside and not substance and (source.stems[place] or is_mark(source.text.low[place])):
            return place
        inside = inside or substance
    return len(source.text)


def align(sentence: ParsedSentence, facts: PassageFacts) -> Alignment | None:
    """Align a sentence with the passage sentence that shares most with it; None if none shares enough."""
    content = sentence.content
    named = content.intersection(sentence.stems[place] for place in sentence.capitals)

    def rate(one: ParsedSentence) -> tuple[int, int, int]:
        return len(content & one.content), len(named & one.content), -len(one.content)

    source = max(facts.sentences, key=rate, default=None)
    if not content or source is None:
        return None
    coverage = len(content & source.content) / len(content)
    pairs = _match_tokens(sentence, source) if coverage >= _LEAST_SHARED else ()
    return Alignment(sentence, source, pairs, coverage) if pairs else None


def _match_tokens(sentence: ParsedSentence, source: ParsedSentence) -> tuple[tuple[int, int], ...]:
    """Return the heaviest common subsequence of the stems of two sentences, marks left out."""
    ours = [place for place, key in enumerate(sentence.stems) if key and key in source.places]
    theirs = [place for place, key in enumerate(source.stems) if key and key in sentence.places]
    if len(ours) * len(theirs) > _LARGEST_MATRIX:
        return ()
    keys = [source.stems[place] for place in theirs]
    rows: list[list[float]] = [[0.0] * (len(theirs) + 1)]
    for place in ours:
        key, above, row, best = sentence.stems[place], rows[-1], [0.0], 0.0
        weight = 1.0 if key in sentence.content else _FUNCTION_WORD_WEIGHT
        for at, other in enumerate(keys):
            best = max(above[at] + weight if other == key else 0.0, best, above[at + 1])
            row.append(best)
        rows.append(row)
    pairs: list[tuple[int, int]] = []
    at, column = len(ours), len(theirs)
    while at and column:
        if rows[at][column] == rows[at - 1][column]:
            at -= 1
        elif rows[at][column] == rows[at][column - 1]:
            column -= 1
        else:
            at, column = at - 1, column - 1
            pairs.append((ours[at], theirs[column]))
    return tuple(pairs[::-1])


def is_same_subject(alignment: Alignment, facts: PassageFacts, said: str, instead: str) -> bool:
    """Return whether the source states `instead` of the subject and attribute of which the sentence states `said`.

    The rest of the sentence must be in the source, in the titles of its page or, if a pronoun begins the source, in the
    sentences before it. The source must not narrow its subject by other words: a spare part is not what it is for. A
    row of a table must have the key that the sentence names.
    """
    ours, source = alignment.sentence, alignment.source
    place, rows = _find_phrase(source, instead), [row for row in facts.sentences if row.is_row]
    holding = [row for row in rows if _find_phrase(row, instead)]
    if source.is_row or (holding and not place):
        return any(
            _has_row_key(ours, row)
            and _has_row_label(ours, row, instead, said, rows)
            and _covers_rest(ours, said, (row, *facts.context.sentences))
            for row in holding
        )
    follower = facts.find_follower(source)
    around = (*facts.context.sentences, *facts.find_antecedents(source))
    goes_on = (follower,) if follower and not place else ()
    if not _covers_rest(ours, said, (source, *around, *goes_on)):
        return False
    stretch = find_exception(source)
    excepted = stretch is not None and place is not None and place.stop > stretch[0]
    if stretch and place and not excepted and not _names_none_of(ours, source, stretch):
        return False
    return place is None or excepted or not _narrows(alignment, facts, place, said)


def _names_none_of(ours: ParsedSentence, source: ParsedSentence, exception: tuple[int, int]) -> bool:
    """Return whether a sentence names nothing that the source names as an exception."""
    excepted = [at for at in range(*exception) if at in source.capitals]
    return ours.content.isdisjoint(source.stems[at] for at in excepted)


def is_attribute_name(sentence: ParsedSentence, name: ProperName) -> bool:
    """Return whether a name is the value of an attribute that its subject has once: "is led by Ines Falk".

    Any other name makes it a sentence about another subject.
    """
    text, before = sentence.text, name.first - 1
    while text.at(before) in _ARTICLES:
        before -= 1
    word = text.at(before)
    if word == "by":
        return bool(_COPULAS.intersection(text.low[:before]))
    if word in {"in", "at", "near"}:
        return not _PLACED.isdisjoint(text.low[:before])
    if word in _COPULAS:
        return text.at(0) in {"the", "its", "their", "our"} or any(low.endswith("'s") for low in text.low[:before])
    return name.first == 0 and text.at(name.last) in _COPULAS and text.at(name.last + 1) == "the"


def _covers_rest(ours: ParsedSentence, said: str, sources: Sequence[ParsedSentence]) -> bool:
    """Return whether other sentences have all of a sentence, except for `said` and general words."""
    known = frozenset[str]().union(*(part.content for part in sources))
    words = frozenset[str]().union(
        *(find_name_forms(strip_possessive(low)) for part in sources for low in part.text.low)
    )
    free = _list_stems(said, ours.language) | load_general_words(ours.language)
    left = {at for at, stem in enumerate(ours.stems) if stem in ours.content and stem not in known | free}
    if any(at not in ours.valued and strip_possessive(ours.text.low[at]) not in words for at in left):
        return False
    known_values: list[TokenSpan] = [value for source in sources for value in source.values]
    values: list[TokenSpan] = [value for value in ours.values if not left.isdisjoint(value.places)]
    return all(any(is_same_value(known_value, value) for known_value in known_values) for value in values)


def _narrows(alignment: Alignment, facts: PassageFacts, place: range, said: str) -> bool:
    """Return whether a source narrows what it shares with a sentence: by words before it, a condition or a name.

    A word before two words of the page's title does not count: on the page "Pension scheme", "the workplace pension
    scheme" is that scheme.
    """
    ours, theirs = alignment.sentence, alignment.source
    low, titles = theirs.text.low, load_name_tables().titles
    free = ours.content | _list_stems(said, ours.language) | load_general_words(ours.language)
    led = low[0] in PRONOUNS | _DEMONSTRATIVES
    unsaid = [
        at
        for at, stem in enumerate(theirs.stems)
        if stem in theirs.content - free and at not in theirs.valued and low[at] not in titles
    ]
    shared = (at for at, stem in enumerate(theirs.stems) if stem in ours.content & theirs.content)
    first = 0 if led else min(next(shared, place.start), place.start)
    begin = max((at for at in range(1, first) if low[at] in _JOINS and is_mark(low[at - 1])), default=0)
    joined = theirs.capitals | {at for at, word in enumerate(low) if word == "&"}
    opening = first  # "the Trust" is short for "the Tolliver & Ebb Trust"
    while opening and {opening, opening - 1} <= joined:
        opening -= 1
    titled = frozenset[str]().union(*(part.content for part in facts.context.sentences)) & ours.content
    if len(titled.intersection(theirs.stems[first : first + 2])) > 1:
        opening = max(opening - 1, 0)
    names = theirs.capitals.difference(at + 1 for at in theirs.capitals)  # the first word of each
    named = any(first < at < place.start and at in names and low[at - 1] not in _ADJUNCTS for at in unsaid)
    end = next((at for at in range(place.stop, len(low)) if is_mark(low[at]) or low[at] in _JOINS), len(low))
    opens = (at for at in (*range(first, place.start), *range(place.stop, end)) if low[at] in _CONDITIONS)
    conditions = [at for at in opens if theirs.text.at(at + 1) not in PER_WORDS - {"a", "an"}]  # "for each harbour"
    conditioned = any(set(range(at, at + _LONGEST_CONDITION)).intersection(unsaid) for at in conditions)
    counts_other = place.stop in unsaid and place.start in theirs.valued  # "three sons", not daughters
    earlier = [
        date.last for date in theirs.dates if date.last <= place.start and ")" not in low[date.last : place.start]
    ]
    goes_on = bool(earlier) and any(earlier[-1] <= at < place.start for at in unsaid)  # what was done at another time
    return named or conditioned or counts_other or goes_on or any(begin <= at < opening for at in unsaid)


def _has_row_key(ours: ParsedSentence, row: ParsedSentence) -> bool:
    """Return whether a sentence has all of the row's first cell."""
    stop = row.text.low.index(";")
    start = row.text.low.index(":") + 1
    words = {at for at in range(start, stop) if row.stems[at] in row.content and at not in row.valued}
    values: list[TokenSpan] = [value for value in row.values if start <= value.first < stop]
    return all(row.stems[at] in ours.content for at in words) and all(
        any(is_same_value(value, other) for other in ours.values) for value in values
    )


def _has_row_label(
    ours: ParsedSentence, row: ParsedSentence, instead: str, said: str, rows: Iterable[ParsedSentence]
) -> bool:
    """Return whether `instead` is below a label that the sentence has, or that has `said` in another row.

    Without such a label, it must be the row's only number of its dimension.
    """
    label = _find_label(row, instead)
    if label and (label <= ours.content or any(_find_label(other, said) == label for other in rows)):
        return True
    place = _find_phrase(row, instead) or range(0)
    inside = [number for number in row.numbers if number.first in place]
    kin = [number for number in row.numbers if any(is_same_dimension(number.units, other.units) for other in inside)]
    return bool(inside) and kin == inside


def _find_label(row: ParsedSentence, said: str) -> frozenset[str]:
    """Return the words in the label of the row's cell that has a phrase; empty if no cell has it."""
    place, low = _find_phrase(row, said), row.text.low
    if place is None:
        return frozenset()
    start = max((at + 1 for at in range(place.start) if low[at] == ";"), default=0)
    return row.stems_in(start, next((at for at in range(start, len(low)) if low[at] == ":"), start))


def _find_phrase(sentence: ParsedSentence, phrase: str) -> range | None:
    """Return the places of a phrase's words in a sentence, side by side; None if it does not have them."""
    wanted, low = tokenize(phrase).low, sentence.text.low
    starts = (at for at in range(len(low) - len(wanted) + 1) if low[at : at + len(wanted)] == wanted)
    first = next(starts, None) if wanted else None
    return None if first is None else range(first, first + len(wanted))


def _list_stems(phrase: str, language: str) -> frozenset[str]:
    return frozenset(find_stem(low, language) for low in tokenize(phrase).low)


@cache
def load_general_words(language: str) -> frozenset[str]:
    """Return the stems of words that only join a subject to its value: "gets", "costs", "more"."""
    tables: dict[str, str] = load_table("general_words.json")
    return frozenset(find_stem(word, language) for words in tables.values() for word in words.split())
