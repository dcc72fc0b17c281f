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

from pipeline.small_talk import small_talk
from pipeline.types import Conversation, Turn
from storage.language.detect import detect
from storage.language.scripts import is_unspaced
from storage.language.words import content_terms, words

_BEGINNING = re.compile(r"(?<=[.!?。！？؟])\s*|^[¿¡\"'“‘«„(]+|\s[¿¡]")
REACH = 3
"""How many earlier questions a follow-up may borrow from."""
MOST = 24
"""How many words it may borrow."""


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
    possessives: re.Pattern[str]
    determiners: re.Pattern[str]
    harmless: re.Pattern[str]
    vague: frozenset[str]


def resolve(talk: Conversation) -> Question:
    """Return the conversation's question with what it borrows from the turns before it."""
    asked = talk.question
    earlier = [turn for turn in talk.earlier if turn.speaker == "user" and not small_talk(turn.text)][-REACH:]
    language = _language([asked, *reversed(earlier)])
    if not earlier or not leans(asked.text, language):
        return Question(asked.text)
    borrowed: list[str] = []
    for turn in reversed(earlier):
        borrowed += _substance(turn.text, language)
        if not leans(turn.text, language):
            break
    titles = next((turn.titles[:1] for turn in reversed(talk.earlier) if turn.titles), ())
    return Question(asked.text, " ".join(_new_words([*borrowed, *titles], asked.text)[:MOST]))


def leans(text: str, language: str) -> bool:
    """Return whether a question cannot be understood without what was said before it."""
    rules = _rules(language)
    plain = rules.harmless.sub(" ", " ".join(text.split()))
    if any(rules.openers.match(sentence) for sentence in _BEGINNING.split(plain)):
        return True
    if _unbound(plain, rules, language):
        return True
    return not any(word.casefold() not in rules.vague for word in _substance(plain, language))


def _unbound(text: str, rules: _Rules, language: str) -> bool:
    """Return whether a text has a pronoun before which nothing stands that it could mean.

    "It" can mean a name or what an article introduces; "its" any word of substance.
    """
    pronoun = rules.pronouns.search(text)
    possessive = rules.possessives.search(text)
    before = text[: pronoun.start()] if pronoun else ""
    meant = rules.determiners.search(before) or any(
        word[0].isupper() and content_terms(word, language) for word in words(before)[1:]
    )
    return bool(pronoun and not meant) or bool(possessive and not content_terms(text[: possessive.start()], language))


def opens_with_pronoun(sentence: str, language: str) -> bool:
    """Return whether a sentence begins with a word that stands for something said before it: "It", "They", "These"."""
    rules = _rules(language or "en")
    text = rules.harmless.sub(" ", sentence).lstrip("\"'“‘«„(")
    return bool(rules.pronouns.match(text) or rules.possessives.match(text))


def _substance(text: str, language: str) -> list[str]:
    """Return the words of a text that are no stop words, as they were written."""
    return [word for word in words(text) if content_terms(word, language)]


def _new_words(words: Iterable[str], text: str) -> list[str]:
    known = text.casefold()
    return [word for word in dict.fromkeys(words) if word.casefold() not in known]


def _language(turns: Sequence[Turn]) -> str:
    """Return the language of the first turn; where it is too short to tell, that of all of them."""
    first = turns[0]
    return first.language or detect(first.text) or detect(" ".join(turn.text for turn in turns)) or "en"


@cache
def _rules(language: str) -> _Rules:
    """Return a language's rules; one that has none leans only on words of substance."""
    data = json.loads(resources.files("pipeline").joinpath("follow_ups.json").read_text(encoding="utf-8"))
    rules = data.get(language) or {key: [] for key in data["en"]}
    return _Rules(
        openers=_any(rules["openers"]),
        pronouns=_any(rules["pronouns"]),
        possessives=_any(rules["possessives"]),
        determiners=_any(rules["determiners"]),
        harmless=_any(rules["harmless"], plain=False),
        vague=frozenset(rules["vague"]),
    )


def _any(phrases: Sequence[str], *, plain: bool = True) -> re.Pattern[str]:
    """Return a pattern for any of the phrases as whole words; of none, a pattern that never matches."""
    patterns = (_phrase(re.escape(phrase) if plain else phrase, phrase) for phrase in phrases)
    return re.compile("|".join(patterns) or r"(?!)", re.IGNORECASE)


def _phrase(pattern: str, phrase: str) -> str:
    return pattern if is_unspaced(phrase[0]) else rf"\b(?:{pattern})\b"
