"""Change single values in the text of a TOML file, and leave the rest unchanged. Pure."""

import json
import tomllib
from collections.abc import Mapping
from typing import Any

from bot.settings.errors import SettingsError
from bot.settings.settings_errors import format_key
from bot.settings.settings_lines import Key, format_toml, index_lines

_OLD_NAMES = {"visible_to": "readers"}


def set_value(text: str, key: Key, value: Any, comment: str = "") -> str:
    """Return the text with a value set. An existing line is changed; otherwise a line is added to the key's table.

    A missing table is added, too. Raises `SettingsError` if that is impossible, as for a table written in one line.
    """
    lines = text.rstrip("\n").split("\n")
    index = index_lines(text)
    line = f"{key[-1]} = {format_toml(value)}"
    place = index.get(key) or index.get((*key[:-1], _OLD_NAMES.get(str(key[-1]), "")))
    note = [f"# {comment}"] if comment else []
    if place:
        lines[place.start : place.stop] = [line]
    elif key[:-1] in index:
        at = index[key[:-1]].stop
        lines[at:at] = [line]
    elif len(key) == 1:
        tables = [where.start for where in index.values() if lines[where.start].lstrip().startswith("[")]
        at = _above_comments(lines, min(tables)) if tables else len(lines)
        lines[at:at] = [*note, line, ""] if tables else ["", *note, line]
    else:
        lines += ["", *note, f"[{'.'.join(map(str, key[:-1]))}]", line]
    changed = "\n".join(lines).strip("\n") + "\n"
    if _read(changed, key) != json.loads(json.dumps(value)):
        hint = f"Write this line yourself: {line}"
        raise SettingsError(f"{format_key(key)} cannot be changed automatically in this file.", hint=hint)
    return changed


def add_entry(text: str, table: str, values: Mapping[str, Any], comment: str = "") -> str:
    """Return the text with an entry of the array of tables `table` appended."""
    note = [f"# {comment}"] if comment else []
    block = [*note, f"[[{table}]]", *(f"{key} = {format_toml(value)}" for key, value in values.items())]
    return "\n".join([*text.rstrip("\n").split("\n"), *([""] if text.strip() else []), *block]) + "\n"


def _above_comments(lines: list[str], at: int) -> int:
    """Return the number of the first comment line directly above a line."""
    while at and lines[at - 1].lstrip().startswith("#"):
        at -= 1
    return at


def _read(text: str, key: Key) -> Any:
    try:
        value: Any = tomllib.loads(text)
        for part in key:
            value = value[part]
    except (tomllib.TOMLDecodeError, LookupError, TypeError):
        return None
    return value
