"""Opening a model: required settings, environment variables, and the secrecy of the key."""

import asyncio
import logging
import subprocess
import sys
import traceback
from base64 import b64encode
from pathlib import Path

import pytest

from evaluation.simulated_model.chat_protocol import RESET, ChatRequest, Reply, answer_error
from pipeline.errors import ModelUnavailable
from pipeline.llm.model import BudgetMeter
from pipeline.llm.model_client import open_model, validate_settings
from pipeline.llm.model_settings import OPENAI_MODEL, ModelSettings, Secret, fill_from_environment
from pipeline.llm.server_connection import find_server
from pipeline.llm.server_errors import describe_error, redact_text
from tests.fake_model_rules import AZURE, OLLAMA, OPENAI
from tests.fake_model_server import serve
from tests.pipeline.llm.model_calls import CALL, open_test_model, settings_for

WRONG = "sk-wrong-9876543210abcdef"


def test_unset_settings_are_filled_from_the_environment() -> None:
    environ = {"OPENAI_API_KEY": " sk-1234567890\n", "OPENAI_BASE_URL": "http://here/v1", "OPENAI_MODEL": "m"}
    filled = fill_from_environment(ModelSettings(), environ)
    assert (filled.name, filled.base_url, filled.api_key) == ("m", "http://here/v1", Secret("sk-1234567890"))
    mine = ModelSettings("mine", "http://there/v1", Secret("k"))
    assert fill_from_environment(mine, environ) == mine


def test_azure_settings_are_filled_from_azure_variables() -> None:
    environ = {
        "AZURE_OPENAI_API_KEY": "key",
        "AZURE_OPENAI_ENDPOINT": "https://x.example",
        "OPENAI_API_VERSION": "v",
        "OPENAI_API_KEY": "other",
    }
    filled = fill_from_environment(ModelSettings("d", api="azure"), environ)
    assert (filled.base_url, filled.api_version, filled.secrets) == ("https://x.example", "v", ("key",))


@pytest.mark.parametrize(
    ("settings", "missing"),
    [
        (ModelSettings(), "no name is set"),
        (ModelSettings("m"), "no api_key is set"),
        (ModelSettings("m", api="azure"), "no base_url is set"),
        (ModelSettings("m", "https://x", api="azure"), "no api_version is set"),
        (ModelSettings("m", "https://x", api="azure", api_version="v"), "no api_key is set"),
        (ModelSettings("m", "localhost:11434"), "not an address"),
        (ModelSettings("m", "http://x", Secret("schlüssel")), "is not a valid key"),
        (ModelSettings("m", "http://x", Secret("two\nlines")), "is not a valid key"),
    ],
)
def test_missing_settings_raise_with_a_hint(settings: ModelSettings, missing: str) -> None:
    with pytest.raises(ModelUnavailable, match=missing) as caught:
        validate_settings(settings)
    assert caught.value.hint
    assert "schlüssel" not in f"{caught.value}{caught.value.hint}"


def test_local_server_needs_no_key() -> None:
    validate_settings(ModelSettings("m", "http://localhost:11434/v1"))


def test_printed_settings_hide_key_and_address() -> None:
    settings = ModelSettings("m", "http://me:pass@host:1/v1?api-key=abc", Secret(WRONG), Secret("eyJhbG"))
    assert "..." in repr(settings)
    for hidden in (WRONG, "eyJhbG", "pass", "abc"):
        assert hidden not in f"{settings!r} {settings} {settings.api_key} {settings.plan('x')!r}"
    assert settings.server == "host:1"


@pytest.mark.parametrize("profile", [OPENAI, AZURE], ids=lambda profile: profile.name)
async def test_wrong_key_error_does_not_contain_the_key(profile, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with open_test_model(lambda _: Reply(), profile, api_key=Secret(WRONG)) as ask:
        with pytest.raises(ModelUnavailable, match="does not accept the key") as caught:
            await ask.complete()
    whole = "".join(traceback.format_exception(caught.value)) + caplog.text + caught.value.hint + repr(ask.model)
    assert "API_KEY" in caught.value.hint
    assert "sk-wrong" not in whole
    assert len(ask.server.rejected) == 1


async def test_missing_key_is_reported() -> None:
    async with open_test_model(lambda _: Reply(), api_key=Secret()) as ask:
        with pytest.raises(ModelUnavailable) as caught:
            await ask.complete()
    assert caught.value.hint.startswith("set api_key")


async def test_logs_contain_no_key_and_no_headers(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    answers = [Reply(), Reply(), answer_error(500, f"Bearer {OPENAI.key}", Set_Cookie="session=1"), RESET, Reply()]
    async with open_test_model(lambda _: answers.pop(0)) as ask:
        await ask.complete()
        await ask.stream()
        await ask.complete()
    assert OPENAI.key not in caplog.text
    assert "session=1" not in caplog.text
    assert "uthorization" not in caplog.text


async def test_connection_error_does_not_chain_the_request() -> None:
    async with open_test_model(lambda _: RESET, retries=0) as ask:
        with pytest.raises(ModelUnavailable) as caught:
            await ask.complete()
    seen: BaseException | None = caught.value
    while seen is not None:
        assert type(seen).__module__.partition(".")[0] == "pipeline"
        seen = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)


@pytest.mark.parametrize(
    "said",
    [
        "Incorrect API key provided: sk-proj-ab12****************wxyz.",
        "header Authorization: Bearer eyJhbGciOi.x.y was bad",
        "GET /v1?api-key=0123456789&x=1 failed",
        '{"api_key": "0123456789"}',
        "see https://user:0123456789@host/",
        "key my own secret is bad",
    ],
)
def test_key_like_text_is_redacted(said: str) -> None:
    clean = redact_text(said, ["my own secret"])
    assert "***" in clean
    for hidden in ("ab12", "wxyz", "eyJ", "0123456789", "my own"):
        assert hidden not in clean


@pytest.mark.parametrize("part", ["zq81xw", "ZQ81XW7KPM44", "xw7kpm", "ab-ZQ81XW7KPM44-cd", "'pm44'"])
def test_parts_of_a_key_are_redacted_in_any_case(part: str) -> None:
    clean = redact_text(f"The key … {part} … is bad", ["zq81xw7kpm44"])
    assert clean.startswith("The key … ")
    assert clean.endswith(" … is bad")
    assert ("***" in clean) == (part != "'pm44'")
    assert not any(piece in clean.lower() for piece in ("zq81xw", "xw7kpm", "7kpm44"))


def test_address_credentials_are_redacted() -> None:
    settings = ModelSettings("m", "http://user:p%40ss@host:1/v1")
    basic, coded = (b64encode(said).decode() for said in (b"user:p@ss", b"user:p%40ss"))
    clean = redact_text(f"got {basic}, {basic.upper()}, {coded}, p@ss, p%40ss of {settings.server}", settings.unspoken)
    assert clean == "got ***, ***, ***, ***, *** of host:1"
    assert ModelSettings("m", "http://lone-key@host").unspoken == ("lone-key",)
    assert ModelSettings("m", "http://host").unspoken == ()


def test_text_without_keys_is_not_redacted() -> None:
    text = "Unsupported value: 'max_tokens' is too large: 5000; risk-averse key results, task-oriented"
    assert redact_text(text, []) == text


def test_error_message_is_found_in_every_known_form() -> None:
    forms = [
        b'{"error": {"message": "Broken."}}',
        b'{"error": "Broken."}',
        b'{"object": "error", "message": "Broken."}',
        b'{"detail": "Broken."}',
        b'{"detail": [{"loc": ["body"], "msg": "Broken."}]}',
        b"Broken.",
        b'"Broken."',
    ]
    assert {describe_error(form, []) for form in forms} == {"Broken."}
    assert {describe_error(form, []) for form in (b"", b"{}", b"[]", b"null", b"[" * 60_000)} <= {
        "it sent no message",
        "[" * 240 + "…",
    }
    assert describe_error(b"<!DOCTYPE html><html>", []) == "it sent a web page"


async def test_key_is_not_sent_to_a_redirect_target() -> None:
    async with serve(lambda _: Reply()) as other:
        moved = answer_error(302, "Moved.", Location=f"{other.url}/chat/completions")
        async with open_test_model(lambda _: moved) as ask:
            with pytest.raises(ModelUnavailable):
                await ask.complete()
        assert (other.requests, other.rejected) == ([], [])


async def test_closing_a_model_closes_its_connections() -> None:
    async with serve(lambda _: Reply()) as server:
        async with open_model(settings_for(server)) as model:
            await asyncio.gather(*(model.complete(CALL, BudgetMeter()) for _ in range(4)))
            assert server.counts.open > 0
        await server.until(lambda it: it.counts.open == 0)


async def test_address_credentials_are_sent_as_basic_authorization() -> None:
    heard: list[ChatRequest] = []

    def script(request: ChatRequest) -> Reply:
        heard.append(request)
        return Reply()

    async with serve(script, OLLAMA) as server:
        settings = ModelSettings(server.profile.models[0], server.url.replace("://", "://user:p%40ss@"))
        async with open_model(settings) as model:
            await model.complete(CALL, BudgetMeter())
    assert heard[0].headers["authorization"] == f"Basic {b64encode(b'user:p@ss').decode()}"


@pytest.mark.parametrize(
    ("environ", "found"),
    [
        ({"https_proxy": "http://proxy:3128"}, "http://proxy:3128"),
        ({"all_proxy": "http://proxy:3128"}, "http://proxy:3128"),
        ({"http_proxy": "http://proxy:3128"}, None),
        ({"https_proxy": "http://proxy:3128", "no_proxy": "other.example,.model.example"}, None),
    ],
)
def test_proxy_follows_the_environment(
    environ: dict[str, str], found: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert find_server(ModelSettings("m", "https://api.model.example/v1", Secret("sk-1234567890"))).proxy == found


def test_openai_is_not_imported_before_a_model_is_opened() -> None:
    code = "import sys, pipeline.llm.model_client; sys.exit(any(name in sys.modules for name in ('openai', 'aiohttp')))"
    root = Path(__file__).parents[3]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0


def test_key_alone_selects_openais_default_model():
    alone = fill_from_environment(ModelSettings(), {"OPENAI_API_KEY": "sk-1234567890"})
    elsewhere = fill_from_environment(ModelSettings(base_url="http://here/v1"), {"OPENAI_API_KEY": "sk-1234567890"})
    assert (alone.name, elsewhere.name) == (OPENAI_MODEL, "")
    validate_settings(alone)
