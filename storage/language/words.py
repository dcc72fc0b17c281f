"""Words as they stand, how many there are, and the terms that a lexical index holds of them.

Works inside a sentence; `sentences` finds the sentences. A word is a surface string, a term is what two spellings of
one word share: casefolded, stemmed, without accents. Scripts that put no spaces between words have no words that
could be told without a dictionary: a run of them is one word here, and pairs of neighbouring characters are its terms.
"""

import re
import threading
import unicodedata
from functools import lru_cache
from importlib.resources import files

import Stemmer

from storage.language.scripts import UNSPACED_CLASS, latin_share

_STEMMERS = {
    "ar": "arabic", "ca": "catalan", "cs": "czech", "da": "danish", "de": "german", "el": "greek", "en": "english",
    "es": "spanish", "et": "estonian", "eu": "basque", "fa": "persian", "fi": "finnish", "fr": "french",
    "ga": "irish", "hi": "hindi", "hu": "hungarian", "hy": "armenian", "id": "indonesian", "it": "italian",
    "lt": "lithuanian", "nb": "norwegian", "ne": "nepali", "nl": "dutch", "no": "norwegian", "pl": "polish",
    "pt": "portuguese", "ro": "romanian", "ru": "russian", "sr": "serbian", "sv": "swedish", "ta": "tamil",
    "tr": "turkish", "yi": "yiddish",
}  # fmt: skip
_DECIMAL_COMMA = frozenset({
    "bg", "ca", "cs", "da", "de", "el", "es", "fi", "fr", "hu", "id", "it", "lt", "nb", "nl", "no", "pl", "pt", "ro",
    "ru", "sr", "sv", "tr", "uk",
})  # fmt: skip
_ELISIONS = frozenset({
    "l", "d", "j", "qu", "n", "s", "c", "m", "t", "un", "all", "dall", "dell", "nell", "sull", "quell", "lorsqu",
    "puisqu", "jusqu", "quoiqu",
})  # fmt: skip
_PLAIN = str.maketrans({
    "ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "ł": "l", "ħ": "h", "ŋ": "n",
    "\N{LATIN SMALL LETTER DOTLESS I}": "i", "\u2019": "'", "\u02bc": "'",
    # Arabic: alef with hamza, madda or wasla; alef maksura, Persian yeh and kaf; tatweel; number separators.
    "\u0623": "\u0627", "\u0625": "\u0627", "\u0622": "\u0627", "\u0671": "\u0627", "\u0649": "\u064a",
    "\u06cc": "\u064a", "\u06a9": "\u0643", "\u0640": None, "\u066b": ".", "\u066c": ",",
})  # fmt: skip
_UNSPACED_RUN = re.compile(f"[{UNSPACED_CLASS}]+")
_COUNTED_BY_CHARACTER = re.compile(f"[{UNSPACED_CLASS}\u3001-\u3003\u3008-\u303f\u30fb\uff01-\uff65]")
_BIGRAMMED = re.compile("[\u1100-\u11ff\u3130-\u318f\uac00-\ud7ff]")
_DROPPED_MARKS = re.compile("[\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u064b-\u065f\u0670\u1ab0-\u1aff\u20d0-\u20ff]+")
_THOUSANDS = re.compile(r"[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?")
_THOUSANDS_DOTTED = re.compile(r"[1-9]\d{0,2}(?:\.\d{3})+(?:,\d+)?")
_DECIMAL_COMMAED = re.compile(r"\d+,\d+")


@lru_cache(maxsize=1)
def _word_pattern() -> re.Pattern[str]:
    """One word: an unspaced run, a date or number, an acronym with periods, or letters, marks and digits.

    The re module's word characters leave out combining marks, without which Hindi or vocalised Arabic falls to
    pieces.
    """
    marks = "".join(c for c in map(chr, range(0x300, 0x3100)) if unicodedata.category(c)[0] == "M")
    letter = rf"(?:(?![{UNSPACED_CLASS}_])[\w{marks}\u200c\u200d])"
    return re.compile(
        rf"[{UNSPACED_CLASS}]+"
        rf"|\d{{4}}-\d\d-\d\d(?!{letter})"
        r"|\d+(?:[.,\u066b\u066c]\d+)+"
        r"|(?:[^\W\d_]\.){2,}(?!\w)"
        r"|[A-Za-z](?:\+\+|#)(?!\w)"
        rf"|{letter}++(?:['\u2019\u02bc]{letter}++)*+"
    )


def words(text: str) -> list[str]:
    """Return the words of `text` as they stand, without punctuation; an unspaced run is one word."""
    return _word_pattern().findall(text)


def word_spans(text: str) -> list[tuple[int, int]]:
    """Return start and end of each of `words(text)`."""
    return [found.span() for found in _word_pattern().finditer(text)]


def count_words(text: str) -> int:
    """Count what stands between spaces; two characters of an unspaced script, its punctuation too, are one word."""
    if text.isascii():
        return len(text.split())
    rest, characters = _COUNTED_BY_CHARACTER.subn(" ", text)
    return len(rest.split()) + (characters + 1) // 2


def terms(text: str, language: str = "") -> list[str]:
    """Return the index terms of `text` in order, repeated where it repeats them; none of them holds a space.

    `language` (ISO 639-1) chooses the stemmer; text of an unknown language is stemmed as English where it is Latin.
    """
    return [term for word in words(_composed(text)) for term in _terms_of(word, language)]


def content_terms(text: str, language: str = "") -> list[str]:
    """Return `terms(text, language)` without those of stop words.

    Acronyms in capitals ("US", "IT", "WHO") are no stop words unless the whole text is in capitals.
    """
    kept = stop_words(language)
    shouted = text.isupper()
    found: list[str] = []
    for word in words(_composed(text)):
        if _UNSPACED_RUN.match(word):
            pieces = _stop_pattern(language).split(word)
            found += [term for piece in pieces if piece for term in _terms_of(piece, language)]
        elif plain(word) not in kept or (word.isupper() and len(word) > 1 and not shouted):
            found += _terms_of(word, language)
    return found


def stop_words(language: str = "") -> frozenset[str]:
    """Return the function words of a language in plain spelling (see `plain`); English ones for "", none if unknown."""
    return _function_words().get(language or "en", frozenset())


def plain(word: str) -> str:
    """Return `word` casefolded, with plain apostrophes and digits, and without accents or vowel points."""
    folded = unicodedata.normalize("NFKC", word).casefold()
    if folded.isascii():
        return folded
    bare = _DROPPED_MARKS.sub("", unicodedata.normalize("NFKD", folded)).translate(_PLAIN)
    digits = "".join(str(unicodedata.digit(c)) if c.isdecimal() else c for c in bare)
    return unicodedata.normalize("NFC", digits)


def languages_with_stop_words() -> tuple[str, ...]:
    """Return the languages whose function words are known, ISO 639-1, sorted."""
    return tuple(sorted(_function_words()))


def _composed(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


@lru_cache(maxsize=65_536)
def _terms_of(word: str, language: str) -> tuple[str, ...]:
    if _UNSPACED_RUN.match(word) or _BIGRAMMED.match(word):
        return _bigrams(plain(word))
    if word[0].isdecimal() and not word.isalnum():
        return (_number(plain(word), language),)
    if word[-1] in "+#":
        return (word.casefold(),)
    return (_stemmed(word, language),)


def _bigrams(run: str) -> tuple[str, ...]:
    if len(run) == 1:
        return (run,)
    return tuple(run[i : i + 2] for i in range(len(run) - 1))


def _number(number: str, language: str) -> str:
    """Return a number without separators of thousands and with a decimal point."""
    if language in _DECIMAL_COMMA:
        if _THOUSANDS_DOTTED.fullmatch(number):
            return number.replace(".", "").replace(",", ".")
        if _DECIMAL_COMMAED.fullmatch(number):
            return number.replace(",", ".")
    if _THOUSANDS.fullmatch(number):
        return number.replace(",", "")
    return number.replace(",", ".")


def _stemmed(word: str, language: str) -> str:
    bare = unicodedata.normalize("NFKC", word).casefold().replace("\u2019", "'").replace("\u02bc", "'")
    head, apostrophe, tail = bare.partition("'")
    if apostrophe:
        bare = tail if head in _ELISIONS and len(tail) > 1 else bare.removesuffix("'s")
        bare = bare.replace("'", "")
    bare = bare.replace(".", "")
    stemmer = _stemmer(language or ("en" if latin_share(bare) == 1.0 else ""), threading.get_ident())
    stem = stemmer.stemWord(bare) if stemmer else bare
    return plain(stem) or plain(bare) or bare


@lru_cache(maxsize=256)
def _stemmer(language: str, _thread: int) -> Stemmer.Stemmer | None:
    """Return the stemmer of a language for one thread, which is all that may use it."""
    return Stemmer.Stemmer(_STEMMERS[language], 0) if language in _STEMMERS else None


@lru_cache(maxsize=1)
def _function_words() -> dict[str, frozenset[str]]:
    lines = files(__package__).joinpath("function_words.txt").read_text(encoding="utf-8").splitlines()
    found: dict[str, set[str]] = {}
    for line in lines:
        language, colon, listed = line.partition(":")
        if colon and not line.startswith("#"):
            found.setdefault(language, set()).update(map(plain, listed.split()))
    return {language: frozenset(listed) for language, listed in found.items()}


@lru_cache(maxsize=64)
def _stop_pattern(language: str) -> re.Pattern[str]:
    """Return what cuts an unspaced run: the stop words of its language, longest first; of Chinese when unknown."""
    listed = sorted(stop_words(language if language in {"ja", "th"} else "zh"), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, listed)))
