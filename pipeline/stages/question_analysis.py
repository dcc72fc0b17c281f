"""Analyse a question before any search: small talk, language, follow-ups, and refusals.

This is done by rules, without a model. A question that opens like a continuation ("and when did it open?"), has a
pronoun without an antecedent, or has no content word, borrows the names and content words of earlier questions and the
title of the page cited last. The phrases are in `small_talk.json` and `follow_ups.json` in this folder.
"""

import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import resources

from pipeline.errors import QuestionTooLong, QuestionWithoutWords
from pipeline.extraction.candidates import find_measures
from pipeline.kit import Limits
from pipeline.types import Conversation, Turn
from storage.language.detection import detect_language
from storage.language.lazy_pattern import lazy_compile
from storage.language.scripts import is_unspaced
from storage.language.sentences import sentence_spans
from storage.language.words import content_terms, words
from storage.types import SearchQuery


class SmallTalk(StrEnum):
    THANKS = "thanks"
    FAREWELL = "farewell"
    ABOUT = "about"
    GREETING = "greeting"


_MENTION = lazy_compile(r"<[@!#][^>]*>|@\w+")


def detect_small_talk(text: str) -> SmallTalk | None:
    """Return the kind of small talk if a text is nothing else; if several fit, the first one in `SmallTalk`."""
    plain = _plain_words(_MENTION.sub(" ", text))
    whole, kinds = _small_talk_patterns()
    if not whole.fullmatch(plain):
        return None
    return next((kind for kind in SmallTalk if kinds[kind].search(plain)), None)


def _plain_words(text: str) -> str:
    """Return the words of a text in lower case, without diacritics, with single spaces between them."""
    folded = unicodedata.normalize("NFKD", text.casefold().replace("’", "'"))
    plain = "".join(char for char in folded if unicodedata.category(char) != "Mn")
    return " ".join(re.findall(r"[^\W_]+(?:'[^\W_]+)*", plain))


@cache
def _small_talk_patterns() -> tuple[re.Pattern[str], dict[SmallTalk, re.Pattern[str]]]:
    phrases = json.loads(resources.files("pipeline.stages").joinpath("small_talk.json").read_text(encoding="utf-8"))
    everything = [_small_talk_phrase(phrase) for kind in phrases.values() for phrase in kind]
    whole = re.compile(f"(?:(?:{_any_of(everything)}) ?)++")
    return whole, {kind: re.compile(_any_of(map(_small_talk_phrase, phrases[kind]))) for kind in SmallTalk}


def _small_talk_phrase(phrase: str) -> str:
    """Return a pattern for a phrase, as whole words if the script puts spaces between words."""
    plain = _plain_words(phrase)
    return re.escape(plain) if plain[0] > "\u0e00" else rf"\b{re.escape(plain)}\b"


def _any_of(patterns: Iterable[str]) -> str:
    return "|".join(sorted(set(patterns), key=len, reverse=True))


def detect_asker_language(talk: Conversation) -> str:
    """Return the language of the question, or if unsure, of the latest earlier one; empty if all are unsure."""
    questions = [turn for turn in reversed(talk.turns) if turn.speaker == "user"]
    return next(filter(None, (turn.language or detect_language(turn.text) for turn in questions)), "")


_NEVER = r"(?!)"
_ADDRESS = lazy_compile(r"\w+://|\bwww\.|```")
_YEAR = lazy_compile(r"(?<!\d)(1\d{3}|20\d{2}|2100)(?!\d)")
_NAME = lazy_compile(r"\b[A-Z\d][\w’'&-]*(?: [A-Z\d][\w’'&-]*)*")
_ASKED_OF = lazy_compile(r"\bof (\w+)")
_DESCRIBED = lazy_compile(r"\s+(?:(?:[A-Z\d][\w'’-]*\s*)+(?:\W|$)|(?:[\w'’-]+\s+){1,3}(?:of|between)\s)")
"""Words after an article that identify the thing: a name, or a phrase with "of"."""
_QUESTION_MARKS = ("?", "？", "؟", "か", "か。", ";")
_PATTERNS = {"connectives", "harmless", "requests", "relative", "facts", "accounts", "dates"}
_SENTENCE_START = lazy_compile(r"(?<=[.!?。！？؟])\s*|^[¿¡\"'“‘«„(]+|\s[¿¡]")
_NEXT_PART = lazy_compile(
    r"(?:\?\s+|,\s*|\s+)and\s+(?=(?:by |for |from |until |since |at )?(?:how|what|when|where|who|whom|which|why)\b|"
    r"(?:is|are|am|do|does|did|can|could|may|must|should|will|would|was|were|has|have)\s+(?:it|they|i|we|there|the|my|"
    r"this|that|anyone|you)\b)",
    re.IGNORECASE,
)
MAX_PARTS = 3
MAX_ELLIPTIC = 5  # words of a question that omits the verb of the previous one
MAX_EARLIER_QUESTIONS = 3  # earlier questions that a follow-up may borrow from
MAX_QUERY_WORDS = 30  # words of a question that is searched unchanged
MIN_OWN_WORDS = 3  # content words that a later question needs to name its own topic
MAX_BORROWED_WORDS = 24


@dataclass(frozen=True, slots=True)
class ResolvedQuestion:
    text: str
    borrowed: str = ""
    varied: str = ""
    """The content words that vary the previous question: "hotels" of "And hotels?"."""

    @property
    def query(self) -> str:
        return f"{self.text} {self.borrowed}".strip()


@dataclass(frozen=True, slots=True)
class _FollowUpRules:
    openers: re.Pattern[str]
    pronouns: re.Pattern[str]
    connectives: re.Pattern[str]
    possessives: re.Pattern[str]
    determiners: re.Pattern[str]
    harmless: re.Pattern[str]
    prepositions: re.Pattern[str]
    verbs: re.Pattern[str]
    vague: frozenset[str]
    questions: re.Pattern[str]
    requests: re.Pattern[str]
    addressed: re.Pattern[str]  # words that address the bot
    relative: re.Pattern[str]  # words that compare with something else: "other", "better", "next"
    definite: re.Pattern[str]
    facts: re.Pattern[str]  # openings of a question that one sentence answers
    accounts: re.Pattern[str]  # requests for an explanation: "why", "tell me about"
    recent: re.Pattern[str]
    dates: re.Pattern[str]  # times that must be computed: "last week", "since 1990"


def resolve_question(talk: Conversation) -> ResolvedQuestion:
    """Resolve a follow-up question: add the words that it borrows from earlier turns."""
    asked, earlier = talk.question, _earlier_questions(talk)[-MAX_EARLIER_QUESTIONS:]
    language = _question_language([asked, *reversed(earlier)])
    if not earlier or not depends_on_context(asked.text, language):
        return ResolvedQuestion(asked.text)
    borrowed: list[str] = []
    rules = _follow_up_rules(language)
    variation = _find_variation(asked.text, rules)
    for turn in reversed(earlier):
        borrowed += _content_words(_drop_replaced(turn.text, variation, rules), language)
        if not depends_on_context(turn.text, language):
            break
    titles = next((turn.titles[:1] for turn in reversed(talk.earlier) if turn.titles), ())
    known = asked.text.casefold()
    new = [word for word in dict.fromkeys([*borrowed, *titles]) if word.casefold() not in known]
    own = [word for word in _content_words(variation, language) if word.casefold() not in rules.vague]
    return ResolvedQuestion(asked.text, " ".join(new[:MAX_BORROWED_WORDS]), " ".join(own))


def _earlier_questions(talk: Conversation) -> list[Turn]:
    return [turn for turn in talk.earlier if turn.speaker == "user" and not detect_small_talk(turn.text)]


def _find_variation(text: str, rules: _FollowUpRules) -> str:
    """Return the new phrase of a follow-up without verb or pronoun: "in Bergen?" of "And in Bergen?"; otherwise ""."""
    opener = rules.openers.match(text := " ".join(text.split()))
    rest = text[opener.end() :].strip(" ,") if opener else text
    full = len(words(rest)) > MAX_ELLIPTIC or rules.verbs.search(rest) or rules.pronouns.search(rest)
    return "" if full or rules.verbs.pattern == _NEVER else rest


def _drop_replaced(earlier: str, variation: str, rules: _FollowUpRules) -> str:
    """Drop the phrase of an earlier question that a variation replaces: "in Oslo" for "in Bergen?"."""
    opening = rules.prepositions.match(variation)
    if not opening:
        return earlier
    ends = f"{rules.prepositions.pattern}|{rules.verbs.pattern}"
    return re.sub(rf"\b{re.escape(opening[0])}\b(?:(?!{ends}).)*", " ", earlier, flags=re.IGNORECASE)


def split_question(question: ResolvedQuestion) -> tuple[ResolvedQuestion, ...]:
    """Split an English question that asks for two or three things. Each part borrows the words of the others."""
    parts = [part.strip() for part in _NEXT_PART.split(question.text) if part.strip()]
    if not 1 < len(parts) <= MAX_PARTS:
        return (question,)
    return tuple(
        ResolvedQuestion(part, " ".join((*parts[:place], *parts[place + 1 :], question.borrowed)).strip())
        for place, part in enumerate(parts)
    )


def depends_on_context(text: str, language: str) -> bool:
    """Return whether a question cannot be understood without earlier turns."""
    rules = _follow_up_rules(language)
    plain = rules.harmless.sub(" ", " ".join(text.split()))
    opens = any(rules.openers.match(sentence) for sentence in _SENTENCE_START.split(plain))
    if opens or _has_unbound_pronoun(plain, rules, language) or _is_elliptic(plain, rules):
        return True
    return all(word.casefold() in rules.vague for word in _content_words(plain, language))


def _is_elliptic(text: str, rules: _FollowUpRules) -> bool:
    """Return whether a few words only vary the previous question: "at weekends?", "for apprentices?", "Bergen?"."""
    tokens = words(text)
    unspaced = any(is_unspaced(word[0]) for word in tokens)
    if (len("".join(tokens)) if unspaced else len(tokens)) > MAX_ELLIPTIC or rules.verbs.search(text):
        return False
    return len(tokens) <= 1 or bool(rules.prepositions.match(text))


def _has_unbound_pronoun(text: str, rules: _FollowUpRules, language: str) -> bool:
    """Return whether a pronoun has no antecedent in the text.

    An antecedent of "it" is a name or a word with an article; of "its", any content word.
    """
    pronoun = rules.pronouns.search(text)
    possessive = rules.possessives.search(text)
    before = text[: pronoun.start()] if pronoun else ""
    named = any(word[0].isupper() and content_terms(word, language) for word in words(before)[1:])
    meant = rules.determiners.search(before) or named
    return bool(pronoun and not meant) or bool(possessive and not content_terms(text[: possessive.start()], language))


def read_as_query(talk: Conversation) -> SearchQuery | None:
    """Return the last message as a query, with its time; None unless it is self-contained and clearly asks one thing.

    For other messages, such as a remark, several questions, or one with a time relative to today, a model writes the
    query. If there are earlier questions, it does so for all languages except English.
    """
    sentences = _drop_small_talk(talk.question.text)
    if len(sentences) != 1 or len(words(sentences[0])) > MAX_QUERY_WORDS or _ADDRESS.search(sentences[0]):
        return None
    text, earlier = " ".join(sentences[0].split()), _earlier_questions(talk)
    language = _question_language([talk.question, *reversed(earlier)])
    rules, years = _follow_up_rules(language), _YEAR.findall(text)
    if not _asks_one_thing(text, rules, at_once=bool(earlier)) or depends_on_context(text, language):
        return None
    if earlier and (language != "en" or _leans_on_topic(text, rules, talk)):
        return None
    if len(years) > 1 or rules.dates.search(text):
        return None
    return SearchQuery(talk.question.text, "recent" if rules.recent.search(text) else next(map(int, years), None))


def asks_for_fact(talk: Conversation) -> bool:
    """Return whether the last message clearly asks for a fact, or for yes or no, and not for an explanation."""
    text, earlier = " ".join(talk.question.text.split()), _earlier_questions(talk)
    rules = _follow_up_rules(_question_language([talk.question, *reversed(earlier)]))
    sentences = _drop_small_talk(text)
    if not sentences or rules.accounts.search(text):
        return False
    rest = sentences[-1].lstrip("¿¡\"'“‘«„( ")
    for kind in (rules.openers, rules.requests, rules.prepositions):
        opening = kind.match(rest)
        if opening and not rules.facts.match(rest):
            rest = rest[opening.end() :].lstrip(" ,")
    return bool(rules.facts.match(rest) or find_measures(text))


def _drop_small_talk(text: str) -> list[str]:
    """Return the sentences of a text that are not small talk."""
    return [one for start, end in sentence_spans(text) if not detect_small_talk(one := text[start:end])]


def _asks_one_thing(text: str, rules: _FollowUpRules, *, at_once: bool) -> bool:
    """Return whether a sentence, by its opening or its "?", is one question or request, and not about the bot."""
    request = rules.requests.match(text)
    rest = text[request.end() :].strip(" ,") if request else text
    opening = rules.prepositions.match(rest)
    begins = [kind.match(rest) for kind in (rules.questions, rules.verbs)]
    begins.append(rules.questions.match(rest[opening.end() :].lstrip()) if opening else None)
    question = any(begins) or (not at_once and rest.endswith(_QUESTION_MARKS))
    second = re.search(rf"(?:[,;:]|{rules.openers.pattern})\s*(?:{rules.questions.pattern})", rest, re.IGNORECASE)
    return bool(request or question) and not second and not rules.addressed.search(rest)


def _leans_on_topic(text: str, rules: _FollowUpRules, talk: Conversation) -> bool:
    """Return whether a later question may be about an earlier topic without naming it.

    A question names its topic by a name other than a place or a time, or by words of earlier questions: by two of them,
    or by one after "of".
    """
    plain = rules.harmless.sub(" ", text)
    if any(kind.search(plain) for kind in (rules.pronouns, rules.possessives, rules.relative)):
        return True
    if any(not _DESCRIBED.match(plain[found.end() :]) for found in rules.definite.finditer(plain)):
        return True
    own = {word for word in _content_words(text, "en") if word.casefold() not in rules.vague}
    known = {term for turn in _earlier_questions(talk) for term in content_terms(turn.text, "en")}
    again = known.intersection(term for word in own for term in content_terms(word, "en"))
    names = [name for name in _NAME.finditer(text, 1) if content_terms(name[0], "en")]
    if len(own) < MIN_OWN_WORDS or any(_is_shortened(name[0], talk) for name in names):
        return True
    topics = [name for name in names if not rules.prepositions.search(" ".join(text[: name.start()].split()[-1:]))]
    asked_of = {term for word in _ASKED_OF.findall(text) for term in content_terms(word, "en")}
    return not (topics or len(again) > 1 or asked_of & again)


def _is_shortened(name: str, talk: Conversation) -> bool:
    """Return whether a name is one word of a longer name in earlier turns."""
    longer = (found[0].split() for turn in talk.earlier for found in _NAME.finditer(turn.text))
    return any(name in [word for word in other if content_terms(word, "en")] != [name] for other in longer)


def leans_back(sentence: str, language: str) -> bool:
    """Return whether a sentence begins with a pronoun such as "It", or with a connective such as "Therefore"."""
    rules = _follow_up_rules(language or "en")
    text = rules.harmless.sub(" ", sentence).lstrip("\"'“‘«„(")
    return any(kind.match(text) for kind in (rules.pronouns, rules.possessives, rules.connectives))


def _content_words(text: str, language: str) -> list[str]:
    return [word for word in words(text) if content_terms(word, language)]


def _question_language(turns: Sequence[Turn]) -> str:
    """Return the language of the first turn; if that is too short to tell, of all turns together, or else English."""
    every = " ".join(turn.text for turn in turns)
    return turns[0].language or detect_language(turns[0].text) or detect_language(every) or "en"


@cache
def _follow_up_rules(language: str) -> _FollowUpRules:
    """Return the rules of a language. A language without rules uses content words alone."""
    data = json.loads(resources.files("pipeline.stages").joinpath("follow_ups.json").read_text(encoding="utf-8"))
    rules = {key: [] for key in data["en"]} | data.get(language, {})
    patterns = {key: _any_phrase(rules[key], plain=key not in _PATTERNS) for key in rules if key != "vague"}
    return _FollowUpRules(**patterns, vague=frozenset(rules["vague"]))


def _any_phrase(phrases: Sequence[str], *, plain: bool = True) -> re.Pattern[str]:
    """Return a pattern for any of the phrases as whole words; if there are none, a pattern that never matches."""
    patterns = ((phrase[0], re.escape(phrase) if plain else phrase) for phrase in phrases)
    whole = (pattern if is_unspaced(first) else rf"\b(?:{pattern})\b" for first, pattern in patterns)
    return re.compile("|".join(whole) or _NEVER, re.IGNORECASE)


def validate_question(text: str, limits: Limits) -> None:
    """Raise `QuestionTooLong` or `QuestionWithoutWords` if a question cannot be answered."""
    if len(text) > limits.question_characters:
        raise QuestionTooLong(
            f"The question has {len(text):,} characters; at most {limits.question_characters:,} are read.",
            hint="Shorten the question to a few sentences.",
        )
    if not words(text):
        raise QuestionWithoutWords("There are no words in the question.", hint="Ask in words.")
