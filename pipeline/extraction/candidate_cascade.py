"""Which candidates are compared with the question, and which passages read: no more than may be among the best.

Words and the search tell what is likely at next to no cost; comparing takes an embedding for each sentence, and reading
a passage the most.
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
"""The least chance of its best candidate with which a corpus is read: none with less came to answer by that."""
SAID_UNREAD = -8.0  # what a reader is taken to say of what it did not read: less than of nine in ten of what it did
COMPARABLE_CHANCE = 0.02  # the same chance, by estimated cosines, with which its candidates are compared
FIRST_COMPARED = 8  # how many of them are compared first, to decide whether the others must be
THEN_COMPARED = 4  # how many of the others are compared at a time
CERTAIN_RANKS = 3  # which are the best is to be known of so many
COSINE_GAIN = 0.1  # by how much a candidate's cosine is taken to exceed its estimate at most: one deviation
COSINE_LOSS = 0.06  # by how much the cosine of a passage exceeds that of one of its sentences, in the mean
READER_GAIN = 2.0  # what a reader is taken to say of an unread candidate at most; of one in twenty it says more


def estimate_cosines(found: Sequence[Candidate]) -> list[float]:
    """Return about what the cosine of the question with each candidate's context will be, from that of its passage."""
    farthest = find_farthest(found)
    return [(candidate.hit.dense or farthest) - COSINE_LOSS for candidate in found]


def list_comparable(
    question: ScoredQuestion, scored: Sequence[ScoredCandidate], compared: Collection[int]
) -> list[int]:
    """Return the indexes of candidates to compare next, the likeliest first. Empty once the best are known.

    Those that are not `compared` yet are scored by estimated cosines.
    """
    places = sorted(range(len(scored)), key=lambda place: scored[place].score, reverse=True)
    left = [place for place in places if place not in compared]
    if not compared:
        return left[:FIRST_COMPARED]
    known = [scored[place].score for place in places if place in compared]
    line = known[:CERTAIN_RANKS][-1] - COSINE_GAIN * question.trust * load_weights(question.regime)["sentence_cosine"]
    return [place for place in left if scored[place].score > line][:THEN_COMPARED]


def list_readable(question: ScoredQuestion, ranked: Sequence[ScoredCandidate], read: Mapping[int, float]) -> list[int]:
    """Return the indexes of the best candidates of the passage to read next. Empty once reading changes nothing.

    `read` holds the reader's scores of other candidates, by index.
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
    """Return whether no candidate would be likely to answer whatever a reader said of it, or a comparison showed."""
    best = max((candidate.chance for candidate in rated[:COMPARED_CANDIDATES]), default=0.0)
    return question.regime == "trusted" and best < (READABLE_CHANCE if compared else COMPARABLE_CHANCE)


def set_cosines(
    question: ScoredQuestion, scored: Sequence[ScoredCandidate], cosines: Mapping[int, float]
) -> list[ScoredCandidate]:
    """Score those candidates again whose cosines are given, by place."""
    found, weights = list(scored), load_weights(question.regime)
    for place, cosine in cosines.items():
        features = replace(scored[place].features, sentence_cosine=question.trust * cosine)
        found[place] = replace(scored[place], features=features, score=weigh_features(features, weights))
    return found
