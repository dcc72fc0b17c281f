"""Read question sets, and files of questions about handbooks, as exams: documents, and questions with known answers.

Formats are XQuAD, SQuAD, CLAPNQ, Cranfield and our own, which `evaluation/answers/questions/README.md` describes.
"""

import json
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
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
    group: str = ""  # its article; cross-validation keeps groups whole


@dataclass(frozen=True, slots=True)
class SetQuestion:
    """A question of a set."""

    id: str
    text: str
    relevant: Mapping[str, int]  # grades from 1 by text id; empty if no text answers the question
    answers: tuple[str, ...] = ()  # strings, each of which answers it
    group: str = ""


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """Questions about texts. `language` is a code of ISO 639-1."""

    name: str
    language: str
    texts: tuple[SetText, ...]
    questions: tuple[SetQuestion, ...]


def read_plain_set(path: Path) -> QuestionSet:
    document = json.loads(path.read_text(encoding="utf-8"))
    texts = tuple(SetText(**text) for text in document["texts"])
    questions = tuple(
        SetQuestion(**{**question, "answers": tuple(question.get("answers", ()))}) for question in document["questions"]
    )
    return QuestionSet(document["name"], document["language"], texts, questions)


def read_squad(path: Path) -> QuestionSet:
    """Read a file in SQuAD's format. Its paragraphs are the texts.

    If it is named `xquad.LANGUAGE.json`, that sets the language.
    """
    articles = json.loads(path.read_text(encoding="utf-8"))["data"]
    paragraphs = list(_squad_paragraphs(articles))
    texts = tuple(SetText(key, "", paragraph["context"], group) for key, group, paragraph in paragraphs)
    questions = tuple(
        SetQuestion(
            str(question["id"]), question["question"], {key: 1}, tuple(a["text"] for a in question["answers"]), group
        )
        for key, group, paragraph in paragraphs
        for question in paragraph["qas"]
    )
    parts = path.name.split(".")
    language = parts[1] if len(parts) > 2 and len(parts[1]) == 2 else ""
    return QuestionSet(path.stem, language, texts, questions)


def _squad_paragraphs(articles: list[dict[str, Any]]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for number, article in enumerate(articles):
        for place, paragraph in enumerate(article["paragraphs"]):
            yield f"{number}-{place}", str(article.get("title", number)), paragraph


def read_clapnq(path: Path) -> QuestionSet:
    """Read a file of CLAPNQ rows. The passages of a row are texts; they are relevant if its question has answers."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    texts: dict[str, SetText] = {}
    questions = []
    for row in rows:
        name = str(row["id"])
        passages = {f"{name}-{place}": passage for place, passage in enumerate(row["passages"])}
        texts |= {key: SetText(key, passage["title"], passage["text"], name) for key, passage in passages.items()}
        answers = tuple(answer["answer"] for answer in row["output"] if answer["answer"])
        relevant = dict.fromkeys(passages, 1) if answers else {}
        questions.append(SetQuestion(name, row["input"], relevant, answers, name))
    return QuestionSet(path.stem, "en", tuple(texts.values()), tuple(questions))


CRANFIELD_GRADES = {"1": 4, "2": 3, "3": 2, "4": 1}
"""Our grades by those of the collection: 1 is a complete answer, 4 of minimum interest, 5 and -1 of no interest."""


def read_cranfield(folder: Path) -> QuestionSet:
    """Read `cran.all.1400`, `cran.qry` and `cranqrel` from a folder."""
    texts = tuple(
        SetText(key, _join_lines(fields.get("T", "")), _join_lines(fields.get("W", "")))
        for key, fields in _cranfield_records(folder / "cran.all.1400")
    )
    grades = _cranfield_judgements(folder / "cranqrel")
    records = enumerate(_cranfield_records(folder / "cran.qry"), start=1)
    questions = tuple(
        SetQuestion(str(number), _join_lines(fields["W"]), grades[number]) for number, (_, fields) in records
    )
    return QuestionSet("cranfield", "en", texts, questions)


def _cranfield_records(path: Path) -> list[tuple[str, dict[str, str]]]:
    parts = re.split(r"^\.I (\d+)\s*$", path.read_text(encoding="utf-8", errors="replace"), flags=re.MULTILINE)[1:]
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return [(str(int(key)), _cranfield_fields(body)) for key, body in pairs]


def _cranfield_fields(body: str) -> dict[str, str]:
    parts = re.split(r"^\.([A-Z])\s*$", body, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def _cranfield_judgements(path: Path) -> dict[int, dict[str, int]]:
    grades: dict[int, dict[str, int]] = defaultdict(dict)
    for line in path.read_text().splitlines():
        query, document, grade = line.split()
        if grade in CRANFIELD_GRADES:
            grades[int(query)][document] = CRANFIELD_GRADES[grade]
    return grades


def _join_lines(text: str) -> str:
    return " ".join(text.split())


def read_set(path: Path) -> QuestionSet:
    """Read XQuAD or SQuAD JSON, CLAPNQ rows, a Cranfield folder, or our plain format. Raises `UnreadableSet`."""
    try:
        return _choose_reader(path)(path)
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise UnreadableSet(
            f"{path} cannot be read as a question set ({type(error).__name__}: {error}).",
            hint="The formats are described in evaluation/answers/questions/README.md.",
        ) from error


def _choose_reader(path: Path) -> Callable[[Path], QuestionSet]:
    if path.is_dir():
        return read_cranfield
    if path.suffix == ".jsonl":
        return read_clapnq
    return read_squad if "data" in json.loads(path.read_text(encoding="utf-8")) else read_plain_set


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
    earlier: tuple[str, ...] = ()  # the user's earlier messages
    disagreement: tuple[str, ...] = ()  # strings of contradictory sentences, the newer first
    held: bool = False  # held out while weights and rules were made

    @property
    def talk(self) -> Conversation:
        return Conversation(tuple(Turn("user", text) for text in (*self.earlier, self.text)))

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


def read_exam(path: Path) -> Exam:
    """Read a question set, or a file of questions about a handbook. Raises `UnreadableSet`."""
    return _handbook_exam(path) if _is_handbook(path) else _set_exam(path)


def _is_handbook(path: Path) -> bool:
    if path.suffix != ".json" or not path.is_file():
        return False
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return False
    return isinstance(document, dict) and not document.keys().isdisjoint({"folder", "dump"})


def _handbook_exam(path: Path) -> Exam:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        place = ROOT / os.path.expandvars(document["dump"] if "dump" in document else document["folder"])
        questions = tuple(_handbook_questions(str(document["corpus"]), document))
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise UnreadableSet(
            f"{path} cannot be read as questions over a handbook ({type(error).__name__}: {error}).",
            hint="The format is described in evaluation/answers/questions/README.md.",
        ) from error
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
            yield _handbook_question(corpus, row, tuple(turns[:place]))


def _handbook_question(corpus: str, row: dict[str, Any], earlier: tuple[str, ...]) -> ExamQuestion:
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


def _set_exam(path: Path) -> Exam:
    question_set = read_set(path)
    questions = tuple(
        ExamQuestion(
            text=question.text,
            answers=tuple((answer,) for answer in question.answers) if question.relevant else (),
            documents=frozenset(question.relevant),
            group=question.group or question.id,
        )
        for question in question_set.questions
    )
    return Exam(
        question_set.name,
        question_set.name,
        build_set_source(question_set.texts, question_set.language),
        questions,
        removable=True,
    )


def build_set_source(texts: Sequence[SetText], language: str) -> PageSource:
    """Return the texts of a set as a source of documents; each has one section."""

    def pages() -> Iterator[tuple[str, str, Page]]:
        for text in texts:
            yield text.id, text.id, Page(text.title, (Section((), (Block(text.text),)),), language=language)

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
