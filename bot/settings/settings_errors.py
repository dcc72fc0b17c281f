"""Explain each error of the settings in one plain line: its key, its place, and the valid values."""

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from bot.settings.errors import SettingsError
from bot.settings.platform_registry import PlatformEntry, PlatformSettings, load_platforms
from bot.settings.secret_shapes import find_misplaced_secret
from bot.settings.settings_lines import Key, find_line
from bot.settings.tables.model_values import PriceValues, StageValues
from bot.settings.tables.settings_tables import Settings
from bot.settings.tables.source_registry import SOURCE_ENTRIES

ENV_PREFIX = "FOOTNOTE_"
_SHOULD_BE = "Input should be "

_TOML_WORDS = {
    "path_type": "a path",
    "tuple_type": "a list",
    "model_type": "a table",
    "mapping_type": "a table",
    "dict_type": "a table",
}
"""TOML's words for Python's types in pydantic's messages."""
_NAMED_TABLES: Mapping[Key, type[BaseModel]] = {("model", "stages"): StageValues, ("model", "prices"): PriceValues}
"""Tables of tables that the operator names."""
_DEPTH = 3  # parts of a key above the keys of such a table
_SECRET_KEYS = frozenset(
    {
        *("api_key", "azure_ad_token", "database", "token", "tokens", "model"),
        *(key for entry in load_platforms().values() for key in (entry.name, *entry.settings.SECRETS)),
    }
)
"""Keys whose values are never shown; also tables, as a secret may be written in place of one."""


@dataclass(frozen=True, slots=True)
class SettingsOrigin:
    """The file and the environment that settings were read from."""

    path: Path
    text: str
    environment: Mapping[str, str]

    def where(self, key: Key) -> str:
        """Return where a value is set: the environment variable, or else the file and the line."""
        variable = next((name for name in self.environment if _sets(name, key)), "")
        line = find_line(self.text, key)
        return variable or (f"{self.path}, line {line}" if line else str(self.path))


def explain_validation_errors(faults: Sequence[ErrorDetails], surroundings: SettingsOrigin) -> Sequence[SettingsError]:
    """Explain pydantic's errors in file order, one for each key. A misspelt key is not also reported as missing."""
    first_faults = dict[Key, tuple[ErrorDetails, Sequence[str]]]()
    for fault in sorted(faults, key=lambda fault: fault["type"] != "extra_forbidden"):
        key, siblings = _locate(fault)
        first_faults.setdefault(_strip_branches(key), (fault, siblings))
    meant = {
        (*key[:-1], (_find_key(key, siblings) or "").split(".")[-1])
        for key, (fault, siblings) in first_faults.items()
        if fault["type"] == "extra_forbidden"
    }
    order = sorted(first_faults.items(), key=lambda item: find_line(surroundings.text, item[0]) or 0)
    return [
        _explain_fault(key, fault, siblings, surroundings)
        for key, (fault, siblings) in order
        if fault["type"] != "missing" or key not in meant
    ]


def _explain_fault(key: Key, fault: ErrorDetails, siblings: Sequence[str], origin: SettingsOrigin) -> SettingsError:
    if fault["type"] == "extra_forbidden":
        return explain_unknown_key(key, where=origin.where(key), siblings=siblings)
    missing = fault["type"] in {"missing", "union_tag_not_found"}
    hint = "Add it." if missing else _suggest_tag(fault) or "Correct it, or remove it to get the default."
    return SettingsError(f"{origin.where(key)}: {format_key(key)} {describe_fault(fault)}.", hint=hint)


def _suggest_tag(fault: ErrorDetails) -> str:
    """Return “Did you mean …?” for a misspelt type of a source; empty if no type is similar."""
    context = fault.get("ctx", {})
    known = context["expected_tags"].replace("'", "").split(", ") if fault["type"] == "union_tag_invalid" else ()
    nearest = _find_nearest(context["tag"], known) if known else ""
    return nearest and f'Did you mean "{nearest}"?'


def _strip_branches(key: Key) -> Key:
    """Return a key without the name that pydantic appends for a branch of a union, such as `literal['']`."""
    return key[:-1] if isinstance(key[-1], str) and "[" in key[-1] else key


def find_serving_faults(settings: Settings) -> tuple[SettingsError, ...]:
    """Explain why configured platforms and the pages cannot be served."""
    exposed = find_exposure(settings) if settings.pages.enabled else None
    return (*find_platform_faults(settings), *filter(None, [exposed]))


def find_exposure(settings: Settings) -> SettingsError | None:
    """Explain why the pages may not be served with these settings; None if they may."""
    if not (fault := settings.pages.fault):
        return None
    return SettingsError(f"{fault}.", hint="Give tokens or a proxy_header with proxies, or remove host and hosts.")


def find_platform_faults(
    settings: Settings, platforms: Iterable[PlatformEntry] | None = None
) -> tuple[SettingsError, ...]:
    """Explain which secrets these platforms lack, and which hold the wrong secret; None means all platforms."""
    return tuple(
        fault
        for entry in (load_platforms().values() if platforms is None else platforms)
        for fault in (*_find_misplaced(entry, entry.read(settings)), *_find_missing(entry, entry.read(settings)))
    )


def find_misplaced_secrets(settings: Settings) -> tuple[SettingsError, ...]:
    """Explain which secrets of platforms hold the wrong secret."""
    return tuple(error for entry in load_platforms().values() for error in _find_misplaced(entry, entry.read(settings)))


def _find_missing(entry: PlatformEntry, table: PlatformSettings) -> Iterator[SettingsError]:
    if missing := table.missing:
        verb = "is" if len(missing) == 1 else "are"
        message = f"{entry.title}{table.form} needs {' and '.join(missing)}, which {verb} not set."
        hint = f"Set it, name a file with it in a variable ending in _FILE, or remove {entry.title}'s other secrets."
        yield SettingsError(message, hint=hint)


def _find_misplaced(entry: PlatformEntry, table: PlatformSettings) -> Iterator[SettingsError]:
    for key, variable in entry.settings.SECRETS.items():
        value = getattr(table, key).get_secret_value()
        if fault := find_misplaced_secret(load_platforms().values(), entry, key, value):
            yield SettingsError(f"{variable} holds {fault.found}.", hint=fault.hint)


def explain_unknown_key(key: Key, *, where: str, siblings: Sequence[str] = ()) -> SettingsError:
    """Explain that a key is unknown, and suggest the most similar key, among `siblings` if they are given."""
    nearest, among = _find_key(key, siblings), _list_siblings(key, siblings)
    hint = f"Did you mean `{nearest}`?" if nearest else f"There are: {', '.join(among or list_keys())}."
    return SettingsError(f"{where}: there is no setting `{format_key(key)}`.", hint=hint)


def _find_key(key: Key, siblings: Sequence[str]) -> str:
    """Return the key that is most similar to a misspelt one, among `siblings` if they are given."""
    name, known = str(key[-1]), siblings or list(list_keys())
    elsewhere = next((dotted for dotted in known if dotted.split(".")[-1] == name), "")
    return elsewhere or _find_nearest(name, _list_siblings(key, siblings)) or _find_nearest(name, known)


def _list_siblings(key: Key, siblings: Sequence[str]) -> Sequence[str]:
    names = [part for part in key if isinstance(part, str)]
    return siblings or [name for name in list_keys() if name.split(".")[:-1] == names[:-1]]


def list_keys(model: type[BaseModel] = Settings, above: str = "") -> Iterator[str]:
    """List all keys that can be set, as dotted names."""
    for name, field in model.model_fields.items():
        yield above + name
        for inner in _find_models(field.annotation):
            yield from list_keys(inner, f"{above}{name}.")


def format_key(key: Key) -> str:
    """Format a key: `corpus[2].name`, counted from 1."""
    parts = [f"[{part + 1}]" if isinstance(part, int) else f".{part}" for part in key]
    return "".join(parts).removeprefix(".")


def _locate(fault: ErrorDetails) -> tuple[Key, Sequence[str]]:
    """Return an error's key as the user wrote it, and the keys that are valid next to it.

    The latter are empty unless they depend on other settings, such as the type of a source.
    """
    table = next((table for table in _NAMED_TABLES if fault["loc"][:2] == table and len(fault["loc"]) > _DEPTH), ())
    if table:
        above = ".".join(map(str, fault["loc"][:-1]))
        return fault["loc"], list(list_keys(_NAMED_TABLES[table], f"{above}."))
    return _locate_in_source(fault)


def _locate_in_source(fault: ErrorDetails) -> tuple[Key, Sequence[str]]:
    """Return an error's key as the user wrote it. In a source of a known type, also return the type's valid keys.

    Pydantic inserts the type of a source into the key, and reports a wrong type at the source.
    """
    key: Key = fault["loc"]
    if fault["type"] in {"union_tag_invalid", "union_tag_not_found"}:
        return (*key, "type"), ()
    at = key.index("source") + 1 if "source" in key else len(key)
    entry = SOURCE_ENTRIES.get(str(key[at])) if at < len(key) else None
    return (key[:at] + key[at + 1 :], list(list_keys(entry.settings, "corpus.source."))) if entry else (key, ())


def _find_nearest(name: str, known: Sequence[str]) -> str:
    by_last = {dotted.split(".")[-1]: dotted for dotted in reversed(known)}
    return next((by_last[match] for match in get_close_matches(name.lower(), by_last, n=1, cutoff=0.6)), "")


def _find_models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _find_models(argument)


def _sets(variable: str, key: Key) -> bool:
    names = [str(part) for part in key]
    parts = variable.upper().removeprefix(ENV_PREFIX).lower().removesuffix("_file").split("__")
    return variable.upper().startswith(ENV_PREFIX) and parts == names[: len(parts)]


def describe_fault(fault: ErrorDetails) -> str:
    """Turn pydantic's message into the end of a sentence that begins with the key."""
    kind, context = fault["type"], fault.get("ctx", {})
    if kind in {"missing", "union_tag_not_found"}:
        return "is missing"
    if kind == "value_error":
        return str(context["error"])
    if kind == "union_tag_invalid":
        expected = context["expected_tags"].replace(", ", " or ")
    elif kind in _TOML_WORDS or fault["msg"].startswith(_SHOULD_BE):
        expected = _TOML_WORDS.get(kind) or fault["msg"].removeprefix(_SHOULD_BE).split(", unable")[0]
    else:
        return f"is wrong: {fault['msg']}"
    shown = context["tag"] if kind == "union_tag_invalid" else fault["input"]
    return f"must be {expected}" + ("" if fault["loc"][-1] in _SECRET_KEYS else f", not {_format_value(shown)}")


def _format_value(value: Any) -> str:
    text = f'"{value}"' if isinstance(value, str) else repr(value)
    return textwrap.shorten(text, 60, placeholder="…")


def explain_write_error(error: OSError, path: Path) -> SettingsError:
    """Explain that a settings file cannot be written, and how to write elsewhere."""
    hint = "Run it in a folder of your own, or name another file: `footnote --config FILE …`."
    return SettingsError(f"{path} cannot be written: {error.strerror or error}.", hint=hint)
