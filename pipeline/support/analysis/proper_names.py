"""Find the proper names of a sentence by their capitals, and the words that may replace a name.

A sentence's first word is always capitalised, so it counts only if it is not an ordinary word. A text without capitals
has no names.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

from pipeline.support.analysis.numerals import parse_roman
from pipeline.support.analysis.parsed_sentence import ParsedSentence, strip_possessive
from pipeline.support.analysis.tokenizer import (
    TokenSpan,
    find_stem,
    is_letter_label,
    is_word,
    load_function_words,
    load_table,
    read_data,
)

_LEAST_ROOT = 4
_LEAST_MISSPELT = 6
_CAPITALISED_NOUNS = frozenset({"de", "lb"})
_JOINTS = frozenset({
    "of", "the", "de", "la", "von", "van", "der", "den", "del", "di", "du", "dos", "das", "al", "ibn", "bin", "-", ".",
})  # fmt: skip
_PREPOSITIONS = frozenset({"in", "nach", "aus", "von", "bei", "gegen", "fur", "durch", "uber"})
_MOST_BETWEEN = 3
_ENDS = frozenset(".!?…")
_CONTRACTED = frozenset({"i", "can", "don", "won", "isn", "aren", "wasn"})
_SMALL_IN_HEADLINES = frozenset({
    "a", "an", "the", "of", "in", "on", "at", "to", "for", "and", "or", "by", "with", "from", "as", "but", "nor",
    "vs", "over", "into", "s", "'s", "n't",
})  # fmt: skip
_ORDINARY_ENDINGS = (
    "ing", "ly", "tion", "ness", "ment", "ious", "able", "ible", "ive", "ity", "ful", "less", "ology", "ism",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ProperName(TokenSpan):
    """A name as written, and its words that a passage must have, in plain lower case."""

    parts: tuple[str, ...]
    sure: bool = True  # whether it is surely a name; in German, every noun has a capital


@lru_cache(maxsize=4096)
def find_names(sentence: ParsedSentence) -> tuple[ProperName, ...]:
    text, capitals = sentence.text, sentence.capitals
    if not any(
        is_word(low) and place not in capitals and low not in _SMALL_IN_HEADLINES for place, low in enumerate(text.low)
    ):
        return ()  # a headline, or a text whose capitals mean nothing
    runs: list[list[int]] = []
    for place in _find_capitalised(sentence):
        if runs and _is_joined(sentence, runs[-1][-1], place):
            runs[-1].append(place)
        else:
            runs.append([place])
    glued = [(at.first, at.last + 1) for at in sentence.numbers if at.named]  # "12things"
    spelt = [(place, strip_possessive(text.said(*place))) for place in glued]
    found = [ProperName(name, *place, (name.lower(),)) for place, name in spelt]
    for run in runs:
        first, last = run[0], run[-1] + 1
        neighbours = len(run) > 1 and run[1] == first + 1
        sure = sentence.language not in _CAPITALISED_NOUNS or neighbours or text.words[first][1:].isupper()
        if sure or (len(run) == 1 and text.at(first - 1) in _PREPOSITIONS):
            parts = tuple(strip_possessive(text.low[place]) for place in run)
            found.append(ProperName(strip_possessive(text.said(first, last)), first, last, parts, sure=sure))
    return tuple(found)


def _find_capitalised(sentence: ParsedSentence) -> list[int]:
    """Return the places of capitalised words that may be parts of a name.

    A word at the start of a sentence, quotation marks aside, must not be an ordinary word.
    """
    found: list[int] = []
    begins = True
    for place, low in enumerate(sentence.text.low):
        named = place in sentence.capitals and place not in sentence.valued
        if named and _may_name(sentence, place, begins=begins and low[0].isalnum()):
            found.append(place)
        begins = low in _ENDS or (begins and not low[0].isalnum())
    return found


def _may_name(sentence: ParsedSentence, place: int, *, begins: bool) -> bool:
    text, low = sentence.text, strip_possessive(sentence.text.low[place])
    word = strip_possessive(text.words[place])
    acronym = len(word) > 1 and word.isupper()
    titled = text.words[place + 1 + (text.at(place + 1) == ".") :][:1]
    if low in load_name_tables().titles and titled and titled[0][0].isupper():
        return False
    if text.glued(place + 1) and text.at(place + 1) == "$":
        return False  # "C$110"
    if parse_roman(word) and place - 1 in sentence.capitals:
        return False
    if low in load_function_words(sentence.language) and not (acronym and not begins):
        return is_letter_label(text, place)
    if "'" in low and low.split("'")[0] in _CONTRACTED:
        return False
    return acronym or not (begins and is_ordinary_word(low))


def _is_joined(sentence: ParsedSentence, first: int, second: int) -> bool:
    """Return whether two capitalised words belong to one name: neighbours, or joined by a mark, numeral or particle."""
    low, words = sentence.text.low, sentence.text.words
    if low[first].endswith("'s") or second - first > _MOST_BETWEEN:
        return False
    return all(
        low[at] in _JOINTS or (at in sentence.capitals and parse_roman(words[at])) for at in range(first + 1, second)
    )


@lru_cache(maxsize=65_536)
def is_ordinary_word(word: str) -> bool:
    """Return whether an English word in lower case is not a name, by a short list and by its ending."""
    known = _load_ordinary_words()
    return word.endswith(_ORDINARY_ENDINGS) or word in known or find_stem(word, "en") in known


@cache
def _load_ordinary_words() -> frozenset[str]:
    words = read_data("ordinary.txt").split()
    return frozenset([*words, *(find_stem(word, "en") for word in words)])


@dataclass(frozen=True, slots=True)
class NameTables:
    """Words of names, in plain lower case. Aliases of several words hold blanks."""

    titles: frozenset[str]
    particles: frozenset[str]
    speakers: frozenset[str]  # words by which a page's authors mean themselves: "we", "our"
    speaker_leads: frozenset[str]  # words that may precede such a word
    aliases: Mapping[str, frozenset[str]]
    places: frozenset[str]  # the first of each group of aliases: the place itself
    nicknames: Mapping[str, frozenset[str]]
    endings: tuple[str, ...]


@cache
def load_name_tables() -> NameTables:
    data = load_table("names.json")
    places = [words.split() + phrases for words, *phrases in (line.split("|") for line in data["places"])]
    return NameTables(
        titles=frozenset(data["titles"].split()),
        particles=frozenset(data["particles"].split()),
        speakers=frozenset(data["speakers"].split()),
        speaker_leads=frozenset(data["speaker_leads"].split()),
        aliases=_unite_groups(places),
        places=frozenset(group[0] for group in places),
        nicknames=_unite_groups([line.split() for line in data["nicknames"]]),
        endings=tuple(sorted(data["endings"].split(), key=len, reverse=True)),
    )


def _unite_groups(groups: list[list[str]]) -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for group in groups:
        for name in group:
            found[name] = found.get(name, frozenset()) | frozenset(group)
    return found


@lru_cache(maxsize=16_384)
def find_name_root(name: str) -> str:
    """Return the root that a place and its people share, of at least four letters: "austri" for "Austrian"."""
    for ending in load_name_tables().endings:
        if name.endswith(ending) and len(name) - len(ending) >= _LEAST_ROOT:
            return name[: -len(ending)]
    return name


def find_aliases(name: str) -> frozenset[str]:
    """Return the other forms of a name: a country's people, its name in other languages, its short form."""
    return load_name_tables().aliases.get(name, frozenset())


@lru_cache(maxsize=16_384)
def find_spellings(word: str) -> frozenset[str]:
    """Return the other spellings of a word of a name: its forms, a country's people, short given names."""
    spellings = {word, word.replace(".", ""), f"{word}s", word.rpartition("'")[2]}
    spellings |= {alias for alias in find_aliases(word) if " " not in alias}
    return frozenset(spellings | load_name_tables().nicknames.get(word, frozenset()))


@lru_cache(maxsize=16_384)
def find_name_forms(word: str) -> frozenset[str]:
    """Return the spellings of a word, and each word of the phrases that may replace it."""
    return find_spellings(word) | {part for alias in find_aliases(word) for part in alias.split()}


def is_demonym(word: str) -> bool:
    """Return whether a word names a people or describes their things, not a place: "French", "Danes"."""
    return bool(find_aliases(word)) and word not in load_name_tables().places


def is_abbreviation(short: str, word: str) -> bool:
    """Return whether a shorter word has the first letter and others of a word, in order: "brig", "lt", "dept"."""
    letters = iter(word)
    return 1 < len(short) < len(word) and short[0] == word[0] and all(letter in letters for letter in short)


def is_near_spelling(one: str, other: str) -> bool:
    """Return whether two name words are spellings of one: equal, or different in one letter of a longer word."""
    shortest = min(len(one), len(other))
    if one == other:
        return True
    if one[:1] != other[:1] or shortest < _LEAST_MISSPELT or abs(len(one) - len(other)) > 1:
        return False
    start = next((at for at in range(shortest) if one[at] != other[at]), shortest)
    return one[start + 1 :] in {other[start + 1 :], other[start:]} or one[start:] == other[start + 1 :]
