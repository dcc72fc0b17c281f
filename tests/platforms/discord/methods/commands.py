"""The app's global commands: registered all at once, one by one, and listed."""

import re
from collections.abc import Iterator
from typing import Any

from tests.platforms.discord import limits
from tests.platforms.discord.calls import Answer, Call, Route
from tests.platforms.discord.refusing import Wrong, invalid, refusal
from tests.platforms.discord.shapes import (
    Check,
    Path,
    anything,
    boolean,
    choice,
    fields,
    integer,
    nullable,
    several,
    string,
)
from tests.platforms.discord.state import APP

_NAME = re.compile(r"[-_'\w]{1,32}")
_LOCALES = frozenset(
    {
        *("id", "da", "de", "en-GB", "en-US", "es-ES", "es-419", "fr", "hr", "it", "lt", "hu", "nl", "no", "pl"),
        *("pt-BR", "ro", "fi", "sv-SE", "vi", "tr", "cs", "el", "bg", "ru", "uk", "hi", "th", "zh-CN", "ja", "zh-TW"),
        "ko",
    }
)


def _lower(value: Any, path: Path) -> Iterator[Wrong]:
    if not isinstance(value, str) or not _NAME.fullmatch(value) or value != value.lower():
        yield Wrong(path, "APPLICATION_COMMAND_INVALID_NAME", "Command name is invalid")


def _localized(check: Check) -> Check:
    def checking(value: Any, path: Path) -> Iterator[Wrong]:
        for locale, text in (value or {}).items():
            yield from choice(*_LOCALES)(locale, (*path, locale))
            yield from check(text, (*path, locale))

    return checking


_DESCRIBED: dict[str, Check] = {"description": string(100, 1)}
_LOCAL: dict[str, Check] = {
    "name_localizations": _localized(_lower),
    "description_localizations": _localized(string(100, 1)),
}
_CHOICE = fields({"name": string(100, 1), "value": anything}, {"name_localizations": _localized(string(100, 1))})
_OPTION: dict[str, Check] = {**_LOCAL, "required": boolean, "choices": several(_CHOICE, 25)}
_OPTION |= {"min_length": integer(0, 6000), "max_length": integer(1, 6000)}


def _options(value: Any, path: Path) -> Iterator[Wrong]:
    """Check a command's options: of texts and switches."""
    shape = fields({"type": choice(3, 5), "name": _lower, **_DESCRIBED}, _OPTION)
    yield from several(shape, 25)(value, path)
    seen, optional = set[str](), False
    for number, one in enumerate(value if isinstance(value, list) else ()):
        if one.get("name") in seen:
            yield Wrong((*path, str(number)), "APPLICATION_COMMAND_OPTIONS_NAME_INVALID", "Option names must be unique")
        if one.get("required") and optional:
            yield Wrong(
                (*path, str(number)),
                "APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID",
                "Required options must be placed before non-required options",
            )
        optional |= not one.get("required")
        seen.add(one.get("name"))


_SHARED: dict[str, Check] = {
    "dm_permission": nullable(boolean),
    "nsfw": boolean,
    "default_member_permissions": nullable(anything),
    "integration_types": nullable(several(choice(0, 1), 2, 1)),
    "contexts": nullable(several(choice(0, 1, 2), 3, 1)),
}
_SLASH = fields(
    {"name": _lower, **_DESCRIBED}, {**_SHARED, **_LOCAL, "type": choice(1), "options": _options, "id": anything}
)
_MENU = fields(
    {"name": string(32, 1), "type": choice(2, 3)},
    {
        **_SHARED,
        "name_localizations": _localized(string(32, 1)),
        "description": string(0),
        "options": several(anything, 0),
        "id": anything,
    },
)


def _command(value: Any, path: Path) -> Iterator[Wrong]:
    kind = value.get("type", 1) if isinstance(value, dict) else 1
    yield from (_SLASH if kind == 1 else _MENU)(value, path)


def _all(value: Any, path: Path) -> Iterator[Wrong]:
    yield from several(_command, sum(limits.COMMANDS.values()))(value, path)
    named = [(one.get("type", 1), one.get("name")) for one in value if isinstance(one, dict)]
    for number, one in enumerate(named):
        if one in named[:number]:
            yield Wrong(
                (*path, str(number)), "APPLICATION_COMMANDS_DUPLICATE_NAME", "Application command names must be unique"
            )
    for kind, most in limits.COMMANDS.items():
        if sum(one[0] == kind for one in named) > most:
            yield Wrong(path, "MAX_COMMANDS", f"Maximum number of application commands reached ({most}).")


def _ours(call: Call) -> None:
    if call["application"] != APP:
        raise refusal(20012)


def overwrite(discord: Any, call: Call) -> Answer:
    _ours(call)
    given = [] if call.body is None else call.body
    if wrongs := list(_all(given, ())):
        raise invalid(wrongs)
    before = {(command["type"], command["name"]): command["id"] for command in discord.state.commands}
    discord.state.commands = [_made(discord, one, before) for one in given]
    return Answer(discord.state.commands)


def _made(discord: Any, body: dict[str, Any], before: dict[tuple[int, str], str]) -> dict[str, Any]:
    kind = body.get("type", 1)
    number = before.get((kind, body["name"])) or discord.state.snowflake()
    made = {"description": "", "options": [], "default_member_permissions": None, "dm_permission": True, "nsfw": False}
    made |= {"integration_types": [0], "contexts": None}
    return {**made, **body, "type": kind, "id": number, "application_id": APP, "version": discord.state.snowflake()}


def listed(discord: Any, call: Call) -> Answer:
    _ours(call)
    return Answer(discord.state.commands)


_HERE = "/applications/{application}/commands"
ROUTES = (
    Route("overwrite_commands", "PUT", _HERE, overwrite, 5, 20),
    Route("get_commands", "GET", _HERE, listed),
)
