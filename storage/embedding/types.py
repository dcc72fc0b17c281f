"""What an embedder is: texts in, unit vectors out. `minilm` and `chroma_function` are two of them."""

from collections.abc import Sequence
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Vectors: TypeAlias = NDArray[np.float32]
"""One row a text, each of length 1, or of zeros where a text says nothing that can be embedded."""


class Embedder(Protocol):
    """Turns texts into vectors whose dot product says how alike they are. Safe to call from several threads."""

    @property
    def name(self) -> str:
        """Which model in which version, without secrets: the stamp of every index that holds its vectors."""

    @property
    def dimensions(self) -> int:
        """How long each vector is."""

    def knows(self, text: str) -> float:
        """How well it knows the script that `text` is written in: 0 not at all, 1 wholly."""

    def embed(self, texts: Sequence[str], *, polite: bool = False) -> Vectors:
        """Vectors of `texts`, `(len(texts), dimensions)`, in their order. Blocks until all are made.

        Args:
            texts: Any strings, empty ones too. What is longer than the model reads is cut.
            polite: Leave a core to others where there are several: for bulk work in a process that also answers.

        Raises:
            EmbeddingUnavailable: The service that makes them fails.
        """
