"""Request fields that a server rejects are left out of later calls; unknown objections are reported."""

from dataclasses import replace

import pytest

from evaluation.simulated_model.chat_protocol import Reply, answer_error
from pipeline.errors import ModelRefused, ModelUnavailable, PromptTooLong, SchemaNotOffered
from pipeline.llm.chat_request import ServerQuirks, compose_request, find_bounds
from pipeline.llm.model import ChatMessage, ModelCall
from pipeline.llm.model_settings import ModelSettings, StageSettings, find_cache_kind
from pipeline.llm.server_errors import ServerRefusal, TransientError, interpret_refusal
from tests.fake_model_rules import AZURE_GPT, CACHE_ARGUMENTS, KNOWN_ARGUMENTS, LLAMA_CPP, OPENAI, VLLM, StrictProfile
from tests.fake_model_server import in_turn
from tests.pipeline.llm.model_calls import CALL, SCHEMA_CALL, open_test_model

SETTINGS = ModelSettings("small-model", reasoning_effort="low")


async def test_quirks_of_a_reasoning_model_are_learned_and_remembered() -> None:
    async with open_test_model(lambda _: Reply(), name="thinking-model") as ask:
        assert (await ask.complete()).attempts == 3
        assert (await ask.complete()).attempts == 1
        assert ask.waits == []
    body = ask.server.requests[1].body
    assert body["max_completion_tokens"] == 1_024 + 4_096
    assert {"max_tokens", "temperature"}.isdisjoint(body)
    assert ask.spent.calls == 2


async def test_learned_server_quirks_apply_to_one_model_only() -> None:
    own = {"draft": StageSettings("thinking-model")}
    async with open_test_model(lambda _: Reply(), stages=own) as ask:
        await ask.complete()
        await ask.complete(replace(CALL, stage="verify"))
    assert "temperature" in ask.server.requests[1].body


async def test_system_message_joins_the_users_without_a_system_role() -> None:
    talk = ("system", "Be short."), ("user", "Hello"), ("assistant", "Hi."), ("user", "Where?"), ("user", "Quick!")
    async with open_test_model(lambda _: Reply(), VLLM) as ask:
        await ask.complete(ModelCall("draft", tuple(ChatMessage(role, text) for role, text in talk)))
        messages = ask.server.requests[0].body["messages"]
    assert [(message["role"], message["content"]) for message in messages] == [
        ("user", "Be short.\n\nHello"),
        ("assistant", "Hi."),
        ("user", "Where?\n\nQuick!"),
    ]


async def test_rejected_stream_options_are_left_out() -> None:
    profile = type(OPENAI)(**{**vars(OPENAI), "takes": KNOWN_ARGUMENTS - {"stream_options"}})
    async with open_test_model(lambda _: Reply(), profile) as ask:
        _, reply = await ask.stream()
        await ask.stream()
    assert reply.estimated
    assert len(ask.server.rejected) == 1


_SHARED = "Rules of all calls."
_SHARING_CALL = ModelCall(
    "draft",
    (ChatMessage("system", f"{_SHARED}\nAnswer."), ChatMessage("user", "Where is Lake Constance?")),
    shared=len(_SHARED),
)


@pytest.mark.parametrize(
    ("api", "server", "model", "kind"),
    [
        ("openai", "api.openai.com", "gpt-5.4-mini", "beginnings"),
        ("openai", "api.openai.com", "ft:gpt-5-mini:us::1", "beginnings"),
        ("openai", "api.openai.com", "gpt-4.1-mini", "none"),
        ("openai", "api.openai.com", "gpt-4", "none"),
        ("openai", "api.openai.com", "gpt-5.10", "marks"),
        ("azure", "us.openai.azure.com", "team-gpt-5", "beginnings"),
        ("azure", "us.openai.azure.com", "gpt-6", "marks"),
        ("azure", "us.openai.azure.com", "our-deployment", "none"),
        ("openai", "localhost:8000", "gpt-5.4-mini", "none"),
        ("openai", "api.openai.com", "gpt-oss-120b", "none"),
    ],
)
def test_cache_kind_follows_address_and_model_name(api, server, model, kind) -> None:
    assert find_cache_kind(api, server, model) == kind
    settings = ModelSettings(model, f"https://{server}/v1", api=api)
    assert settings.shares_beginning == (kind == "beginnings")
    assert settings.plan("verify").structured == ("text" if kind == "beginnings" else "auto")
    assert settings.plan("query").structured == "auto"
    never, always = (replace(settings, shared_beginning=wish) for wish in ("never", "always"))
    assert (never.shares_beginning, always.shares_beginning) == (False, True)


async def test_calls_with_the_same_beginning_share_a_cache_key() -> None:
    other = replace(_SHARING_CALL, messages=(ChatMessage("system", f"{_SHARED}\nOther."), CALL.messages[1]))
    async with open_test_model(lambda _: Reply(), AZURE_GPT, name="gpt-5.4-mini") as ask:
        for call in (_SHARING_CALL, other, CALL):
            assert (await ask.complete(call)).attempts == 1
        bodies = [request.body for request in ask.server.requests]
    keys = [body["prompt_cache_key"] for body in bodies]
    assert keys[0] == keys[1] != keys[2]
    assert not any("prompt_cache_options" in body for body in bodies)

    async with open_test_model(lambda _: Reply(), AZURE_GPT, name="gpt-5.6-terra") as ask:
        await ask.complete(_SHARING_CALL)
        await ask.complete()
        marked, plain = (request.body for request in ask.server.requests)
    assert marked["prompt_cache_options"] == plain["prompt_cache_options"] == {"mode": "explicit"}
    first, rest = marked["messages"][0]["content"]
    assert (first["text"], rest["text"]) == (_SHARED, "\nAnswer.")
    assert ("prompt_cache_breakpoint" in first, "prompt_cache_breakpoint" in rest) == (True, False)
    assert isinstance(plain["messages"][0]["content"], str)


@pytest.mark.parametrize("taken", [frozenset(), frozenset({"prompt_cache_key"})])
async def test_rejected_cache_arguments_are_left_out(taken: frozenset[str]) -> None:
    profile = type(AZURE_GPT)(**{**vars(AZURE_GPT), "takes": KNOWN_ARGUMENTS | taken})
    async with open_test_model(lambda _: Reply(), profile, name="gpt-5.6-terra") as ask:
        assert [(await ask.complete(_SHARING_CALL)).attempts for _ in range(2)] == [2, 1]
        body = ask.server.requests[-1].body
    assert CACHE_ARGUMENTS.isdisjoint(body)
    assert isinstance(body["messages"][0]["content"], str)


async def test_missing_schema_support_is_remembered() -> None:
    async with open_test_model(lambda _: Reply("Europe."), LLAMA_CPP) as ask:
        assert ask.model.structured("draft")
        for _ in range(2):
            with pytest.raises(SchemaNotOffered):
                await ask.complete(SCHEMA_CALL)
            assert not ask.model.structured("draft")
            assert not ask.model.structured("verify")
        assert (ask.spent.calls, ask.spent.tokens, len(ask.server.rejected)) == (0, 0, 1)
        assert (await ask.complete()).text == "Europe."


async def test_loose_schema_is_not_offered() -> None:
    async with open_test_model(lambda _: Reply()) as ask:
        with pytest.raises(SchemaNotOffered):
            await ask.complete(replace(CALL, schema={"type": "object", "properties": {"place": {"type": "string"}}}))


async def test_structured_setting_decides_about_missing_schemas() -> None:
    async with open_test_model(lambda _: Reply(), LLAMA_CPP, structured="schema") as ask:
        with pytest.raises(ModelUnavailable) as caught:
            await ask.complete(SCHEMA_CALL)
    assert "auto" in caught.value.hint
    async with open_test_model(lambda _: Reply(), structured="text") as ask:
        assert not ask.model.structured("draft")
        with pytest.raises(SchemaNotOffered):
            await ask.complete(SCHEMA_CALL)
    assert ask.server.requests == []


async def test_server_that_rejects_every_variant_raises() -> None:
    message = "Unsupported: temperature, max_tokens, System role not supported"
    async with open_test_model(lambda _: answer_error(400, message)) as ask:
        with pytest.raises(ModelUnavailable, match="rejected the call"):
            await ask.complete()
    assert len(ask.server.requests) == 4


BOUNDED = {
    "type": "object",
    "properties": {
        "names": {"type": "array", "items": {"type": "string", "maxLength": 40}, "maxItems": 3},
        "year": {"type": "integer", "minimum": 1, "maximum": 999},
    },
    "required": ["names", "year"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(("profile", "left"), [
    (OPENAI, {"maxItems", "minimum", "maximum", "maxLength"}),
    (replace(OPENAI, bounds=frozenset({"maxItems", "minimum", "maximum"})), {"maxItems", "minimum", "maximum"}),
    (replace(OPENAI, bounds=frozenset()), set()),
    (replace(VLLM, bounds=frozenset(), system_role=True), set()),
])  # fmt: skip
async def test_bounds_that_a_server_rejects_are_left_out_of_schemas(profile: StrictProfile, left: set[str]) -> None:
    call = replace(CALL, schema=BOUNDED)
    async with open_test_model(lambda _: Reply("{}"), profile) as ask:
        assert (await ask.complete(call)).text == "{}"
        rejected = len(ask.server.rejected)
        await ask.complete(call)
        assert ask.model.structured("draft")

    assert len(ask.server.rejected) == rejected
    sent = ask.server.requests[-1].body["response_format"]["json_schema"]["schema"]
    assert set(find_bounds(sent)) == left
    assert sent["properties"]["names"]["items"]["type"] == "string"


async def test_openai_gets_no_lengths_of_texts() -> None:
    request = compose_request(replace(CALL, schema=BOUNDED), ModelSettings("m"), ServerQuirks(), shown=False)
    assert set(find_bounds(request.arguments["response_format"])) == {"maxItems", "minimum", "maximum"}


async def test_schema_in_a_prompt_has_no_bounds() -> None:
    settings = ModelSettings("m", structured="json")
    request = compose_request(replace(CALL, schema=BOUNDED), settings, ServerQuirks(), shown=False)
    assert '"names": {"type": "array", "items": {"type": "string"}}' in request.arguments["messages"][0]["content"]


async def test_rejected_schema_is_still_sent_to_another_model() -> None:
    refusing = answer_error(400, "response_format json_schema is not supported")
    async with open_test_model(in_turn(refusing, Reply("{}")), stages={"verify": StageSettings("other-model")}) as ask:
        with pytest.raises(SchemaNotOffered):
            await ask.complete(SCHEMA_CALL)
        assert ask.model.structured("verify")


def _meaning(status: int, body: str, *, streamed: bool = True, quirks: ServerQuirks | None = None) -> object:
    request = compose_request(SCHEMA_CALL, SETTINGS, quirks or ServerQuirks(), shown=streamed)
    return interpret_refusal(ServerRefusal(status, body.encode()), request, SETTINGS)


TOO_LONG = [
    (400, "This model's maximum context length is 8192 tokens. However, you requested 9001 tokens"),
    (400, "max_tokens must be at least 1, got -186."),
    (400, "The decoder prompt (length 5000) is longer than the maximum model length of 4096."),
    (400, "The input (61709 tokens) is longer than the model's context length (40960 tokens)."),
    (400, "Input length (160062 tokens) exceeds the maximum allowed length (59862 tokens)."),
    (422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 2048. Given: 3000"),
    (500, "the request exceeds the available context size. try increasing the context size"),
    (200, "Trying to keep the first 15857 tokens when context the overflows."),
    (200, "Context size has been exceeded"),
    (400, "prompt is too long: 210000 tokens > 200000 maximum"),
    (400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),
    (400, "Input tokens exceed the configured limit of 272000 tokens."),
    (400, "input length exceeds maximum context length; raise num_ctx"),
    (413, "Request too large for model `m` on tokens per minute (TPM): Limit 6000, Requested 8000"),
    (429, "Request too large for gpt-4 on tokens per min (TPM): Limit 10000, Requested 12000."),
]
PLAIN_ROLES = [
    (400, "System role not supported"),
    (500, "jinja exception: Conversation roles must alternate user/assistant/user/assistant/..."),
    (400, "After the optional system message, conversation roles must alternate user/assistant"),
    (400, "Unsupported value: 'messages[0].role' does not support 'system' with this model."),
]
NO_SCHEMA = [
    (400, '{"error": {"message": "This response_format type is unavailable now"}}'),
    (400, '{"error": {"message": "invalid value: `json_schema`, supported values are: `json_object`"}}'),
    (400, '{"detail": "Unsupported parameter: response_format"}'),
    (422, '{"detail": [{"type": "extra_forbidden", "loc": ["body", "response_format"], "msg": "Extra"}]}'),
    (500, '{"error": {"message": "Failed to initialize samplers: failed to parse grammar"}}'),
    (404, '{"error": {"message": "No endpoints found that support structured outputs", "code": 404}}'),
    (501, '{"error": "guided decoding is not built in"}'),
]
REJECTED = [
    (422, '{"message": {"detail": [{"loc": ["stream_options"], "msg": "not permitted"}]}}', "stream_options"),
    (400, '{"error": {"message": "Unknown parameter.", "param": "stream_options"}}', "stream_options"),
    (400, '{"error": {"message": "Unrecognized request argument supplied: reasoning_effort"}}', "reasoning_effort"),
    (400, '{"error": {"message": "Unsupported value: \'temperature\' does not support 0."}}', "temperature"),
    (400, '{"error": {"message": "\'max_tokens\' is not supported. Use \'max_completion_tokens\'"}}', "max_tokens"),
]
OTHER = [
    (404, '{"error": {"code": "DeploymentNotFound", "message": "It does not exist."}}', ModelUnavailable),
    (404, '{"error": {"message": "model \\"m\\" not found, try pulling it first"}}', ModelUnavailable),
    (400, '{"error": {"message": "m is not a valid model ID"}}', ModelUnavailable),
    (400, '{"error": {"message": "Model Not Exist"}}', ModelUnavailable),
    (429, '{"error": {"message": "You exceeded your current quota, check billing details"}}', TransientError),
    (429, '{"error": {"code": "429", "message": "have exceeded token rate limit of your pricing"}}', TransientError),
    (400, '{"error": {"code": "content_filter", "innererror": {}}}', ModelRefused),
    (403, '{"error": {"message": "Your input was flagged"}}', ModelRefused),
    (400, '{"error": {"message": "max_tokens is too large: 9000. At most 4096 are served"}}', ModelUnavailable),
    (418, "", ModelUnavailable),
    (599, '{"error": null}', TransientError),
    (422, '{"detail": [{"loc": ["body"], "msg": "odd", "input": "maximum context length"}]}', ModelUnavailable),
]  # the last one echoes the prompt, whose words mean nothing


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        *((status, f'{{"error": {{"message": "{message}"}}}}', PromptTooLong) for status, message in TOO_LONG),
        *((status, f'{{"error": "{message}"}}', ServerQuirks) for status, message in PLAIN_ROLES),
        *((status, body, SchemaNotOffered) for status, body in NO_SCHEMA),
        *((status, body, ServerQuirks) for status, body, _ in REJECTED),
        *OTHER,
    ],
)
def test_server_error_messages_are_classified_as_quirks_or_final_errors(status: int, body: str, kind: type) -> None:
    meaning = _meaning(status, body)
    assert type(meaning) is kind
    if isinstance(meaning, ServerQuirks):
        rejected = [argument for _, text, argument in REJECTED if text == body]
        assert (meaning.left_out, meaning.plain_roles) == (set(rejected), not rejected)


def test_quirks_of_concurrent_calls_are_merged() -> None:
    one = ServerQuirks(frozenset({"temperature"}), thinks=True)
    other = ServerQuirks(frozenset({"max_tokens"}), plain_roles=True, unopened=False)
    both = ServerQuirks(frozenset({"temperature", "max_tokens"}), plain_roles=True, thinks=True, unopened=False)
    assert one.merge(other) == other.merge(one) == both
