"""What the support check gets from a model of language: the states of single tokens. `storage.embedding` has one."""

from collections.abc import Sequence
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float32]


class States(Protocol):
    """A text's tokens, without special ones."""

    @property
    def ids(self) -> NDArray[np.int32]:
        """Each token's place in a vocabulary that is sorted by how common words are, (tokens,)."""
        ...

    @property
    def layers(self) -> tuple[Floats, ...]:
        """Their states, (tokens, width) each, rows of length 1: as words, half way, and where they stand."""
        ...

    @property
    def mean(self) -> Floats:
        """The whole text's vector, (width,), of length 1."""
        ...


class Read(Protocol):
    """Reads texts, off the event loop."""

    async def __call__(self, texts: Sequence[str]) -> Sequence[States]:
        """Return the states of each text, in their order."""
        ...
