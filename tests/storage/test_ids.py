"""Tests of the ids and hashes of passages."""

from hypothesis import given
from hypothesis import strategies as st

from storage.types import hash_passage, make_passage_id

TEXTS = st.text("ab›中 \n", max_size=4)
"""Few letters, so that parts are often alike; never the separator, which no reader of documents lets through."""


def test_passage_id_is_stable_across_releases() -> None:
    """If ids changed, every index and record would have to be rewritten."""
    assert make_passage_id("wiki", "a.md", "Top › Sub", "Text.", 0) == "f70d69037209dc30f4df1da6e26493f6"
    assert hash_passage("Title", "Top › Sub", "Text.") == "94e7ae1ee6fc47a45c8da513eb134809"


@given(
    st.tuples(TEXTS, TEXTS, TEXTS, TEXTS, st.integers(0, 12)), st.tuples(TEXTS, TEXTS, TEXTS, TEXTS, st.integers(0, 12))
)
def test_only_equal_passages_have_equal_ids(
    one: tuple[str, str, str, str, int], other: tuple[str, str, str, str, int]
) -> None:
    assert (make_passage_id(*one) == make_passage_id(*other)) == (one == other)


@given(TEXTS, TEXTS, TEXTS, TEXTS)
def test_hash_depends_on_the_title(title: str, other: str, section: str, text: str) -> None:
    assert (hash_passage(title, section, text) == hash_passage(other, section, text)) == (title == other)


def test_lone_surrogate_has_a_hash() -> None:
    assert len(hash_passage("\udce4", "", "")) == 32
