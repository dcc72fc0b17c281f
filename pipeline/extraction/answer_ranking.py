"""Score candidates by how well they answer a question, and predict whether the best one answers it at all.

The weights in `scoring.json` and `abstention.json` come from `tools.training.answer_weights`. Cosines count only as far
as the embedder knows the question's script and language. A term weighs more the rarer it is among the passages found.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, lru_cache
from itertools import pairwise, repeat
from operator import attrgetter, mul
from typing import Any

from pipeline.extraction.candidates import (
    AnswerType,
    Candidate,
    asks_yes_or_no,
    classify_question,
    find_capitalized_names,
    find_light_terms,
    find_measures,
    find_synonyms,
    has_answer_type,
    has_count,
    has_listed_word,
    has_measure,
    is_conditional,
    is_number,
    load_table,
)
from storage.language.scripts import latin_share
from storage.language.words import content_terms, terms, words
from storage.types import Hit, Span

FOREIGN = 0.2
"""How far cosines are trusted for languages in Latin letters other than English, which the embedder knows best."""
TRUSTED = 0.5  # the least trust for the weights that were fitted with cosines
BORROWED = 0.5  # the weight of a term borrowed from earlier turns; the question's own weigh 1
REPLACED = 0.15  # the same if the question replaces some of them with its own words
LIGHT = 0.35  # the weight of a general word ("get", "bring", "thing"); others weigh 1
SYNONYM = 0.6  # the weight of a synonym; the term itself weighs 1
ANSWER_THRESHOLD = 0.5  # the least probability of answering for a sentence to be quoted
TOPIC_DEPTH = (0.25, 0.4)
"""Bounds of the tenth nearest cosine: beyond them it only shows how large the corpus is."""
RERANKED = 8  # how many of the best candidates the reader reads, if there is one
FEW_HITS = 25
"""If fewer passages are found, the corpus is small, and its tenth nearest passage is about something else."""
COMPARED_CANDIDATES = 12  # how many of the best candidates are rated, and compared with each other
COMPARED_HITS = 10  # how many of the best candidates the best is compared with


@dataclass(frozen=True, slots=True)
class CandidateFeatures:
    """Features of a candidate. Unless noted, values are about 0 to 1, and higher is better."""

    sentence_cosine: float  # of the question and the candidate in its context
    passage_cosine: float  # the passage's own; if it was found by words alone, the lowest of the others
    behind: float  # its passage's fused score less the best passage's: 0 for the best, else negative
    terms: float  # share of the question's terms that it has, by weight
    passage_terms: float  # share that its passage has, with title and section
    terms_before: float  # share that only the previous candidate has, which "it" may mean
    terms_after: float  # the same for the next candidate
    pairs: float  # share of the question's neighbouring terms that it has as neighbours
    amount: float  # 1 if a number or date is asked for and it has one, -1 if it has none, 0 if neither is asked for
    name: float  # the same for persons and places
    counts: float  # 1 if it gives the number that "how many" asks for
    measured: float  # 1 if a quantity of a kind is asked for (money, time) and it has one, -1 if it has none, else 0
    rule: float  # for yes-or-no questions: 1 if it permits, requires or forbids something, else -1; otherwise 0
    general: float  # 1 if a quantity, yes or no is asked for and it begins with everyone or every case
    subject: float  # 1 if yes or no is asked for and its first content word is in the question
    particular: float  # 1 if a quantity is asked for and it gives an extra that is not asked for
    conditional: float  # 1 if it opens with a condition
    opening: float  # how near it is to the beginning of its passage: 1, 1/2, 1/3 ...
    first: float  # the same for its passage in its document
    reader: float  # the kit reader's score; 0 if it was not read
    news: float  # log(1 + how many of its terms the question does not have)


@dataclass(frozen=True, slots=True)
class ScoredQuestion:
    """A parsed question, with the weight of each term by its rarity among the passages found."""

    text: str
    language: str
    weights: Mapping[str, float]  # term -> weight; they sum to 1, unless there are no terms
    synonyms: Mapping[str, frozenset[str]]  # term -> its synonyms
    sequence: frozenset[tuple[str, str]]
    kind: AnswerType | None
    measures: frozenset[str]  # the dimensions of the requested quantity, such as "money"
    yes_or_no: bool
    trust: float  # how far cosines are to be trusted, 0 to 1

    @property
    def regime(self) -> str:
        """Return which weights apply: "trusted" if cosines are reliable, "lexical" if words are more so."""
        return "trusted" if self.trust >= TRUSTED else "lexical"


@dataclass(frozen=True, slots=True)
class ScoredCandidate:
    """A candidate with its features and score. Scores are comparable within one question; higher is better."""

    candidate: Candidate
    features: CandidateFeatures
    score: float
    chance: float = 1.0
    """The probability that it answers, on the scale of `ANSWER_THRESHOLD`; computed for the best candidates only."""


def weigh_question(
    text: str, borrowed: str, language: str, hits: Sequence[Hit], weight: float = BORROWED
) -> ScoredQuestion:
    """Parse a question and weigh its terms. `borrowed` are words from earlier turns; `weight` is the weight of each."""
    passages = [collect_passage_terms(hit, language) for hit in hits]
    shares = dict.fromkeys(content_terms(borrowed, language), weight)
    shares |= dict.fromkeys(content_terms(text, language), 1.0)
    shares = {term: share * LIGHT if term in find_light_terms(language) else share for term, share in shares.items()}
    synonyms = find_synonyms(f"{text} {borrowed}", language)
    having = {term: sum(measure_match(term, passage, synonyms) for passage in passages) for term in shares}
    rarities = {
        term: share * math.log1p((len(hits) - having[term] + 0.5) / (having[term] + 0.5))
        for term, share in shares.items()
    }
    whole = sum(rarities.values()) or 1.0
    return ScoredQuestion(
        text=text,
        language=language,
        weights={term: rarity / whole for term, rarity in rarities.items()},
        synonyms=synonyms,
        sequence=frozenset(pairwise(terms(text, language))),
        kind=classify_question(text),
        measures=find_measures(text),
        yes_or_no=asks_yes_or_no(text),
        trust=latin_share(text) * (1.0 if language in {"", "en"} else FOREIGN),
    )


def score_candidates(
    question: ScoredQuestion, found: Sequence[Candidate], cosines: Sequence[float]
) -> tuple[ScoredCandidate, ...]:
    """Score candidates, keeping their order. `cosines` compare the query with each candidate's context."""
    weights, features = load_weights(question.regime), _extract_features(question, found, cosines)
    return tuple(ScoredCandidate(*pair, weigh_features(pair[1], weights)) for pair in zip(found, features, strict=True))


def rerank_candidates(
    question: ScoredQuestion, ranked: Sequence[ScoredCandidate], read: Mapping[int, float]
) -> tuple[ScoredCandidate, ...]:
    """Add a reader's scores and sort, best first. `read` maps indexes to scores; the others get its lowest one."""
    if not read:
        return tuple(ranked)
    weights, worst = load_weights(question.regime), min(read.values())
    features = [replace(one.features, reader=read.get(place, worst)) for place, one in enumerate(ranked)]
    again = (
        replace(one, features=seen, score=weigh_features(seen, weights))
        for one, seen in zip(ranked, features, strict=True)
    )
    return tuple(sorted(again, key=lambda one: one.score, reverse=True))


def _extract_features(
    question: ScoredQuestion, found: Sequence[Candidate], cosines: Sequence[float]
) -> Iterator[CandidateFeatures]:
    best = max((candidate.hit.score for candidate in found), default=0.0)
    farthest = find_farthest(found)
    passages = {
        candidate.rank: measure_share(question, collect_passage_terms(candidate.hit, question.language))
        for candidate in found
    }
    known = [(candidate.rank, frozenset(content_terms(candidate.text, question.language))) for candidate in found]
    nothing = (-1, frozenset[str]())
    quantity = bool(question.measures) or question.kind is AnswerType.NUMBER
    broad = quantity or question.yes_or_no
    begun: Counter[int] = Counter()
    places: dict[tuple[int, Span], int] = {}
    for one in found:
        places[one.rank, one.span] = begun[one.rank]
        begun[one.rank] += 1
    around = zip([nothing, *known], known, [*known[1:], nothing], strict=False)
    for candidate, cosine, (before, (rank, own), after) in zip(found, cosines, around, strict=True):
        running = set(pairwise(terms(candidate.text, question.language)))
        shared = len(question.sequence & running)
        yield CandidateFeatures(
            sentence_cosine=question.trust * cosine,
            passage_cosine=question.trust * (candidate.hit.dense or farthest),
            behind=candidate.hit.score - best,
            terms=measure_share(question, own),
            passage_terms=passages[rank],
            terms_before=measure_share(question, before[1] - own) if before[0] == rank else 0.0,
            terms_after=measure_share(question, after[1] - own) if after[0] == rank else 0.0,
            pairs=shared / len(question.sequence) if question.sequence else 0.0,
            amount=_rate_answer_type(question, candidate.text, (AnswerType.NUMBER, AnswerType.DATE)),
            name=_rate_answer_type(question, candidate.text, (AnswerType.PERSON, AnswerType.PLACE)),
            counts=float(has_count(candidate.text, question.text, question.language)),
            measured=(2.0 * has_measure(candidate.text, question.measures) - 1.0) if question.measures else 0.0,
            rule=(2.0 * has_listed_word(candidate.text, "rules") - 1.0) if question.yes_or_no else 0.0,
            general=float(broad and has_listed_word(_first_words(candidate.text), "general")),
            subject=_rate_subject(question, candidate.text) if question.yes_or_no else 0.0,
            particular=float(quantity and has_listed_word(candidate.text, "particular", known=question.text)),
            conditional=float(is_conditional(candidate.text)),
            opening=1 / (1 + places[candidate.rank, candidate.span]),
            first=1 / (1 + candidate.hit.passage.position),
            reader=0.0,
            news=math.log1p(len(own - question.weights.keys())),
        )


def find_farthest(found: Sequence[Candidate]) -> float:
    """Return the lowest cosine of any candidate's passage with the question; 0 if the search gave none."""
    return min((candidate.hit.dense for candidate in found if candidate.hit.dense), default=0.0)


def _first_words(text: str) -> str:
    return " ".join(words(text)[:3])


def _rate_subject(question: ScoredQuestion, text: str) -> float:
    """Return 1 if the text's first content word is in the question, `SYNONYM` if only a synonym is, else 0."""
    first = frozenset(content_terms(text, question.language)[:1])
    return max((measure_match(term, first, question.synonyms) for term in question.weights), default=0.0)


def _rate_answer_type(question: ScoredQuestion, text: str, kinds: Sequence[AnswerType]) -> float:
    if question.kind is None or question.kind not in kinds:
        return 0.0
    return 1.0 if has_answer_type(text, question.kind, question.text) else -1.0


def weigh_features(features: "CandidateFeatures | AnswerFeatures", weights: Mapping[str, float]) -> float:
    """Return the weighted sum of features. A feature without a weight counts 0, so that new ones can be added."""
    kind: Any = type(features)
    names, read = _feature_reader(kind)
    return math.fsum(map(mul, map(weights.get, names, repeat(0.0)), read(features)))


@cache
def _feature_reader(kind: Any) -> tuple[tuple[str, ...], Callable[[Any], tuple[float, ...]]]:
    names = tuple(field.name for field in fields(kind))
    return names, attrgetter(*names)


@cache
def load_weights(regime: str) -> Mapping[str, float]:
    weights: Mapping[str, float] = load_table("scoring.json")[regime]
    return weights


def measure_share(question: ScoredQuestion, found: frozenset[str]) -> float:
    """Return the share of the question's terms, by weight, that are among `found`."""
    return sum(weight * measure_match(term, found, question.synonyms) for term, weight in question.weights.items())


def measure_match(term: str, found: frozenset[str], synonyms: Mapping[str, frozenset[str]]) -> float:
    """Return 1 if the term is found, less if only a synonym is, else 0."""
    if term in found:
        return 1.0
    return 0.0 if found.isdisjoint(synonyms.get(term, ())) else SYNONYM


def collect_passage_terms(hit: Hit, language: str) -> frozenset[str]:
    """Return the content terms of a hit's passage with its title and section."""
    return _collect_terms(f"{hit.document.title}\n{hit.passage.section}\n{hit.passage.text}", language)


@lru_cache(maxsize=256)
def _collect_terms(text: str, language: str) -> frozenset[str]:
    return frozenset(content_terms(text, language))


@dataclass(frozen=True, slots=True)
class AnswerFeatures:
    """Features for predicting whether the best candidate answers; they describe that candidate unless noted."""

    sentence_cosine: float
    nearest_cosine: float
    """Of the passage nearest in meaning, whether the best candidate's or not; 0 unless cosines are trusted."""
    tenth_cosine: float
    """Of the tenth nearest passage, within `TOPIC_DEPTH`: how much the corpus has on the topic; 0 unless trusted."""
    passage_terms: float
    pairs: float
    offers: float  # whether it has the requested kind of thing: 1, -1, or 0 if none is requested
    measured: float
    rule: float
    absent: float  # share of the question's terms, by weight, that no passage found has
    rarest: float  # 1 if its passage has the heaviest of the question's terms, less if only a synonym, else 0
    reader: float
    specifics: float  # share of the names and figures in the question that its passage has; 1 if there are none
    ahead: float  # how far its score is ahead of the mean of the best candidates


@dataclass(frozen=True, slots=True)
class AnswerModel:
    """A logistic regression, logistic(bias + weights x features), calibrated so that 0.5 is the operating point."""

    bias: float
    weights: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class FoundTopic:
    """How much all passages found together say about the question's topic."""

    nearest: float
    tenth: float
    absent: float


def weigh_topic(question: ScoredQuestion, hits: Sequence[Hit]) -> FoundTopic:
    low, high = TOPIC_DEPTH
    cosines = sorted((hit.dense for hit in hits if hit.dense), reverse=True) or [0.0]
    topical = question.trust if question.regime == "trusted" else 0.0
    tenth = min(max(cosines[:10][-1], low), high) if len(hits) >= FEW_HITS else (low + high) / 2
    terms_of_hits = frozenset[str]().union(*(collect_passage_terms(hit, question.language) for hit in hits))
    return FoundTopic(topical * cosines[0], topical * tenth, 1 - measure_share(question, terms_of_hits))


def extract_answer_features(
    question: ScoredQuestion, hits: Sequence[Hit], ranked: Sequence[ScoredCandidate], topic: FoundTopic | None = None
) -> AnswerFeatures:
    """Return the features from which to predict an answer. `ranked` holds at least one candidate, best first."""
    best, topic = ranked[0], topic or weigh_topic(question, hits)
    return AnswerFeatures(
        sentence_cosine=best.features.sentence_cosine,
        nearest_cosine=topic.nearest,
        tenth_cosine=topic.tenth,
        passage_terms=best.features.passage_terms,
        pairs=best.features.pairs,
        offers=best.features.amount + best.features.name,
        measured=best.features.measured,
        rule=best.features.rule,
        absent=topic.absent,
        rarest=_measure_rarest(question, best),
        reader=best.features.reader,
        specifics=_count_specifics(question, best),
        ahead=best.score - math.fsum(scored.score for scored in ranked[:COMPARED_HITS]) / len(ranked[:COMPARED_HITS]),
    )


def _measure_rarest(question: ScoredQuestion, best: ScoredCandidate) -> float:
    if not question.weights:
        return 1.0
    term = max(question.weights, key=question.weights.__getitem__)
    return measure_match(term, collect_passage_terms(best.candidate.hit, question.language), question.synonyms)


def predict_probability(seen: AnswerFeatures, model: AnswerModel) -> float:
    total = model.bias + weigh_features(seen, model.weights)
    return 1 / (1 + math.exp(-max(min(total, 50.0), -50.0)))


def predict_answerable(
    question: ScoredQuestion, hits: Sequence[Hit], ranked: Sequence[ScoredCandidate], topic: FoundTopic | None = None
) -> float:
    """Return the probability that the best candidate answers; `ANSWER_THRESHOLD` is the limit. 0 without candidates."""
    if not ranked:
        return 0.0
    model = load_answer_model(question.regime)
    return predict_probability(extract_answer_features(question, hits, ranked, topic), model)


def rate_candidates(
    question: ScoredQuestion, hits: Sequence[Hit], ranked: Sequence[ScoredCandidate]
) -> tuple[ScoredCandidate, ...]:
    """Set the `chance` of the first `COMPARED_CANDIDATES`, each rated as if it were the best."""
    topic = weigh_topic(question, hits)
    return tuple(
        replace(one, chance=predict_answerable(question, hits, [one, *ranked[:place], *ranked[place + 1 :]], topic))
        if place < COMPARED_CANDIDATES
        else one
        for place, one in enumerate(ranked)
    )


@cache
def load_answer_model(regime: str) -> AnswerModel:
    return AnswerModel(**load_table("abstention.json")[regime])


@lru_cache(maxsize=256)
def _list_specifics(text: str, language: str) -> frozenset[str]:
    first, *rest = words(text) or [""]
    specific = find_capitalized_names(" ".join(rest)) + [
        word for word in [first, *rest] if is_number(word) and word[:1].isdigit()
    ]
    return frozenset(term for word in specific for term in content_terms(word, language))


def _count_specifics(question: ScoredQuestion, best: ScoredCandidate) -> float:
    terms = _list_specifics(question.text, question.language)
    known = collect_passage_terms(best.candidate.hit, question.language)
    return len(terms & known) / len(terms) if terms else 1.0
