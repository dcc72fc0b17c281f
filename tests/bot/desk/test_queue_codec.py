"""Tests that a queued question is read back unchanged except for its secret."""

from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from bot.access import Asker
from bot.desk.jobs.job import decode_question, encode_question
from bot.types import Place, Question
from storage.types import NewQuestion, QueuedQuestion

words = st.text(max_size=12)
questions = st.builds(
    Question,
    key=words,
    task=st.sampled_from(["ask", "check"]),
    text=words,
    asker=st.builds(
        Asker,
        st.sampled_from(["slack", "discord"]),
        st.sampled_from(["channel", "dm"]),
        *[words] * 3,
        st.booleans(),
        st.booleans(),
    ),
    place=st.builds(Place, *[words] * 4),
    conversation=words,
    at=st.integers(0, 4_000_000_000).map(lambda seconds: datetime.fromtimestamp(seconds, UTC)),
    message=words,
    only_asker=st.booleans(),
    unasked=st.booleans(),
    handle=words,
)


def queued(new):
    original = {name: getattr(new, name) for name in NewQuestion.__slots__}
    rest = {"state": "waiting", "outcome": "", "turn_id": "", "posted": (), "owner": ""}
    return QueuedQuestion(1, **original, **rest, taken_at=datetime.now(UTC), lease_until=None)


@given(questions)
def test_question_survives_encoding(question):
    assert decode_question(queued(encode_question(question))) == question


@given(questions)
def test_encoded_body_of_a_question_omits_its_reply_handle(question):
    assert encode_question(question).body == encode_question(replace(question, handle="other")).body
