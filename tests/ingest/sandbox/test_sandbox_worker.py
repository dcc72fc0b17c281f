"""Frames and answers between the two processes."""

import io
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest import sandbox_worker
from ingest.sandbox_worker import MalformedAnswer, ReadFailure
from ingest.types import Block, Page, Section
from storage.types import PassageKind

words = st.text(st.characters(), max_size=20)
blocks = st.builds(Block, words, st.sampled_from(PassageKind))
sections = st.builds(Section, st.lists(words, max_size=3).map(tuple), st.lists(blocks, max_size=3).map(tuple))
pages = st.builds(
    Page,
    words,
    st.lists(sections, max_size=3).map(tuple),
    date=st.none() | st.datetimes(timezones=st.sampled_from([None, UTC])),
    aliases=st.lists(words, max_size=2).map(tuple),
    disambiguation=st.booleans(),
)


@given(pages | st.builds(ReadFailure, words, st.booleans()))
def test_answer_round_trips(answer):
    assert sandbox_worker.decode_answer(sandbox_worker.encode_answer(answer)) == answer


@given(st.binary(max_size=40))
def test_invalid_answer_is_refused(content):
    with pytest.raises(MalformedAnswer):
        sandbox_worker.decode_answer(content)


@pytest.mark.parametrize(
    "content", [b"[]", b"{}", b'{"reason": "a"}', b'{"title": "a", "sections": [1]}', b"[" * 100_000]
)
def test_invalid_json_answer_is_refused(content):
    with pytest.raises(MalformedAnswer):
        sandbox_worker.decode_answer(content)


def test_unpaired_surrogates_round_trip():
    page = Page("a\ud800", (), date=datetime(2026, 1, 2, tzinfo=UTC))

    assert sandbox_worker.decode_answer(sandbox_worker.encode_answer(page)) == page


def test_partial_or_long_frames_are_refused():
    pipe = io.BytesIO()
    sandbox_worker.write_frame(pipe, b"abc")
    content = pipe.getvalue()

    assert sandbox_worker.read_frame(io.BytesIO(content)) == b"abc"
    assert sandbox_worker.read_frame(io.BytesIO(content[:-1])) is None
    assert sandbox_worker.read_frame(io.BytesIO(content[:4])) is None
    with pytest.raises(MalformedAnswer):
        sandbox_worker.read_frame(io.BytesIO(content), 2)
