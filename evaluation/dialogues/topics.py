"""Choose the topics of dialogues: well-known, little known and recent documents of the corpora, or those of a list.

Page views are unknown. So a document counts as better known if it has more aliases, and among equals if it is longer. A
document is recent if its text has a recent date.
"""

import hashlib
import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from heapq import nlargest, nsmallest
from pathlib import Path
from random import Random

from evaluation import EvaluationError
from evaluation.dialogues.dialogue_types import CorpusState, Topic, TopicKind
from storage.database.document_versions import DocumentOutline, StoredVersion
from storage.language.sentences import sentence_spans
from storage.language.words import count_words
from storage.manifest import Manifest
from storage.types import CorpusInfo, PassageKind

CHOSEN_KINDS = (TopicKind.HEAD, TopicKind.TAIL, TopicKind.RECENT)
POOL_SHARE = 0.02  # topics of a kind are drawn from this share of a corpus, those documents that fit the kind best
MIN_POOL = 4  # at least this many documents for each topic
MIN_WORDS = 5  # of a first sentence; shorter ones are headings
MAX_SENTENCE = 400  # characters


async def survey_corpus(manifest: Manifest, info: CorpusInfo, generation: int) -> tuple[CorpusState, "CorpusSurvey"]:
    """Return the state of a corpus, and a survey of its documents without their texts. Raises `StorageError`."""
    outlines, whole = list[DocumentOutline](), hashlib.sha256()
    async for outline in _list_outlines(manifest, info.name):
        whole.update(f"{outline.key}\0{outline.revision}\0{outline.passages}\n".encode("utf-8", "replace"))
        if not outline.disambiguation and outline.passages:
            outlines.append(outline)
    digest = whole.hexdigest()[:16]
    state = CorpusState(info.name, info.documents, info.passages, info.edition, generation, digest)
    return state, CorpusSurvey(info.name, outlines)


class CorpusSurvey:
    """The documents of a corpus that a conversation can be about."""

    def __init__(self, corpus: str, outlines: Sequence[DocumentOutline]) -> None:
        self.corpus = corpus
        self._outlines = outlines

    def candidates(self, kind: TopicKind, count: int) -> Sequence[DocumentOutline]:
        """Return the documents that fit a kind of topic best; `count` topics are drawn from these."""
        size = max(MIN_POOL * count, round(POOL_SHARE * len(self._outlines)))
        if kind is TopicKind.RECENT:
            dated = [outline for outline in self._outlines if outline.date]
            return nlargest(size, dated, key=lambda outline: (outline.date, outline.key))
        choose = nlargest if kind is TopicKind.HEAD else nsmallest
        return choose(size, self._outlines, key=lambda outline: (outline.aliases, outline.passages, outline.key))

    def find_title(self, title: str) -> str | None:
        """Return the key of the document with this title, ignoring case."""
        folded = title.casefold().strip()
        return next((outline.key for outline in self._outlines if outline.title.casefold() == folded), None)


async def choose_topics(
    manifest: Manifest, surveys: Sequence[CorpusSurvey], count: int, seed: int
) -> tuple[Topic, ...]:
    """Choose `count` topics of each kind, evenly from the corpora. The same seed and documents give the same topics."""
    chosen = dict[tuple[str, str], Topic]()
    having = {kind: [survey for survey in surveys if survey.candidates(kind, 1)] for kind in CHOSEN_KINDS}
    for kind, place, survey in [(each, *part) for each in having for part in enumerate(having[each])]:
        share = share_count(count, len(having[kind]), place)
        pool = [outline for outline in survey.candidates(kind, share) if (survey.corpus, outline.key) not in chosen]
        Random(f"{seed} {survey.corpus} {kind}").shuffle(pool)
        for topic in await _describe_topics(manifest, survey.corpus, kind, pool, share):
            chosen[survey.corpus, topic.document] = topic
    if not chosen:
        raise EvaluationError(
            "No document has a sentence to start a conversation with.",
            hint="Ingest more documents, or list topics in a file with --topics.",
        )
    return tuple(chosen.values())


def share_count(count: int, parts: int, place: int) -> int:
    """Return the share of the part at `place` if `count` is divided into `parts`; the first ones get the remainder."""
    return count // parts + (place < count % parts)


async def _describe_topics(
    manifest: Manifest, corpus: str, kind: TopicKind, pool: Sequence[DocumentOutline], wanted: int
) -> list[Topic]:
    topics = list[Topic]()
    for outline in pool:
        if len(topics) == wanted:
            break
        stored = (await manifest.stored(corpus, [outline.key])).get(outline.key)
        sentence = find_first_sentence(stored) if stored else ""
        if sentence:
            topics.append(Topic(outline.title, sentence, corpus, kind, outline.key))
    return topics


def find_first_sentence(version: StoredVersion) -> str:
    """Return the first sentence of a document's prose; empty if it has none."""
    for passage in version.passages:
        if passage.kind is PassageKind.PROSE:
            for start, end in sentence_spans(passage.text):
                sentence = " ".join(passage.text[start:end].split())
                if count_words(sentence) >= MIN_WORDS and sentence[-1] in ".!?。！？":
                    return sentence[:MAX_SENTENCE]
    return ""


async def read_topics(path: Path, manifest: Manifest, surveys: Sequence[CorpusSurvey]) -> tuple[Topic, ...]:
    """Read a file whose lines are titles, which are looked up, or JSON objects. Raises `EvaluationError`."""
    topics = []
    for number, line in _read_lines(path):
        title, sentence = _parse_line(line, f"line {number} of {path}")
        topics.append(await _place_topic(title, sentence, manifest, surveys))
    if not topics:
        raise EvaluationError(f"{path} names no topic.", hint="Write a title on each line.")
    return tuple(topics)


def _read_lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise EvaluationError(f"{path} cannot be read: {error}.", hint="It must be text in UTF-8.") from error
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() and not line.startswith("#"):
            yield number, line.strip()


def _parse_line(line: str, where: str) -> tuple[str, str]:
    if not line.startswith("{"):
        return line, ""
    try:
        row = json.loads(line)
    except ValueError as error:
        raise EvaluationError(f"{where} is not JSON: {error}.", hint="Write one object on each line.") from error
    if not isinstance(row, Mapping) or not isinstance(row.get("title"), str):
        raise EvaluationError(f"{where} has no “title”.", hint='Write {"title": ..., "first_sentence": ...}.')
    return str(row["title"]), str(row.get("first_sentence", ""))


async def _place_topic(title: str, sentence: str, manifest: Manifest, surveys: Sequence[CorpusSurvey]) -> Topic:
    for survey in surveys:
        if key := survey.find_title(title):
            stored = await manifest.stored(survey.corpus, [key])
            own = find_first_sentence(stored[key]) if key in stored else ""
            return Topic(title, sentence or own or title, survey.corpus, TopicKind.GIVEN, key)
    return Topic(title, sentence or title, "", TopicKind.GIVEN)


async def _list_outlines(manifest: Manifest, corpus: str) -> AsyncIterator[DocumentOutline]:
    after = 0
    while page := await manifest.outline(corpus, after=after):
        for outline in page:
            yield outline
        after = page[-1].number
