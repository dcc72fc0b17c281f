"""Tests of combining the scores of two retrievers."""

from hypothesis import given
from hypothesis import strategies as st

from storage.search.candidate_search import fuse_scores, standardise_scores

scores = st.dictionaries(st.text("abcdef", min_size=1, max_size=2), st.floats(-10, 10), max_size=8)


def test_standardised_scores_have_mean_zero_and_deviation_one():
    """1, 2, 3: mean 2, deviation sqrt(2/3)."""
    result = standardise_scores({"a": 1.0, "b": 2.0, "c": 3.0})

    assert [round(value, 4) for value in result.values()] == [-1.2247, 0.0, 1.2247]


def test_large_lead_in_one_list_outweighs_a_small_one_in_the_other():
    """Ranks alone would make this a tie; scores do not."""
    dense = {"far": 0.9, "near": 0.30, "other": 0.29}
    lexical = {"near": 5.0, "far": 4.9, "other": 0.1}

    assert [key for key, _ in fuse_scores(dense, lexical, asked=3)] == ["far", "near", "other"]


def test_embedder_without_a_signal_is_ignored():
    ranking = fuse_scores({"a": 0.9, "b": 0.1}, {"a": 1.0, "b": 2.0}, asked=2, trust=0.0)

    assert [key for key, _ in ranking] == ["b", "a"]


def test_only_passage_sharing_a_word_ranks_before_the_others():
    dense = {"worded": 0.2, "near": 0.25, "other": 0.1}

    assert fuse_scores(dense, {"worded": 7.0}, asked=50)[0][0] == "worded"


@given(scores, scores, st.integers(1, 10), st.floats(0, 1))
def test_every_candidate_is_ranked_once_in_a_fixed_order(dense, lexical, asked, weight):
    ranking = fuse_scores(dense, lexical, asked=asked, trust=weight)

    assert sorted(key for key, _ in ranking) == sorted({*dense, *lexical})
    assert [score for _, score in ranking] == sorted((score for _, score in ranking), reverse=True)
    assert ranking == fuse_scores(
        dict(reversed(dense.items())), dict(reversed(lexical.items())), asked=asked, trust=weight
    )


def test_unembedded_candidates_are_omitted_or_score_average() -> None:
    lexical = {"a": 3.0, "b": 2.0, "c": 1.0}

    left_out = fuse_scores({"a": 0.1, "b": 0.9}, lexical, asked=3, left_out={"c"})
    unasked = dict(fuse_scores({"a": 0.1, "b": 0.9}, lexical, asked=2, unasked={"c"}))
    fused = dict(fuse_scores({"a": 0.1, "b": 0.9}, lexical, asked=2))

    assert {key for key, _ in left_out} == {"a", "b"}
    assert unasked["c"] > fused["c"]
