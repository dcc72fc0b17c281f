"""Score candidates by how well they answer a question, and predict whether the best one answers it at all.

Both are weighted sums of a few features; `tools.training.answer_weights` makes the weights. If the cross-encoder has
read the candidates, its log-odds decide nearly alone; otherwise words and the search do. Cosines count only as far as
the embedder knows the question's language. A term weighs more the rarer it is among the passages found.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import pairwise
from statistics import fmean, pstdev
from typing import Any

from pipeline.extraction.candidates import (
    AnswerType,
    Candidate,
    classify_question,
    find_capitalized_names,
    has_answer_type,
    is_number,
    load_table,
    write_context,
)
from storage.language.detection import detect_language
from storage.language.lazy_pattern import lazy_compile
from storage.language.scripts import latin_share
from storage.language.words import content_terms, terms, words
from storage.types import Hit, Span

FOREIGN = 0.2  # how far cosines are trusted for languages in Latin letters other than English
TRUSTED = 0.5  # the least trust for which the embedder and the cross-encoder know the question's language
BORROWED = 0.5  # the weight of a term borrowed from earlier turns; the question's own weigh 1
REPLACED = 0.15  # the same if the question replaces some of them with its own words
_FIRST_PERSON = lazy_compile(r"\b(?:[Ii]|[Mm]e|[Mm]y|[Ww]e|us|[Oo]ur)\b")
UNREAD = -11.0  # the log-odds assumed for a sentence before it is read: the cross-encoder's lowest
COSINE_LOSS = 0.06  # how much the cosine of a passage exceeds that of one of its sentences, on average
ALONE_WEIGHT = 1.4  # of the cosine of a sentence without its context, in deviations from the mean of those read
ANSWER_THRESHOLD = 0.5  # the least probability of answering for a sentence to be quoted


@dataclass(frozen=True, slots=True)
class CandidateFeatures:
    """Features of a candidate. Unless noted, values are 0 to 1, and higher is better."""

    sentence: float
    """The cross-encoder's log-odds that the candidate in its context answers; if it reads nothing, the cosine."""
    passage: float  # the log-odds of its passage; 0 if nothing was read
    cosine: float  # of its passage and the question; if it was found by words alone, the lowest of the others
    terms: float  # share of the question's terms that it has, by weight
    passage_terms: float  # share that its passage has, with title and section
    terms_before: float  # share that only the previous candidate has, which "it" may mean
    pairs: float  # share of the question's neighbouring terms that it has as neighbours
    offers: float  # 1 if a number, date, person or place is asked for and it has one, -1 if it has none, else 0
    opening: float  # how near it is to the beginning of its passage: 1, 1/2, 1/3 ...
    first: float  # the same for its passage in its document
    specifics: float  # share of the names and figures in the question that its passage has; 1 if there are none
    personal: float  # 1 if the question is asked in the first person, which lowers all log-odds


@dataclass(frozen=True, slots=True)
class ScoredQuestion:
    """A parsed question, with the weight of each term by its rarity among the passages found."""

    text: str
    language: str
    weights: Mapping[str, float]  # term -> weight; they sum to 1, unless there are no terms
    sequence: frozenset[tuple[str, str]]
    kind: AnswerType | None
    specifics: frozenset[str]  # the terms of the names and figures in it
    trust: float  # how far the cosines of sentences are to be trusted, 0 to 1
    near: float  # the same of passages, which may have another embedder


@dataclass(frozen=True, slots=True)
class ScoredCandidate:
    """A candidate with its features and score. Scores are comparable within one question; higher is better."""

    candidate: Candidate
    features: CandidateFeatures
    score: float
    chance: float = 1.0  # the probability that it answers, on the scale of `ANSWER_THRESHOLD`


@dataclass(frozen=True, slots=True)
class RegimeWeights:
    """The weights of features: for the score, and with a bias for the log-odds that a candidate answers."""

    score: Mapping[str, float]
    answer: Mapping[str, float]
    bias: float


def measure_trust(text: str, language: str) -> float:
    """Return how well MiniLM and the cross-encoder know the languages of a question and its answer, 0 to 1."""
    return latin_share(text) * (1.0 if {language, detect_language(text)} <= {"", "en"} else FOREIGN)


def weigh_question(
    text: str, borrowed: str, language: str, hits: Sequence[Hit], weight: float = BORROWED
) -> ScoredQuestion:
    """Parse a question and weigh its terms. `borrowed` are words from earlier turns; `weight` is the weight of each."""
    passages = [_collect_passage_terms(hit, language) for hit in hits]
    shares = dict.fromkeys(content_terms(borrowed, language), weight)
    shares |= dict.fromkeys(content_terms(text, language), 1.0)
    having = Counter(term for passage in passages for term in shares.keys() & passage)
    rarities = {
        term: share * math.log1p((len(hits) - having[term] + 0.5) / (having[term] + 0.5))
        for term, share in shares.items()
    }
    whole, trust = sum(rarities.values()) or 1.0, measure_trust(text, language)
    return ScoredQuestion(
        text=text,
        language=language,
        weights={term: rarity / whole for term, rarity in rarities.items()},
        sequence=frozenset(pairwise(terms(text, language))),
        kind=classify_question(text),
        specifics=_list_specifics(text, language),
        trust=trust,
        near=max([trust, *(hit.trust for hit in hits)]),
    )


def score_candidates(
    question: ScoredQuestion, found: Sequence[Candidate], read: Mapping[str, float]
) -> tuple[ScoredCandidate, ...]:
    """Score candidates, best first. `read` holds the cross-encoder's log-odds of their passages; it may be empty."""
    features = _extract_features(question, found, read)
    scored = (ScoredCandidate(*pair, 0.0) for pair in zip(found, features, strict=True))
    return weigh_candidates(scored, _choose_weights(question, read))


def rescore_candidates(
    question: ScoredQuestion,
    scored: Sequence[ScoredCandidate],
    read: Mapping[str, float],
    values: Mapping[str, float],
    cosines: Mapping[str, float],
) -> tuple[ScoredCandidate, ...]:
    """Return the candidates whose context has a value, best first.

    The values are the cross-encoder's log-odds if passages were read, and cosines otherwise. `cosines` are those of
    texts without their context. By these, all but the first are ordered too: below a title that fits, the
    cross-encoder prefers any sentence.
    """
    trust = 1.0 if read else question.trust
    valued = (
        replace(candidate, features=replace(candidate.features, sentence=trust * values[candidate.candidate.context]))
        for candidate in scored
        if candidate.candidate.context in values
    )
    ranked = weigh_candidates(valued, _choose_weights(question, read))
    mean, deviation = fmean(cosines.values() or [0.0]), pstdev(cosines.values() or [0.0]) or 1.0
    further = [
        replace(
            candidate,
            score=candidate.score + ALONE_WEIGHT * (cosines.get(candidate.candidate.text, mean) - mean) / deviation,
        )
        for candidate in ranked[1:]
    ]
    return (*ranked[:1], *sorted(further, key=lambda candidate: candidate.score, reverse=True))


def _choose_weights(question: ScoredQuestion, read: Mapping[str, float]) -> RegimeWeights:
    known = "trusted" if question.trust >= TRUSTED else "foreign" if question.near >= TRUSTED else "lexical"
    return load_weights()["read" if read else known]


def weigh_candidates(scored: Iterable[ScoredCandidate], weights: RegimeWeights) -> tuple[ScoredCandidate, ...]:
    """Return the candidates with new scores and chances from their features, best first."""
    weighed = [
        replace(
            one,
            score=_weigh_features(one.features, weights.score),
            chance=_logistic(weights.bias + _weigh_features(one.features, weights.answer)),
        )
        for one in scored
    ]
    return tuple(sorted(weighed, key=lambda one: one.score, reverse=True))


def _logistic(odds: float) -> float:
    return 1 / (1 + math.exp(-max(min(odds, 50.0), -50.0)))


def _weigh_features(features: CandidateFeatures, weights: Mapping[str, float]) -> float:
    """Return the weighted sum of features. A feature without a weight counts 0."""
    return math.fsum(weight * getattr(features, name) for name, weight in weights.items())


@cache
def load_weights() -> Mapping[str, RegimeWeights]:
    """Return the weights by what is known: "read" passages, "trusted" or "foreign" cosines, or "lexical" scores."""
    tables: Mapping[str, Any] = load_table("answer_weights.json")
    return {regime: RegimeWeights(**table) for regime, table in tables.items()}


def _extract_features(
    question: ScoredQuestion, found: Sequence[Candidate], read: Mapping[str, float]
) -> Iterator[CandidateFeatures]:
    farthest = min((candidate.hit.dense for candidate in found if candidate.hit.dense), default=0.0)
    passages = {candidate.rank: _collect_passage_terms(candidate.hit, question.language) for candidate in found}
    personal = float(bool(_FIRST_PERSON.search(question.text)))
    starts: Counter[int] = Counter()
    places: dict[tuple[int, Span], int] = {}
    before: tuple[int, frozenset[str]] = (-1, frozenset())
    for candidate in found:
        rank, own = candidate.rank, frozenset(content_terms(candidate.text, question.language))
        place = places.setdefault((rank, candidate.span), starts[rank])
        starts[rank] += 1
        shared = len(question.sequence & set(pairwise(terms(candidate.text, question.language))))
        specific, cosine = question.specifics, candidate.hit.dense or farthest
        yield CandidateFeatures(
            sentence=UNREAD if read else question.trust * (cosine - COSINE_LOSS),
            passage=read.get(candidate.hit.passage.id, UNREAD if read else 0.0),
            cosine=question.near * cosine,
            terms=_measure_share(question.weights, own),
            passage_terms=_measure_share(question.weights, passages[rank]),
            terms_before=_measure_share(question.weights, before[1] - own) if before[0] == rank else 0.0,
            pairs=shared / len(question.sequence) if question.sequence else 0.0,
            offers=_rate_answer_type(question, candidate.text),
            opening=1 / (1 + place),
            first=1 / (1 + candidate.hit.passage.position),
            specifics=len(specific & passages[rank]) / len(specific) if specific else 1.0,
            personal=personal,
        )
        before = rank, own


def _rate_answer_type(question: ScoredQuestion, text: str) -> float:
    if question.kind is None:
        return 0.0
    return 1.0 if has_answer_type(text, question.kind, question.text) else -1.0


def _measure_share(weights: Mapping[str, float], found: frozenset[str]) -> float:
    return math.fsum(weight for term, weight in weights.items() if term in found)


def _collect_passage_terms(hit: Hit, language: str) -> frozenset[str]:
    return _collect_terms(write_context(hit, hit.passage.text), language)


@lru_cache(maxsize=256)
def _collect_terms(text: str, language: str) -> frozenset[str]:
    return frozenset(content_terms(text, language))


def _list_specifics(text: str, language: str) -> frozenset[str]:
    """Return the terms of names, without a capitalised first word, and of figures."""
    first, *rest = words(text) or [""]
    specific = find_capitalized_names(" ".join(rest)) + [
        word for word in [first, *rest] if is_number(word) and word[:1].isdigit()
    ]
    return frozenset(term for word in specific for term in content_terms(word, language))
