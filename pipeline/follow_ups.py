"""What a question leaves unsaid because it was said before: "and when did it open?", "what about part-timers?". Pure.

Rules, not a model: a question that opens like a continuation, has a pronoun with nothing before it that it could mean,
or has no word of substance, borrows the names and the words of substance of the questions before it and the title of
the page that was cited last. A question with a topic of its own is left alone. The words stand in `follow_ups.json`.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

from pipeline.types import Conversation, Turn
from storage.language.detect import detect
from storage.language.scripts import is_unspaced
from storage.language.words import content_terms, words

REACH = 3
"""How many earlier questions a follow-up may borrow from."""
BOUND = 2
"""So many words of substance before a pronoun, and it means one of them."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question as it was asked, and the words of earlier turns that it stands on."""

    text: str
    borrowed: str = ""

    @property
    def query(self) -> str:
        """What to look up."""
        return f"{self.text} {self.borrowed}".strip()


@dataclass(frozen=True, slots=True)
class _Rules:
    """One language's rules."""

    openers: re.Pattern[str]
    pronouns: re.Pattern[str]
    harmless: re.Pattern[str]
    vague: frozenset[str]


def resolve(talk: Conversation) -> Question:
    """Return the conversation's question with what it borrows from the turns before it."""
    asked = talk.question
    earlier = [turn for turn in talk.earlier if turn.speaker == "user"][-REACH:]
    if not earlier or not leans(asked):
        return Question(asked.text)
    borrowed: list[str] = []
    for turn in reversed(earlier):
        borrowed += _substance(turn)
        if not leans(turn):
            break
    titles = next((turn.titles[:1] for turn in reversed(talk.earlier) if turn.titles), ())
    return Question(asked.text, " ".join(_new_words([*borrowed, *titles], asked.text)))


def leans(turn: Turn) -> bool:
    """Return whether a turn cannot be understood without what was said before."""
    language = _language(turn)
    rules = _rules(language)
    text = rules.harmless.sub(" ", " ".join(turn.text.casefold().split()))
    if rules.openers.match(text):
        return True
    pronoun = rules.pronouns.search(text)
    if pronoun and len(content_terms(text[: pronoun.start()], language)) < BOUND:
        return True
    return not any(word.casefold() not in rules.vague for word in _substance(turn))


def opens_with_pronoun(sentence: str, language: str) -> bool:
    """Return whether a sentence begins with a word that stands for something said before it: "It", "They", "These"."""
    rules = _rules(language or "en")
    return bool(rules.pronouns.match(rules.harmless.sub(" ", sentence.casefold()).lstrip("\"'“‘«„(")))


def _substance(turn: Turn) -> list[str]:
    """Return the words of a turn that are no stop words, as they were written."""
    language = _language(turn)
    return [word for word in words(turn.text) if content_terms(word, language)]


def _new_words(words: Iterable[str], text: str) -> list[str]:
    known = text.casefold()
    return [word for word in dict.fromkeys(words) if word.casefold() not in known]


def _language(turn: Turn) -> str:
    return turn.language or detect(turn.text) or "en"


@cache
def _rules(language: str) -> _Rules:
    """Return a language's rules; one that has none leans only on words of substance."""
    data = json.loads(resources.files("pipeline").joinpath("follow_ups.json").read_text(encoding="utf-8"))
    rules = data.get(language, {"openers": [], "pronouns": [], "harmless": [], "vague": []})
    return _Rules(
        openers=re.compile(rf"(?:{_any(rules['openers'])})"),
        pronouns=re.compile(_any(rules["pronouns"])),
        harmless=re.compile(_any(rules["harmless"], plain=False)),
        vague=frozenset(rules["vague"]),
    )


def _any(phrases: Sequence[str], *, plain: bool = True) -> str:
    """Return a pattern for any of the phrases as whole words; of none, a pattern that never matches."""
    patterns = (_phrase(re.escape(phrase) if plain else phrase, phrase) for phrase in phrases)
    return "|".join(patterns) or r"(?!)"


def _phrase(pattern: str, phrase: str) -> str:
    return pattern if is_unspaced(phrase[0]) else rf"\b(?:{pattern})\b"
