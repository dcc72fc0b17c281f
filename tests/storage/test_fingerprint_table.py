"""Tests that a fingerprint table behaves like a dictionary."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.database.bodies import FingerprintTable

NAMES = st.text(st.characters(exclude_characters="\0"), max_size=8)


@given(st.dictionaries(NAMES, NAMES), NAMES)
def test_fingerprint_table_equals_its_rows(rows, other):
    table = FingerprintTable(rows.items())

    assert dict(table) == rows
    assert list(table) == list(rows)
    assert len(table) == len(rows)
    assert (other in table) == (other in rows)
    assert table.get(other) == rows.get(other)


def test_missing_document_is_an_error():
    with pytest.raises(KeyError):
        FingerprintTable([])["a"]
