"""Link names to the corpus's own pages, by title or alias.

A title may have a qualifier in brackets: "Mercury (planet)". If several pages have the name, or a disambiguation page
lists several, the page that shares most words with the name's context is chosen.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pipeline.kit import Kit
from pipeline.stages.concurrency import gather_all
from pipeline.support.analysis.parsed_sentence import parse_sentence
from pipeline.support.analysis.proper_names import find_names
from storage.language.detection import detect_language
from storage.language.words import content_terms, fold_spelling
from storage.types import Hit, SearchQuery

SEARCHED = 10  # hits among which a name's page is sought
_QUALIFIER = re.compile(r"\s*[(（][^()（）]*[)）]\s*$")
_LEADING_ARTICLE = re.compile(r"^(?:the|a|an)\s+")


@dataclass(frozen=True, slots=True)
class LinkedEntity:
    name: str
    hit: Hit  # the first passage of its page among the hits


def find_entity_names(text: str, language: str = "") -> tuple[str, ...]:
    """Return the proper names of a text, each once, as written."""
    names = find_names(parse_sentence(text, language or detect_language(text) or "en"))
    return tuple(dict.fromkeys(name.said for name in names))


async def link_entities(mentions: Sequence[tuple[str, str]], kit: Kit) -> tuple[LinkedEntity, ...]:
    """Link names, each with its context; names without a page are skipped. Raises `SearchUnavailable`."""
    linked = await gather_all(_link(name, text, kit) for name, text in mentions)
    return tuple(entity for entity in linked if entity)


async def _link(name: str, text: str, kit: Kit) -> LinkedEntity | None:
    page = choose_page(name, text, await kit.search(SearchQuery(name), SEARCHED))
    return LinkedEntity(name, page) if page else None


def choose_page(name: str, context: str, hits: Iterable[Hit]) -> Hit | None:
    """Return the passage that describes what a name means in its context; None if no page has that name. Pure."""
    hits = tuple(hits)
    named = [hit for hit in hits if is_named(hit, name)]
    listed = {
        line
        for hit in named
        if hit.document.disambiguation
        for line in map(normalize_title, hit.passage.text.splitlines())
    }
    pages = [hit for hit in named if not hit.document.disambiguation]
    pages += [hit for hit in hits if hit not in named and any(_begins_with(line, hit) for line in listed)]
    if not pages:
        return None
    terms = set(content_terms(context)) - set(content_terms(name))
    exact = normalize_title(name)

    def rank(hit: Hit) -> tuple[int, bool, int]:
        shared = terms.intersection(content_terms(describe_hit(hit)))
        return len(shared), normalize_title(hit.document.title) == exact, -hit.passage.position

    best = max(pages, key=rank)
    same = [hit for hit in pages if hit.document == best.document]
    return min(same, key=lambda hit: hit.passage.position)


def describe_hit(hit: Hit) -> str:
    """Return a passage with its title and headings."""
    return f"{hit.document.title} {hit.passage.section} {hit.passage.text}"


def is_named(hit: Hit, name: str) -> bool:
    """Return whether a name is a page's title, with or without its qualifier, or one of its aliases. Pure."""
    titles = map(normalize_title, (hit.document.title, *hit.document.aliases))
    return any(normalize_title(name) in {title, _QUALIFIER.sub("", title)} for title in titles)


def normalize_title(title: str) -> str:
    return _LEADING_ARTICLE.sub("", " ".join(fold_spelling(title).split()))


def _begins_with(line: str, hit: Hit) -> bool:
    return line.lstrip("-•*– ").startswith(normalize_title(hit.document.title))
