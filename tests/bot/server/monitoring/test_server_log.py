"""Tests that log lines are machine-readable and contain no secret in any field."""

import io
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from structlog.contextvars import bound_contextvars

from bot.server.monitoring.server_log import HIDDEN, build_redactor, collect_secrets, configure_logging
from bot.settings.tables.settings_tables import EmbeddingSettings, Settings

SHAPED = [
    "xoxb-123456789012-abcdefABCDEF",
    "xapp-1-A0123-456-abcdef0123",
    "xoxe.xoxp-1-abcdefgh",
    "sk-proj-abcdefghijklmnop",
    "MTIzNDU2Nzg5MDEyMzQ1Njc4.GabcDe.abcdefghijklmnopqrstuvwxyz0",
    "aW50ZXJhY3Rpb246MTIzNDU2Nzg5MDEy",
]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@contextmanager
def logged(*secrets: str, stream: io.StringIO | None = None, **how: Any) -> Iterator[io.StringIO]:
    stream = stream or io.StringIO()
    with configure_logging(stream, redact=build_redactor(secrets), **({"level": "info"} | how)):
        yield stream


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def fail(secret: str) -> None:
    try:
        int(f"{secret}.")
    except ValueError as error:
        raise RuntimeError(f"token {secret!r}") from error


def log_everywhere(secret: str) -> None:
    """Log a secret in every part of a line."""
    log = logging.getLogger("bot.anything")
    with bound_contextvars(bound=secret):
        log.info("said %s", secret)
        log.info(secret)
        log.info("extra", extra={"field": secret, f"key {secret}": [{"deep": (secret,)}], "object": {secret: {secret}}})
        log.info("shown", extra={"field": Exception(secret)})
        log.info("json %s", json.dumps({"key": secret}))
        log.info("repr %r", secret)
        try:
            fail(secret)
        except RuntimeError:
            log.exception("failed")


@given(st.text(min_size=8))
@example('pass"word\\with\nall')
@example("geheim-für-ÄÖÜ-漢字")
@example("'\"'\"'\"'\"")
def test_no_configured_secret_is_ever_logged(secret: str) -> None:
    assume(len(set(secret)) > 2)  # repeated characters may occur in any line
    assume(secret not in json.dumps({"event": "", "level": "info", "logger": "bot.anything"}))
    with logged(secret) as stream:
        log_everywhere(secret)

    logged_text = stream.getvalue()
    for form in (secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1], repr(secret)[1:-1]):
        assert form not in logged_text
    assert len(lines(stream)) == 7
    assert HIDDEN in logged_text


@pytest.mark.parametrize("secret", SHAPED)
@pytest.mark.parametrize("kind", [io.StringIO, Terminal])
def test_token_shaped_text_is_hidden(secret: str, kind: type[io.StringIO]) -> None:
    with logged(stream=kind()) as stream:
        log_everywhere(secret)

    assert secret not in stream.getvalue()
    assert HIDDEN in stream.getvalue()


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Authorization: Bearer abc.def-123", f"Authorization: {HIDDEN}"),
        ("{'Authorization': 'Bot abcdefgh'}", f"{{'{HIDDEN}'}}"),
        ("postgresql://ada:hunter22@db/x", f"postgresql://{HIDDEN}@db/x"),
        ("wss://slack.test/link/?ticket=12-34&app_id=9", f"wss://slack.test/link/?ticket={HIDDEN}&app_id=9"),
        ("https://discord.test/api/webhooks/12/ab_c-d/x", f"https://discord.test/api/webhooks/{HIDDEN}/x"),
        ("https://hooks.slack.com/commands/T1/2/abc", f"https://hooks.slack.com/{HIDDEN}"),
        ("The task-force met at desk-side.", "The task-force met at desk-side."),
        ("Ebbline costs 95 euros a month.", "Ebbline costs 95 euros a month."),
        ("see https://example.com/a:b/c@d", "see https://example.com/a:b/c@d"),
    ],
)
def test_only_secrets_are_hidden(text: str, left: str) -> None:
    redacted = build_redactor([])(text)

    assert redacted == left or (
        HIDDEN in left and HIDDEN in redacted and "abcdefgh" not in redacted and "abc.def" not in redacted
    )


def test_every_secret_of_the_settings_is_collected() -> None:
    settings = Settings(
        database="postgresql://ada:p%40ss@db/x",
        model={"api_key": "model-key"},
        slack={"bot_token": "bot", "signing_secret": "signed"},
        embedding=EmbeddingSettings(options={"nested": {"api_key": "deep"}, "url": "http://a:secret@b"}),
    )

    assert collect_secrets(settings) >= {"model-key", "bot", "signed", "deep", "p%40ss", "p@ss", "secret"}
    assert collect_secrets(Settings()) == frozenset()


def test_log_line_has_time_logger_and_turn() -> None:
    with logged() as stream, bound_contextvars(turn="abc", ticket=7):
        logging.getLogger("bot.desk").warning("late", extra={"seconds": 2.5})

    (line,) = lines(stream)
    assert line.pop("timestamp").endswith("Z")
    del line["message"]  # pytest's handler has added it
    assert line == {
        "event": "late",
        "level": "warning",
        "logger": "bot.desk",
        "turn": "abc",
        "ticket": 7,
        "seconds": 2.5,
    }


def test_libraries_are_logged_from_warnings_on() -> None:
    names = ["bot.x", "slack_bolt.App", "discord.gateway", "uvicorn.error", "apscheduler.executors", "httpx"]

    def heard(**how: Any) -> list[str]:
        with logged(**how) as stream:
            for name in names:
                logging.getLogger(name).info("doing")
            logging.getLogger("httpx").warning("late")
        return [line["logger"] for line in lines(stream)]

    assert heard(level="warning") == ["httpx"]
    assert heard() == ["bot.x", "httpx"]
    assert heard(debug=True) == [*names[:5], "httpx"]


def test_unformattable_line_reveals_no_secret(capsys: pytest.CaptureFixture[str]) -> None:
    """Python's logging would print all arguments."""
    with logged("hunter22") as stream:
        ours = logging.getLogger().handlers[-1]  # pytest's handler raises
        ours.handle(logging.LogRecord("bot.x", logging.INFO, __file__, 1, "%d", ("hunter22",), None))

    assert stream.getvalue() == "a log line of bot.x cannot be written\n"
    assert "hunter22" not in "".join(capsys.readouterr())


def test_log_lines_contain_no_terminal_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    with logged(stream=Terminal()) as stream:
        logging.getLogger("bot.x").info("a\x1b[2Jb", extra={"c": "\x1b]0;title\x07d"})

    assert "\x1b" not in stream.getvalue()
    assert "ab" in stream.getvalue()


def test_logging_configuration_is_restored() -> None:
    root = logging.getLogger()
    before = [*root.handlers], [logging.getLogger(name).level for name in ("bot", "httpx", "uvicorn")]
    with logged(debug=True):
        pass

    assert ([*root.handlers], [logging.getLogger(name).level for name in ("bot", "httpx", "uvicorn")]) == before
