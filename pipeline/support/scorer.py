"""Score how likely passages support a sentence, by features of words and token embeddings and a small network.

The network is trained by `make train`.
"""

import json
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from itertools import product
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pipeline.support.rules import FindingKind, FindingOutcome, RuleFinding
from storage.language.lazy_pattern import lazy_compile
from storage.language.words import content_terms, count_words, terms

Floats: TypeAlias = NDArray[np.float32]
Vector: TypeAlias = NDArray[np.float64]


class TokenEmbeddings(Protocol):
    """A text's tokens, without special ones."""

    @property
    def ids(self) -> NDArray[np.int32]:
        """Each token's number in a vocabulary sorted by word frequency, (tokens,)."""

    @property
    def layers(self) -> tuple[Floats, ...]:
        """The states of the tokens, (tokens, width) each, rows of length 1: as words, half way, and in context."""

    @property
    def mean(self) -> Floats:
        """The whole text's vector, (width,), of length 1."""


class EmbedTokens(Protocol):
    """Embeds the tokens of texts, in their order and off the event loop."""

    async def __call__(self, texts: Sequence[str], /) -> Sequence[TokenEmbeddings]: ...


MOST_SENTENCES = 3
MOST_WORDS = 45
"""How much of the passages is embedded: the sentences that share most with the sentence, within so many words."""
HEIGHTS = ("word", "middle", "top")
FIRST_WORD = 1_996  # below it the vocabulary holds marks, single characters and digits
SAME_WORD = 0.9  # the cosine of two words in the table above which they count as one word
FAR = (0.55, 0.7, 0.6)  # cosines below which a token aligns with nothing, at each height
_FLAT = 1.0
COUNTED = (
    [kind for kind in FindingKind if kind is not FindingKind.WORDING],
    [FindingOutcome.FOUND, FindingOutcome.ABSENT, FindingOutcome.CONTRADICTED, FindingOutcome.UNNAMED],
)
"""The kinds of findings that are counted, and the outcomes."""
MOST_COUNTED = 3.0  # more findings of a kind than this make no difference
OUTERMOST = 4.0
"""Standard deviations at which a feature is cut, so that a value unseen in training cannot outweigh the others."""
WEIGHTS = "weights.json"
_I_OR_YOU = lazy_compile(r"\b(?:i|my|me|we|our|you|your)\b", re.IGNORECASE)
_ABSOLUTE = lazy_compile(
    r"\b(?:only|all|every|always|never|most|best|worst|first|last|entirely|solely|just)\b", re.IGNORECASE
)
_HEDGE = lazy_compile(
    r"\b(?:may|might|could|perhaps|possibly|probably|reportedly|allegedly|claimed|believed|rumou?red|whether|if)\b",
    re.IGNORECASE,
)


def measure_overlap(sentence: str, passages: Sequence[Sequence[str]]) -> Mapping[str, float]:
    """Return the features of shared words by name. `passages` are the sentences of each passage.

    Lengths are not features: they revealed which set a labelled claim was from, and made scores on unseen sets worse.
    """
    sentences = [text for passage in passages for text in passage]
    wanted, everything = find_content(sentence), frozenset[str]().union(*map(find_content, sentences))
    running, source = _find_terms(sentence), [_find_terms(text) for text in sentences if wanted & find_content(text)]
    source_text = " ".join(sentences)
    hedged, hedges = bool(_HEDGE.search(sentence)), bool(_HEDGE.search(source_text))
    return {
        "overlap": _measure_share(wanted, everything),
        "overlap_best": max((_measure_share(wanted, find_content(text)) for text in sentences), default=0.0),
        "novel": float(len(wanted - everything)),
        "pairs": _measure_shared_runs(running, source, 2),
        "triples": _measure_shared_runs(running, source, 3),
        "asks": float("?" in sentence),
        "i_or_you": float(bool(_I_OR_YOU.search(sentence))),
        "new_absolute": float(bool(_ABSOLUTE.search(sentence) and not _ABSOLUTE.search(source_text))),
        "hedge_dropped": float(hedges and not hedged),
        "hedge_added": float(hedged and not hedges),
    }


def select_closest(sentence: str, passages: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return the few sentences that together have most of a sentence's words, best first; at least one.

    Each is chosen for the words that it adds to those before it; at a tie, for all words that it shares.
    """
    left = [text for passage in passages for text in passage]
    wanted, chosen, room = find_content(sentence), list[str](), MOST_WORDS
    missing = wanted

    def rate(one: str) -> tuple[int, float, int]:
        return len(missing & find_content(one)), _measure_share(wanted, find_content(one)), -len(one)

    while left and len(chosen) < MOST_SENTENCES:
        best = max(left, key=rate)
        if chosen and (not missing & find_content(best) or count_words(best) > room):
            break
        left.remove(best)
        chosen.append(best)
        room -= count_words(best)
        missing -= find_content(best)
    return tuple(chosen)


@lru_cache(maxsize=1_024)
def find_content(text: str) -> frozenset[str]:
    return frozenset(content_terms(text))


@lru_cache(maxsize=1_024)
def _find_terms(text: str) -> tuple[str, ...]:
    return tuple(terms(text))


def _measure_share(wanted: Collection[str], found: frozenset[str]) -> float:
    return sum(term in found for term in wanted) / len(wanted) if wanted else 0.0


def _measure_shared_runs(running: Sequence[str], source: Sequence[Sequence[str]], length: int) -> float:
    """Return the share of a sentence's runs of `length` words that a sentence of the source has, too."""
    runs = _find_runs(running, length)
    return len(runs & set().union(*(_find_runs(words, length) for words in source))) / len(runs) if runs else 0.0


def _find_runs(running: Sequence[str], length: int) -> set[tuple[str, ...]]:
    return {tuple(running[place : place + length]) for place in range(len(running) - length + 1)}


def measure_alignment(sentence: TokenEmbeddings, source: Sequence[TokenEmbeddings]) -> Mapping[str, float]:
    """Return the features of aligned tokens by name; all 0 without tokens. `source` are the sentences read."""
    source = [tokens for tokens in source if len(tokens.ids)]
    if not len(sentence.ids) or not source:
        return dict.fromkeys(ALIGNMENT_NAMES, 0.0)
    content = sentence.ids >= FIRST_WORD
    content = content if content.any() else np.ones(len(sentence.ids), bool)
    best: list[Floats] = []
    features: dict[str, float] = {}
    for place, height in enumerate(HEIGHTS):
        cosines = [sentence.layers[place] @ tokens.layers[place].T for tokens in source]
        best.append(np.concatenate(cosines, axis=1).max(axis=1))
        measured = _measure_height(cosines, best[-1], _weigh_tokens(sentence.ids), content, FAR[place])
        features.update({f"{name}_{height}": value for name, value in measured.items()})
    features.update(_measure_unmatched(best, content))
    features.update(_measure_whole(sentence, source, content, best))
    return features


def _weigh_tokens(ids: NDArray[np.int32]) -> Floats:
    """Return the weight of each token: the rarer, the higher."""
    rarity = np.clip(np.log(np.maximum(ids, 1) / 1_000.0), 0.3, 4.0)
    return np.where(ids < FIRST_WORD, 0.15, rarity).astype(np.float32)


def _measure_height(
    cosines: Sequence[Floats], best: Floats, weights: Floats, content: NDArray[np.bool_], far: float
) -> dict[str, float]:
    single = [float((cosine.max(axis=1) * weights).sum() / weights.sum()) for cosine in cosines]
    closest = cosines[int(np.argmax(single))]
    worst = np.sort(best[content])
    places = closest.argmax(axis=1)[content]
    steps = np.diff(places)
    return {
        "mean": float((best * weights).sum() / weights.sum()),
        "mean_single": max(single),
        "least": float(worst[0]),
        "least_two": float(worst[:2].mean()),
        "least_three": float(worst[:3].mean()),
        "far": float((worst < far).sum()),
        "least_single": float(closest.max(axis=1)[content].min()),
        "back": float(closest.max(axis=0).mean()),
        "in_order": float((steps > 0).mean()) if len(steps) else _FLAT,
        "jumps": float(np.abs(steps - 1).mean() / 10) if len(steps) else 0.0,
    }


def _measure_unmatched(best: Sequence[Floats], content: NDArray[np.bool_]) -> dict[str, float]:
    """Return how near the source comes to the words that it lacks, and how alike shared words are in context."""
    new, same = content & (best[0] < SAME_WORD), content & (best[0] >= SAME_WORD)
    features: dict[str, float] = {"new_share": float(new.sum() / content.sum()), "new": float(new.sum())}
    for height, cosines in zip(HEIGHTS, best, strict=True):
        features[f"new_least_{height}"] = float(cosines[new].min()) if new.any() else _FLAT
        features[f"new_mean_{height}"] = float(cosines[new].mean()) if new.any() else _FLAT
    features["same_mean"] = float(best[-1][same].mean()) if same.any() else _FLAT
    features["same_least"] = float(best[-1][same].min()) if same.any() else _FLAT
    return features


def _measure_whole(
    sentence: TokenEmbeddings, source: Sequence[TokenEmbeddings], content: NDArray[np.bool_], best: Sequence[Floats]
) -> dict[str, float]:
    """Return how alike the sentence and the nearest one are, and which of its tokens point away from that."""
    cosines = np.array([float(tokens.mean @ sentence.mean) for tokens in source])
    nearest = source[int(cosines.argmax())].mean
    towards = sentence.layers[-1] @ nearest
    ordered = np.sort(towards[content])
    gaps = np.sort((towards - sentence.layers[-1] @ sentence.mean)[content])
    new = content & (best[0] < SAME_WORD)
    return {
        "cosine": float(cosines.max()),
        "cosine_two": float(np.sort(cosines)[-2:].mean()),
        "towards_least": float(ordered[0]),
        "towards_least_three": float(ordered[:3].mean()),
        "towards_mean": float(towards.mean()),
        "gap_least": float(gaps[0]),
        "gap_least_three": float(gaps[:3].mean()),
        "gap_mean": float(gaps.mean()),
        "new_towards": float(towards[new].mean()) if new.any() else _FLAT,
    }


_AT_HEIGHT = (
    "mean", "mean_single", "least", "least_two", "least_three", "far", "least_single", "back", "in_order", "jumps",
)  # fmt: skip
ALIGNMENT_NAMES = (
    *(f"{name}_{height}" for height in HEIGHTS for name in _AT_HEIGHT),
    "new_share", "new", *(f"new_{kind}_{height}" for height in HEIGHTS for kind in ("least", "mean")),
    "same_mean", "same_least", "cosine", "cosine_two", "towards_least", "towards_least_three", "towards_mean",
    "gap_least", "gap_least_three", "gap_mean", "new_towards",
)  # fmt: skip
"""Every feature that `measure_alignment` gives, in its order."""


def extract_features(
    sentence: str,
    passages: Sequence[Sequence[str]],
    *,
    states: TokenEmbeddings,
    source: Sequence[TokenEmbeddings],
    found: Sequence[RuleFinding],
) -> Mapping[str, float]:
    """Return every feature of a sentence by name.

    `passages` are the sentences of each passage it cites; `source` are the tokens of the closest of these sentences.
    """
    counted_findings = (finding for finding in found if finding.outcome is not FindingOutcome.ASKED)
    counts = Counter((finding.kind, finding.because.kind) for finding in counted_findings)
    counted = {
        f"{kind}_{outcome}": min(MOST_COUNTED, float(counts[kind, outcome])) for kind, outcome in product(*COUNTED)
    }
    return {**measure_overlap(sentence, passages), **measure_alignment(states, source), **counted}


class ScorerMember(NamedTuple):
    """One network: features to hidden units to log-odds."""

    inner: Vector  # (features, hidden)
    inner_bias: Vector
    outer: Vector  # (hidden,)
    outer_bias: float


@dataclass(frozen=True, slots=True, eq=False)
class Scorer:
    """The trained networks, the features they read, and the thresholds from which a sentence counts as supported."""

    names: tuple[str, ...]
    means: Vector
    deviations: Vector
    members: tuple[ScorerMember, ...]
    thresholds: Mapping[str, float]
    """By strictness; the training reports the share of supported sentences that each loses."""

    def score(self, features: Mapping[str, float]) -> float:
        """Return how likely a sentence with these features is supported, 0 to 1. Every feature must be present."""
        row = np.array([features[name] for name in self.names])
        return float(self.scores(row[np.newaxis])[0])

    def scores(self, rows: Vector) -> Vector:
        """Return the same for many rows of features, which are in the order of `names`."""
        scaled = np.clip((rows - self.means) / self.deviations, -OUTERMOST, OUTERMOST)
        hidden = ((member, np.maximum(scaled @ member.inner + member.inner_bias, 0)) for member in self.members)
        odds = np.mean([units @ one.outer + one.outer_bias for one, units in hidden], axis=0)
        likely: Vector = 1 / (1 + np.exp(-odds))
        return likely


@cache
def load_scorer() -> Scorer:
    return parse_scorer(json.loads(files(__package__).joinpath(WEIGHTS).read_text(encoding="utf-8")))


def parse_scorer(kept: Mapping[str, Any]) -> Scorer:
    """Build a scorer from the values that the training writes."""
    members = tuple(
        ScorerMember(np.array(raw["inner"]), np.array(raw["inner_bias"]), np.array(raw["outer"]), raw["outer_bias"])
        for raw in kept["members"]
    )
    means, deviations = np.array(kept["means"]), np.array(kept["deviations"])
    return Scorer(tuple(kept["names"]), means, deviations, members, kept["thresholds"])
