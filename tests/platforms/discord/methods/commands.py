"""The app's global commands: registered all at once, and listed."""

import re
from collections.abc import Iterator
from typing import Any

from tests.platforms.discord import limits
from tests.platforms.discord.calls import Answer, Call, Route
from tests.platforms.discord.refusing import invalid, refusal
from tests.platforms.discord.state import APP
from tests.platforms.shapes import BOOL, Check, anything, choice, fields, kind, nullable, several, string, words, wrong

_NAME = re.compile(r"[-_'\w]{1,32}")
_LOCALES = frozenset(
    {
        *("id", "da", "de", "en-GB", "en-US", "es-ES", "es-419", "fr", "hr", "it", "lt", "hu", "nl", "no", "pl"),
        *("pt-BR", "ro", "fi", "sv-SE", "vi", "tr", "cs", "el", "bg", "ru", "uk", "hi", "th", "zh-CN", "ja", "zh-TW"),
        "ko",
    }
)


def _lower(value: Any, where: str) -> Iterator[str]:
    if not isinstance(value, str) or not _NAME.fullmatch(value) or value != value.lower():
        yield wrong(where, "must be a name in lower case")


def _localized(check: Check) -> Check:
    def checking(value: Any, where: str) -> Iterator[str]:
        for locale, text in (value or {}).items():
            yield from choice(*_LOCALES)(locale, f"{where}/{locale}")
            yield from check(text, f"{where}/{locale}")

    return checking


_DESCRIBED: dict[str, Check] = {"description": words(100)}
_LOCAL: dict[str, Check] = {
    "name_localizations": _localized(_lower),
    "description_localizations": _localized(words(100)),
}
_CHOICE = fields({"name": words(100), "value": anything}, {"name_localizations": _localized(words(100))})
_OPTION: dict[str, Check] = {**_LOCAL, "required": BOOL, "choices": several(_CHOICE, 25)}
_OPTION |= {"min_length": kind(int, 0, 6_000), "max_length": kind(int, 1, 6_000)}


def _options(value: Any, where: str) -> Iterator[str]:
    """Check a command's options: of texts and switches."""
    shape = fields({"type": choice(3, 5), "name": _lower, **_DESCRIBED}, _OPTION)
    yield from several(shape, 25)(value, where)
    seen, optional = set[str](), False
    for number, one in enumerate(value if isinstance(value, list) else ()):
        if one.get("name") in seen:
            yield wrong(f"{where}/{number}", "option names must be unique")
        if one.get("required") and optional:
            yield wrong(f"{where}/{number}", "required options must come before others")
        optional |= not one.get("required")
        seen.add(one.get("name"))


_SHARED: dict[str, Check] = {
    "dm_permission": nullable(BOOL),
    "nsfw": BOOL,
    "default_member_permissions": nullable(anything),
    "integration_types": nullable(several(choice(0, 1), 2, 1)),
    "contexts": nullable(several(choice(0, 1, 2), 3, 1)),
}
_SLASH = fields(
    {"name": _lower, **_DESCRIBED}, {**_SHARED, **_LOCAL, "type": choice(1), "options": _options, "id": anything}
)
_MENU = fields(
    {"name": words(32), "type": choice(2, 3)},
    {
        **_SHARED,
        "name_localizations": _localized(words(32)),
        "description": string(0, 0),
        "options": several(anything, 0),
        "id": anything,
    },
)


def _command(value: Any, where: str) -> Iterator[str]:
    is_menu = isinstance(value, dict) and value.get("type", 1) != 1
    yield from (_MENU if is_menu else _SLASH)(value, where)


def _all(value: Any, where: str) -> Iterator[str]:
    yield from several(_command, sum(limits.COMMANDS.values()))(value, where)
    named = [(one.get("type", 1), one.get("name")) for one in value if isinstance(one, dict)]
    for number, one in enumerate(named):
        if one in named[:number]:
            yield wrong(f"{where}/{number}", "command names must be unique")
    for type_, most in limits.COMMANDS.items():
        if sum(one[0] == type_ for one in named) > most:
            yield wrong(where, f"no more than {most} commands of a type allowed")


def _ours(call: Call) -> None:
    if call["application"] != APP:
        raise refusal(20012)


def overwrite(discord: Any, call: Call) -> Answer:
    _ours(call)
    given = [] if call.body is None else call.body
    if objections := list(_all(given, "")):
        raise invalid(objections)
    before = {(command["type"], command["name"]): command["id"] for command in discord.state.commands}
    discord.state.commands = [_made(discord, one, before) for one in given]
    return Answer(discord.state.commands)


def _made(discord: Any, body: dict[str, Any], before: dict[tuple[int, str], str]) -> dict[str, Any]:
    type_ = body.get("type", 1)
    number = before.get((type_, body["name"])) or discord.state.snowflake()
    made = {"description": "", "options": [], "default_member_permissions": None, "dm_permission": True, "nsfw": False}
    made |= {"integration_types": [0], "contexts": None}
    return {**made, **body, "type": type_, "id": number, "application_id": APP, "version": discord.state.snowflake()}


def listed(discord: Any, call: Call) -> Answer:
    _ours(call)
    return Answer(discord.state.commands)


_HERE = "/applications/{application}/commands"
ROUTES = (
    Route("overwrite_commands", "PUT", _HERE, overwrite, 5, 20),
    Route("get_commands", "GET", _HERE, listed),
)
