"""Find the proper names of a sentence by their capitals, and the words that may stand for a name.

The first word of a sentence is capitalised anyway: it counts only if it is no ordinary word. A text without capitals
has no names.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources

from pipeline.support.analysis.numerals import parse_roman
from pipeline.support.analysis.parsed_sentence import ParsedSentence, strip_possessive
from pipeline.support.analysis.tokenizer import find_stem, is_word, load_function_words

_LEAST_ROOT = 4


@dataclass(frozen=True, slots=True)
class NameTables:
    """The tables, in plain lower case. Aliases of several words hold blanks."""

    titles: frozenset[str]
    particles: frozenset[str]
    aliases: Mapping[str, frozenset[str]]
    phrases: Mapping[str, frozenset[str]]
    """Aliases by a phrase of several words."""
    places: frozenset[str]
    """The first of each group of aliases: the place itself."""
    nicknames: Mapping[str, frozenset[str]]
    endings: tuple[str, ...]


@cache
def load_name_tables() -> NameTables:
    """Read the tables, once."""
    data = json.loads(resources.files(__package__).joinpath("names.json").read_text(encoding="utf-8"))
    aliases: dict[str, frozenset[str]] = {}
    for line in data["places"]:
        words, *phrases = line.split("|")
        group = frozenset([*words.split(), *phrases])
        for name in group:
            aliases[name] = aliases.get(name, frozenset()) | group
    nicknames: dict[str, frozenset[str]] = {}
    for line in data["nicknames"]:
        for name in line.split():
            nicknames[name] = nicknames.get(name, frozenset()) | frozenset(line.split())
    return NameTables(
        titles=frozenset(data["titles"].split()),
        particles=frozenset(data["particles"].split()),
        aliases=aliases,
        phrases={name: group for name, group in aliases.items() if " " in name},
        places=frozenset(line.replace("|", " ").split()[0] for line in data["places"]),
        nicknames=nicknames,
        endings=tuple(sorted(data["endings"].split(), key=len, reverse=True)),
    )


@lru_cache(maxsize=16_384)
def find_name_root(name: str) -> str:
    """Return what a place and its people share: "austri" of "Austria" and "Austrian"; at least four letters."""
    for ending in load_name_tables().endings:
        if name.endswith(ending) and len(name) - len(ending) >= _LEAST_ROOT:
            return name[: -len(ending)]
    return name


def find_aliases(word: str) -> frozenset[str]:
    """Return what may stand for a word: a country's people, its name in other languages, its short form."""
    return load_name_tables().aliases.get(word, frozenset())


@lru_cache(maxsize=16_384)
def find_spellings(word: str) -> frozenset[str]:
    """Return the words that may stand for a word of a name: other forms, a country's people, short given names."""
    known = load_name_tables()
    found = {word, word.replace(".", ""), f"{word}s", word.rpartition("'")[2]}
    found |= {alias for alias in known.aliases.get(word, ()) if " " not in alias}
    return frozenset(found | known.nicknames.get(word, frozenset()))


@lru_cache(maxsize=16_384)
def find_name_forms(word: str) -> frozenset[str]:
    """Return the spellings of a word, and each word of the phrases that may stand for it."""
    return find_spellings(word) | {part for alias in load_name_tables().aliases.get(word, ()) for part in alias.split()}


def is_demonym(word: str) -> bool:
    """Whether a word names a people or what is theirs, not a place: "French", "Danes"."""
    known = load_name_tables()
    return word in known.aliases and word not in known.places


def is_near_spelling(one: str, other: str) -> bool:
    """Whether two words of names are one, spelt in two ways: at most one letter wrong in a longer word."""
    if one == other:
        return True
    if one[:1] != other[:1] or min(len(one), len(other)) < 6 or abs(len(one) - len(other)) > 1:  # noqa: PLR2004
        return False
    start = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return (
        one[start + 1 :] == other[start + 1 :] or one[start + 1 :] == other[start:] or one[start:] == other[start + 1 :]
    )


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
class ProperName:
    """A name as it is said, its tokens, and the words of it that must be found, in plain lower case."""

    said: str
    first: int
    last: int
    parts: tuple[str, ...]
    sure: bool = True
    """Whether it is a name beyond doubt; in German, "in Frankfurt" may be none."""


@lru_cache(maxsize=4096)
def find_names(sentence: ParsedSentence) -> tuple[ProperName, ...]:
    """Return the names of a sentence in order."""
    if not _is_cased(sentence):
        return ()
    valued = {place for date in sentence.dates for place in range(date.first, date.last)}
    valued |= {place for number in sentence.numbers for place in range(number.first, number.last)}
    begins = _find_first_words(sentence)
    named = [place for place in sorted(sentence.capitals - valued) if _may_name(sentence, place, place in begins)]
    runs = _group_runs(sentence, named)
    return tuple(
        _build_name(sentence, run) for run in runs if _is_sure(sentence, run) or _is_led_by_preposition(sentence, run)
    )


def _is_cased(sentence: ParsedSentence) -> bool:
    """Whether capitals tell names: some word that a headline would capitalise has none."""
    return any(
        is_word(low) and place not in sentence.capitals and low not in _SMALL_IN_HEADLINES and low not in _CLITICS
        for place, low in enumerate(sentence.text.low)
    )


def _find_first_words(sentence: ParsedSentence) -> frozenset[int]:
    """Return the places of words that begin a sentence, behind quotation marks and after an earlier sentence, too."""
    found: list[int] = []
    begins = True
    for place, low in enumerate(sentence.text.low):
        if begins and low[0].isalnum():
            found.append(place)
        begins = low in _ENDS or (begins and not low[0].isalnum())
    return frozenset(found)


def _may_name(sentence: ParsedSentence, place: int, begins: bool) -> bool:  # noqa: FBT001 - a fact of the place
    """Whether a capitalised word may be a part of a name."""
    text, low = sentence.text, strip_possessive(sentence.text.low[place])
    word = text.words[place].removesuffix("'s")
    acronym = len(word) > 1 and word.isupper()
    titled = text.words[place + 1 + (text.at(place + 1) == ".") :][:1]
    if low in load_name_tables().titles and titled and titled[0][0].isupper():
        return False
    if parse_roman(word) and place - 1 in sentence.capitals:
        return False
    if low in load_function_words(sentence.language) and not (acronym and not begins):
        return False
    if low.split("'")[0] in {"i", "can", "don", "won", "isn", "aren", "wasn"} and "'" in low:
        return False
    return not (begins and is_ordinary_word(low)) or acronym


def _group_runs(sentence: ParsedSentence, places: list[int]) -> list[list[int]]:
    """Gather the words of one name: neighbours, or joined by a hyphen, a period or one or two particles."""
    runs: list[list[int]] = []
    for place in places:
        if runs and _is_joined(sentence, runs[-1][-1], place):
            runs[-1].append(place)
        else:
            runs.append([place])
    return runs


def _is_joined(sentence: ParsedSentence, first: int, second: int) -> bool:
    """Whether two capitalised words belong to one name, by what stands between them."""
    if sentence.text.low[first].endswith("'s") or second - first > _MOST_BETWEEN:
        return False
    return all(
        sentence.text.low[at] in _JOINTS or (at in sentence.capitals and parse_roman(sentence.text.words[at]))
        for at in range(first + 1, second)
    )


def _is_sure(sentence: ParsedSentence, run: list[int]) -> bool:
    """Whether a run is a name: in a language that capitalises its nouns, two neighbours or an acronym."""
    if sentence.language not in _CAPITALISED_NOUNS:
        return True
    return (len(run) > 1 and run[1] == run[0] + 1) or sentence.text.words[run[0]][1:].isupper()


def _is_led_by_preposition(sentence: ParsedSentence, run: list[int]) -> bool:
    """Whether a noun stands behind a preposition without an article, as names do."""
    return len(run) == 1 and sentence.text.at(run[0] - 1) in _PREPOSITIONS


def _build_name(sentence: ParsedSentence, run: list[int]) -> ProperName:
    text = sentence.text
    parts = tuple(strip_possessive(text.low[place]) for place in run)
    said = text.said(run[0], run[-1] + 1).removesuffix("'s")
    return ProperName(said, run[0], run[-1] + 1, parts, sure=_is_sure(sentence, run))


def is_ordinary_word(word: str) -> bool:
    """Whether an English word in lower case is no name, as far as a short list and its ending tell."""
    return (
        word.endswith(_ORDINARY_ENDINGS)
        or word in _load_ordinary_words()
        or find_stem(word, "en") in _load_ordinary_words()
    )


@cache
def _load_ordinary_words() -> frozenset[str]:
    words = resources.files(__package__).joinpath("ordinary.txt").read_text(encoding="utf-8").split()
    return frozenset([*words, *(find_stem(word, "en") for word in words)])
