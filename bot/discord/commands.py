"""The commands and context menus that Discord shows for us, as data, and whether Discord has them as they are; pure.

Who may use `/footnote` and take back answers is for Discord to decide: by its usual permissions, which a server's
admins change for each command.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from bot.desk.channel_settings import CHANNEL_KEYS
from bot.discord.invoking import ASK, ASK_ABOUT, CHECK, CONFIGURE, FACT_CHECK, PRIVACY, SOURCES, TAKE_BACK
from bot.discord.needs import MANAGE_MESSAGES, MANAGE_SERVER
from bot.views.catalog import list_languages, translate

Json = dict[str, Any]

_LONGEST = 2_000
_LOCALES: Mapping[str, tuple[str, ...]] = {"es": ("es-ES", "es-419"), "pt": ("pt-BR",), "zh": ("zh-CN", "zh-TW")}
"""Discord's names of languages, where they are not ours."""
_UNKNOWN = frozenset({"ar"})
"""Languages that Discord's client does not have."""
_CHAT, _MESSAGE, _TEXT, _SWITCH = 1, 3, 3, 5
_GUILDS, _DMS, _ELSEWHERE = 0, 1, 2
_HERE, _THEIRS = 0, 1
_COMPARED = ("name", "type", "description", "description_localizations", "default_member_permissions", "options")


def definitions(*, user_install: bool) -> list[Json]:
    """Return all that is to be shown; with `user_install` for people everywhere who installed the app themselves."""
    private = _option("private", "discord_option_private", kind=_SWITCH, required=False)
    asking = _option("question", "discord_option_question", most=_LONGEST)
    statement = _option("statement", "discord_option_statement", most=_LONGEST)
    keys = [{"name": key, "value": key} for key in CHANNEL_KEYS]
    setting = {**_option("setting", "discord_option_setting", required=False), "choices": keys}
    value = _option("value", "discord_option_value", required=False, most=200)
    anywhere = [
        _command(ASK, "discord_ask", [asking, private]),
        _command(CHECK, "discord_check", [statement, private]),
        _command(SOURCES, "discord_sources", []),
        _command(PRIVACY, "discord_privacy_command", []),
        _menu(FACT_CHECK),
        _menu(ASK_ABOUT),
    ]
    ruling = [
        _command(CONFIGURE, "discord_footnote", [setting, value]) | _for(MANAGE_SERVER),
        _menu(TAKE_BACK) | _for(MANAGE_MESSAGES),
    ]
    types, contexts = [_HERE], [_GUILDS, _DMS]
    if user_install:
        types, contexts = [_HERE, _THEIRS], [_GUILDS, _DMS, _ELSEWHERE]
    usual = [{**one, "integration_types": types, "contexts": contexts} for one in anywhere]
    return [*usual, *({**one, "integration_types": [_HERE], "contexts": [_GUILDS]} for one in ruling)]


def same(ours: Iterable[Mapping[str, Any]], theirs: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether Discord has what we define: then it is not told again, which it lets nobody do often."""
    return sorted(map(_essence, ours)) == sorted(map(_essence, theirs))


def _essence(command: Mapping[str, Any]) -> str:
    facts = {name: _plain(command.get(name)) for name in _COMPARED}
    lists = {name: sorted(command.get(name) or [0]) for name in ("integration_types", "contexts")}
    return repr({**facts, **lists})


def _plain(value: Any) -> Any:
    """Return a value without what Discord adds or leaves out: what is empty, false, or by default so."""
    if isinstance(value, Mapping):
        return sorted((key, _plain(one)) for key, one in value.items() if one not in (None, False, "", [], {}))
    if value in (None, False, "", [], {}):
        return ""
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else str(value)


def _command(name: str, occasion: str, options: list[Json]) -> Json:
    return {"name": name, "type": _CHAT, **_described(occasion), "options": options}


def _menu(name: str) -> Json:
    return {"name": name, "type": _MESSAGE}


def _for(permission: int) -> Json:
    return {"default_member_permissions": str(permission)}


def _option(name: str, occasion: str, *, kind: int = _TEXT, required: bool = True, most: int = 0) -> Json:
    made: Json = {"name": name, "type": kind, **_described(occasion), "required": required}
    return {**made, "max_length": most} if most else made


def _described(occasion: str) -> Json:
    told = {
        place: translate(occasion, one)
        for one in list_languages()
        if one not in {"en", *_UNKNOWN}
        for place in _named(one)
    }
    return {"description": translate(occasion, "en"), "description_localizations": told}


def _named(language: str) -> tuple[str, ...]:
    return _LOCALES.get(language, (language,))
