"""Detect a text's language by its script, letters and function words; name languages, from `languages.json`."""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib import resources

from storage.language.scripts import script_of
from storage.language.words import fold_spelling, stop_words, words

_CHARACTERS_READ = 2_000
_MARGIN = 1.2  # by how much the first language must outscore the second
_LETTER_WEIGHTS = {"Han": 5, "Hiragana": 5, "Katakana": 5, "Hangul": 2}
"""How many letters one character counts as: a Chinese text full of English titles is still Chinese."""

_MINIMUM_SCORE = 0.3  # the score below which the language is unknown: less than one word that three languages share
_FREQUENCY = {"en": 1.4, "de": 1.25, "fr": 1.25, "es": 1.25}
"""Weights of frequent languages, so that "Wie werden die ..." is German before it is Dutch."""
_SPANISH_MARK = 3  # weight of an inverted question or exclamation mark, in function words
_HAN_A_KANA = 8  # Japanese has at least one kana per so many Chinese characters, Chinese text fewer

_ONLY_LANGUAGE = {
    "Hangul": "ko", "Thai": "th", "Greek": "el", "Hebrew": "he", "Armenian": "hy", "Georgian": "ka",
    "Devanagari": "hi", "Bengali": "bn", "Gurmukhi": "pa", "Gujarati": "gu", "Oriya": "or", "Tamil": "ta",
    "Telugu": "te", "Kannada": "kn", "Malayalam": "ml", "Sinhala": "si", "Lao": "lo", "Khmer": "km", "Myanmar": "my",
    "Tibetan": "bo", "Ethiopic": "am", "Mongolian": "mn", "Thaana": "dv",
}  # fmt: skip
_LANGUAGES = {
    "Latin": (
        "en", "de", "fr", "es", "it", "pt", "nl", "sv", "da", "no", "fi", "pl", "cs", "hu", "ro", "tr", "id", "vi",
        "ca",
    ),
    "Cyrillic": ("ru", "uk", "bg", "sr", "mk", "be", "kk"),
    "Arabic": ("ar", "fa", "ur"),
}  # fmt: skip
_TELLING = {
    "ß": "de", "ñ": "es", "ã": "pt", "õ": "pt", "œ": "fr", "ê": "fr pt vi", "ç": "fr pt tr ca",
    "å": "sv da no", "ø": "da no", "æ": "da no", "ä": "de sv fi", "ö": "de sv fi tr hu", "ü": "de tr hu", "ł": "pl",
    "ż": "pl", "ę": "pl", "ś": "pl", "ğ": "tr", "ş": "tr", "\N{LATIN SMALL LETTER DOTLESS I}": "tr", "ő": "hu",
    "ű": "hu", "ř": "cs", "ě": "cs", "ů": "cs", "č": "cs", "ž": "cs", "ș": "ro", "ț": "ro", "ă": "ro vi", "đ": "vi",
    "ư": "vi", "ơ": "vi", "ò": "it ca", "ì": "it", "ï": "ca",
    "ы": "ru", "э": "ru", "ё": "ru", "і": "uk", "ї": "uk", "є": "uk", "ґ": "uk", "ъ": "bg",
    "ј": "sr mk", "љ": "sr mk", "њ": "sr mk", "џ": "sr mk", "ћ": "sr", "ђ": "sr", "ѓ": "mk", "ќ": "mk", "ў": "be",
    "қ": "kk", "ғ": "kk", "ң": "kk", "ү": "kk", "ұ": "kk", "ә": "kk", "ө": "kk",
    "ة": "ar", "أ": "ar", "إ": "ar", "ك": "ar", "ي": "ar", "ى": "ar", "پ": "fa ur", "چ": "fa ur", "ژ": "fa",
    "گ": "fa ur", "ک": "fa ur", "ی": "fa ur", "ٹ": "ur", "ڈ": "ur", "ڑ": "ur", "ے": "ur", "ں": "ur", "ہ": "ur",
}  # fmt: skip


def detect_language(text: str) -> str:
    """Return the ISO 639-1 code of a text's language, detected in its first 2,000 characters; "" if unsure."""
    return _detect_language(text[:_CHARACTERS_READ])


@lru_cache(maxsize=1_024)
def _detect_language(begin: str) -> str:
    counts = Counter(map(script_of, begin))
    scripts = Counter({name: count * _LETTER_WEIGHTS.get(name, 1) for name, count in counts.items() if name})
    if not scripts:
        return ""
    script = max(scripts, key=scripts.__getitem__)
    if script in {"Han", "Hiragana", "Katakana"}:
        return _detect_han_or_kana(scripts)
    if script in _LANGUAGES:
        return _detect_by_words(begin, script)
    return _ONLY_LANGUAGE.get(script, "")


def _detect_han_or_kana(scripts: Counter[str]) -> str:
    kana = scripts["Hiragana"] + scripts["Katakana"]
    return "ja" if kana * _HAN_A_KANA > scripts["Han"] else "zh"


def _detect_by_words(text: str, script: str) -> str:
    """Return the language, among those of one script, whose function words and letters fit best; "" if unsure.

    Acronyms do not count. Letters of capitalised words do not count either, because names keep the spelling of their
    own language.
    """
    scores: defaultdict[str, float] = defaultdict(float)
    weights, telling = _word_weights(script), _telling_letters(script)
    shouted = text.isupper()
    if script == "Latin" and ("¿" in text or "¡" in text):
        scores["es"] += _SPANISH_MARK
    for word in words(text):
        if word.isupper() and len(word) > 1 and not shouted:
            continue
        for language, weight in weights.get(fold_spelling(word), ()):
            scores[language] += weight
        if not word.isascii() and not word[0].isupper():
            for char in telling.keys() & set(word):
                for language in telling[char]:
                    scores[language] += 1 / len(telling[char])
    return _pick_winner(scores)


def _pick_winner(scores: dict[str, float]) -> str:
    ranked = sorted(
        ((score * _FREQUENCY.get(language, 1.0), language) for language, score in scores.items()), reverse=True
    )
    (score, best), (second, _) = [*ranked, (0.0, ""), (0.0, "")][:2]
    return best if score >= max(_MINIMUM_SCORE, _MARGIN * second) else ""


@lru_cache(maxsize=8)
def _telling_letters(script: str) -> dict[str, tuple[str, ...]]:
    """Return the distinctive letters of one script, each with the languages that use it."""
    known = {char: tuple(filter(_LANGUAGES[script].__contains__, held.split())) for char, held in _TELLING.items()}
    return {char: languages for char, languages in known.items() if languages}


@lru_cache(maxsize=8)
def _word_weights(script: str) -> dict[str, tuple[tuple[str, float], ...]]:
    """Return each function word with its languages and its weight, which is higher if it occurs in fewer languages."""
    holders = defaultdict[str, list[str]](list)
    for language in _LANGUAGES[script]:
        for word in stop_words(language):
            holders[word].append(language)
    return {word: tuple((language, 1 / len(known)) for language in known) for word, known in holders.items()}


def english_name(code: str) -> str:
    """Return the English name of a language (ISO 639-1); empty if unknown."""
    return _language_names().get(code, ("", ""))[0]


def own_name(code: str) -> str:
    """Return a language's (ISO 639-1) own name; empty if unknown."""
    return _language_names().get(code, ("", ""))[1]


@cache
def _language_names() -> Mapping[str, tuple[str, str]]:
    text = resources.files("storage.language").joinpath("languages.json").read_text(encoding="utf-8")
    return {code: (english, own) for code, (english, own) in json.loads(text).items()}
