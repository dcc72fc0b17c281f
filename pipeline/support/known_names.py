"""Which words name the same: countries and their people, short forms of given names, titles; data of `names.json`."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources

_LEAST_ROOT = 4


@dataclass(frozen=True, slots=True)
class KnownNames:
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
def known_names() -> KnownNames:
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
    return KnownNames(
        titles=frozenset(data["titles"].split()),
        particles=frozenset(data["particles"].split()),
        aliases=aliases,
        phrases={name: group for name, group in aliases.items() if " " in name},
        places=frozenset(line.replace("|", " ").split()[0] for line in data["places"]),
        nicknames=nicknames,
        endings=tuple(sorted(data["endings"].split(), key=len, reverse=True)),
    )


@lru_cache(maxsize=16_384)
def root(name: str) -> str:
    """Return what a place and its people share: "austri" of "Austria" and "Austrian"; at least four letters."""
    for ending in known_names().endings:
        if name.endswith(ending) and len(name) - len(ending) >= _LEAST_ROOT:
            return name[: -len(ending)]
    return name


def aliases(word: str) -> frozenset[str]:
    """Return what may stand for a word: a country's people, its name in other languages, its short form."""
    return known_names().aliases.get(word, frozenset())


@lru_cache(maxsize=16_384)
def spellings(word: str) -> frozenset[str]:
    """Return the words that may stand for a word of a name: other forms, a country's people, short given names."""
    known = known_names()
    found = {word, word.replace(".", ""), f"{word}s", word.rpartition("'")[2]}
    found |= {alias for alias in known.aliases.get(word, ()) if " " not in alias}
    return frozenset(found | known.nicknames.get(word, frozenset()))


@lru_cache(maxsize=16_384)
def forms(word: str) -> frozenset[str]:
    """Return the spellings of a word, and each word of the phrases that may stand for it."""
    return spellings(word) | {part for alias in known_names().aliases.get(word, ()) for part in alias.split()}


def is_people(word: str) -> bool:
    """Whether a word names a people or what is theirs, not a place: "French", "Danes"."""
    known = known_names()
    return word in known.aliases and word not in known.places


def alike(one: str, other: str) -> bool:
    """Whether two words of names are one, spelt in two ways: at most one letter wrong in a longer word."""
    if one == other:
        return True
    if one[:1] != other[:1] or min(len(one), len(other)) < 6 or abs(len(one) - len(other)) > 1:  # noqa: PLR2004
        return False
    start = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return (
        one[start + 1 :] == other[start + 1 :] or one[start + 1 :] == other[start:] or one[start:] == other[start + 1 :]
    )
