"""Split a reply into sentences, each with the numbers of the evidence it cites; whole or as it arrives. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from pipeline.replies.block_parser import (
    BlockEvent,
    BlockParser,
    CodeBlock,
    ProseEnded,
    ProseText,
    TableRow,
    TableSentences,
)
from pipeline.replies.citation_marks import detach_marks, find_marks, is_incomplete, strip_marks
from pipeline.replies.markup import (
    clean_markup,
    extract_verbatim,
    find_opaque_spans,
    find_verbatim_spans,
    mask_spans,
    restore_verbatim,
    strip_emphasis,
    unescape_markdown,
)
from pipeline.types import CitedSentence
from storage.language.lazy_pattern import lazy_compile
from storage.language.sentences import sentence_spans
from storage.types import Evidence

_SENTENCE_END = lazy_compile("[.!?…。！？｡।॥۔؟։።፧፨។៕༎᠃෴‼⁇⁈⁉．;\u037e]|(?<=[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]) ")
_LOOKAHEAD = 48  # characters needed after a full stop to judge it: marks that follow it, and the next word
_SCAN_STRIDE = 16  # characters after a full stop within which others are judged together with it
_MAX_SENTENCE = 1_000  # longer sentences are cut at a space
_BRACKET_PAIRS = ("()", "[]", "（）", "「」", "『』", "《》", "“”", "„“", "«»")
_MAX_ENCLOSED = 300  # characters within which brackets, quotation marks or backticks may close
_WORD_PLACEHOLDER = "Q"
_ANSWER = lazy_compile(r"\A([\s*_]*(?:Yes|No)[\s*_]*)\.(?=[\s*_]+\w)")  # it belongs to the sentence after it


class SentenceCutter:
    def __init__(self, count: int) -> None:
        self._count = count
        self._text = ""
        self._judged = 0  # the length of the text known to have no sentence end

    @property
    def begun(self) -> str:
        return self._text

    def feed(self, text: str) -> Iterator[str]:
        self._text += text
        yield from self._cut(closed=False)

    def close(self) -> Iterator[str]:
        yield from self._cut(closed=True)
        if self._text:
            yield self._text
        self._text, self._judged = "", 0

    def _cut(self, *, closed: bool) -> Iterator[str]:
        while end := self._end(closed=closed):
            yield self._text[:end]
            self._text, self._judged = self._text[end:], 0

    def _end(self, *, closed: bool) -> int:
        """Return the end of the first sentence, including marks and spaces after it; 0 while the end is uncertain."""
        while (stop := _SENTENCE_END.search(self._text, self._judged)) and stop.end() <= _MAX_SENTENCE:
            ahead = stop.end() + _LOOKAHEAD
            if ahead > len(self._text) and not closed:
                return 0
            if end := _find_first_end(self._text[:ahead], stop.end(), self._count, whole=ahead > len(self._text)):
                return end
            # The longer the sentence, the rarer the checks: a stop that is passed over is found with the next one.
            self._judged = stop.end() + max(_SCAN_STRIDE, stop.end() // 3)
        if len(self._text) > _MAX_SENTENCE + _LOOKAHEAD or (closed and len(self._text) > _MAX_SENTENCE):
            end = _find_first_end(self._text[: _MAX_SENTENCE + _LOOKAHEAD], _MAX_SENTENCE, self._count, whole=False)
            return end or self._text.rfind(" ", 1, _MAX_SENTENCE) + 1 or _MAX_SENTENCE
        return _find_first_end(self._text, len(self._text), self._count, whole=True) if closed and self._text else 0


@lru_cache(maxsize=128)
def mask_verbatim(text: str, count: int) -> str:
    """Return a text of the same length in which code and links are single words, and marks are spaces."""
    text = mask_spans(text, find_verbatim_spans(text), _WORD_PLACEHOLDER)
    text = mask_spans(text, find_opaque_spans(text), _WORD_PLACEHOLDER)
    text = mask_spans(text, [mark.span for mark in find_marks(text, count)], " ").replace("\t", " ")
    return _ANSWER.sub(r"\1,", text)


def _find_first_end(window: str, stop: int, count: int, *, whole: bool) -> int:
    """Return the index at which the second sentence of `window` begins; 0 unless the first one ends near `stop`."""
    text = mask_verbatim(window, count)
    spans = sentence_spans(text)
    if len(spans) == 1 or not spans or spans[0][1] > stop + _SCAN_STRIDE:
        return 0
    return 0 if not whole and _is_enclosed(text, spans[0][1]) else spans[1][0]


def _is_enclosed(text: str, end: int) -> bool:
    """Return whether a bracket or quotation mark that was opened shortly before `end` may still close."""
    near = max(0, end - _MAX_ENCLOSED)
    if any(text.count(sign, near, end) % 2 and sign not in text[end:] for sign in '"`'):
        return True
    return any(
        text.rfind(pair[0], near, end) > text.rfind(pair[1], near, end) and pair[1] not in text[end:]
        for pair in _BRACKET_PAIRS
    )


_WORD_CHARACTER = lazy_compile(r"[^\W_]")
_LEADING_WORD = lazy_compile(r"[\s*_\"“‘«]*[^\W\d_⁰¹²³⁴-⁹]")
_SENTENCE_PASSES = 6
_LOOSE_SPACE = lazy_compile(r"\s+(?=[.,](?:\s|\Z))")
_SENTENCE_EDGES = lazy_compile(r"\A[:：]\s+|\s#{1,6}\Z|\\\Z")


@dataclass(frozen=True, slots=True)
class MarkedSentence:
    """A sentence without marks, links and emphasis, and the numbers that it cites."""

    text: str
    numbers: tuple[int, ...]
    """In the order of its marks, each once, from 1 to the number of pieces of evidence offered."""
    paragraph: bool  # whether it begins a paragraph, an item, a row or a heading; False for the first
    incomplete: bool = False  # whether it lost a part with its marks or addresses, so that it gets no evidence
    borrowed: bool = False  # whether its numbers are the next sentence's, as it has none of its own


def split_sentences(reply: str, count: int) -> tuple[MarkedSentence, ...]:
    """Return the sentences of a whole reply. The model was offered `count` pieces of evidence, numbered from 1."""
    splitter = SentenceSplitter(count)
    return splitter.feed(reply) + splitter.close()


def cite_sentence(marked: MarkedSentence, offered: Sequence[Sequence[Evidence]]) -> CitedSentence:
    """Return a sentence with the evidence it names: `offered[n - 1]` is all evidence shown to the model as `[n]`."""
    numbers = () if marked.incomplete else marked.numbers
    named = (evidence for number in numbers if number <= len(offered) for evidence in offered[number - 1])
    return CitedSentence(marked.text, tuple(dict.fromkeys(named)), paragraph=marked.paragraph)


def format_draft(sentences: Sequence[MarkedSentence]) -> str:
    """Return sentences as a model writes them, with the numbers in brackets before the full stop."""
    written = []
    for sentence in sentences:
        marks = "".join(f"[{number}]" for number in sentence.numbers)
        body = sentence.text.rstrip(".!?。")
        written.append(f"{body} {marks}{sentence.text[len(body) :]}" if marks else sentence.text)
    return " ".join(written)


class SentenceSplitter:
    """Splits a reply into sentences as it arrives. A sentence is yielded once about fifty characters follow it."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._lines = BlockParser()
        self._cutter = SentenceCutter(count)
        self._table = TableSentences()
        self._held: MarkedSentence | None = None  # the last sentence: separate marks may still follow
        self._fronted: bool | None = None  # whether marks precede their sentences in this line; None at its beginning
        self._ahead: tuple[int, ...] = ()  # numbers for the sentence that follows
        self._paragraph = False
        self._first = True

    def feed(self, piece: str) -> tuple[MarkedSentence, ...]:
        sentences = [marked for event in self._lines.feed(piece) for marked in self._take_event(event)]
        if self._held and _LEADING_WORD.match(self._cutter.begun):
            sentences.extend(self._release())
        return tuple(sentences)

    def close(self) -> tuple[MarkedSentence, ...]:
        sentences = [marked for event in self._lines.close() for marked in self._take_event(event)]
        return (*sentences, *self._end_table(), *self._release())

    def _take_event(self, event: BlockEvent) -> Iterator[MarkedSentence]:
        if not isinstance(event, TableRow):
            yield from self._end_table()
        match event:
            case ProseText(text):
                yield from self._take_running(self._cutter.feed(text))
            case ProseEnded():
                yield from self._take_running(self._cutter.close())
                self._add_numbers(self._ahead)
                self._fronted, self._ahead, self._paragraph = None, (), True
            case TableRow(line):
                yield from self._rows(self._table.row(line))
            case CodeBlock(text):
                yield from self._hold_sentence(clean_markup(text), ())

    def _end_table(self) -> Iterator[MarkedSentence]:
        yield from self._rows(self._table.end())

    def _rows(self, rows: Iterable[str]) -> Iterator[MarkedSentence]:
        for row in rows:
            self._paragraph = True
            yield from self._take_sentences([row])
            self._paragraph = True

    def _take_running(self, raw: Iterable[str]) -> Iterator[MarkedSentence]:
        for sentence in raw:
            text = mask_verbatim(sentence, self._count)
            end = len(text.rstrip())
            start = min(len(text) - len(text.lstrip()), end)
            front, body, behind = sentence[:start], sentence[start:end], sentence[end:]
            if self._fronted is not False and body:
                inside = parse_sentence(body, self._count)[1]
                self._fronted = (self._fronted or bool(front.strip())) and not inside
            if not (self._fronted and body and behind[:1].isspace()):
                yield from self._take_sentences([sentence])
                continue
            yield from self._take_sentences([front + body])
            self._ahead = parse_sentence(behind, self._count)[1]

    def _take_sentences(self, raw: Iterable[str]) -> Iterator[MarkedSentence]:
        for sentence in raw:
            text, numbers = parse_sentence(sentence, self._count)
            if _WORD_CHARACTER.search(mask_verbatim(sentence, self._count)):
                ahead, self._ahead = self._ahead, ()
                yield from self._hold_sentence(text, tuple(dict.fromkeys(ahead + numbers)))
                prose, _ = extract_verbatim(" ".join(sentence.split()))
                if self._held and is_incomplete(detach_marks(strip_emphasis(prose), self._count), self._count):
                    self._held = replace(self._held, incomplete=True)
            else:
                self._add_numbers(numbers)

    def _hold_sentence(self, text: str, numbers: tuple[int, ...]) -> Iterator[MarkedSentence]:
        # Release first: marks after a removed link do not belong to the sentence before it.
        yield from self._release()
        if _WORD_CHARACTER.search(text):
            self._held = MarkedSentence(text, numbers, paragraph=self._paragraph and not self._first)
            self._paragraph = self._first = False

    def _add_numbers(self, numbers: tuple[int, ...]) -> None:
        if self._held:
            self._held = replace(self._held, numbers=tuple(dict.fromkeys(self._held.numbers + numbers)))

    def _release(self) -> Iterator[MarkedSentence]:
        if self._held:
            yield self._held
        self._held = None


def is_ended(sentence: str) -> bool:
    """Return whether a sentence is complete: whether it ends in a full stop or the like."""
    return bool(_SENTENCE_END.match(sentence.rstrip("\"'”’»)]*_")[-1:]))


@lru_cache(maxsize=128)
def parse_sentence(raw: str, count: int) -> tuple[str, tuple[int, ...]]:
    """Return a sentence without its marks and markup, and the numbers in 1..count that its marks name."""
    text, numbers = raw, dict[int, None]()
    for _ in range(_SENTENCE_PASSES):
        before = text
        prose, verbatim = extract_verbatim(" ".join(clean_markup(text).split()))
        prose, named = strip_marks(detach_marks(strip_emphasis(prose), count), count)
        numbers.update(dict.fromkeys(named))
        text = restore_verbatim(prose, verbatim)
        if text == before:
            break
    prose, verbatim = extract_verbatim(text)
    text = restore_verbatim(_LOOSE_SPACE.sub("", unescape_markdown(_SENTENCE_EDGES.sub("", prose.strip()))), verbatim)
    return clean_markup(" ".join(text.split())).strip(), tuple(numbers)
