"""Align a sentence with the passage sentence that it follows most closely, token by token."""

from dataclasses import dataclass
from itertools import pairwise

from pipeline.support.analysis.parsed_sentence import ParsedSentence
from pipeline.support.analysis.tokenizer import is_mark
from pipeline.support.passage_facts import PassageFacts

_FUNCTION_WORD_WEIGHT = 0.3  # how much a matched function word weighs beside a word of substance
_LARGEST_MATRIX = 15_000
"""Pairs of words above which two texts are not matched word by word: no sentence of prose is so long."""
_LEAST_SHARED = 0.4
_NEARLY_THE_SAME = 0.65  # the share of a sentence's words that its source has in the same order, as far as words match
_SPARE = 4  # how many tokens more the source may have in a gap that is tight


@dataclass(frozen=True, slots=True)
class Gap:
    """Two stretches of tokens that stand between the same matched words: `said` in the sentence, `given` in the source.

    `tight` says that the source has hardly more there than the sentence has.
    """

    said: tuple[int, int]
    given: tuple[int, int]
    tight: bool


@dataclass(frozen=True, slots=True)
class Alignment:
    """A sentence beside the passage sentence that it follows."""

    sentence: ParsedSentence
    source: ParsedSentence
    pairs: tuple[tuple[int, int], ...]  # matched tokens, in order
    coverage: float
    """The share of the sentence's words of substance that the source has, or that are names said elsewhere."""

    @property
    def is_near_copy(self) -> bool:
        """Return whether the sentence all but repeats its source, so that what differs was changed."""
        return len(self.pairs) >= _NEARLY_THE_SAME * sum(map(bool, self.sentence.stems))

    def coverage_without(self, first: int, last: int) -> float:
        """Return the coverage of a sentence without what its tokens from `first` to `last` say."""
        rest = self.sentence.content.difference(self.sentence.stems[first:last])
        return len(rest & self.source.content) / len(rest) if rest else 0.0

    def place_of(self, first: int, last: int, *, phrase: bool = False) -> Gap:
        """Return what the source has in the place of the tokens from `first` to `last`, matched ones among them.

        Where no match follows, that is all the rest of the source, or with `phrase` all up to the next mark.
        """
        before = max((pair for pair in self.pairs if pair[0] < first), default=(-1, -1))
        after = min((pair for pair in self.pairs if pair[0] >= last), default=None)
        if after is None:
            end = _find_phrase_end(self.source, before[1] + 1) if phrase else len(self.source.text)
            after = len(self.sentence.text), end
        return _build_gap(before, after)

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """Return what stands between matched words, where either text has something there."""
        ends = [(-1, -1), *self.pairs, (len(self.sentence.text), len(self.source.text))]
        return tuple(_build_gap(one, two) for one, two in pairwise(ends) if two[0] - one[0] > 1 or two[1] - one[1] > 1)


def _build_gap(one: tuple[int, int], two: tuple[int, int]) -> Gap:
    return Gap((one[0] + 1, two[0]), (one[1] + 1, two[1]), two[1] - one[1] <= two[0] - one[0] + _SPARE)


def _find_phrase_end(source: ParsedSentence, start: int) -> int:
    """Return where the phrase ends that begins at a token: at a mark or small word behind words of substance."""
    inside = False
    for place in range(start, len(source.text)):
        substance = source.stems[place] in source.content
        if inside and not substance and (source.stems[place] or is_mark(source.text.low[place])):
            return place
        inside = inside or substance
    return len(source.text)


def align(sentence: ParsedSentence, facts: PassageFacts) -> Alignment | None:
    """Return the sentence beside the passage sentence with which it shares most; None where none shares enough."""
    content = sentence.content
    source = max(facts.sentences, key=lambda one: (len(content & one.content), -len(one.content)), default=None)
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
