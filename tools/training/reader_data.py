"""Make questions to train the answer reader: from SQuAD and XQuAD, headings of articles, and FAQs of hotels."""

import json
import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

from ingest.chunking import SEPARATOR, split_page
from ingest.sources.dumps.wikipedia_dump import WikipediaDump
from ingest.types import Block, ChangedDocument, Page, Section
from pipeline.support.support_check import find_quotable_spans
from storage.indexes.answer_reader import MOST_QUESTION
from storage.language.words import content_terms
from storage.types import Passage, PassageKind, Span

NEAR = 12  # passages that share a question's words
LEAST_OTHERS = 5  # other answers about the same hotel or restaurant
MIN_TOKENS = 30  # tokens of a passage that a heading can ask for
MOST_TOKENS = 88  # tokens of a passage in training: a few sentences around the answer take half the time
WHOLE = 0.25  # the share of longer passages that are read whole anyway
DULL_HEADINGS = frozenset(
    {"references", "see also", "external links", "notes", "further reading", "bibliography", "sources", "citations"}
)
HEADING_QUESTIONS = (
    "{heading} of {title}",
    "{title} {heading}",
    "What is the {heading} of {title}?",
    "What about {heading} in {title}?",
    "What does one know about the {heading} of {title}?",
    "How is {heading} in {title}?",
    "Which {heading} has {title}?",
    "Tell me about {title}: {heading}",
    "Why {heading}, {title}?",
    "When and where: {heading} of {title}?",
    "{heading}?",
    "{heading}?",
)
Tokenize = Callable[[str], Any]  # returns `ids` and `offsets`


@dataclass(frozen=True, slots=True)
class ReadPassage:
    """A passage, with its tokens and the spans of its sentences."""

    text: str
    title: Sequence[int]
    ids: Sequence[int]
    offsets: Sequence[Span]
    sentences: Sequence[Span]


@dataclass(slots=True)
class ReaderQuestion:
    """A question, the numbers of its own passages and of similar ones, and the tokens that answer it."""

    article: str
    text: str
    ids: Sequence[int]
    answers: tuple[str, ...]
    own: tuple[int, ...]
    gold: Mapping[int, frozenset[int]]  # passage -> tokens; empty if the paragraph does not answer
    near: Sequence[int] = field(default=())


def read_squad_questions(
    articles: Sequence[Mapping[str, Any]], passages: list[ReadPassage], tokenize: Tokenize
) -> Iterator[ReaderQuestion]:
    """Yield the questions of articles in SQuAD's format, and add their passages to `passages`."""
    for article in articles:
        title = article["title"].replace("_", " ")
        for paragraph in article["paragraphs"]:
            page = Page(title, (Section((), (Block(paragraph["context"]),)),), language="en")
            begins: dict[int, int] = {}
            for passage in split_page("", article["title"], page):
                begins[len(passages)] = paragraph["context"].find(passage.text)
                passages.append(_tokenize_passage(title, passage, tokenize))
            for question in paragraph["qas"]:
                spans = [
                    (answer["answer_start"], answer["answer_start"] + len(answer["text"]))
                    for answer in question["answers"]
                ]
                gold = {number: _find_tokens(passages[number], begin, spans) for number, begin in begins.items()}
                yield ReaderQuestion(
                    article["title"],
                    question["question"],
                    tokenize(question["question"]).ids[:MOST_QUESTION],
                    tuple(answer["text"] for answer in question["answers"]),
                    tuple(begins),
                    {number: tokens for number, tokens in gold.items() if tokens},
                )


def read_heading_questions(
    dump: Path, passages: list[ReadPassage], tokenize: Tokenize, chance: random.Random
) -> Iterator[ReaderQuestion]:
    """Yield a dump's headings as questions. A heading is answered only by the passages of its section."""
    for document in WikipediaDump(dump).documents({}):
        if not isinstance(document, ChangedDocument):
            continue
        page, sections = document.load(), {}
        for passage in split_page("", document.key, page):
            if passage.kind is PassageKind.PROSE and passage.section:
                read = _tokenize_passage(page.title, passage, tokenize)
                if len(read.ids) >= MIN_TOKENS:
                    sections[len(passages)] = passage.section
                    passages.append(read)
        for number, section in sections.items():
            others = [other for other, place in sections.items() if place != section]
            heading = section.split(SEPARATOR)[-1]
            if others and heading.casefold() not in DULL_HEADINGS:
                text = chance.choice(HEADING_QUESTIONS).format(heading=heading, title=page.title)
                whole = {number: frozenset(range(len(passages[number].ids)))}
                ids = tokenize(text).ids[:MOST_QUESTION]
                near = chance.sample(others, min(NEAR, len(others)))
                yield ReaderQuestion(page.title, text, ids, (), (number,), whole, near)


def read_faq_questions(
    path: Path, passages: list[ReadPassage], tokenize: Tokenize, chance: random.Random
) -> Iterator[ReaderQuestion]:
    """Yield the frequent questions about the hotels and restaurants of DSTC 11.

    For each question, two passages are made: one from its answer and other answers about the same place, and one
    without its answer.
    """
    for kind in json.loads(path.read_text(encoding="utf-8")).values():
        for hotel in kind.values():
            pairs = [(pair["question"].strip(), pair["answer"].strip()) for pair in (hotel.get("faqs") or {}).values()]
            title = str(hotel["name"] or "").title()
            for place, (question, answer) in enumerate(pairs):
                others = [other for number, (_, other) in enumerate(pairs) if number != place]
                if len(others) < LEAST_OTHERS:
                    continue
                chosen = chance.sample(others, chance.randint(2, 4))
                chosen.insert(at := chance.randint(0, len(chosen)), answer)
                first = len(passages)
                passages.append(_join_sentences(title, chosen, tokenize))
                passages.append(_join_sentences(title, chance.sample(others, min(len(others), len(chosen))), tokenize))
                gold = _find_tokens(passages[first], 0, [passages[first].sentences[at]])
                yield ReaderQuestion(
                    title, question, tokenize(question).ids[:MOST_QUESTION], (), (first,), {first: gold}, (first + 1,)
                )


def find_near(questions: Sequence[ReaderQuestion], passages: Sequence[ReadPassage]) -> None:
    """Set each question's similar passages: of all these questions' passages, those that BM25 ranks highest for it."""
    among = sorted({number for question in questions for number in question.own})
    counts = {number: Counter(content_terms(passages[number].text, "en")) for number in among}
    mean = sum(map(Counter.total, counts.values())) / len(counts)
    having: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for number, terms in counts.items():
        for term, count in terms.items():
            having[term].append((number, count))
    for question in questions:
        scores: Counter[int] = Counter()
        for term in content_terms(question.text, "en"):
            postings = having.get(term, [])
            rarity = math.log1p((len(counts) - len(postings) + 0.5) / (len(postings) + 0.5))
            for number, count in postings:
                length = 0.25 + 0.75 * counts[number].total() / mean
                scores[number] += rarity * count * 2.2 / (count + 1.2 * length)  # type: ignore[assignment]
        question.near = [number for number, _ in scores.most_common(NEAR)]


def crop_passage(passage: ReadPassage, gold: frozenset[int], chance: random.Random) -> Span:
    """Choose consecutive sentences that contain the gold tokens. Return the first token and the end."""
    size = len(passage.ids)
    if size <= MOST_TOKENS or chance.random() < WHOLE:
        return 0, size
    starts = [0, *(_find_token(passage, start) for start, _ in passage.sentences[1:])]
    bounds = list(zip(starts, [*starts[1:], size], strict=True))
    if gold and len(gold) < size:
        places = [place for place, (start, end) in enumerate(bounds) if any(start <= token < end for token in gold)]
    else:
        places = [chance.randrange(len(bounds))]
    first, last = places[0], places[-1]
    while True:
        wider = [(first - 1, last), (first, last + 1)]
        open_ways = [
            (low, high)
            for low, high in wider
            if low >= 0 and high < len(bounds) and bounds[high][1] - bounds[low][0] <= MOST_TOKENS
        ]
        if not open_ways:
            return bounds[first][0], bounds[last][1]
        first, last = chance.choice(open_ways)


def read_articles(path: Path) -> list[Mapping[str, Any]]:
    articles: list[Mapping[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["data"]
    return articles


def _tokenize_passage(title: str, passage: Passage, tokenize: Tokenize) -> ReadPassage:
    encoded = tokenize(passage.text)
    return ReadPassage(passage.text, tokenize(title).ids, encoded.ids, encoded.offsets, find_quotable_spans(passage))


def _join_sentences(title: str, sentences: Sequence[str], tokenize: Tokenize) -> ReadPassage:
    ends = list(accumulate(len(sentence) + 1 for sentence in sentences))
    spans = [(end - 1 - len(sentence), end - 1) for end, sentence in zip(ends, sentences, strict=True)]
    encoded = tokenize(text := " ".join(sentences))
    return ReadPassage(text, tokenize(title).ids, encoded.ids, encoded.offsets, spans)


def _find_tokens(passage: ReadPassage, begin: int, spans: Sequence[Span]) -> frozenset[int]:
    """Return those tokens of a passage that are in `spans` of its paragraph.

    The passage begins at `begin` in the paragraph. A span that the passage does not contain completely is ignored.
    """
    inside = [(start - begin, end - begin) for start, end in spans if begin >= 0]
    whole = [(start, end) for start, end in inside if start >= 0 and end <= len(passage.text)]
    return frozenset(
        place
        for place, (start, end) in enumerate(passage.offsets)
        if any(start < stop and end > first for first, stop in whole)
    )


def _find_token(passage: ReadPassage, start: int) -> int:
    return next((place for place, (_, end) in enumerate(passage.offsets) if end > start), 0)
