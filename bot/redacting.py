"""Takes secrets out of text before it is written: those that are configured, and what is shaped like one. Pure.

A configured secret is found as it is and as text carries it: escaped in JSON or by `repr`, quoted in an address.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, quote_plus, unquote, urlsplit

from pydantic import BaseModel, SecretBytes, SecretStr

Redact = Callable[[str], str]

HIDDEN = "***"
SHORTEST = 4
"""Characters of a value that can be a secret: to hide shorter ones would hide words."""
SHAPES = (
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
_NAMED = re.compile(r"key|token|secret|password", re.IGNORECASE)


def redactor(secrets: Iterable[str]) -> Redact:
    """Return a function that hides these secrets, and all that is shaped like one, in a text."""
    forms = {form for secret in secrets if len(secret) >= SHORTEST for form in _forms(secret)}
    # The longest first, so that of a secret that begins another no rest stays.
    known = [re.escape(form) for form in sorted(forms, key=len, reverse=True)]
    pattern = re.compile("|".join((*known, *SHAPES)))

    def redact(text: str) -> str:
        return pattern.sub(HIDDEN, text)

    return redact


def redacted(value: Any, redact: Redact) -> Any:
    """Return a value as JSON can hold it with all its texts redacted, the names of its fields as well."""
    match value:
        case str():
            return redact(value)
        case bool() | int() | float() | None:
            return value
        case Mapping():
            return {redact(str(key)): redacted(item, redact) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [redacted(item, redact) for item in value]
        case _:
            return redact(repr(value))


def secrets_in(settings: BaseModel) -> frozenset[str]:
    """Return every secret that settings hold: secret values, options named like one, passwords in addresses."""
    return frozenset(filter(None, _secrets(settings, named=False)))


def _forms(secret: str) -> Iterator[str]:
    yield secret
    yield repr(secret)[1:-1]
    yield repr(secret.encode("utf-8", "replace"))[2:-1]
    for plain in (True, False):
        yield json.dumps(secret, ensure_ascii=plain)[1:-1]
    for quoted in (quote, quote_plus):
        yield quoted(secret, safe="", errors="replace")


def _secrets(value: Any, *, named: bool) -> Iterator[str]:
    match value:
        case SecretStr() | SecretBytes():
            secret = value.get_secret_value()
            yield secret if isinstance(secret, str) else secret.decode("utf-8", "replace")
        case BaseModel():
            for name, item in value:
                yield from _secrets(item, named=bool(_NAMED.search(name)))
        case Mapping():
            for name, item in value.items():
                yield from _secrets(item, named=named or bool(_NAMED.search(str(name))))
        case list() | tuple() | set() | frozenset():
            for item in value:
                yield from _secrets(item, named=named)
        case str():
            yield from (value,) if named else _passwords(value)


def _passwords(text: str) -> Iterator[str]:
    try:
        password = urlsplit(text).password if "://" in text else None
    except ValueError:
        password = None
    if password:
        yield from (password, unquote(password))
