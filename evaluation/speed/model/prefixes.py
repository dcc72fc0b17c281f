"""The cache of a simulated server: which beginning of a prompt it has read before. Pure but for what it remembers.

Prompts are kept in blocks, each known by all that stands before it, as vLLM keeps them; the blocks that were longest
not asked for go first.
"""

from collections import OrderedDict
from collections.abc import Sequence

from evaluation.speed.model.counting import CHARACTERS_A_TOKEN

BLOCK_TOKENS = 16
MOST_BLOCKS = 1_000_000


class Prefixes:
    """What was read before."""

    def __init__(self, most: int = MOST_BLOCKS) -> None:
        self._most = most
        self._known: OrderedDict[int, None] = OrderedDict()

    def read(self, prompt: str) -> int:
        """Return how many tokens at the beginning of a prompt are known, in whole blocks, and know all of it now."""
        blocks, known = _blocks(prompt), 0
        while known < len(blocks) and blocks[known] in self._known:
            known += 1
        for block in blocks:
            self._known[block] = None
            self._known.move_to_end(block)
        while len(self._known) > self._most:
            self._known.popitem(last=False)
        return known * BLOCK_TOKENS


def _blocks(prompt: str) -> Sequence[int]:
    """Return a number for each whole block of a prompt, made from it and all before it."""
    size, made, before = BLOCK_TOKENS * CHARACTERS_A_TOKEN, list[int](), 0
    for at in range(0, len(prompt) - size + 1, size):
        before = hash((before, prompt[at : at + size]))
        made.append(before)
    return made
