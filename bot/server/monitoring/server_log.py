"""Configure the server's log on stderr, without secrets: JSON lines for programs, columns for a terminal.

Code logs by the standard library's `logging`, including extra fields; structlog formats the lines. Values bound with
`structlog.contextvars`, such as the question's ticket, appear in every line that the task logs.
"""

import json
import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import Any, TextIO
from urllib.parse import quote, quote_plus, unquote, urlsplit

import structlog
from pydantic import BaseModel, SecretBytes, SecretStr

from bot.views.sanitize import sanitize_text
from storage.language.lazy_pattern import lazy_compile

Redact = Callable[[str], str]

HIDDEN = "***"
MIN_SECRET_LENGTH = 4  # hiding shorter values would hide words
SECRET_SHAPES = (
    r"xox[a-z](?:\.xox[a-z])?-[\w-]{6,}",  # Slack's tokens
    r"xapp-[\w-]{6,}",
    r"\b(?:sk|pk|rk)-[\w-]{12,}",  # OpenAI's and others' keys
    r"(?i:\bbearer\s+)[\w.~+/=-]{6,}",
    r"(?i:\bauthorization\W{1,5}(?:\w+\s+)?)[\w.~+/=-]{6,}",
    r"\b[\w-]{23,28}\.[\w-]{6,7}\.[\w-]{27,}",  # Discord's tokens
    r"aW50ZXJhY3Rpb2[\w+/=-]{8,}",  # Discord's interactions
    r"(?<=/webhooks/)\d+/[\w-]+",
    r"(?<=/interactions/)\d+/[\w-]+",
    r"(?<=hooks\.slack\.com/)[\w/-]+",
    r"(?<=ticket=)[\w%.~-]+",  # of a Socket Mode connection
    r"(?<=://)[^\s/@:]*:[^\s/@]+(?=@)",  # user and password of an address
)
_SECRET_NAME = lazy_compile(r"key|token|secret|password", re.IGNORECASE)


def build_redactor(secrets: Iterable[str]) -> Redact:
    """Build a function that hides `secrets`, and everything shaped like a secret."""
    forms = {form for secret in secrets if len(secret) >= MIN_SECRET_LENGTH for form in _secret_forms(secret)}
    # The longest first: otherwise, of a secret that begins with another, the rest would remain.
    known = [re.escape(form) for form in sorted(forms, key=len, reverse=True)]
    pattern = re.compile("|".join((*known, *SECRET_SHAPES)))

    def redact(text: str) -> str:
        return pattern.sub(HIDDEN, text)

    return redact


def build_live_redactor(read: Callable[[], BaseModel]) -> Redact:
    """Build a redactor of the secrets of the current settings, and of all settings before them."""
    seen, known, redact = read(), collect_secrets(read()), build_redactor(collect_secrets(read()))

    def redact_live(text: str) -> str:
        nonlocal seen, known, redact
        if (now := read()) is not seen:
            seen, known = now, known | collect_secrets(now)
            redact = build_redactor(known)
        return redact(text)

    return redact_live


def redact_value(value: Any, redact: Redact) -> Any:
    """Return a JSON value with all its texts redacted, keys included; other objects become text."""
    match value:
        case str():
            return redact(value)
        case bool() | int() | float() | None:
            return value
        case Mapping():
            return {redact(str(key)): redact_value(item, redact) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [redact_value(item, redact) for item in value]
        case _:
            return redact(repr(value))


def collect_secrets(settings: BaseModel) -> frozenset[str]:
    """Return every secret of the settings: secret values, options with a secret's name, passwords in addresses."""
    return frozenset(filter(None, _find_secrets(settings, named=False)))


def _secret_forms(secret: str) -> Iterator[str]:
    yield secret
    yield repr(secret)[1:-1]
    yield repr(secret.encode("utf-8", "replace"))[2:-1]
    for plain in (True, False):
        yield json.dumps(secret, ensure_ascii=plain)[1:-1]
    for quoted in (quote, quote_plus):
        yield quoted(secret, safe="", errors="replace")


def _find_secrets(value: Any, *, named: bool) -> Iterator[str]:
    match value:
        case SecretStr() | SecretBytes():
            secret = value.get_secret_value()
            yield secret if isinstance(secret, str) else secret.decode("utf-8", "replace")
        case BaseModel():
            for name, item in value:
                yield from _find_secrets(item, named=bool(_SECRET_NAME.search(name)))
        case Mapping():
            for name, item in value.items():
                yield from _find_secrets(item, named=named or bool(_SECRET_NAME.search(str(name))))
        case list() | tuple() | set() | frozenset():
            marked = any(isinstance(item, SecretStr) for item in value)  # its secret items are marked
            for item in value:
                yield from _find_secrets(item, named=named and not marked)
        case str():
            yield from (value,) if named else _find_passwords(value)


def _find_passwords(text: str) -> Iterator[str]:
    try:
        password = urlsplit(text).password if "://" in text else None
    except ValueError:
        password = None
    if password:
        yield from (password, unquote(password))


OWN_LOGGERS = ("bot", "pipeline", "ingest", "storage")
VERBOSE_LOGGERS = ("aiohttp", "apscheduler", "discord", "slack_bolt", "slack_sdk", "uvicorn")
"""Libraries that log useful details with --debug."""
SILENT_LOGGERS = ("chromadb", "httpcore", "httpx", "openai")
"""Libraries that log addresses, headers or bodies of their requests."""


@contextmanager
def configure_logging(stream: TextIO, *, level: str, redact: Redact, debug: bool = False) -> Iterator[None]:
    """Log to a stream within the block: our code from `level` on, libraries from warnings on.

    `redact` removes secrets from a text. `debug` logs everything of ours, and more of libraries.
    """
    handler = _LineHandler(stream)
    handler.setFormatter(_build_formatter(stream, redact))
    mine, theirs = (logging.DEBUG, logging.INFO) if debug else (logging.getLevelName(level.upper()), logging.WARNING)
    levels = {
        **dict.fromkeys(OWN_LOGGERS, mine),
        **dict.fromkeys(VERBOSE_LOGGERS, theirs),
        **dict.fromkeys(SILENT_LOGGERS, logging.WARNING),
    }
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


def set_own_level(level: str) -> None:
    """Log our own code from this level on: `debug`, `info`, `warning` or `error`."""
    for name in OWN_LOGGERS:
        logging.getLogger(name).setLevel(level.upper())


class _LineHandler(logging.StreamHandler[TextIO]):
    """Writes lines. Unlike the library's own handler, it never prints a message that cannot be formatted."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name is the library's
        try:
            self.stream.write(f"a log line of {record.name} cannot be written\n")
        except (OSError, ValueError):
            return


def _build_formatter(stream: TextIO, redact: Redact) -> logging.Formatter:
    seen = stream.isatty()

    def clean(text: str) -> str:
        return redact(sanitize_text(text)) if seen else redact(text)

    def without_secrets(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        cleaned: dict[str, Any] = redact_value(event, clean)
        return cleaned

    colours, plain = not os.environ.get("NO_COLOR"), structlog.dev.plain_traceback
    columns = structlog.dev.ConsoleRenderer(colors=colours, exception_formatter=plain)
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
            columns if seen else structlog.processors.JSONRenderer(ensure_ascii=False),
        ],
    )
