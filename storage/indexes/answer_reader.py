"""Score the sentences of passages by how likely they answer a question: MiniLM, trained for it, with 8-bit weights.

The model reads a passage once, after the question and the passage's headings, and each sentence gets a score from that:
so "she" is read together with the sentence that names her. `tools.training.reader_weights` makes the weights.
"""

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from storage.errors import EmbeddingUnavailable
from storage.indexes.embedding import READER_SHA256
from storage.indexes.minilm import TOKENIZER, find_model_folder, open_session, open_tokenizer, pad_rows
from storage.indexes.minilm_graph import UNSEEN
from storage.types import Evidence, Span

READER_FILE = "answer_reader.onnx"
MOST_TOKENS = 240  # of question, headings and passage together; a longer passage is read in parts that overlap by half
LONGEST_TEXT = 24_000  # tokens: more than any passage has
RESTORE_HINT = f"restore {READER_FILE} from this release"
MOST_QUESTION = 40
MOST_HEADING = 40
BATCH = 4  # passages; a larger batch does not fit the processor's cache
UNREAD = -20.0
"""The score of a sentence without a token."""
_FIRST, _BETWEEN = 101, 102  # the tokens that open a text and end its parts


def open_answer_reader(path: Path | None = None, folder: Path | None = None) -> "AnswerReader":
    """Load the reader: its packaged weights, and MiniLM's tokenizer in `folder`. Raises `EmbeddingUnavailable`."""
    path = path or Path(str(resources.files("storage.indexes").joinpath(READER_FILE)))
    folder = folder or find_model_folder()
    try:
        weights = path.read_bytes()
        session = open_session(weights) if hashlib.sha256(weights).hexdigest() == READER_SHA256 else None
        tokenizer = open_tokenizer(folder / TOKENIZER, LONGEST_TEXT)
    except Exception as error:  # onnxruntime and tokenizers raise no common class
        raise EmbeddingUnavailable(f"The reader of answers cannot be loaded: {error}", hint=RESTORE_HINT) from error
    if session is None:
        raise EmbeddingUnavailable(f"The reader's weights are damaged: {path}.", hint=RESTORE_HINT)
    return AnswerReader(session, tokenizer)


def build_row(question: Sequence[int], heading: Sequence[int]) -> list[int]:
    """Return the tokens before those of a passage: the question, and the passage's heading if it has one."""
    return [_FIRST, *question, _BETWEEN, *([*heading, _BETWEEN] if heading else [])]


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a passage for one row of the model: its tokens after the question's, and the characters of each."""

    row: list[int]
    passage_at: int
    body_at: int
    spans: Sequence[Span]


class AnswerReader:
    """The loaded reader; opened by `open_answer_reader`. Safe to call from several threads."""

    def __init__(self, session: Any, tokenizer: Any) -> None:
        self._session = session
        self._tokenizer = tokenizer

    def read(self, question: str, evidence: Sequence[Evidence]) -> tuple[float, ...]:
        """Return for each sentence the log odds that it answers, against no answer at all. Blocks, on one core."""
        question_tokens = self._tokens(question)[0][:MOST_QUESTION]
        passages = {item.passage.id: item for item in evidence}
        parts = [(key, part) for key, one in passages.items() for part in self._parts(question_tokens, one)]
        parts.sort(key=lambda part: len(part[1].row))
        scores = dict.fromkeys(range(len(evidence)), UNREAD)
        for start in range(0, len(parts), BATCH):
            batch = parts[start : start + BATCH]
            for (key, part), found in zip(batch, self._run([part for _, part in batch]), strict=True):
                for place, one in enumerate(evidence):
                    if one.passage.id == key:
                        scores[place] = max(scores[place], _score_span(one.span, part.spans, found))
        return tuple(scores.values())

    def _parts(self, question_tokens: list[int], one: Evidence) -> Iterator[_Part]:
        heading = " ".join(part for part in (one.document.title, one.passage.section) if part)
        opening = build_row(question_tokens, self._tokens(heading)[0][:MOST_HEADING])
        ids, spans = self._tokens(one.passage.text)
        room = MOST_TOKENS - len(opening) - 1
        for start in range(0, max(1, len(ids) - room // 2), room // 2):
            row = [*opening, *ids[start : start + room], _BETWEEN]
            yield _Part(row, len(question_tokens) + 2, len(opening), spans[start : start + room])

    def _tokens(self, text: str) -> tuple[list[int], list[Span]]:
        # Each character stays one character, so that offsets fit the text: a lone surrogate becomes "?".
        encoded = self._tokenizer.encode(text.encode(errors="replace").decode(), add_special_tokens=False)
        return encoded.ids, encoded.offsets

    def _run(self, parts: Sequence[_Part]) -> list[Any]:
        """Return for each part the scores of its tokens as an answer, minus the score of "no answer"."""
        ids, lengths = pad_rows([part.row for part in parts])
        places = np.arange(ids.shape[1])
        kinds = (places >= np.array([[part.passage_at] for part in parts])) & (places < lengths[:, np.newaxis])
        unseen = np.where(places < lengths[:, np.newaxis], 0, UNSEEN).astype(np.float32)[:, np.newaxis, np.newaxis]
        (found,) = self._session.run(None, {"ids": ids, "kinds": kinds.astype(np.int32), "unseen": unseen})
        return [row[part.body_at : len(part.row) - 1, 0] - row[0, 1] for row, part in zip(found, parts, strict=True)]


def _score_span(span: Span, spans: Sequence[Span], found: Any) -> float:
    inside = [
        float(value) for (start, end), value in zip(spans, found, strict=True) if start < span[1] and end > span[0]
    ]
    most = max(inside, default=UNREAD)
    return most + math.log(sum(math.exp(value - most) for value in inside)) if inside else UNREAD
