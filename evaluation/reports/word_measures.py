"""Compare a reply with a reference, or with its source texts, by their words.

F1 and Knowledge F1 count words in common, without case, punctuation and English articles (Shuster et al. 2021, Komeili
et al. 2022); BLEU-4 and chrF are sacrebleu's; ROUGE-L is the F-measure of the longest common subsequence of words (Lin
2004), which rapidfuzz finds. All are shares from 0 to 1.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from evaluation.reports.libraries import import_measures

_ARTICLES = frozenset({"a", "an", "the"})
_WORD = re.compile(r"[^\W_]+")
_SPACELESS = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")


def split_words(text: str) -> tuple[str, ...]:
    """Split a text into the words that count; of scripts without spaces each character is one."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    words = _WORD.findall(_SPACELESS.sub(lambda match: f" {match[0]} ", folded))
    return tuple(word for word in words if word not in _ARTICLES)


def f1(reply: str, reference: str) -> float:
    """Return the F1 of the words of a reply and a reference."""
    first, second = Counter(split_words(reply)), Counter(split_words(reference))
    common = (first & second).total()
    return 2 * common / (first.total() + second.total()) if common else 0.0


def knowledge_f1(reply: str, knowledge: Sequence[str]) -> float:
    """Return the F1 of a reply and its source texts together."""
    return f1(reply, " ".join(knowledge))


def rouge_l(reply: str, reference: str) -> float:
    first, second = split_words(reply), split_words(reference)
    if not first or not second:
        return 0.0
    common = import_measures("rapidfuzz.distance.LCSseq").similarity(first, second)
    return 2 * int(common) / (len(first) + len(second))


@dataclass(frozen=True, slots=True)
class WordScores:
    """The similarity of replies to their references: means, and for BLEU-4 and chrF the score of the whole corpus."""

    f1: float
    rouge_l: float
    bleu4: float
    chrf: float
    words: float  # a reply


def score_words(pairs: Sequence[tuple[str, str]]) -> WordScores | None:
    """Score (reply, reference) pairs; None without any."""
    if not pairs:
        return None
    replies, references = [reply for reply, _ in pairs], [reference for _, reference in pairs]
    library = import_measures("sacrebleu")
    return WordScores(
        f1=sum(f1(reply, reference) for reply, reference in pairs) / len(pairs),
        rouge_l=sum(rouge_l(reply, reference) for reply, reference in pairs) / len(pairs),
        bleu4=library.corpus_bleu(replies, [references]).score / 100,
        chrf=library.corpus_chrf(replies, [references]).score / 100,
        words=sum(len(split_words(reply)) for reply in replies) / len(pairs),
    )
