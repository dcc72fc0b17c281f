"""Texts to vectors: MiniLM on this machine, or any of Chroma's embedding functions by name.

`open_embedder` gives the one that settings name; who embeds needs only `Embedder`.
"""

from storage.embedding.opening import open_embedder
from storage.embedding.types import Embedder, Vectors

__all__ = ["Embedder", "Vectors", "open_embedder"]
