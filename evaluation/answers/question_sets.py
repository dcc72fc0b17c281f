"""Read question sets, and files of questions about handbooks, as exams: documents, and questions with known answers.

Formats are XQuAD, SQuAD, CLAPNQ and our own, which `evaluation/answers/questions/README.md` describes.
"""

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation import EvaluationError
from evaluation.workbench import PageSource
from ingest.chunking import split_page
from ingest.sources.dumps.wikipedia_dump import WikipediaDump
from ingest.sources.folder import FolderSource
from ingest.types import Block, ChangedDocument, DocumentSource, Page, Section, UnreadableDocument
from pipeline.support.support_check import find_quotable_spans
from pipeline.types import CitedSentence, Conversation, Turn
from storage.types import Passage, PassageKind

ROOT = Path(__file__).parents[2]


class UnreadableSet(EvaluationError):
    """A question set is not in the format that its reader expects."""

    kind = "unreadable_set"


@dataclass(frozen=True, slots=True)
class SetText:
    """A document or paragraph of a question set."""

    id: str
    title: str
    text: str
    kind: PassageKind = PassageKind.PROSE  # each line of a table is a row


def has_all_strings(strings: Sequence[str], text: str) -> bool:
    """Return whether a text has all the strings as whole words. Emphasis marks, case and white space do not matter."""
    folded = _fold(text)
    return all(re.search(rf"(?<!\w){re.escape(_fold(string))}(?!\w)", folded) for string in strings)


def _fold(text: str) -> str:
    return " ".join(re.sub(r"[*_`]", "", text).split()).casefold()


@dataclass(frozen=True, slots=True)
class ExamQuestion:
    """A question that an evaluation asks."""

    text: str
    answers: tuple[tuple[str, ...], ...]
    """Alternative answers, each as strings that a right reply must all contain; empty if nothing answers."""
    documents: frozenset[str]  # keys of the documents that a right sentence may come from; empty for any
    group: str  # cross-validation puts questions of one group into one fold
    earlier: tuple[Turn, ...] = ()  # the conversation before it
    disagreement: tuple[str, ...] = ()  # strings of contradictory sentences, the newer first
    held: bool = False  # held out while weights and rules were made
    reply: str = ""  # a person's
    knowledge: tuple[str, ...] = ()  # what that reply is based on, from the documents

    @property
    def talk(self) -> Conversation:
        return Conversation((*self.earlier, Turn("user", self.text)))

    def answered_by(self, *sentences: CitedSentence) -> bool:
        """Return whether the sentences from the right documents, taken together, contain an answer."""
        reply = " ¶ ".join(
            sentence.text
            for sentence in sentences
            if not self.documents or sentence.evidence[0].document.key in self.documents
        )
        return any(has_all_strings(strings, reply) for strings in self.answers)

    def disagreement_shown(self, sentences: Sequence[CitedSentence]) -> bool:
        """Return whether the reply starts with the sentences that contradict each other, in the expected order."""
        pairs = zip(self.disagreement, sentences, strict=False)
        return len(sentences) >= len(self.disagreement) and all(
            has_all_strings([string], sentence.text) for string, sentence in pairs
        )


@dataclass(frozen=True)
class Exam:
    """Documents, and questions about them with known answers."""

    name: str
    corpus: str
    source: DocumentSource
    questions: tuple[ExamQuestion, ...]
    removable: bool  # whether a question is unanswerable once its documents are removed
    names: frozenset[str] = frozenset()  # of the things that the documents are about


def read_squad(path: Path, document: dict[str, Any]) -> Exam:
    """Read a file in SQuAD's format. Its paragraphs are the texts.

    If it is named `xquad.LANGUAGE.json`, that sets the language.
    """
    paragraphs = [
        (f"{number}-{place}", str(article.get("title", number)), paragraph)
        for number, article in enumerate(document["data"])
        for place, paragraph in enumerate(article["paragraphs"])
    ]
    texts = [SetText(key, "", paragraph["context"]) for key, _, paragraph in paragraphs]
    questions = tuple(
        ExamQuestion(row["question"], tuple((a["text"],) for a in row["answers"]), frozenset({key}), group)
        for key, group, paragraph in paragraphs
        for row in paragraph["qas"]
    )
    parts = path.name.split(".")
    language = parts[1] if len(parts) > 2 and len(parts[1]) == 2 else ""
    return Exam(path.stem, path.stem, build_set_source(texts, language), questions, removable=True)


def read_clapnq(path: Path) -> Exam:
    """Read a file of CLAPNQ rows. The passages of a row are texts; they are relevant if its question has answers."""
    texts, questions = list[SetText](), list[ExamQuestion]()
    for row in (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()):
        passages = enumerate(row["passages"])
        own = [SetText(f"{row['id']}-{place}", passage["title"], passage["text"]) for place, passage in passages]
        answers = tuple((answer["answer"],) for answer in row["output"] if answer["answer"])
        relevant = frozenset(text.id for text in own if answers)
        questions.append(ExamQuestion(row["input"], answers, relevant, str(row["id"])))
        texts += own
    return Exam(path.stem, path.stem, build_set_source(texts, "en"), tuple(questions), removable=True)


def read_exam(path: Path) -> Exam:
    """Read XQuAD or SQuAD JSON, CLAPNQ rows, or a file of questions about a handbook. Raises `UnreadableSet`."""
    try:
        if path.suffix == ".jsonl":
            return read_clapnq(path)
        document = json.loads(path.read_text(encoding="utf-8"))
        return read_squad(path, document) if "data" in document else _read_handbook(path, document)
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise UnreadableSet(
            f"{path} cannot be read as a file of questions ({type(error).__name__}: {error}).",
            hint="Our format is described in evaluation/answers/questions/README.md; others are SQuAD and CLAPNQ.",
        ) from error


def _read_handbook(path: Path, document: dict[str, Any]) -> Exam:
    place = ROOT / os.path.expandvars(document["dump"] if "dump" in document else document["folder"])
    questions = tuple(_handbook_questions(str(document["corpus"]), document))
    if not (place.is_file() if "dump" in document else place.is_dir()):
        raise UnreadableSet(
            f"The documents that {path.name} asks about are not in {place}.",
            hint="Set FOOTNOTE_DATA to the folder of data that has them.",
        )
    source: DocumentSource = FolderSource(place) if place.is_dir() else WikipediaDump(place)
    return Exam(path.stem, str(document["corpus"]), source, questions, removable=False)


def _handbook_questions(corpus: str, document: dict[str, Any]) -> Iterator[ExamQuestion]:
    """Yield the questions of a file. A question of a conversation comes with the earlier questions."""
    for row in document.get("questions", ()):
        yield _handbook_question(corpus, row, ())
    for talk in document.get("conversations", ()):
        turns = [str(turn["question"]) for turn in talk["turns"]]
        for place, turn in enumerate(talk["turns"]):
            row = {"held": talk.get("held", False)} | turn
            yield _handbook_question(corpus, row, tuple(Turn("user", text) for text in turns[:place]))


def _handbook_question(corpus: str, row: dict[str, Any], earlier: tuple[Turn, ...]) -> ExamQuestion:
    document = row.get("document", "")
    return ExamQuestion(
        text=row["question"],
        answers=(tuple(row["answer"]),) if row.get("answerable", True) else (),
        documents=frozenset({document} if document else ()),
        group=f"{corpus}:{document or row['question']}",
        earlier=earlier,
        disagreement=tuple(row.get("disagreement", ())),
        held=row.get("held", False),
    )


def build_set_source(texts: Sequence[SetText], language: str) -> PageSource:
    """Return the texts of a set as a source of documents; each has one section."""

    def pages() -> Iterator[tuple[str, str, Page]]:
        for text in texts:
            parts = text.text.split("\n") if text.kind is PassageKind.TABLE else [text.text]
            blocks = tuple(Block(part, text.kind) for part in parts)
            yield text.id, text.id, Page(text.title, (Section((), blocks),), language=language)

    return PageSource(len(texts), pages)


@dataclass(frozen=True, slots=True)
class TrueSentence:
    """A sentence of a document, and the text of its passage."""

    text: str
    passage: str


def find_true_sentences(source: DocumentSource) -> Iterator[TrueSentence]:
    """Yield the whole sentences in the prose of a source's documents. Blocks."""
    for document in source.documents({}):
        passages: tuple[Passage, ...] = ()
        if isinstance(document, ChangedDocument):
            with suppress(UnreadableDocument):
                passages = split_page("", document.key, document.load())
        for passage in passages:
            spans = find_quotable_spans(passage) if passage.kind is PassageKind.PROSE else ()
            yield from (TrueSentence(passage.text[slice(*span)], passage.text) for span in spans)
