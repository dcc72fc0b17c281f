"""Tests of embedders from Chroma's functions: unit vectors, and failures in one line without a key."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from storage.errors import EmbeddingUnavailable
from storage.indexes.embedding import MOST_CHARACTERS_SENT, SERVICE_BATCH, open_chroma_embedder


class Letters:
    """Embed texts as their counts of a, b and c; record the calls."""

    def __init__(self, model_name: str = "small", api_key: str = "", url: str = "") -> None:
        self.model_name, self.api_key, self.url = model_name, api_key, url
        self.asked: list[list[str]] = []

    def __call__(self, texts: list[str]) -> list[list[float]]:
        self.asked.append(texts)
        return [[1.0 + text.count(letter) for letter in "abc"] for text in texts]


class Failing(Letters):
    """A service that fails at its second call with the caller's key in the message."""

    def __call__(self, texts: list[str]) -> list[list[float]]:
        if self.asked:
            raise RuntimeError(f"401 for key {self.api_key}\nat {self.url}")
        return super().__call__(texts)


class Short(Letters):
    """A service that returns too few vectors after the first call."""

    def __call__(self, texts: list[str]) -> list[list[float]]:
        vectors = super().__call__(texts)
        return vectors[: 2 if len(self.asked) == 1 else -1]


class Broken(Letters):
    """A service that returns NaN."""

    def __call__(self, texts: list[str]) -> list[list[float]]:
        return [[float("nan")] * 3 for _ in texts]


class Refusing(Letters):
    """A function that cannot be constructed, like Chroma's functions without their package or key."""

    def __init__(self, api_key: str = "") -> None:
        raise ValueError(f"The refusing python package is not installed ({api_key})")


KNOWN: dict[str, Callable[..., Any]] = {
    "letters": Letters,
    "failing": Failing,
    "short": Short,
    "broken": Broken,
    "refusing": Refusing,
}


def lengths(vectors: Sequence[Any]) -> Any:
    return np.linalg.norm(np.array(vectors), axis=1)


def test_vectors_have_length_one() -> None:
    embedder = open_chroma_embedder("letters", {}, known=KNOWN)

    vectors = embedder.embed(["abc", "aaa"])

    assert embedder.dimensions == 3
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors[0], [3**-0.5] * 3, atol=1e-6)
    np.testing.assert_allclose(lengths(vectors), 1, atol=1e-6)


def test_blank_texts_are_not_sent() -> None:
    made = Letters()
    embedder = open_chroma_embedder("letters", {}, known={"letters": lambda: made})

    vectors = embedder.embed(["", "b", " \n"])

    assert made.asked[1:] == [["b"]]
    np.testing.assert_allclose(lengths(vectors), [0, 1, 0], atol=1e-6)


def test_many_texts_are_sent_in_batches_and_long_ones_cut() -> None:
    made = Letters()
    embedder = open_chroma_embedder("letters", {}, known={"letters": lambda: made})

    vectors = embedder.embed(["a" * 100_000] * (SERVICE_BATCH + 1))

    assert [len(texts) for texts in made.asked[1:]] == [SERVICE_BATCH, 1]
    assert {len(text) for texts in made.asked[1:] for text in texts} == {MOST_CHARACTERS_SENT}
    assert vectors.shape == (SERVICE_BATCH + 1, 3)


def test_no_texts_give_no_vectors() -> None:
    assert open_chroma_embedder("letters", {}, known=KNOWN).embed([]).shape == (0, 3)


def test_embedder_name_depends_on_options_but_not_on_secrets() -> None:
    first = open_chroma_embedder("letters", {"model_name": "a", "api_key": "key-one-1"}, known=KNOWN).name
    same = open_chroma_embedder("letters", {"model_name": "a", "api_key": "key-two-2"}, known=KNOWN).name
    other = open_chroma_embedder("letters", {"model_name": "b", "api_key": "key-one-1"}, known=KNOWN).name

    assert first == same
    assert first != other
    assert first.startswith("letters/")


def test_unknown_function_is_reported_with_similar_names() -> None:
    with pytest.raises(EmbeddingUnavailable, match='no embedding function "leters"') as caught:
        open_chroma_embedder("leters", {}, known=KNOWN)

    assert "letters" in caught.value.hint


def test_failing_service_is_reported_in_one_line_without_its_key() -> None:
    options = {"api_key": "hunter2-hunter2", "url": "https://me:open-sesame@api.example/v1"}
    embedder = open_chroma_embedder("failing", options, known=KNOWN)

    with pytest.raises(EmbeddingUnavailable) as caught:
        embedder.embed(["a"])

    assert str(caught.value) == (
        'The embedding function "failing" fails: 401 for key [hidden] at https://[hidden]@api.example/v1'
    )
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(("function", "cause"), [("short", r"shape \(1, 3\) for 2 texts"), ("broken", "not finite")])
def test_invalid_vectors_are_refused(function: str, cause: str) -> None:
    with pytest.raises(EmbeddingUnavailable, match=cause):
        open_chroma_embedder(function, {}, known=KNOWN).embed(["a", "b"])


def test_function_that_cannot_be_constructed_is_explained() -> None:
    with pytest.raises(EmbeddingUnavailable, match=r"package is not installed \(\[hidden\]\)"):
        open_chroma_embedder("refusing", {"api_key": "hunter2-hunter2"}, known=KNOWN)


def test_unknown_option_is_reported_with_known_ones() -> None:
    with pytest.raises(EmbeddingUnavailable, match="modelname") as caught:
        open_chroma_embedder("letters", {"modelname": "a"}, known=KNOWN)

    assert caught.value.hint == "it takes these options: model_name, api_key, url"


def test_chromas_own_functions_are_known() -> None:
    with pytest.raises(EmbeddingUnavailable) as caught:
        open_chroma_embedder("opnai", {})

    assert "openai" in caught.value.hint


def test_every_script_counts_as_known() -> None:
    assert open_chroma_embedder("letters", {}, known=KNOWN).knows("Сколько?") == 1
