"""Token counts, events of a stream, and the waits between attempts."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from datetime import UTC, datetime
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.llm.chat_request import QuirkMemory, compose_request, repair_surrogates
from pipeline.llm.model import ChatMessage, ModelCall
from pipeline.llm.model_reply import ReplyAccumulator
from pipeline.llm.model_settings import ModelSettings
from pipeline.llm.server_connection import split_events
from pipeline.llm.server_errors import backoff_seconds, parse_retry_after
from pipeline.llm.usage import estimate_prompt_tokens, estimate_tokens


def split(pieces: Iterable[bytes]) -> list[bytes]:
    """Return the data of a stream that arrives in pieces."""

    async def arriving() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    async def read() -> list[bytes]:
        return [event async for event in split_events(arriving())]

    return asyncio.run(read())


NOW = datetime(2026, 5, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("", 0, 0),
        ("The lake lies where three countries meet, and its water is drunk far away.", 15, 24),
        ("Der See liegt, wo drei Länder zusammentreffen, und sein Wasser wird weit weg getrunken.", 20, 32),
        ("湖位于三国交界处，湖水被引到很远的地方饮用。", 14, 30),
        ("Озеро лежит там, где встречаются три страны.", 10, 28),
    ],
)
def test_token_estimate_is_within_bounds(text: str, least: int, most: int) -> None:
    assert least <= estimate_tokens(text) <= most


def test_prompt_estimate_counts_messages_and_schema() -> None:
    call = ModelCall("x", (ChatMessage("user", "abcdefg"), ChatMessage("user", "abcdefg")))
    assert estimate_prompt_tokens(call) == 2 * (2 + 4)
    assert estimate_prompt_tokens(ModelCall("x", call.messages, schema={"type": "object"})) > estimate_prompt_tokens(
        call
    )


@given(
    st.lists(st.sampled_from([b"data: {1}", b"data:{2}\r", b": alive", b"event: x", b"", b"error: {3}", b"data: "])),
    st.data(),
)
def test_event_parser_ignores_chunk_boundaries(lines: list[bytes], data: st.DataObject) -> None:
    sent = b"\n".join(lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(sent)), max_size=5)))
    read = split([sent[start:end] for start, end in zip([0, *cuts], [*cuts, len(sent)], strict=True)])
    known = {b"data: {1}": b"{1}", b"data:{2}\r": b"{2}", b"error: {3}": b"{3}"}
    assert read == [known[line] for line in lines if line in known]


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
@pytest.mark.parametrize("size", [1, 2, 3, 1_000])
def test_event_lines_may_end_in_lf_cr_or_crlf(end: bytes, size: int) -> None:
    sent = end.join((b": alive", b"", b"data: {1}", b"", b"data:{2}", b"", b""))
    assert split([sent[start : start + size] for start in range(0, len(sent), size)]) == [b"{1}", b"{2}"]


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("meal", "meal"),
        ("a\ud83d meal", "a\ufffd meal"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("\ud83d\ude00", "\U0001f600"),
    ],
)
def test_lone_surrogates_are_replaced_in_replies_and_requests(text: str, sent: str) -> None:
    got = ReplyAccumulator(hold=False)
    got.add({"choices": [{"message": {"content": text}}]})
    got.end()
    call = ModelCall("x", (ChatMessage("user", text),))
    request = compose_request(call, ModelSettings("m"), QuirkMemory().of("m"), shown=False)
    assert (got.text, request.arguments["messages"][0]["content"]) == (sent, sent)


@given(st.text(st.characters(categories=["Cs", "Lu", "So"])))
def test_valid_text_is_unchanged_and_encodable(text: str) -> None:
    assert (
        repair_surrogates(repair_surrogates(text))
        == repair_surrogates(text)
        == repair_surrogates(text).encode().decode()
    )


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Fri, 01 May 2026 12:00:30 GMT"}, 30.0),
        ({"retry-after": "Fri, 01 May 2026 11:00:00 GMT"}, 0.0),
        ({"retry-after": "Fri, 01 May 2026 12:00:30"}, 30.0),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after-ms": "x", "retry-after": "9"}, 9.0),
    ],
)
def test_retry_after_header_is_parsed(headers: dict[str, str], seconds: float | None) -> None:
    assert parse_retry_after(headers, NOW) == seconds


@given(st.integers(1, 10_000), st.integers())
def test_backoff_doubles_up_to_eight_seconds_with_jitter(tried: int, seed: int) -> None:
    longest = min(8.0, 0.5 * 2 ** min(tried - 1, 10))
    assert longest / 2 <= backoff_seconds(tried, Random(seed)) <= longest


KEYS = ["choices", "message", "delta", "content", "usage", "prompt_tokens", "thinking", "text", "error"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=20,
)


@given(JSON, st.booleans())
def test_any_json_can_be_accumulated(value: object, streamed: bool) -> None:  # noqa: FBT001 - hypothesis gives it
    got = ReplyAccumulator(hold=not streamed)
    text = got.add(value) + got.add({"choices": [value]}) + got.add({"choices": [{"message": value}]}) + got.end()
    assert text == got.text
