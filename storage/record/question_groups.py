"""Group questions that ask the same in other words. Pure."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, TypeVar

from storage.language.words import content_terms, terms

T = TypeVar("T")
LIKENESS = 0.4
"""Two questions are similar if the cosine of their weighted terms is at least this."""


@dataclass(frozen=True, slots=True)
class QuestionGroup(Generic[T]):
    """Similar questions in their given order; the first one represents the group."""

    members: tuple[T, ...]


def group_questions(asked: Sequence[T], text: Callable[[T], str]) -> tuple[QuestionGroup[T], ...]:
    """Return groups of similar questions, the largest first.

    A question joins the group whose first question is most similar to it; if none is similar enough, it starts a group.
    """
    listed = [_list_terms(text(question)) for question in asked]
    weights = _weigh_terms(listed)
    groups: list[list[T]] = []
    heads: list[dict[str, float]] = []
    by_term: defaultdict[str, list[int]] = defaultdict(list)  # the groups whose first question has a term
    for one, found in zip(asked, listed, strict=True):
        vector = _normalize({term: weights[term] for term in found})
        likeness: Counter[int] = Counter()
        for term, weight in vector.items():
            for place in by_term[term]:
                likeness[place] += weight * heads[place][term]  # type: ignore[assignment]
        place, best = max(likeness.items(), key=lambda pair: (pair[1], -pair[0]), default=(0, 0.0))
        if best >= LIKENESS:
            groups[place].append(one)
            continue
        for term in vector:
            by_term[term].append(len(groups))
        groups.append([one])
        heads.append(vector)
    return tuple(QuestionGroup(tuple(group)) for group in sorted(groups, key=len, reverse=True))


@lru_cache(maxsize=20_000)
def _list_terms(question: str) -> frozenset[str]:
    """Return the terms of a question's content words, or of all its words if it has none."""
    return frozenset(content_terms(question) or terms(question) or [question.strip().casefold()])


def _weigh_terms(listed: Sequence[frozenset[str]]) -> dict[str, float]:
    """Return the weight of each term; a term that fewer questions have weighs more."""
    counts = Counter(term for found in listed for term in found)
    return {term: math.log(1 + len(listed) / count) for term, count in counts.items()}


def _normalize(vector: dict[str, float]) -> dict[str, float]:
    length = math.sqrt(sum(weight * weight for weight in vector.values())) or 1.0
    return {term: weight / length for term, weight in vector.items()}
