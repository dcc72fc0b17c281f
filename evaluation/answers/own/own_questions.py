"""Make questions about a team's own documents, by rules or by a model, and add them to the existing ones.

A question is used only if the search finds the section that answers it. Unanswerable questions are everyday ones whose
words do not occur together in any passage. A model also makes near misses, whose answer the documents nearly give.
"""

import asyncio
import json
import re
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

from bot.app import App
from evaluation.answers.own.prompts import PROMPTS
from evaluation.answers.own.question_file import OwnQuestion
from evaluation.answers.own.question_maker import make_questions
from evaluation.answers.own.sentence_questions import MadeQuestion
from evaluation.answers.question_sets import has_all_strings
from pipeline.errors import BudgetExceeded, ModelRefused, ModelUnavailable, UnreadableReply
from pipeline.llm.model import LLM, Budget, BudgetMeter
from pipeline.prompts.prompter import Prompter
from pipeline.replies.reply_format import (
    ReplyFormat,
    get_field,
    integer_schema,
    list_schema,
    object_schema,
    string_schema,
)
from pipeline.stages.findings import collect_sentences
from storage.database.document_versions import StoredVersion
from storage.language.words import content_terms
from storage.types import Document, Evidence, Hit, Passage

EVERYDAY_QUESTIONS = Path(__file__).with_name("everyday_questions.json")
"""Questions about any workplace, which most handbooks do not answer, each with its content words."""
FOUND_AMONG = 10  # hits among which the section must be
MOST_DOCUMENTS = 20_000  # of each corpus
MOST_OF_DOCUMENT = (3, 9)  # questions of one document; the second if the first brings too few in all
MOST_ALIKE = 2  # questions with the same words, such as those of table rows
SHARES = {"heading": 14, "sentence": 4, "table": 1, "what": 1}
"""How many questions of each kind are taken in turn."""
UNANSWERED_SHARE = 0.2
AT_ONCE = 8  # calls of the model


@dataclass(frozen=True, slots=True)
class Source:
    """Where a question comes from: a passage and its document."""

    passage: Passage
    document: Document
    text: str  # shown with the question


@dataclass(frozen=True, slots=True)
class QuestionMaking:
    """Makes questions about the corpora of an open home."""

    app: App
    corpora: Sequence[str]
    seed: int = 0
    llm: LLM | None = None
    now: datetime | None = None
    progress: Callable[[int, int], object] = lambda *_: None

    async def make(self, count: int, known: Sequence[OwnQuestion] = ()) -> tuple[OwnQuestion, ...]:
        """Return the existing questions and new ones, so that `count` can be used. Raises any `PipelineError`."""
        random, known_ids = Random(self.seed), {question.id for question in known}
        used = [question for question in known if question.use]
        absent = [question async for question in self._find_absent(random) if question.id not in known_ids]
        silent = max(0, round(UNANSWERED_SHARE * count) - sum(not question.answerable for question in used))
        silent = min(silent, max(0, count - len(used)))
        absent = absent[: silent // 2 if self.llm else silent]  # the model makes near misses as well
        near, made = 0, list[OwnQuestion]()
        try:
            async for question in self._ask_model(random) if self.llm else self._apply_rules(random, used):
                if len(made) + len(used) + len(absent) >= count:
                    break
                if question.id in known_ids or (not question.answerable and near >= silent - len(absent)):
                    continue
                known_ids.add(question.id)
                made.append(question)
                near += not question.answerable
                self.progress(len(made), count - len(used) - len(absent))
        except ModelUnavailable:
            if not made:
                raise  # otherwise the questions so far are returned; the command reports how many are missing
        return (*known, *made, *absent)

    async def _list_documents(self) -> AsyncIterator[StoredVersion]:
        for corpus in self.corpora:
            after, left = 0, MOST_DOCUMENTS
            while left > 0 and (listed := await self.app.manifest.listed(corpus, after=after)):
                for version in listed:
                    yield version
                after, left = listed[-1].number, left - len(listed)

    async def _apply_rules(self, random: Random, used: Sequence[OwnQuestion]) -> AsyncIterator[OwnQuestion]:
        """Make questions by rules; yield those whose section the search finds: a few of each document, then more."""
        pool, sources = list[MadeQuestion](), dict[str, Source]()
        async for version in self._list_documents():
            passages = {item.id: item for item in version.passages}
            for made in make_questions(version.passages, version.document):
                pool.append(made)
                passage = passages[made.passage]
                section = "\n\n".join(item.text for item in version.passages if item.section == passage.section)
                text = section if made.kind == "heading" else passage.text
                sources[made.passage + made.kind] = Source(passage, version.document, text)
        left, per_document = [*order_questions(pool, random)], Counter((item.corpus, item.document) for item in used)
        for most in MOST_OF_DOCUMENT:
            later = list[MadeQuestion]()
            for made in left:
                source = sources[made.passage + made.kind]
                place = source.document.corpus, source.document.key
                if per_document[place] >= most:
                    later.append(made)
                elif await self._is_found(made.text, source):
                    per_document[place] += 1
                    yield _describe(made, source)
            left = later

    async def _search(self, text: str, k: int) -> tuple[Hit, ...]:
        return await self.app.passages.search(text, self.corpora, k)

    async def _is_found(self, question: str, source: Source) -> bool:
        """Return whether the search for a question finds its passage, or another passage of the same section."""
        hits = await self._search(question, FOUND_AMONG)
        place = (source.document.corpus, source.document.key, source.passage.section)
        return any((hit.document.corpus, hit.document.key, hit.passage.section) == place for hit in hits)

    async def _is_absent(self, question: str, about: str) -> bool:
        """Return whether no passage that the search finds has all the content words of `about`."""
        terms = set(content_terms(about))
        hits = await self._search(f"{question} {about}", 2 * FOUND_AMONG)
        return not any(terms <= set(content_terms(f"{hit.document.title} {hit.passage.text}")) for hit in hits)

    async def _find_absent(self, random: Random) -> AsyncIterator[OwnQuestion]:
        questions: list[list[str]] = json.loads(EVERYDAY_QUESTIONS.read_text("utf-8"))
        for text, about in random.sample(questions, len(questions)):
            if await self._is_absent(text, about):
                yield OwnQuestion(text, kind="absent", answerable=False)

    async def _ask_model(self, random: Random) -> AsyncIterator[OwnQuestion]:
        """Have the model make questions about random passages; there are a few for each document."""
        drawn = [
            Source(passage, version.document, passage.text)
            async for version in self._list_documents()
            for passage in random.sample(version.passages, min(MOST_OF_DOCUMENT[0], len(version.passages)))
        ]
        random.shuffle(drawn)
        for at in range(0, len(drawn), AT_ONCE):
            for questions in await asyncio.gather(*map(self._ask_about, drawn[at : at + AT_ONCE])):
                for question in questions:
                    yield question

    async def _ask_about(self, source: Source) -> tuple[OwnQuestion, ...]:
        """Have the model make questions about a passage; return those that the search confirms."""
        sentences = collect_sentences([Hit(source.passage, source.document, 0.0)])
        if self.llm is None or self.now is None or sum(len(sentence.text) for sentence in sentences) < _LEAST_ASKED:
            return ()
        spent = BudgetMeter(Budget(calls=4, tokens=20_000, seconds=600))
        random = Random(f"{self.seed} {source.passage.id}")
        prompter = Prompter(self.llm, spent, note=lambda *_: None, now=self.now, random=random, folder=PROMPTS)
        try:
            form = own_questions_format(sentences)
            questions = await prompter.ask("own_questions", form, stage="generate", sentences=sentences)
        except (UnreadableReply, ModelRefused, BudgetExceeded):
            return ()
        confirmed = list[OwnQuestion]()
        for question in questions:
            text = question.question
            if await (self._is_found(text, source) if question.answerable else self._is_absent(text, text)):
                confirmed.append(question)
        return tuple(confirmed)


_LEAST_ASKED = 120  # characters of a passage that is worth a call


def _describe(made: MadeQuestion, source: Source) -> OwnQuestion:
    place = source.document.corpus, made.document, source.passage.section
    return OwnQuestion(made.text, made.answer, *place, source.text[:_MOST_SHOWN], f"rule: {made.kind}")


_MOST_SHOWN = 4000  # characters of a section


def order_questions(pool: Sequence[MadeQuestion], random: Random) -> Iterator[MadeQuestion]:
    """Yield questions in the order in which to try them: some of each kind in turn, the best of a kind first.

    A question with answers in two places or documents is dropped, because no single passage is the right one.
    """
    answers, documents = defaultdict[str, set[object]](set), defaultdict[str, set[str]](set)
    kinds = defaultdict[str, list[MadeQuestion]](list)
    for made in pool:
        answers[_asked(made)].add((made.document, made.answer, made.passage))
        documents[made.sentence].add(made.document)
    clear = [made for made in pool if len(answers[_asked(made)]) == 1 == len(documents[made.sentence])]
    alike = Counter[str]()
    for made in random.sample(clear, len(clear)):
        shape = _drop_title(made.text).partition("“")[0]  # questions about rows of a table differ only in the quotation
        alike[shape] += 1
        if alike[shape] <= MOST_ALIKE:
            kinds[made.kind if made.kind in SHARES else "sentence"].append(made)
    for questions in kinds.values():
        questions.sort(key=lambda made: -made.quality)
    while any(kinds.values()):
        for name, share in SHARES.items():
            yield from kinds[name][:share]
            del kinds[name][:share]


def _asked(made: MadeQuestion) -> str:
    """Return a question's text for comparison with others. A question for a definition loses its page's title."""
    return (_drop_title(made.text) if made.kind == "what" else made.text).casefold()


def _drop_title(text: str) -> str:
    return text.rpartition(": ")[2].casefold()


def own_questions_format(sentences: Sequence[Evidence]) -> ReplyFormat[tuple[OwnQuestion, ...]]:
    """Return the format of a reply with questions about a passage. Their answers must be verbatim in the passage."""
    passage, document = sentences[0].passage, sentences[0].document
    place = OwnQuestion("", (), document.corpus, document.key, passage.section, passage.text, "model")

    def build(rows: Iterable[tuple[str, str]], unanswered: str) -> tuple[OwnQuestion, ...]:
        made = [
            replace(place, question=" ".join(question.split()), answer=(answer.strip(' .“”"'),))
            for question, answer in rows
            if question.strip() and answer.strip() and has_all_strings([answer.strip(' .“”"')], passage.text)
        ]
        near = OwnQuestion(unanswered.strip(), kind="model: near miss", answerable=False)
        return (*made, *([near] if near.question.endswith("?") else []))

    def from_text(text: str) -> tuple[OwnQuestion, ...]:
        rows = [line.split("|") for line in re.findall(r"(?im)^\W*question\W*: *(.+)$", text)]
        near = re.search(r"(?im)^\W*unanswered\W*: *(.+)$", text)
        if not rows and not near and text.strip(" .*\n").casefold() != "none":
            raise UnreadableReply("there is neither a line “Question: … | answer | number” nor “None”")
        return build([(row[0], row[1]) for row in rows if len(row) > 1], near[1] if near else "")

    def from_json(found: Any) -> tuple[OwnQuestion, ...]:
        rows = get_field(found, "questions", list)
        return build(
            [(get_field(row, "question", str), get_field(row, "answer", str)) for row in rows],
            get_field(found, "unanswered", str),
        )

    line = string_schema(400)
    shape = object_schema(question=line, answer=line, sentence=integer_schema(1, 999))
    schema = object_schema(questions=list_schema(shape, 12), unanswered=line)
    return ReplyFormat(schema, from_json=from_json, from_text=from_text)
