"""Choose the candidates to compare with the question and the passages to read: only those that may be among the best.

Words and the search cost almost nothing, a comparison costs one embedding per sentence, and reading costs most.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from pipeline.extraction.answer_ranking import (
    COMPARED_CANDIDATES,
    RERANKED,
    ScoredCandidate,
    ScoredQuestion,
    find_farthest,
    load_weights,
    weigh_features,
)
from pipeline.extraction.candidates import Candidate

READABLE_CHANCE = 0.3
"""The least chance of its best candidate for a corpus to be read: with less, reading never led to an answer."""
SAID_UNREAD = -8.0  # the reader's score assumed for unread candidates: nine in ten real scores are higher
COMPARABLE_CHANCE = 0.02  # the same, by estimated cosines, for its candidates to be compared
FIRST_COMPARED = 8  # how many of them are compared first, to decide whether the others must be
THEN_COMPARED = 4  # how many of the others are compared at a time
CERTAIN_RANKS = 3  # how many of the best candidates must be known for certain
COSINE_GAIN = 0.1  # how much a cosine is assumed to exceed its estimate at most: one standard deviation
COSINE_LOSS = 0.06  # how much the cosine of a passage exceeds that of one of its sentences, on average
READER_GAIN = 2.0  # the highest reader's score assumed for an unread candidate; one in twenty exceeds it


def estimate_cosines(found: Sequence[Candidate]) -> list[float]:
    """Estimate the cosine of the question with each candidate's context from the cosine of its passage."""
    farthest = find_farthest(found)
    return [(candidate.hit.dense or farthest) - COSINE_LOSS for candidate in found]


def list_comparable(
    question: ScoredQuestion, scored: Sequence[ScoredCandidate], compared: Collection[int]
) -> list[int]:
    """Return the indexes of the candidates to compare next, best first; empty once the best are known.

    Candidates that are not yet `compared` are scored by estimated cosines.
    """
    places = sorted(range(len(scored)), key=lambda place: scored[place].score, reverse=True)
    left = [place for place in places if place not in compared]
    if not compared:
        return left[:FIRST_COMPARED]
    known = [scored[place].score for place in places if place in compared]
    line = known[:CERTAIN_RANKS][-1] - COSINE_GAIN * question.trust * load_weights(question.regime)["sentence_cosine"]
    return [place for place in left if scored[place].score > line][:THEN_COMPARED]


def list_readable(question: ScoredQuestion, ranked: Sequence[ScoredCandidate], read: Mapping[int, float]) -> list[int]:
    """Return the indexes of the best candidates in the passage to read next; empty if reading cannot change the best.

    `read` holds the reader's scores so far, by index.
    """
    weight, best = load_weights(question.regime)["reader"], ranked[:RERANKED]
    line = max((best[place].score + weight * said for place, said in read.items()), default=-math.inf)
    unread = (
        one.candidate.rank
        for place, one in enumerate(best)
        if place not in read and one.score + weight * READER_GAIN > line
    )
    rank = next(unread, None)
    return [place for place, one in enumerate(best) if one.candidate.rank == rank]


def is_hopeless(question: ScoredQuestion, rated: Sequence[ScoredCandidate], *, compared: bool = True) -> bool:
    """Return whether no candidate is likely to answer, whatever reading or comparing may add."""
    best = max((candidate.chance for candidate in rated[:COMPARED_CANDIDATES]), default=0.0)
    return question.regime == "trusted" and best < (READABLE_CHANCE if compared else COMPARABLE_CHANCE)


def set_cosines(
    question: ScoredQuestion, scored: Sequence[ScoredCandidate], cosines: Mapping[int, float]
) -> list[ScoredCandidate]:
    """Return the candidates, rescored where `cosines` has a value for their index."""
    found, weights = list(scored), load_weights(question.regime)
    for place, cosine in cosines.items():
        features = replace(scored[place].features, sentence_cosine=question.trust * cosine)
        found[place] = replace(scored[place], features=features, score=weigh_features(features, weights))
    return found
