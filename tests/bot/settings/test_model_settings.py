"""The settings of the model, from the file and from the variables of OpenAI's client."""

from pathlib import Path

import pytest

from bot.cli.setup.init_command import write_starter
from bot.settings.settings_reader import load_settings
from bot.settings.tables.model_values import ModelValues
from bot.settings.tables.settings_tables import LimitSettings, Settings
from pipeline.kit import Limits
from pipeline.llm.model import Budget
from pipeline.llm.model_settings import ModelSettings, Price, StageSettings
from pipeline.stages import STAGES

KEY = "sk-hush-0123456789"
OTHER = "sk-other-0123456789"


def _load(text: str) -> Settings:
    Path("footnote.toml").write_text(text, encoding="utf-8")
    return load_settings()


def test_defaults_equal_those_of_the_pipeline() -> None:
    assert ModelValues().plain() == ModelSettings()
    assert LimitSettings().kit(student=False) == Limits()
    assert LimitSettings().budget == Budget()
    assert not ModelValues().configured


def test_model_settings_are_read_from_the_file() -> None:
    settings = _load(f"""
        [model]
        name = "m"
        base_url = "http://localhost:8000/v1"
        api_key = "{KEY}"
        stages = {{ verify = "large", draft = {{ temperature = 0.5, max_tokens = 90 }} }}
        temperature = ""
        thinks = true
        prices = {{ "m.1" = {{ prompt = 0.5, completion = 1.5 }} }}
        student = true
        """)
    plain = settings.model.plain()

    assert (plain.name, plain.base_url, plain.api_key.value) == ("m", "http://localhost:8000/v1", KEY)
    assert plain.stages == {"verify": StageSettings("large"), "draft": StageSettings(temperature=0.5, max_tokens=90)}
    assert (plain.temperature, plain.thinks) == (None, True)
    assert plain.prices == {"m.1": Price(0.5, 1.5)}
    assert settings.model.names == "m, large (verify)"
    assert settings.limits.kit(student=settings.model.student).student


@pytest.mark.parametrize(("variables", "configured"), [
    ({}, False),
    ({"OPENAI_API_KEY": ""}, False),
    ({"OPENAI_MODEL": "m"}, False),
    ({"OPENAI_API_KEY": KEY}, True),
    ({"OPENAI_BASE_URL": "http://localhost:1/v1", "OPENAI_MODEL": "m"}, True),
    ({"FOOTNOTE_MODEL__API_KEY": KEY, "FOOTNOTE_MODEL__NAME": "m"}, True),
])  # fmt: skip
def test_model_is_configured_by_a_key_or_an_address(
    variables: dict[str, str], *, configured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert load_settings().model.configured is configured


def test_footnote_variables_override_the_file_and_the_file_overrides_openai_variables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_MODEL", "theirs")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://theirs:1/v1")
    monkeypatch.setenv("FOOTNOTE_MODEL__BASE_URL", "http://ours:1/v1")
    model = _load("[model]\nname = 'file'\nbase_url = 'http://file:1/v1'\n").model

    assert (model.name, model.base_url) == ("file", "http://ours:1/v1")
    assert model.api_key.get_secret_value() == KEY


def test_azure_settings_come_from_azure_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", OTHER)
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", KEY)
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://ours.openai.azure.com")
    monkeypatch.setenv("OPENAI_API_VERSION", "2024-10-21")
    plain = _load("[model]\napi = 'azure'\nname = 'deployment'\n").model.plain()

    assert (plain.api_key.value, plain.base_url) == (KEY, "https://ours.openai.azure.com")
    assert plain.api_version == "2024-10-21"


def test_azure_model_is_configured_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://theirs:1/v1")
    model = _load("[model]\napi = 'azure'\nname = 'deployment'\n").model

    assert (model.configured, model.names, model.base_url, bool(model.api_key)) == (True, "deployment", "", False)


def test_starter_file_names_every_stage() -> None:
    text = write_starter(Path("starter.toml")).read_text(encoding="utf-8")

    assert f"# The stages: {', '.join(STAGES)}." in text
