"""Names: another of the same kind put in the place of one, and who did what to whom turned round.

What a name names is guessed from its words and from what stands before it. A wrong guess makes a stranger sentence, no
less false.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from random import Random

from evaluation.claims.changes.types import Change, Changer, replaced, shuffled, vocabulary
from storage.language.words import plain, stop_words

_OF_A_PLACE = frozenset({"in", "at", "near", "from", "around", "across", "throughout", "to"})
_ADJECTIVE = re.compile(r".{2,}(?:ian|ean|ish|ese|can|man|ic|ch)s?")
_WHOLE = re.compile(r"[.,;)]|['’]?\s(?!of\b|for\b)[a-z]+\s|\Z")
"""What follows a name that is not the beginning of a longer one."""
_LONGEST_PERSON = 4
_PARTLY = 0.3
"""How often only one word of a longer name is changed."""


@dataclass(frozen=True, slots=True)
class Name:
    """A name where it stands in a text, and what it seems to name."""

    span: tuple[int, int]
    text: str
    kind: str

    @property
    def words(self) -> list[str]:
        """Its words without particles."""
        return [word for word in self.text.split() if word[0].isupper()]


def names(text: str) -> list[Name]:
    """Return the names of a text in order: capitalised words, several together; no single word that opens the text."""
    found = []
    for match in _pattern().finditer(text):
        start, end = match.span()
        while " " in text[start:end] and _opens(text[start:end].partition(" ")[0]):
            start = text.index(" ", start) + 1
        end -= len("'s") * text[start:end].endswith(("'s", "’s"))
        name = text[start:end]
        usual = not any(char.isdigit() for char in name) and not {*name.split()} & {*vocabulary()["months"]}
        if usual and name[0].isupper() and not _opens(name) and (start > 0 or " " in name):
            found.append(Name((start, end), name, _kind(text, start, end)))
    return found


def swapper(pool: Sequence[Name]) -> Changer:
    """Return the change of a name for another of its kind out of `pool`, of as many words where there are any."""
    by_kind: dict[tuple[str, int], list[Name]] = {}
    for name in {name.text: name for name in pool}.values():
        by_kind.setdefault((name.kind, len(name.words)), []).append(name)

    def swapped(text: str, rng: Random) -> Iterator[Change]:
        for name in shuffled(names(text), rng):
            for other in shuffled(by_kind.get((name.kind, len(name.words)), []), rng):
                new = other.text
                if len(name.words) > 1 and rng.random() < _PARTLY:
                    new = " ".join([*name.text.split()[:-1], other.words[-1]])
                changed = [word for word in new.split() if word[0].isupper() and word not in name.words]
                if changed:
                    yield replaced(text, name.span, new, changed)

    return swapped


def turned(text: str, rng: Random) -> Iterator[Change]:
    """Turn round who did what to whom, or whence and whither."""
    for first, second in shuffled([*pairwise(names(text))], rng):
        between = text[first.span[1] : second.span[0]]
        travelled = between == " to " and _moved().search(text[: first.span[0]])
        acted = _deed().fullmatch(between) and first.kind == second.kind != "adjective"
        if (travelled or acted) and _WHOLE.match(text[second.span[1] :]):
            yield replaced(text, (first.span[0], second.span[1]), f"{second.text}{between}{first.text}")


def _opens(word: str) -> bool:
    """Return whether a word has its capital from opening a sentence, or is only an article of a name."""
    acronym = len(word) > 1 and word.isupper()
    return not acronym and (plain(word) in stop_words("en") or word.lower() in vocabulary()["openings"])


def _kind(text: str, start: int, end: int) -> str:
    words = text[start:end].split()
    before = text[:start].split()[-1:]
    if {*words} & {*vocabulary()["organisations"]}:
        return "organisation"
    if {*words} & {*vocabulary()["places"]}:
        return "place"
    if len(words) == 1 and _ADJECTIVE.fullmatch(words[0]) and re.match(r" [a-z]", text[end:]):
        return "adjective"
    if before and before[0].lower() in _OF_A_PLACE:
        return "place"
    return "person" if 1 < len(words) < _LONGEST_PERSON else "other"


@lru_cache(maxsize=1)
def _pattern() -> re.Pattern[str]:
    capitalised = r"[^\W\d_a-zß-öø-ÿ](?:[\w’'-]*\w)?(?:(?<=\b\w)\.)?"
    particles = "|".join(vocabulary()["particles"])
    return re.compile(rf"(?<![\w.’'-]){capitalised}(?: (?:(?:{particles}) )*{capitalised})*")


@lru_cache(maxsize=1)
def _moved() -> re.Pattern[str]:
    """Return what stands before whence somebody moved; other things from here to there are the same turned round."""
    return re.compile(rf"\b(?:{'|'.join(vocabulary()['moves'])})\b(?: [\w’'-]+){{0,5}}? from(?: the)? \Z")


@lru_cache(maxsize=1)
def _deed() -> re.Pattern[str]:
    deeds = "|".join(vocabulary()["deeds"])
    helpers = "had|has|have|later|also|then|was|were|is|been|twice|once"
    return re.compile(rf" (?:(?:{helpers}) ){{0,3}}(?:{deeds})(?: by)?(?: the)? ")
