"""Define labelled claims and the rows of their files, and split long evidence into passages like ingested ones."""

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO, TypeVar

from evaluation import EvaluationError
from storage.language.words import content_terms, count_words
from storage.types import Verdict


class UnreadableClaims(EvaluationError):
    """A file has none of the known formats, or a malformed row."""

    kind = "unreadable_claims"


@dataclass(frozen=True, slots=True)
class LabelledClaim:
    """A claim, passages as its evidence, and the verdict that people gave."""

    id: str
    source: str  # its set; the part before a slash names a family of sets that share claims
    claim: str
    evidence: tuple[str, ...]  # the texts of the passages; several may have to be read together
    label: Verdict
    group: str  # claims of one group share an article, a passage or a question: cross-validation keeps groups whole
    title: str = ""  # the title of the evidence's page, if the set has it; not part of the passages
    kind: str = ""  # how it was changed, or why it is hard, if the set says so
    asked: tuple[str, ...] = ()  # the question that it answers, if the set has one

    @property
    def supported(self) -> bool:
        return self.label is Verdict.SUPPORTS

    @property
    def family(self) -> str:
        """The family of the claim's source: sets in one family have claims in common."""
        return self.source.partition("/")[0]


T = TypeVar("T")


class MalformedRow(Exception):
    """A row does not have the format of its file. `str()` gives the line number and the reason."""

    def __init__(self, line: int, fault: str) -> None:
        super().__init__(f"line {line}: {fault}")


@dataclass(frozen=True, slots=True)
class ClaimRow:
    """A row of a file. Its methods raise `MalformedRow` if a field is missing or has another type."""

    line: int  # from 1
    fields: Mapping[str, Any]

    def text(self, name: str) -> str:
        """Return a field that is a non-empty text."""
        value = self._field(name)
        if not isinstance(value, str) or not value.strip():
            raise self.unlike(name, "a text", value)
        return value.strip()

    def many(self, name: str) -> list[Any]:
        value = self._field(name)
        if not isinstance(value, list):
            raise self.unlike(name, "a list", value)
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a field that is a list of texts, without the empty ones."""
        values = self.many(name)
        if not all(isinstance(text, str) for text in values):
            raise self.unlike(name, "a list of texts", values)
        return tuple(text.strip() for text in values if text.strip())

    def within(self, name: str) -> tuple["ClaimRow", ...]:
        """Return the objects in a field as rows. The field is one object, or a list or an object of objects."""
        value = self._field(name)
        listed = list(value.values()) if isinstance(value, dict) else value
        if isinstance(value, dict) and not any(isinstance(fields, dict) for fields in listed):
            return (ClaimRow(self.line, value),)
        if not isinstance(listed, list) or not all(isinstance(fields, dict) for fields in listed):
            raise self.unlike(name, "objects", value)
        return tuple(ClaimRow(self.line, fields) for fields in listed)

    def one_of(self, name: str, known: Mapping[str, T]) -> T:
        """Return the value in `known` for a field's text; case, hyphens, underscores and white space do not matter."""
        word = self.text(name)
        values = {_plain(key): value for key, value in known.items()}
        if _plain(word) not in values:
            raise self.unlike(name, f"one of {', '.join(known)}", word)
        return values[_plain(word)]

    def unlike(self, name: str, expected: str, value: object) -> MalformedRow:
        shown = repr(value)
        short = shown if len(shown) <= 60 else f"{shown[:57]}..."
        return MalformedRow(self.line, f'"{name}" should be {expected}, and is {short}')

    def _field(self, name: str) -> Any:
        if name not in self.fields:
            raise MalformedRow(self.line, f'"{name}" is missing')
        return self.fields[name]


def read_rows(path: Path) -> Iterator[ClaimRow]:
    """Yield the rows of a JSON-lines, CSV or TSV file. Raises `MalformedRow`, `OSError`, `UnicodeDecodeError`."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        opening = file.readline()
        file.seek(0)
        if opening.lstrip()[:1] in {"", "{", "["}:
            yield from _json_lines(file)
        elif "\t" in opening:
            yield from _columns(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
        else:
            yield from _columns(csv.reader(file))


def _json_lines(file: TextIO) -> Iterator[ClaimRow]:
    for line, text in enumerate(file, start=1):
        if text.strip():
            try:
                fields = json.loads(text)
            except ValueError as error:
                raise MalformedRow(line, f"it is not JSON ({error})") from error
            if not isinstance(fields, dict):
                raise MalformedRow(line, "it is not a JSON object")
            yield ClaimRow(line, fields)


def _columns(rows: Any) -> Iterator[ClaimRow]:
    """Yield the rows after the header of a `csv.reader`. Its type has no public name, so `rows` is `Any`."""
    try:
        names: list[str] = next(rows, [])
        for cells in rows:
            if cells and len(cells) != len(names):
                raise MalformedRow(rows.line_num, f"it has {len(cells)} columns, and the header {len(names)}")
            if cells:
                yield ClaimRow(rows.line_num, dict(zip(names, cells, strict=True)))
    except csv.Error as error:
        raise MalformedRow(rows.line_num, f"it is not a table ({error})") from error


def _plain(word: str) -> str:
    return " ".join(word.replace("_", " ").replace("-", " ").split()).casefold()


CHUNK_WORDS = 120  # words of a passage, as in ingestion
MOST_PASSAGES = 3  # passages of a claim


def split_into_chunks(sentences: Sequence[str], largest: int = CHUNK_WORDS) -> list[range]:
    """Split sentences into runs of at most `largest` words, or of one longer sentence. Return ranges of indexes."""
    runs: list[range] = []
    start = words = 0
    for place, sentence in enumerate(sentences):
        more = count_words(sentence)
        if place > start and words + more > largest:
            runs.append(range(start, place))
            start, words = place, 0
        words += more
    return [*runs, range(start, len(sentences))] if sentences else []


def join_sentences(sentences: Sequence[str], run: Sequence[int]) -> str:
    """Return the sentences at these indexes, one per line, because many sentences of a page are not prose."""
    return "\n".join(sentences[place] for place in run)


def select_similar(claim: str, passages: Sequence[str], most: int = MOST_PASSAGES) -> tuple[str, ...]:
    """Return the passages that share most content terms with the claim, in their order. In a tie, earlier ones win."""
    terms = set(content_terms(claim))
    shared = [len(terms & set(content_terms(passage))) for passage in passages]
    best = sorted(range(len(passages)), key=lambda place: (-shared[place], place))[:most]
    return tuple(passages[place] for place in sorted(best))


def select_covering(sentences: Sequence[str], needed: Sequence[int], most: int = MOST_PASSAGES) -> tuple[str, ...]:
    """Return the passages that contain the needed sentences.

    If there are more than `most`, only the needed sentences are packed, into as few passages as possible.
    """
    around = [run for run in split_into_chunks(sentences) if any(place in run for place in needed)]
    if len(around) <= most:
        return tuple(join_sentences(sentences, run) for run in around)
    alone = [sentences[place] for place in sorted(needed)]
    return tuple(join_sentences(alone, run) for run in split_into_chunks(alone))


_BRACKETS = {"LRB": "(", "RRB": ")", "LSB": "[", "RSB": "]", "LCB": "{", "RCB": "}", "COLON": ":", "SLH": "/"}
_BRACKET = re.compile(rf"-({'|'.join(_BRACKETS)})-")
_QUOTE = re.compile(r"``|''")
_QUOTED = re.compile(r'"\s*([^"]*?)\s*"')
_BEFORE_MARK = re.compile(r"\s+(?=[,.;:!?%)\]}](?:[\s,.;:!?)\]}'\"]|\Z))|(?<=[(\[{])\s+|\s+(?=\.\.\.)")
_CLITIC = re.compile(r"(?<=\w)\s+(?=(?:'s|'re|'ve|'ll|'d|'m|n't)\b|'(?=\s))", re.IGNORECASE)
_DASH = re.compile(r"(?<=\w)\s+--\s+(?=\w)|(?<=\d)\s+[-–]\s+(?=\d)")
_HYPHEN = re.compile(r"(?<=[a-z]) - (?=[a-z])")
_SPACES = re.compile(r"\s+")


def detokenize(text: str) -> str:
    """Undo tokenization: restore brackets and quotes, and remove the spaces before marks and clitics.

    In text that was never tokenized, only white space changes. Lost capitals are not restored.
    """
    restored = _BRACKET.sub(lambda match: _BRACKETS[match[1]], text)
    restored = _QUOTE.sub('"', restored)
    if restored.count('"') % 2 == 0:
        restored = _QUOTED.sub(r'"\1"', restored)
    restored = _CLITIC.sub("", _BEFORE_MARK.sub("", restored))
    restored = _HYPHEN.sub("-", _DASH.sub("–", restored))
    return _SPACES.sub(" ", restored).strip()
