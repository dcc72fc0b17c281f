"""Compare a reply with a reference, or with its source texts, by their words.

F1 and Knowledge F1 count common words, without case, punctuation and English articles (Shuster et al. 2021, Komeili et
al. 2022). ROUGE-L counts the longest common subsequence of words, like the package rouge-score without its stemmer (Lin
2004). BLEU-4 is computed by sacrebleu, BERTScore by bert-score if it is installed. All are between 0 and 1.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from importlib import import_module

from evaluation.reports.libraries import import_measures
from pipeline.replies.citation_marks import strip_marks
from storage.language.words import content_terms

_ARTICLES = frozenset({"a", "an", "the"})
_WORD = re.compile(r"[^\W_]+")
_SPACELESS = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
MAX_MARK = 100  # the highest number of a citation


def drop_marks(text: str) -> str:
    """Return a text without its citation marks, whose numbers differ between a draft and its reply."""
    return strip_marks(text, MAX_MARK)[0]


def split_words(text: str, without: Container[str] = _ARTICLES) -> tuple[str, ...]:
    """Return the words of a text, without articles by default. In scripts without spaces, each character is a word."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    words = _WORD.findall(_SPACELESS.sub(lambda match: f" {match[0]} ", folded))
    return tuple(word for word in words if word not in without)


def f1(reply: str, reference: str) -> float:
    """Return the F1 of the words of a reply and a reference."""
    first, second = Counter(split_words(reply)), Counter(split_words(reference))
    common = (first & second).total()
    return 2 * common / (first.total() + second.total()) if common else 0.0


def rouge_l(reply: str, reference: str) -> float:
    """Return the F1 of the longest common subsequence of words."""
    first, second = split_words(reply, frozenset()), split_words(reference, frozenset())
    lengths = [0] * (len(second) + 1)  # of the longest one with each beginning of the second text
    for word in first:
        before = 0
        for place, other in enumerate(second, start=1):
            before, lengths[place] = (
                lengths[place],
                before + 1 if word == other else max(lengths[place], lengths[place - 1]),
            )
    return 2 * lengths[-1] / (len(first) + len(second)) if lengths[-1] else 0.0


class NameIndex:
    """Finds names in texts, word for word. A name within a longer one does not count."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = {words: name for name in names if content_terms(name) and (words := split_words(name))}
        self._longest = max(map(len, self._names), default=0)

    def find(self, text: str) -> list[str]:
        """Return the names in a text, in order."""
        words, found, at = split_words(text), list[str](), 0
        while at < len(words):
            sizes = (size for size in range(self._longest, 0, -1) if words[at : at + size] in self._names)
            if size := next(sizes, 0):
                found.append(self._names[words[at : at + size]])
            at += size or 1
        return found


def bert_score(pairs: Sequence[tuple[str, str]]) -> list[float] | None:
    """Return the F1 by BERTScore of each (reply, reference) pair; None if its package or model is missing."""
    try:
        score = import_module("bert_score").score
        return [float(value) for value in score(*map(list, zip(*pairs, strict=True)), lang="en")[2]]
    except (ImportError, OSError):
        return None


def bleu4(pairs: Sequence[tuple[str, str]]) -> float:
    """Return the BLEU-4 of all (reply, reference) pairs taken together."""
    replies, references = zip(*pairs, strict=True)
    return float(import_measures("sacrebleu").corpus_bleu(replies, [references]).score / 100)
