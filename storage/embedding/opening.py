"""Opens the embedder that settings name. Nothing heavy is imported before it is asked for."""

from collections.abc import Mapping
from typing import Any

from storage.embedding.types import Embedder
from storage.errors import EmbeddingUnavailable

MINILM = "minilm"


def open_embedder(function: str, options: Mapping[str, Any]) -> Embedder:
    """The embedder called `function`: "minilm", or a name that Chroma knows, made with `options`.

    Args:
        function: Its name, as in settings.
        options: Its arguments; "minilm" takes none.

    Raises:
        EmbeddingUnavailable: Nothing has that name, or it cannot be made, or its service does not answer.
    """
    if function != MINILM:
        from storage.embedding.chroma_function import chroma_embedder  # imports chromadb

        return chroma_embedder(function, options)
    if options:
        raise EmbeddingUnavailable(f'The embedding function "{MINILM}" takes no options.', hint="remove them")
    from storage.embedding.minilm import open_minilm  # imports onnxruntime

    return open_minilm()
