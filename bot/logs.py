"""What a server logs, on stderr: JSON lines for programs, columns for a terminal, and never a secret.

Code logs by the standard library's `logging`, extra fields included; structlog gives the lines their form. What a
task binds with `structlog.contextvars`, such as the question's ticket, stands in every line that it logs.
"""

import logging
import os
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any, TextIO

import structlog

from bot.redacting import Redact, redacted
from bot.sanitizing import safe

OURS = ("bot", "pipeline", "ingest", "storage")
TALKATIVE = ("aiohttp", "apscheduler", "discord", "slack_bolt", "slack_sdk", "uvicorn")
"""Libraries whose doings tell an operator something, where he asked for more."""
SILENT = ("chromadb", "httpcore", "httpx", "openai")
"""Libraries that log addresses, headers or bodies of what they send."""


@contextmanager
def logging_to(stream: TextIO, *, level: str, redact: Redact, debug: bool = False) -> Iterator[None]:
    """Write what is logged within to a stream; `level` is ours, libraries are heard from warnings on.

    Args:
        stream: Where to.
        level: The least that is told of our own code: `debug`, `info`, `warning` or `error`.
        redact: Takes secrets out of a text.
        debug: Tell everything of ours, and more of libraries.
    """
    handler = _Lines(stream)
    handler.setFormatter(_formatter(stream, redact))
    mine, theirs = (logging.DEBUG, logging.INFO) if debug else (logging.getLevelName(level.upper()), logging.WARNING)
    levels = {**dict.fromkeys(OURS, mine), **dict.fromkeys(TALKATIVE, theirs), **dict.fromkeys(SILENT, logging.WARNING)}
    root = logging.getLogger()
    before = {name: logging.getLogger(name).level for name in levels}
    root.addHandler(handler)
    logging.captureWarnings(capture=True)
    try:
        for name, least in levels.items():
            logging.getLogger(name).setLevel(least)
        yield
    finally:
        logging.captureWarnings(capture=False)
        root.removeHandler(handler)
        for name, least in before.items():
            logging.getLogger(name).setLevel(least)


class _Lines(logging.StreamHandler[TextIO]):
    """Writes lines. The library's own handler would print a message that cannot be formatted, secrets and all."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name is the library's
        try:
            self.stream.write(f"a line that {record.name} logged could not be written\n")
        except (OSError, ValueError):
            return


def _formatter(stream: TextIO, redact: Redact) -> logging.Formatter:
    seen = stream.isatty()

    def clean(text: str) -> str:
        return redact(safe(text)) if seen else redact(text)

    def without_secrets(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        cleaned: dict[str, Any] = redacted(event, clean)
        return cleaned

    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[
            structlog.contextvars.merge_contextvars,
            structlog.stdlib.add_log_level,
            structlog.stdlib.add_logger_name,
            structlog.stdlib.ExtraAdder(),
            structlog.processors.TimeStamper(fmt="iso", utc=True),
        ],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            without_secrets,
            _columns() if seen else structlog.processors.JSONRenderer(ensure_ascii=False),
        ],
    )


def _columns() -> structlog.types.Processor:
    colours = not os.environ.get("NO_COLOR")
    return structlog.dev.ConsoleRenderer(colors=colours, exception_formatter=structlog.dev.plain_traceback)
