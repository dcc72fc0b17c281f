"""Prepare the context of a turn before the first model call: the last turns, the languages, a first search."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from pipeline.kit import Kit
from pipeline.stages.passage_order import find_answer_language, order_by_logits, read_passages
from pipeline.stages.question_analysis import detect_asker_language, resolve_question
from pipeline.types import Conversation
from storage.language.detection import english_name
from storage.language.words import content_terms, words
from storage.types import Hit, SearchQuery

WIDER = 3  # how many times more passages are found than read, for statistics of rare words and of likely answers
MIN_LANGUAGE_SHARE = 4
"""If fewer than one in this many of the nearest passages are in the asker's language, the library's is another."""


@dataclass(frozen=True, slots=True)
class TurnContext:
    talk: Conversation  # its last turns
    asker_language: str = ""  # the asker's language (ISO 639-1); empty when unsure
    library_language: str = ""  # the library's language if it differs; empty otherwise
    search_query: str = ""  # the question, with the words it borrows from earlier turns
    found: tuple[Hit, ...] = ()  # hits for that query, best first
    nearest: tuple[Hit, ...] = ()  # the first of them without copies, ordered by the cross-encoder; a system reads them

    @property
    def asked(self) -> tuple[str, ...]:
        """The texts of the conversation. Sentences may repeat them, but they are not evidence."""
        return tuple(turn.text for turn in self.talk.turns)

    @property
    def language(self) -> str:
        """The English name of the asker's language; empty if unsure."""
        return english_name(self.asker_language)

    @property
    def reading(self) -> str:
        """The English name of the library's language if it is not the asker's; empty otherwise."""
        return english_name(self.library_language)


def read_conversation(talk: Conversation, kit: Kit) -> TurnContext:
    """Return the last turns and the asker's language, for systems that do not search the corpora."""
    turns = Conversation(talk.turns[-kit.limits.turns :])
    return TurnContext(turns, detect_asker_language(talk), search_query=resolve_question(talk).query)


async def prepare_context(talk: Conversation, kit: Kit) -> TurnContext:
    """Search once for the question, and find the languages of asker and library.

    Queries and claims are written in the library's language. This search comes before all model calls, so that an
    outage costs nothing.
    """
    context = read_conversation(talk, kit)
    hits = await kit.search(SearchQuery(context.search_query), WIDER * kit.limits.passages)
    distinct = drop_copies(hits, context.search_query)[: kit.limits.passages]
    language = find_answer_language(talk.question, distinct)
    nearest = order_by_logits(distinct, await read_passages(context.search_query, language, distinct, kit))
    library = find_library_language(context.asker_language, nearest)
    return replace(context, library_language=library, found=hits, nearest=nearest)


async def add_web(context: TurnContext, kit: Kit) -> TurnContext:
    """Return the context with the passages of the web among the nearest."""
    return replace(context, nearest=await kit.with_web(context.search_query, context.nearest))


def find_library_language(language: str, hits: Iterable[Hit]) -> str:
    """Return the language of most passages if few are in the asker's language; empty otherwise, or if unsure."""
    languages = Counter(hit.document.language for hit in hits if hit.document.language)
    if not language or languages[language] * MIN_LANGUAGE_SHARE >= languages.total():
        return ""
    return languages.most_common(1)[0][0]


COPY_SHARE = 0.9  # the share of common word pairs from which one of two passages is a copy


def drop_copies(hits: Iterable[Hit], query: str) -> tuple[Hit, ...]:
    """Return hits without copies of earlier ones.

    A passage is not a copy if it differs in a number or in a function word ("not", "only", "from"), or if its title or
    heading has a word of the query that the other's lacks.
    """
    terms, distinct = set(content_terms(query)), list[tuple[Hit, _Wording]]()
    for hit in hits:
        wording = _read_wording(hit, terms)
        if not any(_is_copy(wording, other) for _, other in distinct):
            distinct.append((hit, wording))
    return tuple(hit for hit, _ in distinct)


@dataclass(frozen=True, slots=True)
class _Wording:
    pairs: frozenset[tuple[str, str]]  # of neighbouring words
    exact: Counter[str]  # numbers and function words
    named: frozenset[str]  # the query's words that its page and headings have


def _read_wording(hit: Hit, wanted: set[str]) -> _Wording:
    named = wanted.intersection(content_terms(f"{hit.document.title} {hit.passage.section}"))
    return _Wording(*_read_words(hit.passage.text), frozenset(named))


@lru_cache(maxsize=256)
def _read_words(text: str) -> tuple[frozenset[tuple[str, str]], Counter[str]]:
    folded = [word.casefold() for word in words(text)]
    return frozenset(pairwise(("", *folded))), Counter(filter(_is_exact, folded))


@lru_cache(maxsize=65_536)
def _is_exact(word: str) -> bool:
    return any(map(str.isdigit, word)) or not content_terms(word)


def _is_copy(one: _Wording, other: _Wording) -> bool:
    few, many = sorted((len(one.pairs), len(other.pairs)))
    if few < COPY_SHARE * many or one.exact != other.exact:
        return False
    shared = len(one.pairs & other.pairs)
    return shared >= COPY_SHARE * (few + many - shared) and one.named <= other.named
