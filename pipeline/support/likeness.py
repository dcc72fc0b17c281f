"""Signs of support from words: how much of a sentence stands in the passages, and what kind of sentence it is. Pure.

Unlike `alignment` it reads words as they are written; unlike `findings` it decides nothing.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache

from storage.language.words import content_terms, count_words, terms

MOST_SENTENCES = 3
MOST_WORDS = 45
"""What of the passages is read word by word: the sentences that cover most of the sentence, within so many words."""

_I_OR_YOU = re.compile(r"\b(?:i|my|me|we|our|you|your)\b", re.IGNORECASE)
_ABSOLUTE = re.compile(
    r"\b(?:only|all|every|always|never|most|best|worst|first|last|entirely|solely|just)\b", re.IGNORECASE
)
_HEDGE = re.compile(
    r"\b(?:may|might|could|perhaps|possibly|probably|reportedly|allegedly|claimed|believed|rumou?red|whether|if)\b",
    re.IGNORECASE,
)


def likeness(sentence: str, passages: Sequence[Sequence[str]]) -> Mapping[str, float]:
    """Return the signs by name. `passages` are the sentences of each.

    How long the sentence and the passages are is no sign: it told the sets of labelled claims apart, and the scores on
    sets not seen in training were the worse for it.
    """
    said = [one for passage in passages for one in passage]
    wanted = _content(sentence)
    everything = frozenset[str]().union(*map(_content, said))
    running, source = _running(sentence), [_running(one) for one in said if wanted & _content(one)]
    per_sentence = [_share(wanted, _content(one)) for one in said]
    told = " ".join(said)
    absolute = bool(_ABSOLUTE.search(sentence))
    return {
        "overlap": _share(wanted, everything),
        "overlap_best": max(per_sentence, default=0.0),
        "novel": float(len(wanted - everything)),
        "pairs": _runs_shared(running, source, 2),
        "triples": _runs_shared(running, source, 3),
        "asks": float("?" in sentence),
        "i_or_you": float(bool(_I_OR_YOU.search(sentence))),
        "new_absolute": float(absolute and not _ABSOLUTE.search(told)),
        "hedge_dropped": float(bool(_HEDGE.search(told)) and not _HEDGE.search(sentence)),
        "hedge_added": float(bool(_HEDGE.search(sentence)) and not _HEDGE.search(told)),
    }


def closest(sentence: str, passages: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return the few sentences that together hold most of a sentence's words, best first; at least one.

    Each is chosen for what it adds to those before it; at a tie for what it shares at all, then the earlier one.
    """
    left = [one for passage in passages for one in passage]
    wanted, missing, chosen, room = _content(sentence), _content(sentence), list[str](), MOST_WORDS
    while left and len(chosen) < MOST_SENTENCES:
        best = max(left, key=lambda one: (len(missing & _content(one)), _share(wanted, _content(one)), -len(one)))
        if chosen and (not missing & _content(best) or count_words(best) > room):
            break
        left.remove(best)
        chosen.append(best)
        room -= count_words(best)
        missing -= _content(best)
    return tuple(chosen)


@lru_cache(maxsize=1_024)
def _content(text: str) -> frozenset[str]:
    return frozenset(content_terms(text))


@lru_cache(maxsize=1_024)
def _running(text: str) -> tuple[str, ...]:
    return tuple(terms(text))


def _share(wanted: Collection[str], found: frozenset[str]) -> float:
    return sum(term in found for term in wanted) / len(wanted) if wanted else 0.0


def _runs_shared(running: Sequence[str], source: Sequence[Sequence[str]], length: int) -> float:
    """Return the share of the runs of so many words that stand in a sentence of the source too."""
    wanted = _runs(running, length)
    return len(wanted & set().union(*(_runs(one, length) for one in source))) / len(wanted) if wanted else 0.0


def _runs(running: Sequence[str], length: int) -> set[tuple[str, ...]]:
    return {tuple(running[place : place + length]) for place in range(len(running) - length + 1)}
