"""Score how well texts answer a question: ms-marco-MiniLM-L-12-v2, a cross-encoder for English with 8-bit weights.

The model reads the question together with one text, a passage or a sentence. It runs one pair at a time on one core:
larger batches were not faster. The graph in `cross_encoder.onnx` has no weights: `tools.training.bert_graphs` makes it,
and the package's file is mapped.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from storage.indexes.embedders import BERT_TOKENIZER, PackagedFile
from storage.indexes.embedding import CROSS_ENCODER_SHA256
from storage.indexes.packaged_files import make_encodable, open_model

WEIGHTS = PackagedFile(
    BERT_TOKENIZER.requirement, BERT_TOKENIZER.package, "models/data/reranker_en/model.onnx", CROSS_ENCODER_SHA256
)
GRAPH = Path(__file__).with_name("cross_encoder.onnx")
MOST_QUESTION_CHARACTERS = 500  # later characters are never read, so they are not tokenized either
MOST_CHARACTERS = 5_000


def open_cross_encoder(root: Path | None = None) -> "CrossEncoder":
    """Check and load the model from its package, or from a folder `root` instead. Raises `EmbeddingUnavailable`."""
    return CrossEncoder(*open_model(GRAPH, WEIGHTS, root))


class CrossEncoder:
    """The loaded model; opened by `open_cross_encoder`. Safe to call from several threads."""

    def __init__(self, session: Any, tokenizer: Any) -> None:
        self._session = session
        self._tokenizer = tokenizer

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return for each text its log-odds to answer the question, about -11 to 11. Blocks, on one core.

        A score depends on the question and its text alone.
        """
        question = make_encodable(question[:MOST_QUESTION_CHARACTERS])
        return [self._score_pair(question, make_encodable(text[:MOST_CHARACTERS])) for text in texts]

    def _score_pair(self, question: str, text: str) -> float:
        pair = self._tokenizer.encode(question, text)
        rows = {"ids": pair.ids, "positions": range(len(pair.ids)), "kinds": pair.type_ids}
        ((scores,),) = self._session.run(None, {name: np.array(row, np.int32) for name, row in rows.items()})
        return float(scores[0])
