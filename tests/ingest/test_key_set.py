"""A set of keys behaves like a built-in set, and is smaller."""

from hypothesis import given
from hypothesis import strategies as st

from ingest.refresh.document_plan import KeySet

KEYS = st.one_of(st.integers(0, 40).map(str), st.sampled_from(["", "007", "٣", "1/", "-1", "1234567890", "a/"]))


@given(st.lists(st.tuples(st.booleans(), KEYS)), KEYS)
def test_key_set_behaves_like_a_set(steps, other):
    """For any additions and removals; only canonical numbers use bits."""
    keys, expected = KeySet(), set()
    for added, key in steps:
        (keys.add if added else keys.discard)(key)
        (expected.add if added else expected.discard)(key)

    assert keys == expected
    assert (len(keys), sorted(keys)) == (len(expected), sorted(expected))
    assert (other in keys) == (other in expected)
    assert keys.others <= expected
    assert 3 not in keys
