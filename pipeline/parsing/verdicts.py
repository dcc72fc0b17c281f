"""Verdicts on several claims, each before its reason, as they arrive: `1. SUPPORTS [2, 3] Both sentences say so.` Pure.

Unlike `verdict`, where the reason comes first, a verdict here is certain before its reason is written, so that nobody
need wait for that. What a verdict is, and what takes it back, is told as there.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from pipeline.errors import UnreadableReply
from pipeline.parsing.reading import numbers
from pipeline.parsing.verdict import ANY, HEDGED, Verification, mentioned, verdict_of, verification
from storage.types import Verdict

_MARKS = re.compile(r"[*_: \t]*((?:(?:\[[^\]\n]*\]|\([\d,;& –-]+\))[,; \t]*)*)")
_LEAD = r"^[ \t*_>#-]*"
_NUMBER = r"[(\[]?(?:claim\s+)?(\d{1,2})\s*[.):\]–-]\s*[*_]*"
# In small letters a verdict may be a word of running text: “Support for it is missing.”
_VERDICT = rf"({ANY})(?=[^\w-])(?:(?-i:(?<=[A-Z]))|(?=[^\S\n]*[\[(.,:;*_–\n-]))"
_HEAD = rf"{_LEAD}{_NUMBER}(?:verdict\s*[:=]\s*[*_]*)?{_VERDICT}"
_LONE_HEAD = rf"{_LEAD}(?:{_NUMBER}(?:verdict\s*[:=]\s*[*_]*)?|[*_]*){_VERDICT}"
_WORD = re.compile(r"[^\w\[]*\w+[^\w]")
_MAY_HEDGE = re.compile(r"\W*(?:in|to|not)\b", re.IGNORECASE)
_HEDGE_WORDS = 4
"""Words after which “in part”, “to some extent” or “NOT ENOUGH INFO” would have been said."""
_ANOTHER = re.compile(rf"\W*({ANY})(?![\w-])")
_ASKED = re.compile(r"\W*?[?/]")


@dataclass(frozen=True, slots=True)
class Ruling:
    """What was found of one claim."""

    claim: int
    """Its number, from 1."""
    found: Verification
    """Without its reasoning until that is whole."""
    whole: bool
    """Whether its reasoning has ended. Each claim has a ruling that has not, and then one that has."""


class VerdictSplitter:
    """Cuts a reply on `claims` claims by `sentences` numbered sentences into rulings, as soon as each is certain."""

    def __init__(self, claims: int, sentences: int, *, reasoned: bool = True) -> None:
        self._claims = claims
        self._sentences = sentences
        self._whole = verification(sentences, reasoned=reasoned)
        self._head = re.compile(_LONE_HEAD if claims == 1 else _HEAD, re.IGNORECASE | re.MULTILINE)
        self._begin()

    def _begin(self) -> None:
        self._text = ""
        self._ruled: dict[int, Verification] = {}
        self._ended: set[int] = set()

    def feed(self, piece: str) -> tuple[Ruling, ...]:
        """Take the next stretch; return the rulings that are certain now and were not before."""
        self._text += piece
        return tuple(self._news(ended=False))

    def close(self) -> tuple[Ruling, ...]:
        """Return what is left, and be ready for another reply.

        Raises:
            UnreadableReply: no verdict was given on any claim.
        """
        self._text += "\n"  # only what follows a word shows that it is whole
        try:
            news = tuple(self._news(ended=True))
            if not self._ruled:
                return self._read_whole()
            return news
        finally:
            self._begin()

    def _read_whole(self) -> tuple[Ruling, ...]:
        """Read a reply that has its verdict elsewhere, where it can only be the one claim's."""
        if self._claims > 1:
            raise UnreadableReply("no line opens with the number of a claim and its verdict, such as “1. SUPPORTS [2]”")
        found = self._whole.from_text(self._text)
        return Ruling(1, replace(found, reasoning=""), whole=False), Ruling(1, found, whole=True)

    def _news(self, *, ended: bool) -> Iterator[Ruling]:
        heads, seen = list(self._head.finditer(self._text)), set[int]()
        for place, head in enumerate(heads):
            number, last = int(head[1] or 1), place + 1 == len(heads)
            if not 1 <= number <= self._claims or number in self._ended | seen:
                continue
            seen.add(number)  # of several verdicts on one claim the first is looked at
            rest, over = self._text[head.end() : None if last else heads[place + 1].start()], ended or not last
            if number not in self._ruled:
                found = self._found(head[2], rest, over=over)
                if found is None:
                    continue
                self._ruled[number] = found
                yield Ruling(number, found, whole=False)
            if over:
                self._ended.add(number)
                yield Ruling(number, replace(self._ruled[number], reasoning=_reason(rest)), whole=True)

    def _found(self, said: str, rest: str, *, over: bool) -> Verification | None:
        """Return a verdict by what stands behind it so far; None while that may still change it, and if it is none."""
        verdict, (marks, reason) = verdict_of(said), _parted(rest)
        if not (over or "\n" in rest or (_WORD.match(reason) and not _undecided(reason))):
            return None
        if any(_taken_back(verdict, text.partition("\n")[0]) for text in (rest, reason)):
            return Verification(Verdict.NOT_ENOUGH_INFO)
        if verdict is Verdict.NOT_ENOUGH_INFO:
            return Verification(verdict)
        named = numbers(marks, self._sentences)
        if not named and not over:
            return None
        named = named or mentioned(reason, self._sentences) or ((1,) if self._sentences == 1 else ())
        return Verification(verdict, named) if named or verdict is Verdict.REFUTES else None


def _taken_back(verdict: Verdict, following: str) -> bool:
    """Return whether what follows a verdict hedges it, asks, or gives another: “SUPPORTS [1] / REFUTES”."""
    another = _ANOTHER.match(following)
    return bool(HEDGED.match(following) or _ASKED.match(following) or (another and verdict_of(another[1]) != verdict))


def _undecided(reason: str) -> bool:
    """Return whether a reason that has just begun may turn out to take its verdict back: “in part”, “to some …”."""
    return bool(_MAY_HEDGE.match(reason)) and len(reason.split()) < _HEDGE_WORDS


def _parted(rest: str) -> tuple[str, str]:
    """Return the numbers in brackets behind a verdict, and what follows them."""
    found = _MARKS.match(rest)
    return (found[1], rest[found.end() :]) if found else ("", rest)


def _reason(rest: str) -> str:
    return " ".join(_parted(rest)[1].split()).strip(" -–—:*_")
