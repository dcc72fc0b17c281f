"""Server errors: a second attempt succeeds, or one clear error is raised."""

import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from evaluation.simulated_model.chat_protocol import (
    HANG,
    RESET,
    Ending,
    Fault,
    Reply,
    answer_error,
    answer_with,
    encode_chunk,
    encode_reply,
)
from evaluation.simulated_model.model_server import Script
from pipeline.errors import BudgetExceeded, ModelRefused, ModelUnavailable, PipelineError, PromptTooLong, ReplyBroken
from pipeline.llm.model import BudgetMeter, ChatMessage, ModelCall
from pipeline.llm.model_client import open_model
from tests.fake_model_rules import LLAMA_CPP, OLLAMA, OPENAI, VLLM, StrictProfile
from tests.fake_model_server import in_turn, serve
from tests.pipeline.llm.model_calls import CALL, open_test_model, settings_for

GOOD = Reply("In the Alps.")
JSON = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
HTML = "<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"


def whole(body: bytes) -> Fault:
    return Fault((JSON % len(body) + body,))


def after_pieces(count: int, *end: bytes | float | Ending):
    """Return a script whose streams stop after some pieces."""
    return lambda request: Fault((*encode_reply(request, GOOD)[: 2 + count], *end))


def cut(request) -> Fault:
    """Send half of the announced body."""
    data = b"".join(encode_reply(request, GOOD))
    return Fault((data[: len(data) // 2], Ending.CLOSE))


PASSING = {
    "429": answer_error(429, "Rate limit reached."),
    "500": answer_error(500, "The server had an error."),
    "502 by a proxy": answer_with(502, HTML, kind="text/html"),
    "503": answer_error(503, "Overloaded."),
    "529": answer_with(529, "", kind="text/plain"),
    "408": answer_with(408, ""),
    "409": answer_with(409, {"message": "conflict"}),
    "a reset": RESET,
    "a close": Fault((Ending.CLOSE,)),
    "no JSON": whole(b'{"choices": [{"message": {"content": "In the'),
    "nothing": whole(b""),
    "deep JSON": whole(b"[" * 100_000),
    "no UTF-8": whole(b'{"choices": "\xff"}'),
    "no HTTP": Fault((b"SSH-2.0-server\r\n\r\n", Ending.CLOSE)),
    "an error in a reply": whole(b'{"error": {"message": "Upstream failed", "code": 502}}'),
}


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING.keys())
async def test_transient_fault_is_retried(fault: Fault) -> None:
    async with open_test_model(in_turn(fault, fault, GOOD)) as ask:
        reply = await ask.complete()
    assert (reply.text, reply.attempts) == ("In the Alps.", 3)
    assert [0.25 <= ask.waits[0] <= 0.5, 0.5 <= ask.waits[1] <= 1.0] == [True, True]
    assert ask.spent.calls == 1


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING.keys())
async def test_transient_fault_before_a_stream_is_retried(fault: Fault) -> None:
    async with open_test_model(in_turn(fault, GOOD)) as ask:
        pieces, reply = await ask.stream()
    assert (pieces, reply.attempts) == (["In ", "the ", "Alps."], 2)


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING.keys())
async def test_permanent_fault_becomes_one_sentence(fault: Fault) -> None:
    async with open_test_model(lambda _: fault, retries=2) as ask:
        with pytest.raises(ModelUnavailable, match=r"model server at 127\.0\.0\.1") as caught:
            await ask.complete()
    assert str(caught.value).endswith("(3 tries)")
    assert "\n" not in str(caught.value)
    assert "<" not in str(caught.value)
    assert caught.value.hint
    assert len(ask.server.requests) == 3


async def test_reply_cut_within_its_json_is_retried() -> None:
    faults = [cut, cut]
    async with open_test_model(lambda request: faults.pop()(request) if faults else GOOD) as ask:
        assert (await ask.complete()).attempts == 3


async def test_unreachable_server_is_reported() -> None:
    async with serve(lambda _: GOOD) as server:
        url = server.url
    async with open_test_model(lambda _: GOOD, base_url=url, retries=1) as ask:
        with pytest.raises(ModelUnavailable, match="cannot be reached") as caught:
            await ask.complete()
    assert "base_url" in caught.value.hint
    assert ask.spent.tokens == 0


@pytest.mark.parametrize(
    ("headers", "least", "most"),
    [
        ({"retry_after_ms": "250", "Retry_After": "9"}, 0.25, 0.25),
        ({"Retry_After": format_datetime(datetime.now(UTC) + timedelta(hours=2), usegmt=True)}, 0, 0),
    ],
)
async def test_requested_wait_is_followed_up_to_two_minutes(headers: dict[str, str], least: float, most: float) -> None:
    async with open_test_model(in_turn(answer_error(429, "Slow down.", **headers), GOOD)) as ask:
        if most:
            await ask.complete()
            assert least <= ask.waits[0] <= most
        else:
            with pytest.raises(ModelUnavailable, match=r"take \d{4} s, longer than is left"):
                await ask.complete()
            assert ask.waits == []


async def test_wait_beyond_the_deadline_fails_at_once() -> None:
    async with open_test_model(lambda _: answer_error(429, "Slow down.", Retry_After="30")) as ask:
        ask.spent.deadline = time.monotonic() + 10
        with pytest.raises(ModelUnavailable, match="take 30 s, longer than is left"):
            await ask.complete()
    assert (ask.waits, len(ask.server.requests)) == ([], 1)


def drip(request) -> Fault:
    data = b"".join(encode_reply(request, GOOD))
    return Fault(tuple(part for byte in data for part in (bytes([byte]), 0.01)))


SILENT = {
    "never answers": (lambda _: HANG, {"timeout_seconds": 0.05}, (False, True)),
    "never begins": (lambda _: Fault((EVENTS, Ending.HANG)), {"first_token_seconds": 0.05}, (True,)),
    "stops after pieces": (after_pieces(2, Ending.HANG), {"idle_seconds": 0.2}, (True,)),
    "drips": (drip, {"timeout_seconds": 0.2}, (False, True)),
}


@pytest.mark.parametrize(
    ("script", "limits", "streamed"),
    [(script, limits, streamed) for script, limits, forms in SILENT.values() for streamed in forms],
)
async def test_silent_server_raises_after_its_limit(
    script: Script, limits: dict[str, float], *, streamed: bool
) -> None:
    async with open_test_model(script, **limits) as ask:
        with pytest.raises(ModelUnavailable, match="fell silent"):
            await (ask.stream() if streamed else ask.complete())
        assert len(ask.server.requests) == (1 if "idle_seconds" in limits else 2)
        await ask.server.until(lambda server: server.counts.open == 0)


async def test_deadline_ends_a_running_call() -> None:
    async with open_test_model(lambda _: HANG) as ask:
        ask.spent.deadline = time.monotonic() + 0.05
        with pytest.raises(BudgetExceeded, match="seconds"):
            await ask.complete()
        await ask.server.until(lambda server: server.counts.open == 0)


BREAKS = {
    "a reset": (Ending.RESET,),
    "a close": (Ending.CLOSE,),
    "an end too soon": (encode_chunk(b""),),
    "an error": (encode_chunk(b'data: {"error": {"message": "CUDA error"}}\n\n'), encode_chunk(b"")),
    "an error of llama.cpp": (
        encode_chunk(b'error: {"error": {"code": 500, "message": "slot gone"}}\n\n'),
        encode_chunk(b""),
    ),
    "half an event": (encode_chunk(b'data: {"choices": [{"de'), encode_chunk(b"")),
}


@pytest.mark.parametrize("end", BREAKS.values(), ids=BREAKS.keys())
async def test_stream_broken_after_a_piece_is_not_retried(end: tuple[bytes | Ending, ...]) -> None:
    async with open_test_model(after_pieces(2, *end)) as ask:
        parts = ask.model.stream(CALL, ask.spent)
        assert [(await anext(parts)).text, (await anext(parts)).text] == ["In ", "the "]
        with pytest.raises(ReplyBroken, match=r"broke|cut off"):
            await anext(parts)
    assert (len(ask.server.requests), ask.waits) == (1, [])
    assert ask.spent.tokens > 10


@pytest.mark.parametrize("end", BREAKS.values(), ids=BREAKS.keys())
async def test_stream_broken_before_a_piece_is_retried(end: tuple[bytes | Ending, ...]) -> None:
    faults = [after_pieces(0, *end)]
    async with open_test_model(lambda request: faults.pop()(request) if faults else GOOD) as ask:
        assert (await ask.stream())[1].attempts == 2


def untyped(request) -> Fault:
    head, *rest = encode_reply(request, GOOD)
    return Fault((head.replace(b"Content-Type: text/event-stream\r\n", b""), *rest))


@pytest.mark.parametrize(
    "script",
    [
        lambda request: Fault((*encode_reply(request, GOOD)[:-2], encode_chunk(b""))),
        lambda request: Fault((*encode_reply(request, GOOD)[:-1], Ending.RESET)),
        untyped,
    ],
    ids=["no last line", "broken after its end", "no type"],
)
async def test_stream_without_last_line_or_type_is_read_completely(script: Script) -> None:
    async with open_test_model(script) as ask:
        assert (await ask.stream())[0] == ["In ", "the ", "Alps."]


@pytest.mark.parametrize("streamed", [False, True])
async def test_reply_of_ten_megabytes_is_rejected(*, streamed: bool) -> None:
    async with open_test_model(lambda _: Reply("na " * 3_500_000, pieces=("na " * 3_500_000,))) as ask:
        with pytest.raises(ModelUnavailable, match=r"sent more than \d+ kB"):
            await (ask.stream() if streamed else ask.complete())
        await ask.server.until(lambda server: server.counts.open == 0)
    assert len(ask.server.requests) == 1


async def test_error_of_ten_megabytes_gives_a_short_message() -> None:
    async with open_test_model(lambda _: answer_with(500, "x" * 10_000_000), retries=0) as ask:
        with pytest.raises(ModelUnavailable) as caught:
            await ask.complete()
    assert len(str(caught.value)) < 500


EMPTY = {
    "no text": Reply(""),
    "blank": Reply(" \n"),
    "null": Reply(None),
    "a tool call": Reply(None, finish="tool_calls", extra={"tool_calls": [{"id": "1", "type": "function"}]}),
    "no choices": whole(b'{"choices": []}'),
    "no object": whole(b"[1, 2]"),
    "odd types": whole(b'{"choices": [{"message": "hello"}], "model": 3, "usage": "much"}'),
}


@pytest.mark.parametrize("answer", EMPTY.values(), ids=EMPTY.keys())
async def test_empty_reply_is_retried_once(answer: Reply | Fault) -> None:
    async with open_test_model(in_turn(answer, GOOD)) as ask:
        assert (await ask.complete()).text == "In the Alps."
    async with open_test_model(lambda _: answer) as ask:
        with pytest.raises(ModelUnavailable, match=r"empty reply|called a tool") as caught:
            await ask.complete()
    assert "context_tokens" in caught.value.hint
    assert len(ask.server.requests) == 2


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    "answer",
    [
        Reply(None, refusal="I'm sorry, I can't help with that."),
        Reply("", finish="content_filter"),
        answer_error(400, "The response was filtered by the content management policy.", code="content_filter"),
    ],
)
async def test_refusal_is_not_retried(answer: Reply | Fault, *, streamed: bool) -> None:
    async with open_test_model(lambda _: answer) as ask:
        with pytest.raises(ModelRefused) as caught:
            await (ask.stream() if streamed else ask.complete())
    assert "sorry" not in str(caught.value)
    assert len(ask.server.requests) == 1


FINAL = {
    "an unknown model": (GOOD, {"name": "gpt-17"}, "does not know the model 'gpt-17'", "OPENAI_MODEL"),
    "a web page": (answer_with(200, HTML, kind="text/html"), {}, "a web page, not a reply", "/v1"),
    "a redirect": (answer_with(307, "", Location="http://127.0.0.1:9/v1/chat/completions"), {}, "307", "/v1"),
    "a quota": (answer_error(429, "You exceeded.", code="insufficient_quota"), {}, "no credit left", "add credit"),
    "a balance": (answer_error(402, "Insufficient Balance"), {}, "no credit left", "add credit"),
    "not to ask again": (answer_error(500, "Broken.", x_should_retry="false"), {}, "Broken", "doctor"),
}


@pytest.mark.parametrize(("answer", "changes", "match", "hint"), FINAL.values(), ids=FINAL.keys())
async def test_final_error_is_not_retried(
    answer: Reply | Fault, changes: dict[str, str], match: str, hint: str
) -> None:
    async with open_test_model(lambda _: answer, **changes) as ask:
        with pytest.raises(ModelUnavailable, match=match) as caught:
            await ask.complete()
    assert hint in caught.value.hint
    assert (ask.waits, len(ask.server.requests) + len(ask.server.rejected)) == ([], 1)


async def test_wrong_path_error_names_base_url() -> None:
    async with serve(lambda _: GOOD) as server:
        settings = settings_for(server, base_url=server.url.removesuffix("/v1"))
        async with open_model(settings) as model:
            with pytest.raises(ModelUnavailable, match="no chat API at the address") as caught:
                await model.complete(CALL, BudgetMeter())
    assert "/v1" in caught.value.hint


@pytest.mark.parametrize("profile", [OPENAI, VLLM, LLAMA_CPP, OLLAMA], ids=lambda profile: profile.name)
async def test_prompt_beyond_server_limit_raises_prompt_too_long(profile: StrictProfile) -> None:
    small = StrictProfile(**{**vars(profile), "context": 2_000})
    long = ModelCall("draft", (ChatMessage("user", "word " * 2_000),))
    async with open_test_model(lambda _: GOOD, small) as ask:
        for streamed in (False, True):
            with pytest.raises(PromptTooLong, match="context window") as caught:
                await (ask.stream(long) if streamed else ask.complete(long))
            assert "context_tokens" in caught.value.hint
        assert (await ask.complete()).text == "In the Alps."
    assert ask.waits == []


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (b"", "an empty reply"),
        (b" \n", "an empty reply"),
        (b'{"choices": "\xff"}', "not UTF-8"),
        (b'{"choices": [{"mess', "cut off"),
        ('{"choices": "é'.encode()[:-1], "cut off"),
        (b"It works!", "not JSON"),
    ],
)
async def test_unreadable_body_is_described(body: bytes, what: str) -> None:
    async with open_test_model(lambda _: whole(body), retries=0) as ask:
        with pytest.raises(ModelUnavailable, match=what) as caught:
            await ask.complete()
    assert caught.value.hint


ENDS = {
    "a window that is set": (GOOD, {"context_tokens": 100}, "larger window"),
    "a refusal": (Reply(None, refusal="I will not."), {}, "other words"),
    "a filter of replies": (Reply("", finish="content_filter"), {}, "other words"),
    "a filter of calls": (answer_error(400, "Stopped.", code="content_filter"), {}, "other words"),
    "an objection": (answer_error(400, "No."), {}, "doctor"),
    "a broken stream": (after_pieces(2, *BREAKS["an error"]), {}, "later"),
}


@pytest.mark.parametrize(("answer", "changes", "hint"), ENDS.values(), ids=ENDS.keys())
async def test_every_final_error_has_a_fitting_hint(answer: object, changes: dict[str, int], hint: str) -> None:
    async with open_test_model(answer if callable(answer) else lambda _: answer, **changes) as ask:
        with pytest.raises(PipelineError) as caught:
            await ask.stream()
    assert hint in caught.value.hint
