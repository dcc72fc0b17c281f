"""Whether passages say a name: its words in any spelling, its first letters, a surname without its given names."""

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise

from pipeline.support.facts import Facts
from pipeline.support.known_names import aliases, alike, known_names, root, spellings
from pipeline.support.names import Name, is_ordinary
from pipeline.support.reading import PassageReading, without_possessive
from pipeline.support.tokens import stem

_LEAST_GLUED = 6
_ACRONYM = re.compile(r"[a-z]{2,6}")


def says_name(facts: Facts, name: Name) -> bool:
    """Whether the passages say a name: each of its words, a spelling of it, or what may stand for it."""
    missing = [word for word in name.parts if not _says_word(facts, word)]
    if not missing:
        return True
    return _says_whole(facts, name) or _only_given_names(facts, name, missing)


def _says_word(facts: Facts, word: str) -> bool:
    """Whether a passage says a word, another form of it, what it abbreviates, or what may stand for it."""
    known, plain = spellings(word), word.replace(".", "")
    everything = facts.everything
    if any(not known.isdisjoint(part.words) or stem(word, "en") in part.stems for part in everything):
        return True
    if any(_akin(word, other) for part in everything for other in part.capitals):
        return True
    if _ACRONYM.fullmatch(plain) and any(plain in initials for part in everything for initials in _initials(part)):
        return True
    if any(" " in alias and f" {alias} " in part.joined for alias in aliases(word) for part in everything):
        return True
    return len(word) >= _LEAST_GLUED and any(word.removesuffix("s") in _glued(part) for part in everything)


def _akin(word: str, other: str) -> bool:
    """Whether two words have one root or differ by a letter, unless both are known, and known to be different."""
    return (root(word) == root(other) or alike(word, other)) and not (aliases(word) and aliases(other))


@lru_cache(maxsize=2048)
def _glued(part: PassageReading) -> frozenset[str]:
    """Return what two or three neighbouring words give written together: "spiderman" of "Spider-Man"."""
    low = [word for word in part.joined.split() if word[0].isalnum()]
    pairs = [one + two for one, two in pairwise(low)]
    return frozenset([*pairs, *(pair + word for pair, word in zip(pairs, low[2:], strict=False))])


@lru_cache(maxsize=2048)
def _initials(part: PassageReading) -> tuple[str, ...]:
    """Return the first letters of each run of capitalised words, small words between them left out."""
    found: list[str] = []
    for sentence in part.sentences:
        letters = ""
        for place, low in enumerate(sentence.text.low):
            if place in sentence.capitals:
                letters += low[0]
            elif low not in known_names().particles:
                found.append(letters)
                letters = ""
        found.append(letters)
    return tuple(letters for letters in found if len(letters) > 1)


def _says_whole(facts: Facts, name: Name) -> bool:
    """Whether the passages say a name of several words as one: by its first letters, an alias, or written together."""
    initials = "".join(word[0] for word in name.parts)
    together = "".join(filter(str.isalnum, "".join(name.parts)))
    aliases = known_names().phrases.get(" ".join(name.parts), frozenset())
    for part in facts.everything:
        if len(initials) > 1 and initials in part.acronyms:
            return True
        if together in part.words or together in _glued(part) or not aliases.isdisjoint(part.words):
            return True
        if any(" " in alias and f" {alias} " in part.joined for alias in aliases):
            return True
    return False


def _only_given_names(facts: Facts, name: Name, missing: Iterable[str]) -> bool:
    """Whether only words before a surname are missing, and the passages give that surname no other ones."""
    surname = name.parts[-1]
    if not name.parts[:-1] or surname in missing or name.last - name.first != len(name.parts) or is_ordinary(surname):
        return False
    if not any(surname in part.capitals for part in facts.everything):
        return False
    given = known_given(name.parts[:-1])
    return all(
        word in given or (len(word) == 1 and any(one.startswith(word) for one in name.parts))
        for part in facts.everything
        for word in _before(part, surname)
    )


def known_given(words: Iterable[str]) -> frozenset[str]:
    """Return given names with their short forms."""
    return frozenset(form for word in words for form in known_names().nicknames.get(word, frozenset([word])))


@lru_cache(maxsize=4096)
def _before(part: PassageReading, surname: str) -> frozenset[str]:
    """Return the capitalised words that stand before a surname, without titles."""
    found: set[str] = set()
    for sentence in part.sentences:
        low = sentence.text.low
        for place, word in enumerate(low):
            before = place - 1
            while without_possessive(word) == surname and (
                before in sentence.capitals or low[before : before + 1] == (".",)
            ):
                if (
                    low[before] != "."
                    and low[before] not in known_names().titles
                    and not (before == 0 and is_ordinary(low[0]))
                ):
                    found.add(low[before].rstrip("."))
                before -= 1
    return frozenset(found)
