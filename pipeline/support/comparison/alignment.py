"""Align a sentence with its source, the passage sentence that shares most with it, and compare their subjects.

A sentence is refuted only if the source has another value and everything else that the sentence states. A statement
about another product, place or person does not refute it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from pipeline.support.analysis.parsed_sentence import ParsedSentence, strip_possessive
from pipeline.support.analysis.proper_names import find_name_forms
from pipeline.support.analysis.tokenizer import TokenSpan, find_stem, is_mark, load_table, tokenize
from pipeline.support.passage_facts import PassageFacts, is_same_value

_FUNCTION_WORD_WEIGHT = 0.3  # the weight of a matched function word; a content word weighs 1
_LARGEST_MATRIX = 15_000
"""Pairs of words above which two texts are not matched word by word: no sentence of prose is so long."""
_LEAST_SHARED = 0.4
_NEARLY_THE_SAME = 0.65  # the least share of a near copy's words that its source has in the same order
_SPARE = 4  # how many tokens more the source may have in a gap that is tight


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

    The rest of the sentence must be in the source or in a row that has `instead`, in the titles of its page or, if a
    pronoun begins the source, in the sentences before it.
    """
    ours, source, titles = alignment.sentence, alignment.source, facts.context.sentences
    rows = [row for row in facts.sentences if row.is_row and _find_phrase(row, instead)]
    if source.is_row or (rows and not _find_phrase(source, instead)):
        return any(_covers_rest(ours, said, (row, *titles)) for row in rows)
    place = _find_phrase(source, instead)
    narrowed = place is not None and _narrows(ours, source, place, said)
    return not narrowed and _covers_rest(ours, said, (source, *titles, *facts.find_antecedents(source)))


def _narrows(ours: ParsedSentence, theirs: ParsedSentence, place: range, said: str) -> bool:
    """Return whether a value's clause has words that the sentence lacks: "a premium member", but not "each member"."""
    free = ours.content | _list_stems(said, ours.language) | load_general_words(ours.language)
    clause = next((range(*span) for span in theirs.clauses if place.start in range(*span)), place)
    first = next((at for at in clause if theirs.stems[at] in ours.content & theirs.content), place.start)
    known = {*theirs.valued, *(at + 1 for at, low in enumerate(theirs.text.low) if low in {"each", "every", "per"})}
    rest = [at for at in clause if at not in known and (at < first or at >= place.stop)]
    return any(theirs.stems[at] in theirs.content - free for at in rest)


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
