"""The proper names that a sentence says, told by their capitals; where a language or a text has none, none are seen.

The first word of a sentence is capitalised anyway: it counts only if it is no ordinary word.
"""

from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources

from pipeline.support.known_names import known_names
from pipeline.support.numerals import roman
from pipeline.support.reading import Reading, without_possessive
from pipeline.support.tokens import function_words, is_word, stem

_CAPITALISED_NOUNS = frozenset({"de", "lb"})
_JOINTS = frozenset({
    "of", "the", "de", "la", "von", "van", "der", "den", "del", "di", "du", "dos", "das", "al", "ibn", "bin", "-", ".",
})  # fmt: skip
_PREPOSITIONS = frozenset({"in", "nach", "aus", "von", "bei", "gegen", "fur", "durch", "uber"})
_MOST_BETWEEN = 3
_ENDS = frozenset(".!?…")
_CLITICS = frozenset({"s", "'s", "n't"})
_SMALL_IN_HEADLINES = frozenset({
    "a", "an", "the", "of", "in", "on", "at", "to", "for", "and", "or", "by", "with", "from", "as", "but", "nor",
    "vs", "over", "into",
})  # fmt: skip
_ORDINARY_ENDINGS = (
    "ing",
    "ly",
    "tion",
    "ness",
    "ment",
    "ious",
    "able",
    "ible",
    "ive",
    "ity",
    "ful",
    "less",
    "ology",
    "ism",
)


@dataclass(frozen=True, slots=True)
class Name:
    """A name as it is said, its tokens, and the words of it that must be found, in plain lower case."""

    said: str
    first: int
    last: int
    parts: tuple[str, ...]
    sure: bool = True
    """Whether it is a name beyond doubt; in German, "in Frankfurt" may be none."""


@lru_cache(maxsize=4096)
def names(sentence: Reading) -> tuple[Name, ...]:
    """Return the names of a sentence in order."""
    if not _is_cased(sentence):
        return ()
    valued = {place for date in sentence.dates for place in range(date.first, date.last)}
    valued |= {place for number in sentence.numbers for place in range(number.first, number.last)}
    begins = _first_words(sentence)
    named = [place for place in sorted(sentence.capitals - valued) if _may_name(sentence, place, place in begins)]
    runs = _runs(sentence, named)
    return tuple(_name(sentence, run) for run in runs if _is_sure(sentence, run) or _led(sentence, run))


def _is_cased(sentence: Reading) -> bool:
    """Whether capitals tell names: some word that a headline would capitalise has none."""
    return any(
        is_word(low) and place not in sentence.capitals and low not in _SMALL_IN_HEADLINES and low not in _CLITICS
        for place, low in enumerate(sentence.text.low)
    )


def _first_words(sentence: Reading) -> frozenset[int]:
    """Return the places of words that begin a sentence, behind quotation marks and after an earlier sentence, too."""
    found: list[int] = []
    begins = True
    for place, low in enumerate(sentence.text.low):
        if begins and low[0].isalnum():
            found.append(place)
        begins = low in _ENDS or (begins and not low[0].isalnum())
    return frozenset(found)


def _may_name(sentence: Reading, place: int, begins: bool) -> bool:  # noqa: FBT001 - a fact of the place
    """Whether a capitalised word may be a part of a name."""
    text, low = sentence.text, without_possessive(sentence.text.low[place])
    word = text.words[place].removesuffix("'s")
    acronym = len(word) > 1 and word.isupper()
    titled = text.words[place + 1 + (text.at(place + 1) == ".") :][:1]
    if low in known_names().titles and titled and titled[0][0].isupper():
        return False
    if roman(word) and place - 1 in sentence.capitals:
        return False
    if low in function_words(sentence.language) and not (acronym and not begins):
        return False
    if low.split("'")[0] in {"i", "can", "don", "won", "isn", "aren", "wasn"} and "'" in low:
        return False
    return not (begins and is_ordinary(low)) or acronym


def _runs(sentence: Reading, places: list[int]) -> list[list[int]]:
    """Gather the words of one name: neighbours, or joined by a hyphen, a period or one or two particles."""
    runs: list[list[int]] = []
    for place in places:
        if runs and _joined(sentence, runs[-1][-1], place):
            runs[-1].append(place)
        else:
            runs.append([place])
    return runs


def _joined(sentence: Reading, first: int, second: int) -> bool:
    """Whether two capitalised words belong to one name, by what stands between them."""
    if sentence.text.low[first].endswith("'s") or second - first > _MOST_BETWEEN:
        return False
    return all(
        sentence.text.low[at] in _JOINTS or (at in sentence.capitals and roman(sentence.text.words[at]))
        for at in range(first + 1, second)
    )


def _is_sure(sentence: Reading, run: list[int]) -> bool:
    """Whether a run is a name: in a language that capitalises its nouns, two neighbours or an acronym."""
    if sentence.language not in _CAPITALISED_NOUNS:
        return True
    return (len(run) > 1 and run[1] == run[0] + 1) or sentence.text.words[run[0]][1:].isupper()


def _led(sentence: Reading, run: list[int]) -> bool:
    """Whether a noun stands behind a preposition without an article, as names do."""
    return len(run) == 1 and sentence.text.at(run[0] - 1) in _PREPOSITIONS


def _name(sentence: Reading, run: list[int]) -> Name:
    text = sentence.text
    parts = tuple(without_possessive(text.low[place]) for place in run)
    said = text.said(run[0], run[-1] + 1).removesuffix("'s")
    return Name(said, run[0], run[-1] + 1, parts, sure=_is_sure(sentence, run))


def is_ordinary(word: str) -> bool:
    """Whether an English word in lower case is no name, as far as a short list and its ending tell."""
    return word.endswith(_ORDINARY_ENDINGS) or word in _ordinary() or stem(word, "en") in _ordinary()


@cache
def _ordinary() -> frozenset[str]:
    words = resources.files(__package__).joinpath("ordinary.txt").read_text(encoding="utf-8").split()
    return frozenset([*words, *(stem(word, "en") for word in words)])
