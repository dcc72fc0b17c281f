"""Calls of methods: their tokens, arguments and refusals."""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any


class Refusal(Exception):
    """A response with `ok: false`. `str()` is its error."""

    def __init__(self, error: str, *messages: str, **more: Any) -> None:
        super().__init__(error)
        self.more = more | ({"response_metadata": {"messages": list(messages)}} if messages else {})

    def body(self) -> dict[str, Any]:
        return {"ok": False, "error": str(self), **self.more}


@dataclass
class Token:
    """A caller's token."""

    secret: str
    kind: str
    """bot or app."""
    scopes: set[str]
    error: str = ""
    """The error of every call with it, once it is revoked."""


@dataclass(frozen=True)
class Call:
    """A received call."""

    method: str
    arguments: Mapping[str, Any]
    token: Token

    def __getitem__(self, name: str) -> Any:
        return self.arguments[name]

    def get(self, name: str, default: Any = None) -> Any:
        return self.arguments.get(name, default)

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Return a boolean, which forms spell in several ways."""
        value = self.arguments.get(name, default)
        if isinstance(value, str):
            if value.lower() not in {"true", "false", "1", "0"}:
                raise Refusal("invalid_arguments", f"[ERROR] must be a boolean [json-pointer:/{name}]")
            return value.lower() in {"true", "1"}
        return bool(value)

    def parsed(self, name: str, error: str) -> Any:
        """Return an argument that is JSON, which some callers send as a string."""
        value = self.arguments.get(name)
        if isinstance(value, str):
            try:
                return json.loads(value)
            except ValueError:
                raise Refusal(error) from None
        return value


@dataclass(frozen=True)
class Method:
    """A method of the Web API."""

    do: Callable[[Any, Call], Awaitable[dict[str, Any]] | dict[str, Any]]
    """Receives the server and the call; returns the body without `ok`. Raises `Refusal`."""
    required: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()
    scopes: frozenset[str] = frozenset()
    """One of them is enough; empty if none is needed."""
    token: str = "bot"


def method(do: Any, required: str = "", optional: str = "", *, scopes: str = "", token: str = "bot") -> Method:
    sets = (frozenset(names.split()) for names in (required, optional, scopes))
    return Method(do, *sets, token=token)


_EVERYWHERE = {"team_id"}
"""Arguments that slack_bolt sends with every call."""


def check(call: Call, how: Method) -> None:
    """Refuse unknown and missing arguments, and a token without the scope. Raises `Refusal`."""
    unknown = sorted(set(call.arguments) - how.required - how.optional - _EVERYWHERE)
    if unknown:
        raise Refusal("invalid_arguments", *(f"[ERROR] unknown argument: {name}" for name in unknown))
    given = {name for name, value in call.arguments.items() if value is not None and (value != "" or name == "status")}
    missing = sorted(how.required - given)
    if missing:
        raise Refusal("invalid_arguments", *(f"[ERROR] missing required field: {name}" for name in missing))
    need(call.token, how.scopes)


def need(token: Token, scopes: frozenset[str] | set[str]) -> None:
    """Refuse a token that has none of these scopes, if any is needed."""
    if scopes and not scopes & token.scopes:
        raise Refusal("missing_scope", needed=",".join(sorted(scopes)), provided=",".join(sorted(token.scopes)))
