"""Tests of the command `footnote serve`: its failures are one plain line without secrets."""

import json
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from bot.cli.command_context import CliState
from bot.cli.entry_point import app
from bot.desk.platform_port import PlatformError
from bot.settings.live.live_settings import LiveSettings
from bot.settings.tables.settings_tables import LogSettings, Settings
from storage.errors import HomeLocked
from tests.bot.fake_services import FakeServices

SECRET = "hunter22-hunter22"


def run(error: Exception | None, *options: str) -> Result:
    """Serve, log a secret, and end or fail."""

    async def serve(live: LiveSettings, read: Callable[[], Settings]) -> None:
        assert read() == live.current
        logging.getLogger("bot.server.lifecycle").info("with %s", live.current.model.api_key.get_secret_value())
        if error:
            raise error

    services = replace(FakeServices().build(), serve=serve)
    return CliRunner().invoke(app, [*options, "serve"], obj=CliState(services=services), prog_name="footnote")


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)


def lines(result: Result) -> tuple[list[dict[str, Any]], list[str]]:
    messages = result.stderr.splitlines()
    return [json.loads(line) for line in messages if line.startswith("{")], [
        line for line in messages if line[:1] != "{"
    ]


def test_stopped_server_exits_with_0() -> None:
    result = run(None)
    logged, messages = lines(result)

    assert (result.exit_code, result.stdout, messages) == (0, "", [])
    assert [line["event"] for line in logged] == ["with ***"]


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (HomeLocked("home is in use.", hint="Wait."), "footnote: home is in use — Wait."),
        (PlatformError(f"Slack refuses {SECRET}.", hint="Look at it."), "footnote: Slack refuses *** — Look at it."),
    ],
)
def test_reportable_error_is_one_plain_line(error: Exception, line: str) -> None:
    result = run(error)
    logged, messages = lines(result)

    assert (result.exit_code, messages, len(logged)) == (1, [line], 1)


@pytest.mark.parametrize("options", [[], ["--debug"]])
def test_bug_is_logged_with_its_traceback(options: list[str]) -> None:
    result = run(ZeroDivisionError(f"by {SECRET}"), *options)
    logged, messages = lines(result)

    assert result.exit_code == 1
    assert messages[0].startswith("footnote: An unexpected error occurred: ZeroDivisionError: by ***")
    assert "test_serve_command.py" in logged[-1]["exception"]
    assert SECRET not in result.stderr


def test_log_level_follows_settings_except_with_debug() -> None:
    async def serve(live: LiveSettings, read: Callable[[], Settings]) -> None:
        del read
        live.take(live.current.model_copy(update={"log": LogSettings(level="error")}))
        logging.getLogger("bot.server.lifecycle").warning("something")

    state = CliState(services=replace(FakeServices().build(), serve=serve))
    quiet = CliRunner().invoke(app, ["serve"], obj=state, prog_name="footnote")
    loud = CliRunner().invoke(app, ["serve", "--debug"], obj=state, prog_name="footnote")
    assert ("something" in quiet.stderr, "something" in loud.stderr) == (False, True)
