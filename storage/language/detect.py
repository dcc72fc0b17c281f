"""Which language a text is in: by its script, and among languages of one script by letters and function words.

It prefers no answer to a wrong one: two names have no language.
"""

from collections import Counter, defaultdict
from functools import lru_cache

from storage.language.scripts import script_of
from storage.language.words import plain, stop_words, words

_CHARACTERS_READ = 2_000
_MARGIN = 1.2
"""How many times the score of the second language the first one needs."""
_LETTERS_A_WORD = 5
"""Latin letters weigh a fifth: a Chinese text that names a few English titles is still Chinese."""

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
    "Cyrillic": ("ru", "uk", "bg"),
    "Arabic": ("ar", "fa", "ur"),
}  # fmt: skip
_TELLING = {
    "ß": "de", "ñ": "es", "¿": "es", "¡": "es", "ã": "pt", "õ": "pt", "œ": "fr", "ê": "fr pt vi", "ç": "fr pt tr ca",
    "å": "sv da no", "ø": "da no", "æ": "da no", "ä": "de sv fi", "ö": "de sv fi tr hu", "ü": "de tr hu", "ł": "pl",
    "ż": "pl", "ę": "pl", "ś": "pl", "ğ": "tr", "ş": "tr", "\N{LATIN SMALL LETTER DOTLESS I}": "tr", "ő": "hu",
    "ű": "hu", "ř": "cs", "ě": "cs", "ů": "cs", "č": "cs", "ž": "cs", "ș": "ro", "ț": "ro", "ă": "ro vi", "đ": "vi",
    "ư": "vi", "ơ": "vi", "ò": "it ca", "ì": "it", "ï": "ca",
    "ы": "ru", "э": "ru", "ё": "ru", "і": "uk", "ї": "uk", "є": "uk", "ґ": "uk", "ъ": "bg",
    "ة": "ar", "أ": "ar", "إ": "ar", "ك": "ar", "ي": "ar", "ى": "ar", "پ": "fa ur", "چ": "fa ur", "ژ": "fa",
    "گ": "fa ur", "ک": "fa ur", "ی": "fa ur", "ٹ": "ur", "ڈ": "ur", "ڑ": "ur", "ے": "ur", "ں": "ur", "ہ": "ur",
}  # fmt: skip


def detect(text: str) -> str:
    """Return the ISO 639-1 code of the language of `text`, from its first 2,000 characters; "" when unsure."""
    begin = text[:_CHARACTERS_READ]
    scripts: dict[str, float] = {**Counter(map(script_of, begin))}
    scripts.pop("", None)
    if not scripts:
        return ""
    scripts["Latin"] = scripts.get("Latin", 0) / _LETTERS_A_WORD
    script = max(scripts, key=scripts.__getitem__)
    if script in {"Han", "Hiragana", "Katakana"}:
        return _of_han_and_kana(scripts)
    if script in _LANGUAGES:
        return _by_words(begin, script)
    return _ONLY_LANGUAGE.get(script, "")


def _of_han_and_kana(scripts: dict[str, float]) -> str:
    kana = scripts.get("Hiragana", 0) + scripts.get("Katakana", 0)
    return "ja" if kana * 8 > scripts.get("Han", 0) else "zh"


def _by_words(text: str, script: str) -> str:
    """Return the language of one script whose function words and letters the text has most of."""
    scores: defaultdict[str, float] = defaultdict(float)
    weights = _weights(script)
    for word in words(text):
        for language, weight in weights.get(plain(word), ()):
            scores[language] += weight
    for char, count in Counter(text.casefold()).items():
        telling = [language for language in _TELLING.get(char, "").split() if language in _LANGUAGES[script]]
        for language in telling:
            scores[language] += min(count, 3) / len(telling)
    return _winner(scores)


def _winner(scores: dict[str, float]) -> str:
    ranked = sorted(((score, language) for language, score in scores.items()), reverse=True)
    (score, best), (second, _) = [*ranked, (0.0, ""), (0.0, "")][:2]
    return best if score >= _MARGIN * second else ""


@lru_cache(maxsize=8)
def _weights(script: str) -> dict[str, tuple[tuple[str, float], ...]]:
    """Return for each function word the languages that have it, each weighed by how few they are."""
    holders: dict[str, list[str]] = {}
    for language in _LANGUAGES[script]:
        for word in stop_words(language):
            holders.setdefault(word, []).append(language)
    return {word: tuple((language, 1 / len(known)) for language in known) for word, known in holders.items()}
