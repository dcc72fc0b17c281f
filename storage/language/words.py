"""Split text into words, and words into the terms of a lexical index.

A word is a string of the text; a term is what all spellings and forms of a word share: casefolded, stemmed, without
accents. Scripts without spaces between words would need a dictionary: here a run of them is one word, and its terms are
its characters and their pairs. Word lists are files next to this module: lines of `kind: word word ...`.
"""

import re
import threading
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.resources import files
from itertools import chain, pairwise
from types import MappingProxyType

import Stemmer

from storage.language.lazy_pattern import lazy_compile
from storage.language.scripts import UNSPACED_CLASS, script_of

_SIMPLER = str.maketrans({
    "ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "ł": "l", "ħ": "h", "ŋ": "n",
    "\N{LATIN SMALL LETTER DOTLESS I}": "i", "\u2019": "'", "\u02bc": "'",
    # Arabic: alef with hamza, madda or wasla; alef maksura, Persian yeh and kaf; tatweel; number separators.
    "\u0623": "\u0627", "\u0625": "\u0627", "\u0622": "\u0627", "\u0671": "\u0627", "\u0649": "\u064a",
    "\u06cc": "\u064a", "\u06a9": "\u0643", "\u0640": None, "\u066b": ".", "\u066c": ",",
})  # fmt: skip
_ACCENTS = ((0x0300, 0x036F), (0x0483, 0x0487), (0x0591, 0x05C7), (0x064B, 0x065F), (0x0670, 0x0670), (0x20D0, 0x20FF))
"""Marks that writers may leave out: accents, Hebrew points, Arabic vowels; not Indian vowels."""


def fold_spelling(word: str) -> str:
    """Return `word` casefolded, with plain apostrophes and digits, and without accents or vowel points."""
    if word.isascii():
        return word.casefold()
    folded = unicodedata.normalize("NFKC", word).casefold()
    if folded.isascii():
        return folded
    simpler = unicodedata.normalize("NFKD", folded).translate(_dropped_accents()).translate(_SIMPLER)
    digits = (str(unicodedata.decimal(char)) if char.isdecimal() else char for char in simpler)
    return unicodedata.normalize("NFC", "".join(digits))


@lru_cache(maxsize=8)
def load_word_lists(name: str) -> Mapping[str, frozenset[str]]:
    """Return the word lists in the file `name`: for each kind, its words as they are written there."""
    lines = files(__package__).joinpath(f"{name}.txt").read_text(encoding="utf-8").splitlines()
    found: defaultdict[str, frozenset[str]] = defaultdict(frozenset)
    for line in lines:
        kind, colon, listed = line.partition(":")
        if colon and not line.startswith("#"):
            found[kind] |= frozenset(listed.split())
    return MappingProxyType(dict(found))


@lru_cache(maxsize=1)
def _dropped_accents() -> dict[int, None]:
    return {code: None for first, last in _ACCENTS for code in range(first, last + 1)}


_STEMMERS = {
    "ar": "arabic", "ca": "catalan", "cs": "czech", "da": "danish", "de": "german", "el": "greek", "en": "english",
    "es": "spanish", "et": "estonian", "eu": "basque", "fa": "persian", "fi": "finnish", "fr": "french",
    "ga": "irish", "hi": "hindi", "hu": "hungarian", "hy": "armenian", "id": "indonesian", "it": "italian",
    "lt": "lithuanian", "nb": "norwegian", "ne": "nepali", "nl": "dutch", "no": "norwegian", "pl": "polish",
    "pt": "portuguese", "ro": "romanian", "ru": "russian", "sr": "serbian", "sv": "swedish", "ta": "tamil",
    "tr": "turkish", "yi": "yiddish",
}  # fmt: skip
_SCRIPTS = {
    "am": "Ethiopic", "ar": "Arabic", "be": "Cyrillic", "bg": "Cyrillic", "el": "Greek", "fa": "Arabic",
    "he": "Hebrew", "hi": "Devanagari", "hy": "Armenian", "ja": "Han", "ka": "Georgian", "kk": "Cyrillic",
    "ko": "Hangul", "mk": "Cyrillic", "mn": "Cyrillic", "mr": "Devanagari", "ne": "Devanagari", "ru": "Cyrillic",
    "sr": "Cyrillic", "ta": "Tamil", "th": "Thai", "uk": "Cyrillic", "ur": "Arabic", "yi": "Hebrew", "zh": "Han",
}  # fmt: skip
"""The script of each language that is not written in Latin letters."""
_USUAL_LANGUAGE = {
    "Latin": "en", "Arabic": "ar", "Armenian": "hy", "Cyrillic": "ru", "Devanagari": "hi", "Greek": "el", "Tamil": "ta",
}  # fmt: skip
_DECIMAL_COMMA = frozenset({
    "bg", "ca", "cs", "da", "de", "el", "es", "fi", "fr", "hu", "id", "it", "lt", "nb", "nl", "no", "pl", "pt", "ro",
    "ru", "sr", "sv", "tr", "uk",
})  # fmt: skip
_ELISIONS = frozenset({
    "l", "d", "j", "qu", "n", "s", "c", "m", "t", "un", "all", "dall", "dell", "nell", "sull", "quell", "lorsqu",
    "puisqu", "jusqu", "quoiqu",
})  # fmt: skip
_SYLLABLES = "\u3041-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff\uff66-\uff9d\uac00-\ud7a3\U00020000-\U0003ffff"
_IN_PIECES = lazy_compile(f"[{UNSPACED_CLASS}\u1100-\u11ff\u3130-\u318f\uac00-\ud7ff]")
_ALONE_TELLING = lazy_compile(f"[{_SYLLABLES}]")
_UNSPACED = lazy_compile(f"[{UNSPACED_CLASS}]")
_KANA = lazy_compile("[\u3041-\u30ff]")
_COUNTED_BY_CHARACTER = lazy_compile(f"[{UNSPACED_CLASS}\u3001-\u3003\u3008-\u3020\u302a-\u303f\u30fb\uff01-\uff65]")
_THOUSANDS = lazy_compile(r"[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?")
_THOUSANDS_DOTTED = lazy_compile(r"[1-9]\d{0,2}(?:\.\d{3})+(?:,\d+)?")
_DECIMAL_COMMAED = lazy_compile(r"\d+,\d+")
_PUNCTUATION = '.,;:!?()"'
_LONGEST_KNOWN = 40  # characters of a chunk whose terms are cached


def words(text: str) -> list[str]:
    """Return the words of `text` unchanged, without punctuation; a run of an unspaced script is one word."""
    return _word_pattern().findall(text)


def count_words(text: str) -> int:
    """Count the words of a text. In scripts without spaces, two characters, or a punctuation mark, count as one."""
    if text.isascii():
        return len(text.split())
    rest, characters = _COUNTED_BY_CHARACTER.subn(" ", text)
    return len(rest.split()) + (characters + 1) // 2


def terms(text: str, language: str = "") -> list[str]:
    """Return the index terms of `text` in order, with repetitions; terms contain no spaces.

    `language` (ISO 639-1) selects the stemmer. If it is unknown or has another script than the word, the script
    decides: English for Latin letters.
    """
    # No word spans white space, and most strings between white space are cached already.
    return list(chain.from_iterable(map(_known_terms(language).__getitem__, _composed(text).split())))


class _KnownTerms(dict[str, tuple[str, ...]]):
    """A cache from strings without white space to their terms. The terms of an unknown string are computed."""

    most = 100_000

    def __init__(self, language: str) -> None:
        super().__init__()
        self._language = language

    def __missing__(self, chunk: str) -> tuple[str, ...]:
        split = self._find(chunk)
        if len(chunk) <= _LONGEST_KNOWN:
            if len(self) >= self.most:
                self.clear()
            self[chunk] = split
        return split

    def _find(self, chunk: str) -> tuple[str, ...]:
        bare = chunk.strip(_PUNCTUATION)
        if bare.isascii() and bare.isalpha():
            return (_stem(bare, self._language),)
        return tuple(term for word in words(chunk) for term in _terms_of(word, self._language))


@lru_cache(maxsize=4)
def _known_terms(language: str) -> _KnownTerms:
    return _KnownTerms(language)


def content_words(text: str, language: str = "") -> list[str]:
    """Return the words of `text` except stop words; an acronym in capitals ("US", "WHO") is not a stop word."""
    return _list_content_words(text, language, whole=True)


def _list_content_words(text: str, language: str, *, whole: bool) -> list[str]:
    """Return the content words of a text.

    `whole` is False for a part of a text; only a whole text may be all in capitals.
    """
    left_out = stop_words(language)
    listed = words(text)
    shouted = whole and len(listed) > 1 and text.isupper()
    kept: list[str] = []
    for word in listed:
        if _UNSPACED.match(word):
            kept += filter(None, _stop_pattern(_language_of_run(word, language)).split(word))
        elif not _is_stop(word, left_out) or (len(word) > 1 and word.isupper() and not shouted):
            kept.append(word)
    return kept


def content_terms(text: str, language: str = "") -> list[str]:
    """Return the terms of the content words of `text`, in order."""
    text = _composed(text)
    if text.isupper():  # then capitals do not mark acronyms
        return list(_find_content_terms(text, language))
    return list(chain.from_iterable(map(_known_content(language).__getitem__, text.split())))


def _find_content_terms(text: str, language: str, *, whole: bool = True) -> Iterator[str]:
    for word in _list_content_words(text, language, whole=whole):
        found_terms = _terms_of(word, language)
        if _UNSPACED.match(word):
            particles = stop_words(_language_of_run(word, language))
            yield from (term for term in found_terms if term not in particles)
        else:
            yield from found_terms


class _KnownContent(_KnownTerms):
    """A cache from strings without white space to the terms of their content words; unknown ones are computed."""

    most = 30_000

    def _find(self, chunk: str) -> tuple[str, ...]:
        return tuple(_find_content_terms(chunk, self._language, whole=False))


@lru_cache(maxsize=4)
def _known_content(language: str) -> _KnownContent:
    return _KnownContent(language)


@lru_cache(maxsize=64)
def stop_words(language: str = "") -> frozenset[str]:
    """Return the function words of a language, folded by `fold_spelling`; English ones for "", none if unknown."""
    return frozenset(map(fold_spelling, load_word_lists("function_words").get(language or "en", ())))


@lru_cache(maxsize=1)
def _word_pattern() -> re.Pattern[str]:
    """Match a word: an unspaced run, a date, number or version, an acronym, or letters with marks and digits."""
    marks = "".join(char for char in map(chr, range(0x300, 0x3100)) if unicodedata.category(char).startswith("M"))
    letter = rf"(?:(?![{UNSPACED_CLASS}_])[\w{marks}\u200c\u200d])"
    return re.compile(
        rf"[{UNSPACED_CLASS}]+"
        rf"|\d{{4}}-\d\d-\d\d(?!{letter})"
        r"|(?:\b[vV])?\d+(?:[.,\u066b\u066c]\d+)+"
        r"|[^\W\d_](?:\.[^\W\d_])+\.?(?!\w)"
        r"|[A-Za-z](?:\+\+|#)(?!\w)"
        rf"|(?<![\w-])[eE]-{letter}++"
        rf"|{letter}++(?:['\u2019\u02bc]{letter}++)*+"
    )


def _composed(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


@lru_cache(maxsize=65_536)
def _terms_of(word: str, language: str) -> tuple[str, ...]:
    if _IN_PIECES.match(word):
        return _pieces(fold_spelling(word))
    if word[-1] in "+#":
        return (word.casefold(),)
    if word.lstrip("vV")[:1].isdecimal() and not word.isalnum():
        return (_number(fold_spelling(word).lstrip("v"), language),)
    stem = _stem(word, language)
    return (stem,) if stem else ()


def _pieces(run: str) -> tuple[str, ...]:
    """Return the pairs of neighbouring characters of an unspaced run, and the characters that mean something alone."""
    units: list[str] = []
    for char in run:
        if units and unicodedata.category(char).startswith("M"):
            units[-1] += char
        else:
            units.append(char)
    pairs = [first + second for first, second in pairwise(units)]
    return (*pairs, *(unit for unit in units if not pairs or _ALONE_TELLING.match(unit)))


def _number(number: str, language: str) -> str:
    """Return a number with a decimal point and without thousands separators."""
    if language in _DECIMAL_COMMA:
        if _THOUSANDS_DOTTED.fullmatch(number):
            return number.replace(".", "").replace(",", ".")
        if _DECIMAL_COMMAED.fullmatch(number):
            return number.replace(",", ".")
    if _THOUSANDS.fullmatch(number):
        return number.replace(",", "")
    return number.replace(",", ".")


def _stem(word: str, language: str) -> str:
    """Return the stem of a word, in plain spelling; empty if the word is only an apostrophe."""
    if word.isascii() and word.isalpha():
        stemmer = _stemmer(_chosen_language("Latin", language), threading.get_ident())
        return (stemmer and stemmer.stemWord(word.lower())) or word.lower()
    folded = unicodedata.normalize("NFKC", word).casefold().replace("\u2019", "'").replace("\u02bc", "'")
    bare = _strip_clitics(folded)
    bare = bare.translate({ord("'"): None, ord("."): None, ord("-"): None})
    script = next((script_of(char) for char in bare if char.isalpha()), "")
    stemmer = _stemmer(_chosen_language(script, language), threading.get_ident())
    return fold_spelling(stemmer.stemWord(bare) if stemmer else bare) or fold_spelling(bare) or bare


def _chosen_language(script: str, language: str) -> str:
    """Return the language of the stemmer to use: `language` if it has this script, else the script's usual language."""
    return language if language and _SCRIPTS.get(language, "Latin") == script else _USUAL_LANGUAGE.get(script, "")


def _strip_clitics(word: str) -> str:
    """Strip an English possessive, or a French or Italian article, from a casefolded word."""
    head, apostrophe, tail = word.partition("'")
    if apostrophe and head in _ELISIONS and len(tail) > 1:
        return tail
    return word.removesuffix("'s")


@lru_cache(maxsize=256)
def _stemmer(language: str, _thread: int) -> Stemmer.Stemmer | None:
    """Return the stemmer of a language for one thread; stemmers are not thread-safe."""
    return Stemmer.Stemmer(_STEMMERS[language], 0) if language in _STEMMERS else None


def _is_stop(word: str, listed: frozenset[str]) -> bool:
    bare = fold_spelling(word)
    if bare in listed or "'" not in bare:
        return bare in listed
    head, _, tail = bare.partition("'")
    return head in _ELISIONS and tail in listed


def _language_of_run(run: str, language: str) -> str:
    """Return the language whose stop words apply to an unspaced run: Japanese, Thai or Chinese."""
    if language in {"ja", "th", "zh"}:
        return language
    return "th" if script_of(run[0]) == "Thai" else "ja" if _KANA.search(run) else "zh"


@lru_cache(maxsize=8)
def _stop_pattern(language: str) -> re.Pattern[str]:
    """Return the pattern that splits an unspaced run at its stop words of at least two characters, longest first."""
    listed = sorted((word for word in stop_words(language) if len(word) > 1), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, listed)))
