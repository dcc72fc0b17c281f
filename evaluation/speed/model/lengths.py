"""How long each reply is: seeded by what is asked, so that the order of requests changes nothing. Pure."""

import hashlib
from random import Random

from evaluation.speed.model.settings import LENGTHS, Length, Simulated


def length_of(kind: str, prompt: str, simulated: Simulated) -> Length:
    """Return how long the reply to a prompt is: the same each time, at least one token of at least one item."""
    mean = simulated.lengths.get(kind, LENGTHS[kind])
    if not simulated.spread:
        return mean
    random = drawn(kind, prompt, simulated.seed)
    return Length(max(1, round(random.gauss(mean.tokens, simulated.spread * mean.tokens))), mean.items)


def drawn(kind: str, prompt: str, seed: int) -> Random:
    """Return what chance has for one prompt."""
    return Random(hashlib.sha256(f"{seed}\0{kind}\0{prompt}".encode("utf-8", "replace")).digest())
