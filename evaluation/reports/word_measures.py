"""Compare a reply with a reference, or with its source texts, by their words.

F1 and Knowledge F1 count common words, without case, punctuation and English articles (Shuster et al. 2021, Komeili et
al. 2022). BLEU-4 is computed by sacrebleu. All are between 0 and 1.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

from evaluation.reports.libraries import import_measures
from pipeline.replies.citation_marks import strip_marks

_ARTICLES = frozenset({"a", "an", "the"})
_WORD = re.compile(r"[^\W_]+")
_SPACELESS = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")


MAX_MARK = 100  # the highest number of a citation


def drop_marks(text: str) -> str:
    """Return a text without its citation marks, whose numbers differ between a draft and its reply."""
    return strip_marks(text, MAX_MARK)[0]


def split_words(text: str) -> tuple[str, ...]:
    """Return the words of a text without articles. In scripts without spaces, each character is a word."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    words = _WORD.findall(_SPACELESS.sub(lambda match: f" {match[0]} ", folded))
    return tuple(word for word in words if word not in _ARTICLES)


def f1(reply: str, reference: str) -> float:
    """Return the F1 of the words of a reply and a reference."""
    first, second = Counter(split_words(reply)), Counter(split_words(reference))
    common = (first & second).total()
    return 2 * common / (first.total() + second.total()) if common else 0.0


def bleu4(pairs: Sequence[tuple[str, str]]) -> float:
    """Return the BLEU-4 of all (reply, reference) pairs taken together."""
    replies, references = zip(*pairs, strict=True)
    return float(import_measures("sacrebleu").corpus_bleu(replies, [references]).score / 100)
