"""Whether any candidate answers the question at all: a logistic regression over a few signs. Pure.

Scores rank candidates of one question; signs can be compared between questions. The weights stand
in `abstention.json` and come from `footnote evaluate calibrate`, one set for each regime of scoring.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from statistics import fmean

from pipeline.extraction.answer_types import is_number, names
from pipeline.extraction.scoring import Asked, Scored, passage_terms
from storage.language.words import content_terms, words
from storage.types import Hit

ENOUGH = 0.5
"""The least chance of being an answer with which a sentence is said."""
TOPIC = (0.25, 0.4)
"""Below and above these the tenth nearest tells how large the corpus is, and no more of the topic."""
FEW = 25
"""With fewer passages found than these the corpus is small, and its tenth nearest is about something else."""
COMPARED = 10
"""How many of the best candidates the best is held against."""


@dataclass(frozen=True, slots=True)
class Signs:
    """What speaks for an answer being there, of the best candidate unless it says otherwise; higher is better."""

    sentence_cosine: float
    nearest_cosine: float
    """Of the passage that is nearest in meaning, be it the best candidate's or not; 0 unless cosines are trusted."""
    tenth_cosine: float
    """Of the tenth nearest, within `TOPIC`: how much there is on the topic at all; 0 unless trusted."""
    passage_terms: float
    pairs: float
    offers: float
    """Whether it has the kind of thing that is asked for: 1, -1, or 0 where none is."""
    specifics: float
    """Share of the names and figures in the question that its passage has; 1 if there are none."""
    ahead: float
    """How far its score is ahead of the mean of the best candidates."""


@dataclass(frozen=True, slots=True)
class Judge:
    """A calibrated regression: logistic(bias + weights x signs), shifted so that 0.5 is the point of operation."""

    bias: float
    weights: Mapping[str, float]


def signs(question: Asked, hits: Sequence[Hit], ranked: Sequence[Scored]) -> Signs:
    """Read the signs. `ranked` holds at least one candidate, best first."""
    best = ranked[0]
    cosines = sorted((hit.dense for hit in hits if hit.dense), reverse=True) or [0.0]
    topical = question.trust if question.regime == "trusted" else 0.0
    return Signs(
        sentence_cosine=best.features.sentence_cosine,
        nearest_cosine=topical * cosines[0],
        tenth_cosine=topical * _topic(cosines, len(hits)),
        passage_terms=best.features.passage_terms,
        pairs=best.features.pairs,
        offers=best.features.amount + best.features.name,
        specifics=_specifics(question, best),
        ahead=best.score - fmean(one.score for one in ranked[:COMPARED]),
    )


def _topic(cosines: Sequence[float], found: int) -> float:
    """Return the tenth cosine within `TOPIC`; its middle where so little was found that the tenth tells nothing."""
    low, high = TOPIC
    return min(max(cosines[:10][-1], low), high) if found >= FEW else (low + high) / 2


def probability(seen: Signs, judge: Judge) -> float:
    """Return what a judge makes of the signs, 0 to 1; a sign that was never calibrated counts nothing."""
    total = judge.bias + sum(judge.weights.get(field.name, 0.0) * getattr(seen, field.name) for field in fields(Signs))
    return 1 / (1 + math.exp(-max(min(total, 50.0), -50.0)))


def chance(question: Asked, hits: Sequence[Hit], ranked: Sequence[Scored]) -> float:
    """Return how likely it is that the best candidate answers, on a scale on which `ENOUGH` is the line."""
    if not ranked:
        return 0.0
    return probability(signs(question, hits, ranked), calibrated(question.regime))


@cache
def calibrated(regime: str) -> Judge:
    """Return the calibrated judge of a regime."""
    path = resources.files("pipeline.extraction").joinpath("abstention.json")
    return Judge(**json.loads(path.read_text(encoding="utf-8"))[regime])


def _specifics(question: Asked, best: Scored) -> float:
    first, *rest = words(question.text) or [""]
    wanted = names(" ".join(rest)) + [word for word in [first, *rest] if is_number(word) and word[:1].isdigit()]
    terms = frozenset(term for word in wanted for term in content_terms(word, question.language))
    found = passage_terms(best.candidate.hit, question.language)
    return len(terms & found) / len(terms) if terms else 1.0
