"""Whether any candidate answers the question at all: a logistic regression over a few signs. Pure.

Scores rank candidates of one question; signs can be compared between questions. The weights and the thresholds stand
in `abstention.json` and come from `footnote evaluate calibrate`, one set for text whose script the embedder knows and
one without its cosines for all other text.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources

from pipeline.extraction.answer_types import is_number, names
from pipeline.extraction.scoring import Asked, Scored, passage_terms, share
from storage.language.words import content_terms, words
from storage.types import Hit

TRUSTED = 0.5
"""From this trust on cosines are looked at."""


@dataclass(frozen=True, slots=True)
class Signs:
    """What speaks for an answer being there; higher is better."""

    sentence_cosine: float
    """The best candidate's; the next three too."""
    passage_cosine: float
    nearest_cosine: float
    """Of the passage that is nearest in meaning, be it the best candidate's or not."""
    terms: float
    passage_terms: float
    pairs: float
    offers: float
    known_terms: float
    """Share of the question's terms, by weight, that any of the passages has."""
    specifics: float
    """Share of the names and numbers in the question that the best candidate's passage has; 1 if there are none."""
    ahead: float
    """How far the best candidate is ahead of the best of another passage."""


@dataclass(frozen=True, slots=True)
class Judge:
    """A calibrated regression: probability = logistic(bias + weights x signs), and from where on it answers."""

    bias: float
    weights: Mapping[str, float]
    threshold: float


def signs(question: Asked, hits: Sequence[Hit], ranked: Sequence[Scored]) -> Signs:
    """Read the signs. `ranked` holds at least one candidate, best first."""
    best = ranked[0]
    rival = next((one.score for one in ranked if one.candidate.rank != best.candidate.rank), best.score)
    everywhere = frozenset[str]().union(*(passage_terms(hit, question.language) for hit in hits))
    return Signs(
        sentence_cosine=best.features.sentence_cosine,
        passage_cosine=best.features.passage_cosine,
        nearest_cosine=question.trust * max(hit.dense for hit in hits),
        terms=best.features.terms,
        passage_terms=best.features.passage_terms,
        pairs=best.features.pairs,
        offers=best.features.offers,
        known_terms=share(question, everywhere),
        specifics=_specifics(question, best),
        ahead=best.score - rival,
    )


def probability(seen: Signs, judge: Judge) -> float:
    """Return how likely it is that the best candidate answers the question."""
    total = judge.bias + sum(judge.weights[field.name] * getattr(seen, field.name) for field in fields(Signs))
    return 1 / (1 + math.exp(-max(min(total, 50.0), -50.0)))


def answerable(question: Asked, hits: Sequence[Hit], ranked: Sequence[Scored]) -> bool:
    """Return whether the best candidate is likely enough an answer."""
    judge = calibrated("trusted" if question.trust >= TRUSTED else "lexical")
    return bool(ranked) and probability(signs(question, hits, ranked), judge) >= judge.threshold


@cache
def calibrated(kind: str) -> Judge:
    """Return a calibrated judge: "trusted" uses cosines, "lexical" does not."""
    path = resources.files("pipeline.extraction").joinpath("abstention.json")
    return Judge(**json.loads(path.read_text(encoding="utf-8"))[kind])


def _specifics(question: Asked, best: Scored) -> float:
    first, *rest = words(question.text) or [""]
    wanted = names(" ".join(rest)) + [word for word in [first, *rest] if is_number(word) and word[:1].isdigit()]
    terms = frozenset(term for word in wanted for term in content_terms(word, question.language))
    found = passage_terms(best.candidate.hit, question.language)
    return len(terms & found) / len(terms) if terms else 1.0
