"""Which of the older encodings bytes are in, where nothing says so and they are no UTF-8. Pure.

A general detector takes the few accents of a short Western text for Japanese. So it is first asked how the bytes beyond
ASCII stand: singly and within words, as accents do, or in runs of their own, as other scripts do.
"""

import re
from collections.abc import Sequence

_RUN = re.compile(rb"[A-Za-z]?[\x80-\xff]+[A-Za-z]?")
_KANA = re.compile("[\u3041-\u30ff]")
_MISPLACED = re.compile(r"(?<=[a-zà-ÿ])[¡-©«¬®¯±-³¶¸¹»-¿‰†‡](?=[a-zà-ÿ])|£(?=[^\W\d_])|(?<=[a-zß-öø-ÿ])[À-ÖØ-ÞŠŒŽŸ]")
"""A sign within a word, a pound before one, a capital after a small letter."""
_CASE = re.compile(r"(?<=[a-zа-яёα-ω])[А-ЯЁΑ-Ω]|[\uff61-\uff9f]")
_HANGUL, _HAN = re.compile("[\uac00-\ud7a3]"), re.compile("[\u4e00-\u9fff]")

_LATIN = ("cp1250", "iso8859_2", "cp1252", "cp1254", "cp1257")
_OTHER = (
    *("cp932", "euc_jp", "gb18030", "big5", "cp949"),
    *("cp1251", "koi8_r", "cp1253", "cp1256", "cp1255", "iso8859_5", "cp874"),
)
"""Where two fit alike, the one that is met more often goes first."""


def guessed(sample: bytes) -> str:
    """The likeliest encoding, by the name that Python has for it; empty if none fits."""
    if _is_latin(sample):
        western = _decoded(sample, "cp1252")
        if western and not _MISPLACED.search(western):
            return "cp1252"
        return _best(sample, _LATIN) or _best(sample, _OTHER) or _best(sample, ())
    return _best(sample, _OTHER) or _best(sample, ())


def _is_latin(sample: bytes) -> bool:
    runs = _RUN.findall(sample)
    accents = sum(run[:1].isascii() or run[-1:].isascii() or len(run) == 1 for run in runs)
    return accents * 2 > len(runs) and not _KANA.search(_decoded(sample, "cp932"))


def _best(sample: bytes, among: Sequence[str]) -> str:
    from charset_normalizer import from_bytes

    found = from_bytes(sample, cp_isolation=list(among) or None)
    if not among:
        best = found.best()
        return best.encoding if best else ""
    ranked = sorted((one.chaos + _strange(str(one)), among.index(one.encoding), one.encoding) for one in found)
    return ranked[0][2] if ranked else ""


def _strange(text: str) -> float:
    """What a wrong encoding makes: signs or capitals within words, narrow kana, Chinese characters among Korean."""
    mixed = min(len(_HANGUL.findall(text)), len(_HAN.findall(text)))
    return (len(_CASE.findall(text)) + len(_MISPLACED.findall(text)) + mixed) / max(len(text), 1)


def _decoded(sample: bytes, encoding: str) -> str:
    """Empty where the bytes are not in it; the sample may end within a character."""
    try:
        return sample.decode(encoding)
    except UnicodeDecodeError as error:
        return sample[: error.start].decode(encoding) if error.start > len(sample) - 2 else ""
