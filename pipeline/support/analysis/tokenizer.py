"""Split a text into tokens of one spelling: words, numbers and marks, each with its place.

Unlike `storage.language.words` it keeps marks, and separates numbers from letters that touch them ("5km", "1990s").
"""

import json
import re
import unicodedata
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from typing import Any

from storage.language.lazy_pattern import lazy_compile
from storage.language.scripts import UNSPACED_CLASS
from storage.language.words import fold_spelling, stop_words, terms

_TOKEN = lazy_compile(
    rf"[{UNSPACED_CLASS}]"
    r"|(?:[^\W\d_]\.){2,}(?:[^\W\d_](?![\w']))?"
    r"|\d+(?:[.,':]\d+)*"
    rf"|(?:(?![{UNSPACED_CLASS}])[^\W\d_])+(?:'(?:(?![{UNSPACED_CLASS}])[^\W\d_])+)*"
    r"|[^\w\s]|_"
)
_ASCII_TOKEN = lazy_compile(
    r"(?:[A-Za-z]\.){2,}(?:[A-Za-z](?![\w']))?|\d+(?:[.,':]\d+)*|[A-Za-z]+(?:'[A-Za-z]+)*|[^\w\s]|_", re.ASCII
)
_SPELLINGS = str.maketrans({
    **dict.fromkeys("‐‑‒–−", "-"), **dict.fromkeys("’ʼ‘′´", "'"), **dict.fromkeys("“”„«»″", '"'),
    "½": " 1/2", "¼": " 1/4", "¾": " 3/4", "⅓": " 1/3", "⅔": " 2/3", "⅕": " 1/5", "⅛": " 1/8", "²": "2", "³": "3",
    "¹": " ", "٫": ".", "٬": ",", "％": "%", "٪": "%", "º": "°", "\u00ad": "", "\u200b": "",
    **{chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)},
})  # fmt: skip
_MARKS = frozenset(',.;:!?()[]"—…。，；：！？、')


@dataclass(frozen=True, slots=True)
class TokenSpan:
    """A stretch of tokens, from `first` up to `last`, exclusive, and its text."""

    said: str
    first: int
    last: int

    @property
    def places(self) -> range:
        return range(self.first, self.last)


@dataclass(frozen=True, slots=True, eq=False)
class Tokens:
    """A text's tokens as written and in plain lower case, and where each begins."""

    text: str
    words: tuple[str, ...]
    low: tuple[str, ...]
    starts: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.words)

    def at(self, place: int) -> str:
        """Return the token at a place in lower case; empty beyond either end."""
        return self.low[place] if 0 <= place < len(self.low) else ""

    def glued(self, place: int) -> bool:
        """Return whether a token touches the one before it."""
        before = place - 1
        return 0 <= before < len(self.starts) - 1 and self.starts[place] == self.starts[before] + len(
            self.words[before]
        )

    def said(self, first: int, last: int) -> str:
        return self.text[self.starts[first] : self.starts[last - 1] + len(self.words[last - 1])]


def tokenize(text: str) -> Tokens:
    """Normalise the digits, dashes, quotes and spaces of a text, and split it into tokens."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", text).translate(_SPELLINGS)
    if text.isascii():
        words, low = tuple(_ASCII_TOKEN.findall(text)), tuple(_ASCII_TOKEN.findall(text.lower()))
    else:
        text = "".join(str(unicodedata.decimal(char)) if char.isdecimal() else char for char in text)
        words = tuple(_TOKEN.findall(text))
        low = tuple(map(_fold_case, words))
    starts: list[int] = []
    end = 0
    for word in words:
        starts.append(text.index(word, end))
        end = starts[-1] + len(word)
    return Tokens(text, words, low, tuple(starts))


@lru_cache(maxsize=16_384)
def _fold_case(word: str) -> str:
    return word.lower() if word.isascii() else fold_spelling(word) or word


def is_word(token: str) -> bool:
    return token[:1].isalpha()


def is_letter_label(text: Tokens, place: int) -> bool:
    """Return whether a capital letter labels the word before it: "Pump A", but not "Once Upon A Time"."""
    before, after = text.words[place - 1 : place], text.words[place + 1 : place + 2]
    single = len(text.words[place]) == 1 and text.words[place].isupper() and text.low[place] != "i"
    return single and bool(before) and is_word(before[0]) and not (after and (after[0][0].isupper() or after[0] == "$"))


def is_mark(token: str) -> bool:
    """Return whether a token is a mark that separates phrases."""
    return token in _MARKS


@lru_cache(maxsize=65_536)
def find_stem(word: str, language: str) -> str:
    """Return the stem that a word's forms share; the word itself if the language has no stemmer."""
    if language in {"en", ""} and word in _load_irregular_forms():
        return _load_irregular_forms()[word]
    stems = terms(word, language)
    return stems[0] if len(stems) == 1 else word


@cache
def load_function_words(language: str) -> frozenset[str]:
    return stop_words() | stop_words(language)


@cache
def _load_irregular_forms() -> dict[str, str]:
    """Map the irregular forms of English words, which no stemmer unites, to the first form."""
    return {form: line.split()[0] for line in read_data("irregular.txt").splitlines() for form in line.split()}


def load_table(name: str) -> Any:
    return json.loads(read_data(name))


def read_data(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
