"""Successful model calls: request, reply, usage and cost."""

from dataclasses import replace

import pytest

from evaluation.simulated_model.chat_protocol import Fault, Reply, encode_chunk, encode_reply
from pipeline.errors import PromptTooLong
from pipeline.llm.model import ChatMessage, ModelCall
from pipeline.llm.model_settings import Price, Secret, StageSettings
from tests.fake_model_rules import AZURE, KNOWN_ARGUMENTS, LLAMA_CPP, OLLAMA, OPENAI, VLLM, StrictProfile
from tests.fake_model_server import in_turn
from tests.pipeline.llm.model_calls import CALL, SCHEMA, SCHEMA_CALL, open_test_model
from tests.pipeline.weak_model import LOOPS


async def test_whole_reply_reports_its_usage() -> None:
    async with open_test_model(lambda _: Reply("In the Alps.", cached=3)) as ask:
        reply = await ask.complete()
    assert (reply.text, reply.finish, reply.model) == ("In the Alps.", "stop", "small-model-2026")
    assert (reply.prompt_tokens, reply.completion_tokens, reply.cached_tokens, reply.estimated) == (12, 4, 3, False)
    assert reply.attempts == 1
    assert reply.milliseconds > 0
    assert (ask.spent.calls, ask.spent.tokens) == (1, 16)


async def test_streamed_reply_yields_pieces_and_then_the_whole() -> None:
    async with open_test_model(lambda _: Reply("In the  Alps.", cached=3)) as ask:
        pieces, reply = await ask.stream()
    assert pieces == ["In ", "the ", " ", "Alps."]
    assert (reply.text, reply.prompt_tokens, reply.cached_tokens, reply.estimated) == ("In the  Alps.", 12, 3, False)
    assert ask.spent.tokens == reply.prompt_tokens + reply.completion_tokens


@pytest.mark.parametrize("profile", [OPENAI, AZURE, VLLM, LLAMA_CPP, OLLAMA], ids=lambda profile: profile.name)
async def test_every_server_profile_replies_whole_and_streamed(profile) -> None:
    async with open_test_model(lambda _: Reply("In the Alps."), profile) as ask:
        assert (await ask.complete()).text == "In the Alps."
        assert (await ask.stream())[1].text == "In the Alps."
    assert ask.waits == []


async def test_request_has_only_the_needed_arguments() -> None:
    async with open_test_model(lambda _: Reply()) as ask:
        await ask.complete()
        await ask.stream()
    whole, streamed = (request.body for request in ask.server.requests)
    assert (
        whole
        == streamed
        == {
            "model": "small-model",
            "messages": [{"role": message.role, "content": message.text} for message in CALL.messages],
            "max_tokens": 1024,
            "temperature": 0.0,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
    )


@pytest.mark.parametrize("text", LOOPS.values(), ids=LOOPS)
@pytest.mark.parametrize("whole", [True, False])
async def test_loop_is_stopped_and_cut(text: str, whole: bool) -> None:  # noqa: FBT001 - a parameter of the test
    async with open_test_model(lambda _: Reply(text, finish="length", piece_seconds=0.0001)) as ask:
        pieces, reply = ([], await ask.complete()) if whole else await ask.stream()
        await ask.server.until(lambda server: server.counts.left == 1)

    assert reply is not None
    assert reply.finish == "loop"
    assert text.startswith(reply.text)
    assert len(reply.text) < 350
    assert len("".join(pieces)) < 1_200


async def test_loop_of_reasoning_is_stopped() -> None:
    thoughts = Reply("", reasoning=LOOPS["consolation"], finish="length", piece_seconds=0.0001)
    async with open_test_model(lambda _: thoughts) as ask:
        reply = await ask.complete()
    assert (reply.finish, reply.text) == ("loop", "")


async def test_varied_call_penalises_repetition() -> None:
    async with open_test_model(lambda _: Reply()) as ask:
        await ask.complete(replace(CALL, varied=True))
        await ask.complete()
    assert [request.body.get("frequency_penalty") for request in ask.server.requests] == [0.5, None]
    assert [request.body.get("presence_penalty") for request in ask.server.requests] == [0.5, None]


async def test_rejected_penalties_are_left_out() -> None:
    async with open_test_model(lambda _: Reply(), name="thinking-model", temperature=None) as ask:
        assert (await ask.complete(replace(CALL, varied=True))).text == "Good."
        await ask.complete(replace(CALL, varied=True))
    assert len(ask.server.rejected) == 3  # the old name of `max_tokens`, and each penalty
    assert len(ask.server.requests) == 2


async def test_stage_settings_override_model_and_arguments() -> None:
    own = StageSettings("other-model", temperature=0.7, max_tokens=64, reasoning_effort="low")
    async with open_test_model(lambda _: Reply(), stages={"draft": own}) as ask:
        await ask.complete()
        await ask.complete(ModelCall("verify", CALL.messages))
    draft, verify = (request.body for request in ask.server.requests)
    assert (draft["model"], draft["temperature"], draft["max_tokens"]) == ("other-model", 0.7, 64)
    assert draft["reasoning_effort"] == "low"
    assert (verify["model"], verify["temperature"], verify["max_tokens"]) == ("small-model", 0.0, 1024)
    assert "reasoning_effort" not in verify


async def test_nucleus_is_sent_until_the_server_rejects_it() -> None:
    async with open_test_model(lambda _: Reply(), top_p=0.5) as ask:
        await ask.complete()
    rules = StrictProfile(**{**vars(OPENAI), "takes": KNOWN_ARGUMENTS - {"top_p"}})
    async with open_test_model(lambda _: Reply(), rules, top_p=0.5) as strict:
        await strict.complete()
    assert [one.server.requests[-1].body.get("top_p") for one in (ask, strict)] == [0.5, None]


async def test_schema_is_sent_as_strict() -> None:
    async with open_test_model(lambda _: Reply('{"place": "Europe"}')) as ask:
        assert ask.model.structured("draft")
        await ask.complete(SCHEMA_CALL)
    schema = {"name": "draft", "strict": True, "schema": SCHEMA}
    assert ask.server.requests[0].body["response_format"] == {"type": "json_schema", "json_schema": schema}


async def test_json_mode_appends_the_schema_to_the_instruction() -> None:
    async with open_test_model(lambda _: Reply('{"place": "Europe"}'), structured="json") as ask:
        await ask.complete(SCHEMA_CALL)
        await ask.complete(ModelCall("draft", CALL.messages[1:], schema=SCHEMA))
    first, second = (request.body for request in ask.server.requests)
    assert first["response_format"] == {"type": "json_object"}
    assert first["messages"][0]["content"].startswith("Answer in one sentence.\n\nReply with one JSON object")
    assert first["messages"][1]["content"] == CALL.messages[1].text
    assert [message["role"] for message in second["messages"]] == ["system", "user"]


async def test_key_is_sent_in_the_header_of_its_api() -> None:
    azure_token = {"api_key": Secret(), "azure_ad_token": Secret(AZURE.key)}
    sent = []
    for profile, changes in ((LLAMA_CPP, {}), (AZURE, {}), (AZURE, azure_token)):
        async with open_test_model(lambda _: Reply(), profile, **changes) as ask:
            await ask.complete()
        sent.append(ask.server.requests[0])
    assert sent[1].path == "/openai/deployments/our-deployment/chat/completions?api-version=2024-10-21"
    assert sent[1].headers["api-key"] == AZURE.key
    assert ["authorization" in request.headers for request in sent[:2]] == [False, False]
    assert "api-key" not in sent[2].headers


async def test_missing_token_usage_is_estimated() -> None:
    async with open_test_model(lambda _: Reply("In the Alps, by three countries."), OLLAMA) as ask:
        _, reply = await ask.stream()
    assert reply.estimated
    assert 12 <= reply.prompt_tokens <= 30
    assert 5 <= reply.completion_tokens <= 12
    assert ask.spent.tokens == reply.prompt_tokens + reply.completion_tokens


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        ('{"prompt_tokens": "12", "completion_tokens": null}', None),
        ("[]", None),
        ("3", None),
        ('{"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 90, "prompt_cache_hit_tokens": 4}', (80, 4)),
    ],
)
async def test_invalid_token_usage_is_estimated_and_hidden_reasoning_is_counted(
    usage: str, counts: tuple[int, int] | None
) -> None:
    body = f'{{"choices": [{{"message": {{"content": "Yes."}}}}], "usage": {usage}}}'.encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    async with open_test_model(lambda _: Fault((head + body,))) as ask:
        reply = await ask.complete()
    assert (reply.text, reply.estimated) == ("Yes.", counts is None)
    assert counts in {None, (reply.completion_tokens, reply.cached_tokens)}


async def test_cost_follows_the_price_list() -> None:
    prices = {"small-model": Price(prompt=2.0, completion=8.0, cached=0.5)}
    async with open_test_model(lambda _: Reply("In the Alps.", cached=4), prices=prices) as ask:
        assert (await ask.complete()).cost == pytest.approx((8 * 2.0 + 4 * 0.5 + 4 * 8.0) / 1e6)
    async with open_test_model(lambda _: Reply(), prices={"another": Price(1, 1)}) as ask:
        assert (await ask.complete()).cost is None


async def test_call_longer_than_the_context_window_is_not_sent() -> None:
    long = ModelCall("draft", (ChatMessage("user", "word " * 2_000),))
    async with open_test_model(lambda _: Reply(), context_tokens=2_048) as ask:
        with pytest.raises(PromptTooLong, match="2048"):
            await ask.complete(long)
    assert (ask.server.requests, ask.spent.calls, ask.spent.tokens) == ([], 0, 0)


async def test_whole_reply_to_a_streamed_call_is_read() -> None:
    def whole(request) -> Fault:
        plain = type(request)(request.path, request.headers, {**request.body, "stream": False}, request.profile)
        return Fault(encode_reply(plain, Reply("In the Alps.")))

    async with open_test_model(whole) as ask:
        pieces, reply = await ask.stream()
    assert (pieces, reply.text) == (["In the Alps."], "In the Alps.")


async def test_comments_and_other_event_lines_are_ignored() -> None:
    def chatty(request) -> Fault:
        head, *rest = encode_reply(request, Reply("Yes\u2028no."))
        return Fault(
            (
                head,
                encode_chunk(b": PROCESSING\r\n\r\n"),
                encode_chunk(b"event: message\n"),
                encode_chunk(b"id: 1\n\n"),
                *rest,
            )
        )

    async with open_test_model(chatty) as ask:
        assert (await ask.stream())[1].text == "Yes\u2028no."


async def test_connection_is_reused_for_the_next_call() -> None:
    async with open_test_model(lambda _: Reply()) as ask:
        for _ in range(3):
            await ask.complete()
            await ask.stream()
        assert ask.server.counts.open == 1


async def test_reply_reports_why_it_was_cut() -> None:
    async with open_test_model(
        in_turn(Reply("In the", finish="length"), Reply("In the", finish="content_filter"))
    ) as ask:
        assert (await ask.complete()).finish == "length"
        assert (await ask.complete()).finish == "filtered"
