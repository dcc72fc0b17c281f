"""Word how the bot introduces itself: who it is, what it may read there, and what one could ask it; pure."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import tzinfo
from operator import itemgetter

from bot.views.catalog import translate
from bot.views.sanitize import sanitize_line
from storage.language.lazy_pattern import lazy_compile
from storage.types import CorpusInfo, Hit, PassageKind, StoredVersion

MAX_CORPORA = 20  # that are named
_LENGTHS = range(4, 61)  # how long a heading is that one could ask about
_SHORTEST = 40  # characters of a passage that says something about its heading
_QUESTION_MARKS = ("?", "？", "؟")
_GENERAL = lazy_compile(
    r"(?:\b(?:overview|introduction|summary|contents|references|notes|links|see also|external|further reading|sources|"
    r"appendix|general|misc|other|faq|examples?|überblick|einleitung|einführung|inhalt|inhaltsverzeichnis|weblinks|"
    r"einzelnachweise|literatur|quellen|siehe auch|allgemeines|beispiele?|introducción|resumen|índice|referencias|"
    r"enlaces externos|véase también|présentation|résumé|sommaire|références|liens externes|voir aussi|introduzione|"
    r"sommario|note|bibliografia|collegamenti esterni|voci correlate|introdução|resumo|referências|ligações externas|"
    r"ver também|inleiding|samenvatting|inhoud|bronnen|zie ook)\b\W*)+",
    re.IGNORECASE,
)
"""A heading that says nothing of what stands beneath it."""


@dataclass(frozen=True, slots=True)
class SuggestedQuestion:
    """A question that a passage answers."""

    text: str
    source: Hit


@dataclass(frozen=True, slots=True)
class Introduction:
    """What may be read somewhere, and what one could ask there."""

    corpora: tuple[CorpusInfo, ...] = ()
    questions: tuple[SuggestedQuestion, ...] = ()
    sources: tuple[Hit, ...] = ()  # a passage of each question, and of each corpus that has none


def render_introduction(found: Introduction, language: str, zone: tzinfo, *, mention: bool = False) -> str:
    """Return the introduction as paragraphs and lists; `mention` says that one has to be mentioned to be asked."""
    parts = [translate("about", language), *([translate("intro_mention", language)] if mention else ())]
    if found.corpora:
        corpora = (_render_corpus(corpus, language, zone) for corpus in found.corpora)
        parts.append(_render_list("intro_corpora", corpora, language))
    else:
        parts.append(translate("intro_nothing", language))
    if found.questions:
        parts.append(_render_list("intro_questions", (one.text for one in found.questions), language))
    return "\n\n".join(parts)


def suggest_questions(versions: Iterable[StoredVersion], language: str) -> tuple[SuggestedQuestion, ...]:
    """Return a question for each document that has a fit one.

    First come those about documents in the asker's language, of them those that a heading asks itself, then those about
    long documents.
    """
    found = list[tuple[bool, bool, int, SuggestedQuestion]]()
    for version in versions:
        foreign, length = version.document.language not in {"", language}, -len(version.passages)
        fit = list(_list_headings(version))
        asking = next((one for one in fit if one[0].endswith(_QUESTION_MARKS)), None)
        if asking:
            found.append((foreign, False, length, SuggestedQuestion(*asking)))
        elif fit and len(title := sanitize_line(version.document.title)) in _LENGTHS:
            text = translate("intro_section", language, title=title, section=fit[0][0])
            found.append((foreign, True, length, SuggestedQuestion(text, fit[0][1])))
    return tuple(question for *_, question in sorted(found, key=itemgetter(0, 1, 2)))


def _list_headings(version: StoredVersion) -> Iterator[tuple[str, Hit]]:
    """Yield the headings that say what the passage beneath them is about, with it."""
    for passage in version.passages:
        heading = sanitize_line(passage.section.rpartition("›")[2])
        says_much = passage.kind is PassageKind.PROSE and len(passage.text) >= _SHORTEST
        if says_much and len(heading) in _LENGTHS and not _GENERAL.fullmatch(heading):
            yield heading, Hit(passage, version.document, 0.0)


def _render_corpus(corpus: CorpusInfo, language: str, zone: tzinfo) -> str:
    day = corpus.refreshed.astimezone(zone).date().isoformat() if corpus.refreshed else ""
    key = "intro_corpus" if day else "intro_unfinished"
    return translate(key, language, name=corpus.name, documents=f"{corpus.documents:,}", day=day)


def _render_list(key: str, items: Iterable[str], language: str) -> str:
    return "\n".join((translate(key, language), *(f"• {item}" for item in items)))
