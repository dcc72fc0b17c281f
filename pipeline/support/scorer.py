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
from storage.language.words import content_terms, count_words

Floats: TypeAlias = NDArray[np.float32]
Vector: TypeAlias = NDArray[np.float64]


class TokenEmbeddings(Protocol):
    """A text's tokens, without special ones."""

    @property
    def ids(self) -> NDArray[np.int32]:
        """Each token's number in a vocabulary sorted by word frequency, (tokens,)."""

    @property
    def layers(self) -> tuple[Floats, ...]:
        """The states of the tokens, (tokens, width) each, rows of length 1: as words, and in context."""

    @property
    def mean(self) -> Floats:
        """The whole text's vector, (width,), of length 1."""


class EmbedTokens(Protocol):
    """Embeds the tokens of texts, in their order and off the event loop."""

    async def __call__(self, texts: Sequence[str], /) -> Sequence[TokenEmbeddings]: ...


MOST_SENTENCES = 3
MOST_WORDS = 45
"""How much of the passages is embedded: the sentences that share most with the sentence, within so many words."""
FIRST_WORD = 1_996  # below it the vocabulary holds marks, single characters and digits
SAME_WORD = 0.9  # the cosine of two words in the table above which they count as one word
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


def measure_overlap(sentence: str, passages: Sequence[Sequence[str]]) -> Mapping[str, float]:
    """Return the features of shared words by name. `passages` are the sentences of each passage.

    Lengths are not features: they revealed which set a labelled claim was from, and made scores on unseen sets worse.
    """
    sentences = [text for passage in passages for text in passage]
    wanted, everything = find_content(sentence), frozenset[str]().union(*map(find_content, sentences))
    return {
        "overlap": _measure_share(wanted, everything),
        "overlap_best": max((_measure_share(wanted, find_content(text)) for text in sentences), default=0.0),
        "novel": float(len(wanted - everything)),
        "asks": float("?" in sentence),
        "i_or_you": float(bool(_I_OR_YOU.search(sentence))),
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


def _measure_share(wanted: Collection[str], found: frozenset[str]) -> float:
    return sum(term in found for term in wanted) / len(wanted) if wanted else 0.0


def measure_alignment(sentence: TokenEmbeddings, source: Sequence[TokenEmbeddings]) -> Mapping[str, float]:
    """Return the features of aligned tokens by name; none without tokens. `source` are the sentences read."""
    source = [tokens for tokens in source if len(tokens.ids)]
    if not len(sentence.ids) or not source:
        return {}
    content = sentence.ids >= FIRST_WORD
    content = content if content.any() else np.ones(len(sentence.ids), bool)
    words, cosines = ([sentence.layers[at] @ tokens.layers[at].T for tokens in source] for at in (0, -1))
    new = content & (np.concatenate(words, axis=1).max(axis=1) < SAME_WORD)
    best = np.concatenate(cosines, axis=1).max(axis=1)
    same, weights = content & ~new, _weigh_tokens(sentence.ids)
    weights /= weights.sum()
    return {
        "mean": float((best * weights).sum()),
        "least": float(best[content].min()),
        "new_share": float(new.sum() / content.sum()),
        "new": float(new.sum()),
        "new_least": float(best[new].min()) if new.any() else _FLAT,
        "new_mean": float(best[new].mean()) if new.any() else _FLAT,
        "same_mean": float(best[same].mean()) if same.any() else _FLAT,
        "same_least": float(best[same].min()) if same.any() else _FLAT,
        **_measure_whole(sentence, source, content, new),
    }


def _weigh_tokens(ids: NDArray[np.int32]) -> Floats:
    """Return the weight of each token: the rarer, the higher."""
    rarity = np.clip(np.log(np.maximum(ids, 1) / 1_000.0), 0.3, 4.0)
    return np.where(ids < FIRST_WORD, 0.15, rarity).astype(np.float32)


def _measure_whole(
    sentence: TokenEmbeddings, source: Sequence[TokenEmbeddings], content: NDArray[np.bool_], new: NDArray[np.bool_]
) -> dict[str, float]:
    """Return how alike the sentence and the nearest one are, and which of its tokens point away from that."""
    cosines = np.array([float(tokens.mean @ sentence.mean) for tokens in source])
    nearest = source[int(cosines.argmax())].mean
    towards = sentence.layers[-1] @ nearest
    ordered = np.sort(towards[content])
    gaps = np.sort((towards - sentence.layers[-1] @ sentence.mean)[content])
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
        """Return how likely a sentence with these features is supported, 0 to 1; missing features are 0."""
        row = np.array([features.get(name, 0.0) for name in self.names])
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
