"""How well each candidate answers the question: a weighted sum of a few features that a person can read. Pure.

The weights stand in `scoring.json` and come from `footnote evaluate calibrate`. What an embedder says counts only as
far as it knows the script; terms count by how rare they are among the passages found, since what all of them say does
not tell them apart.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from itertools import pairwise

from pipeline.extraction.answer_types import AnswerType, asked_for, counts, offers
from pipeline.extraction.candidates import Candidate
from storage.language.scripts import latin_share
from storage.language.words import content_terms, terms
from storage.types import Hit

FOREIGN = 0.2
"""How far cosines are trusted for languages in Latin letters other than English, which the embedder knows best."""
TRUSTED = 0.5
"""From this trust on the weights are those that were fitted with cosines."""
BORROWED = 0.5
"""What a term borrowed from earlier turns weighs, beside one of the question's own."""


@dataclass(frozen=True, slots=True)
class Features:
    """What is known of a candidate, each about 0 to 1 and higher for better, unless it says otherwise."""

    sentence_cosine: float
    """Of the question and the candidate in its context."""
    passage_cosine: float
    """The passage's own; of one that was found by its words alone, the least of the others'."""
    behind: float
    """How far its passage is behind the best by the fused score; 0 for the best, else less."""
    terms: float
    """Share of the question's terms that it has, by weight."""
    passage_terms: float
    """Share that its passage has, with title and section."""
    terms_before: float
    """Share that the candidate before it has and it has not: what "it" may stand for."""
    terms_after: float
    """The same of the candidate after it."""
    pairs: float
    """Share of the question's neighbouring terms that it has as neighbours."""
    amount: float
    """1 if a number or date is asked for and it has one, -1 if it has none, 0 if neither is asked for."""
    name: float
    """The same of persons and places."""
    counts: float
    """1 if it says how many there are of what "how many" asks for."""
    news: float
    """How much it says that the question does not, growing slowly: log(1 + terms)."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question taken apart, and what its terms weigh among the passages found for it."""

    text: str
    language: str
    weights: Mapping[str, float]
    """Term -> weight; they sum to 1, unless there are no terms."""
    sequence: frozenset[tuple[str, str]]
    kind: AnswerType | None
    trust: float
    """How far cosines are to be trusted, 0 to 1."""

    @property
    def regime(self) -> str:
        """Which weights are for it: "trusted" where cosines say much, "lexical" where words say more."""
        return "trusted" if self.trust >= TRUSTED else "lexical"


@dataclass(frozen=True, slots=True)
class Scored:
    """A candidate, what is known of it, and its score: comparable within one question, higher is better."""

    candidate: Candidate
    features: Features
    score: float


def asked(text: str, borrowed: str, language: str, hits: Sequence[Hit]) -> Asked:
    """Take a question apart. `borrowed` holds the words that it takes from earlier turns; they weigh less."""
    passages = [passage_terms(hit, language) for hit in hits]
    shares = dict.fromkeys(content_terms(borrowed, language), BORROWED) | dict.fromkeys(
        content_terms(text, language), 1.0
    )
    rarities = {term: share * _rarity(term, passages) for term, share in shares.items()}
    whole = sum(rarities.values()) or 1.0
    return Asked(
        text=text,
        language=language,
        weights={term: rarity / whole for term, rarity in rarities.items()},
        sequence=frozenset(pairwise(terms(text, language))),
        kind=asked_for(text),
        trust=latin_share(text) * (1.0 if language in {"", "en"} else FOREIGN),
    )


def scored(question: Asked, found: Sequence[Candidate], cosines: Sequence[float]) -> tuple[Scored, ...]:
    """Score candidates, in their order. `cosines` are those of the query with each candidate's context."""
    weights = calibrated(question.regime)
    features = _features(question, found, cosines)
    return tuple(Scored(candidate, one, score(one, weights)) for candidate, one in zip(found, features, strict=True))


def _features(question: Asked, found: Sequence[Candidate], cosines: Sequence[float]) -> Iterator[Features]:
    best = max((candidate.hit.score for candidate in found), default=0.0)
    farthest = min((candidate.hit.dense for candidate in found if candidate.hit.dense), default=0.0)
    passages = {one.rank: share(question, passage_terms(one.hit, question.language)) for one in found}
    known = [frozenset(content_terms(candidate.text, question.language)) for candidate in found]
    for place, (candidate, cosine) in enumerate(zip(found, cosines, strict=True)):
        before, own, after = (_of_passage(candidate.rank, found, known, at) for at in range(place - 1, place + 2))
        yield Features(
            sentence_cosine=question.trust * cosine,
            passage_cosine=question.trust * (candidate.hit.dense or farthest),
            behind=candidate.hit.score - best,
            terms=share(question, own),
            passage_terms=passages[candidate.rank],
            terms_before=share(question, before - own),
            terms_after=share(question, after - own),
            pairs=_pairs(question, candidate.text),
            amount=_offers(question, candidate.text, (AnswerType.NUMBER, AnswerType.DATE)),
            name=_offers(question, candidate.text, (AnswerType.PERSON, AnswerType.PLACE)),
            counts=float(counts(candidate.text, question.text, question.language)),
            news=math.log1p(len(own - question.weights.keys())),
        )


def score(features: Features, weights: Mapping[str, float]) -> float:
    """Return the weighted sum of features. One that was never calibrated counts nothing, so that a new one can be."""
    return math.fsum(weights.get(field.name, 0.0) * getattr(features, field.name) for field in fields(Features))


@cache
def calibrated(regime: str) -> Mapping[str, float]:
    """Return the calibrated weights of a regime, by the features' names."""
    path = resources.files("pipeline.extraction").joinpath("scoring.json")
    weights: Mapping[str, float] = json.loads(path.read_text(encoding="utf-8"))[regime]
    return weights


def share(question: Asked, found: frozenset[str]) -> float:
    """Return the share of the question's terms, by weight, that are among `found`."""
    return sum(weight for term, weight in question.weights.items() if term in found)


def passage_terms(hit: Hit, language: str) -> frozenset[str]:
    """Return the content terms of a hit's passage with its title and section."""
    return frozenset(content_terms(f"{hit.document.title}\n{hit.passage.section}\n{hit.passage.text}", language))


def _rarity(term: str, passages: Sequence[frozenset[str]]) -> float:
    having = sum(term in passage for passage in passages)
    return math.log1p((len(passages) - having + 0.5) / (having + 0.5))


def _of_passage(rank: int, found: Sequence[Candidate], known: Sequence[frozenset[str]], place: int) -> frozenset[str]:
    """Return the terms of the candidate at a place, if it is one of the passage at that rank."""
    there = 0 <= place < len(found) and found[place].rank == rank
    return known[place] if there else frozenset()


def _pairs(question: Asked, text: str) -> float:
    found = set(pairwise(terms(text, question.language)))
    return len(question.sequence & found) / len(question.sequence) if question.sequence else 0.0


def _offers(question: Asked, text: str, kinds: Sequence[AnswerType]) -> float:
    if question.kind is None or question.kind not in kinds:
        return 0.0
    return 1.0 if offers(text, question.kind, question.text) else -1.0
