"""Prepare what every stage needs before the first model call: the last turns, the languages, a first search."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from pipeline.kit import Kit
from pipeline.stages.question_analysis import detect_asker_language, english_name, resolve_question
from pipeline.types import Conversation
from storage.language.words import content_terms, words
from storage.types import Hit, SearchQuery

WIDER = 3  # so many times more passages are found than read: what the others say tells what is rare, and what is likely
MIN_LANGUAGE_SHARE = 4
"""Where fewer than one in so many of the nearest passages are in the asker's language, the library is not."""


@dataclass(frozen=True, slots=True)
class TurnContext:
    talk: Conversation  # its last turns
    asker_language: str = ""  # the asker's language (ISO 639-1); empty when unsure
    library_language: str = ""  # the library's language where it is another one; empty otherwise
    search_query: str = ""
    """What was looked up to know that: the question, with the words it borrows from what was said before."""
    found: tuple[Hit, ...] = ()  # what was found, best first
    nearest: tuple[Hit, ...] = ()  # the first of it, copies left out: what a system reads

    @property
    def asked(self) -> tuple[str, ...]:
        """What was said in the conversation: it may be repeated, but is no evidence."""
        return tuple(turn.text for turn in self.talk.turns)

    @property
    def language(self) -> str:
        """The asker's language in English; empty when unsure."""
        return english_name(self.asker_language)

    @property
    def reading(self) -> str:
        """The library's language in English if it differs from the asker's; empty otherwise."""
        return english_name(self.library_language)


def read_conversation(talk: Conversation, kit: Kit) -> TurnContext:
    """Return the last turns and the asker's language, for who searches elsewhere than in the corpora."""
    turns = Conversation(talk.turns[-kit.limits.turns :])
    return TurnContext(turns, detect_asker_language(talk), search_query=resolve_question(talk).query)


async def prepare_context(talk: Conversation, kit: Kit) -> TurnContext:
    """Search once for the question, and find the languages of asker and library.

    A question in one language finds little in another, so queries and claims are to be written in the library's. Its
    search also comes before all calls of a model: an outage is said before anything is paid.
    Raises `SearchUnavailable`.
    """
    context = read_conversation(talk, kit)
    found = await kit.search(SearchQuery(context.search_query), WIDER * kit.limits.passages)
    nearest = drop_copies(found, context.search_query)[: kit.limits.passages]
    library = find_library_language(context.asker_language, nearest)
    return replace(context, library_language=library, found=found, nearest=nearest)


def find_library_language(language: str, hits: Iterable[Hit]) -> str:
    """Return the language of most passages if there are few in the asker's own; empty otherwise, and when unsure."""
    found = Counter(hit.document.language for hit in hits if hit.document.language)
    if not language or found[language] * MIN_LANGUAGE_SHARE >= found.total():
        return ""
    return found.most_common(1)[0][0]


COPY_SHARE = 0.9  # the share of their pairs of words that two passages have in common of which one is a copy


def drop_copies(hits: Iterable[Hit], query: str) -> tuple[Hit, ...]:
    """Return hits without those that say the same as one before, in its words, so that others take their places.

    What differs in a number or in a small word ("not", "only", "from") is no copy, and neither is what stands under a
    title or heading that the query names where it does not name the other's.
    """
    wanted, kept = set(content_terms(query)), list[tuple[Hit, _Wording]]()
    for hit in hits:
        wording = _read_wording(hit, wanted)
        if not any(_is_copy(wording, other) for _, other in kept):
            kept.append((hit, wording))
    return tuple(hit for hit, _ in kept)


@dataclass(frozen=True, slots=True)
class _Wording:
    pairs: frozenset[tuple[str, str]]  # of neighbouring words
    exact: Counter[str]  # numbers and small words
    named: frozenset[str]  # the query's words that its page and headings have


def _read_wording(hit: Hit, wanted: set[str]) -> _Wording:
    named = wanted.intersection(content_terms(f"{hit.document.title} {hit.passage.section}"))
    return _Wording(*_read_words(hit.passage.text), frozenset(named))


@lru_cache(maxsize=256)
def _read_words(text: str) -> tuple[frozenset[tuple[str, str]], Counter[str]]:
    said = [word.casefold() for word in words(text)]
    return frozenset(pairwise(("", *said))), Counter(filter(_is_exact, said))


@lru_cache(maxsize=65_536)
def _is_exact(word: str) -> bool:
    return any(map(str.isdigit, word)) or not content_terms(word)


def _is_copy(one: _Wording, other: _Wording) -> bool:
    few, many = sorted((len(one.pairs), len(other.pairs)))
    if few < COPY_SHARE * many or one.exact != other.exact:
        return False
    shared = len(one.pairs & other.pairs)
    return shared >= COPY_SHARE * (few + many - shared) and one.named <= other.named
