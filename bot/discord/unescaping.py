"""What people write in Discord as plain text: the other way round than `escaping`; pure.

Discord hands messages over with references by id: `<@1>`, `<#2>`, `<@&3>`, `<:wave:4>`, `<t:1700000000:R>`, `</ask:5>`.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime

from storage.language.lazy_pattern import lazy_compile

_PERSON = lazy_compile(r"<@!?(\d{1,20})>")
_CHANNEL = lazy_compile(r"<#(\d{1,20})>")
_ROLE = lazy_compile(r"<@&(\d{1,20})>")
_EMOJI = lazy_compile(r"<a?(:\w{1,64}:)\d{1,20}>")
_COMMAND = lazy_compile(r"<(/[^<>:]{1,100}):\d{1,20}>")
_GUIDE = lazy_compile(r"<id:(\w{1,32})(?::\d{1,20})?>")
_TIME = lazy_compile(r"<t:(-?\d{1,12})(?::([tTdDfFRsS]))?>")
_ADDRESS = lazy_compile(r"<(https?://[^<>\s]+)>")
_FORMATS: Mapping[str, str] = {"t": "%H:%M", "T": "%H:%M:%S", "d": "%Y-%m-%d", "D": "%Y-%m-%d"}
_FULL = "%Y-%m-%d %H:%M"


def plain(text: str, names: Mapping[str, str]) -> str:
    """Return a message as its reader sees it, formatting characters included.

    Args:
        text: As Discord has it.
        names: Of people, roles and channels by their ids, as far as they are known.
    """
    text = _PERSON.sub(lambda found: f"@{names.get(found[1], 'somebody')}", text)
    text = _CHANNEL.sub(lambda found: f"#{names.get(found[1], 'channel')}", text)
    text = _ROLE.sub(lambda found: f"@{names.get(found[1], 'role')}", text)
    text = _COMMAND.sub(r"\1", _EMOJI.sub(r"\1", text))
    return _ADDRESS.sub(r"\1", _TIME.sub(_time, _GUIDE.sub(r"#\1", text)))


def _time(found: re.Match[str]) -> str:
    try:
        at = datetime.fromtimestamp(int(found[1]), UTC)
    except (OverflowError, OSError, ValueError):
        return found[1]
    return at.strftime(_FORMATS.get(found[2] or "f", _FULL))
