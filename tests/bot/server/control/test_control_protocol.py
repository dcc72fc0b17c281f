"""Tests that messages over the control socket are decoded unchanged or refused."""

import json
from dataclasses import fields
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.access import Asker
from bot.server.control import control_protocol
from bot.settings.tables.source_registry import SOURCE_ENTRIES
from bot.settings.tables.source_settings import FolderSettings
from pipeline.types import PassagesFound, SearchStarted
from tests.bot.fake_services import abstained, answered, hit
from tests.bot.source_examples import WRITTEN, examples
from tests.thorough import sample

# A source's times have offsets of whole minutes, and a surrogate is not text.
zones = st.integers(-1_439, 1_439).map(lambda minutes: timezone(timedelta(minutes=minutes)))
moments = st.builds(lambda zone, moment: moment.replace(tzinfo=zone), zones | st.just(UTC), st.datetimes())
paths = st.text("abc/ é.", min_size=1).map(lambda text: Path("/") / text.lstrip("/"))
st.register_type_strategy(datetime, moments)
st.register_type_strategy(float, st.floats(allow_nan=False, allow_infinity=False))
st.register_type_strategy(FolderSettings, st.builds(FolderSettings, type=st.just("folder"), path=paths))
for other in SOURCE_ENTRIES.keys() - {"folder"}:
    st.register_type_strategy(SOURCE_ENTRIES[other].settings, st.sampled_from([examples()[other]]))


def test_protocol_examples_include_every_type_of_source() -> None:
    assert WRITTEN.keys() == SOURCE_ENTRIES.keys()


@pytest.mark.parametrize("kind", control_protocol.TYPES.values(), ids=control_protocol.TYPES)
def test_every_message_is_decoded_unchanged(kind: type) -> None:
    @settings(max_examples=sample(25))
    @given(st.from_type(kind))
    def holds(value: Any) -> None:
        line = control_protocol.encode_message(value)

        assert line.count(b"\n") == 1
        assert line.endswith(b"\n")
        assert control_protocol.decode_message(line) == value
        assert type(control_protocol.decode_message(line)) is kind

    holds()


def test_empty_search_result_is_not_decoded_as_a_search_start() -> None:
    for event in (SearchStarted("quay"), PassagesFound("quay")):
        assert control_protocol.decode_message(control_protocol.encode_message(event)) == event


def test_complete_answers_are_decoded_unchanged() -> None:
    for value in (answered(), abstained(), control_protocol.HitList((hit(),))):
        assert control_protocol.decode_message(control_protocol.encode_message(value)) == value


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"type": "Asker", "value": {}}',
        b'{"type": "Drafting"}',
        b'{"type": "Drafting", "value": {"evidence": "many"}}',
        b'{"type": ["Drafting"], "value": {}}',
        b"\xff\xfe",
    ],
)
def test_malformed_message_is_refused_without_its_content(line: bytes) -> None:
    with pytest.raises(control_protocol.MalformedMessage) as caught:
        control_protocol.decode_message(line)

    assert "many" not in str(caught.value)


@given(st.binary())
def test_arbitrary_bytes_raise_only_malformed_message(line: bytes) -> None:
    try:
        control_protocol.decode_message(line)
    except control_protocol.MalformedMessage:
        return


def test_protocol_digest_is_repeatable_and_has_16_characters() -> None:
    assert control_protocol.hash_protocol() == control_protocol.hash_protocol()
    assert len(control_protocol.hash_protocol()) == 16


def test_messages_have_no_fields_for_secrets() -> None:
    names = {field.name for kind in control_protocol.TYPES.values() for field in fields(kind)}
    names |= {field.name for field in fields(Asker)}

    assert not names & {"handle", "token", "api_key", "secret", "settings"}
    assert json.loads(control_protocol.encode_message(control_protocol.ServerHello(1, "0.1.0", "d")))[
        "value"
    ].keys() == {"pid", "version", "digest"}
