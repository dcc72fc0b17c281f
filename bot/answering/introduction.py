"""Introduce the bot: who it is, which corpora the asker may read, and which questions they could ask."""

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import tzinfo
from itertools import chain, zip_longest
from operator import itemgetter

from bot.views.catalog import translate
from bot.views.sanitize import sanitize_line
from pipeline.gate import Recorder
from pipeline.types import Turn
from storage.database.document_versions import StoredVersion
from storage.language.lazy_pattern import lazy_compile
from storage.manifest import Manifest
from storage.types import CorpusInfo, Hit, PassageKind

MAX_CORPORA = 20  # named in an introduction
MAX_QUESTIONS = 3  # suggested in an introduction
_SAMPLED = 24  # documents sampled for questions, over all corpora
_LENGTHS = range(4, 61)  # characters of a heading that can become a question
_SHORTEST = 40  # characters of a passage that explains its heading
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
"""Headings that do not describe their section."""


@dataclass(frozen=True, slots=True)
class SuggestedQuestion:
    """A question and a passage that answers it."""

    text: str
    source: Hit


@dataclass(frozen=True, slots=True)
class Introduction:
    """The corpora that an asker may read, and questions to suggest."""

    corpora: tuple[CorpusInfo, ...] = ()
    questions: tuple[SuggestedQuestion, ...] = ()
    sources: tuple[Hit, ...] = ()  # a passage for each question, and for each corpus without one


async def introduce(
    question: Turn, scope: Collection[str], manifest: Manifest, recorder: Recorder, zone: tzinfo, *, mention: bool
) -> str:
    """Return the bot's introduction if the question asks for one; empty for other small talk."""
    from pipeline.stages.question_analysis import SmallTalk, detect_small_talk  # compiles patterns on import

    if detect_small_talk(question.text) is not SmallTalk.ABOUT:
        return ""
    introduction = await load_introduction(manifest, scope, question.language)
    # Its pages are recorded, so that it is shown again only where they may be read.
    await recorder.add(question.text, introduction.sources)
    return render_introduction(introduction, question.language, zone, mention=mention)


async def load_introduction(manifest: Manifest, readable: Collection[str], language: str) -> Introduction:
    """Return an introduction to the `readable` corpora. Raises `StorageError`.

    Questions come from the team's own documents; if there are none, from works of reference.
    """
    corpora = tuple(corpus for corpus in await manifest.corpora() if corpus.name in readable and corpus.documents)[
        :MAX_CORPORA
    ]
    reference = {corpus.name for corpus in await manifest.catalogue() if corpus.reference}
    names = [corpus.name for corpus in corpora]
    own = [name for name in names if name not in reference] or names
    count = max(_SAMPLED // max(len(own), 1), 4)
    sampled = {name: await manifest.sample(name, count if name in own else 1) for name in names}
    suggested = [suggest_questions(sampled[name], language) for name in own]
    questions = [question for question in chain.from_iterable(zip_longest(*suggested)) if question][:MAX_QUESTIONS]
    shown = {question.source.passage.corpus for question in questions}
    firsts = (versions[0] for name, versions in sampled.items() if name not in shown and versions)
    others = (Hit(version.passages[0], version.document, 0.0) for version in firsts if version.passages)
    return Introduction(corpora, tuple(questions), (*(question.source for question in questions), *others))


def render_introduction(shown: Introduction, language: str, zone: tzinfo, *, mention: bool = False) -> str:
    """Return the introduction as paragraphs and lists; `mention` adds that questions must mention the bot."""
    parts = [translate("about", language), *([translate("intro_mention", language)] if mention else ())]
    if shown.corpora:
        corpora = (_render_corpus(corpus, language, zone) for corpus in shown.corpora)
        parts.append(_render_list("intro_corpora", corpora, language))
    else:
        parts.append(translate("intro_nothing", language))
    if shown.questions:
        parts.append(_render_list("intro_questions", (question.text for question in shown.questions), language))
    return "\n\n".join(parts)


def suggest_questions(versions: Iterable[StoredVersion], language: str) -> tuple[SuggestedQuestion, ...]:
    """Return at most one suggested question per document; pure.

    Documents in `language` come first. Among these, documents with a question as a heading come first, then longer
    ones.
    """
    ranked = list[tuple[bool, bool, int, SuggestedQuestion]]()
    for version in versions:
        foreign, length = version.document.language not in {"", language}, -len(version.passages)
        headings = list(_list_headings(version))
        asking = next((heading for heading in headings if heading[0].endswith(_QUESTION_MARKS)), None)
        if asking:
            ranked.append((foreign, False, length, SuggestedQuestion(*asking)))
        elif headings and len(title := sanitize_line(version.document.title)) in _LENGTHS:
            section, source = headings[0]
            text = translate("intro_section", language, title=title, section=section)
            ranked.append((foreign, True, length, SuggestedQuestion(text, source)))
    return tuple(question for *_, question in sorted(ranked, key=itemgetter(0, 1, 2)))


def _list_headings(version: StoredVersion) -> Iterator[tuple[str, Hit]]:
    """Yield the headings that describe their section, each with its passage."""
    for passage in version.passages:
        heading = sanitize_line(passage.section.rpartition("›")[2])
        explains = passage.kind is PassageKind.PROSE and len(passage.text) >= _SHORTEST
        if explains and len(heading) in _LENGTHS and not _GENERAL.fullmatch(heading):
            yield heading, Hit(passage, version.document, 0.0)


def _render_corpus(corpus: CorpusInfo, language: str, zone: tzinfo) -> str:
    day = corpus.refreshed.astimezone(zone).date().isoformat() if corpus.refreshed else ""
    key = "intro_corpus" if day else "intro_unfinished"
    return translate(key, language, name=corpus.name, documents=f"{corpus.documents:,}", day=day)


def _render_list(key: str, items: Iterable[str], language: str) -> str:
    return "\n".join((translate(key, language), *(f"• {item}" for item in items)))
