"""Read the settings: the environment overrides `footnote.toml`, which overrides the defaults.

`footnote.env` next to the settings file holds variables: `footnote setup` puts secrets there.
"""

import os
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from dotenv import dotenv_values
from pydantic import ValidationError
from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict
from pydantic_settings import SettingsError as UnreadableVariable

from bot.settings.errors import SettingsError, join_errors
from bot.settings.platform_registry import load_platforms
from bot.settings.settings_errors import (
    ENV_PREFIX,
    SettingsOrigin,
    explain_unknown_key,
    explain_validation_errors,
    format_key,
)
from bot.settings.tables.field_types import SettingsTable, expand_home, is_path_type
from bot.settings.tables.record_settings import KEY_NAME, RecordSettings
from bot.settings.tables.settings_tables import FILE_NAME, Settings
from bot.settings.tables.source_registry import SOURCE_ENTRIES
from storage.language.lazy_pattern import lazy_compile

OTHER_VARIABLES = frozenset({"config", "debug", "data"})
"""Names of variables without their prefix that are not settings: the command line and the tests read them."""
FILE_SUFFIX = "_file"  # the end of variables that name a file with the value
OWNERS_SECRETS = (
    *("OPENAI_API_KEY", "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN"),
    *(variable for entry in load_platforms().values() for variable in entry.settings.SECRETS.values()),
)
"""Variables of OpenAI's own client and of the platforms; each may also name a file, like `OPENAI_API_KEY_FILE`."""
ORCHESTRATOR_VARIABLE = lazy_compile(r"service_|port($|_)")
"""Kubernetes sets such variables for a service called `footnote`."""


VARIABLES_NAME = "footnote.env"
_OTHER_USERS = stat.S_IRWXG | stat.S_IRWXO


def locate_variables(config: Path | None) -> Path:
    return (config.parent if config else Path()) / VARIABLES_NAME


def read_variables(path: Path) -> Mapping[str, str]:
    """Return the variables in a file; empty if the file does not exist. Raises `SettingsError` if it cannot be read."""
    if not path.exists():
        return {}
    try:
        return {name: value for name, value in dotenv_values(path, interpolate=False).items() if value}
    except (OSError, UnicodeDecodeError) as error:
        hint = "Make it readable by the user running Footnote."
        raise SettingsError(f"{path} cannot be read: {_explain_unreadable(error)}.", hint=hint) from error


def adopt_variables(config: Path | None, environment: MutableMapping[str, str]) -> None:
    """Set the variables of `footnote.env` that the environment does not set. Raises as `read_variables` does."""
    for name, value in read_variables(locate_variables(config)).items():
        if not environment.get(name):
            environment[name] = value


def is_exposed(path: Path) -> bool:
    """Return whether other users of this machine may open the file."""
    return path.exists() and bool(path.stat().st_mode & _OTHER_USERS)


def _explain_unreadable(error: OSError | UnicodeDecodeError) -> str:
    return getattr(error, "strerror", "") or "it is not UTF-8 text"


class _EnvironmentSettings(Settings, BaseSettings):
    """Settings that read the environment when constructed. Their arguments are the values of the settings file."""

    model_config = SettingsConfigDict(env_prefix=ENV_PREFIX, env_nested_delimiter="__", env_ignore_empty=True)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - the signature is pydantic's
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the signature is pydantic's
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the signature is pydantic's
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Prefer the environment to the file; leave out variables that name files, which `_read_secret_files` reads."""
        if isinstance(env_settings, EnvSettingsSource):
            variables = env_settings.env_vars.items()
            env_settings.env_vars = {name: value for name, value in variables if not name.lower().endswith(FILE_SUFFIX)}
        return env_settings, init_settings


def load_settings(config: Path | None = None, *, must_exist: bool = True) -> Settings:
    """Read `config`, else `footnote.toml` of the working directory if it exists, and the environment.

    Raises `SettingsError`: the named file is missing or is not TOML, or a key is unknown or has a wrong value. It
    reports all errors at once.
    """
    path = config or FILE_NAME
    return _build_settings(path, _read_text(path, must_exist=must_exist and config is not None))


class SettingsFile:
    """The settings file of a server, for reloading. If the file is deleted, that is an error: defaults are not used."""

    def __init__(self, config: Path | None) -> None:
        self._path = config or FILE_NAME
        self._named = config is not None
        self._held = False
        with suppress(SettingsError):
            self._held = self._holds(_read_text(self._path, must_exist=False))

    def read(self) -> Settings:
        """Read the current text. Raises `SettingsError`, also if the file is deleted or emptied."""
        text = _read_text(self._path, must_exist=self._named and not self._held)
        holds = self._holds(text)
        if self._held and not holds:
            what = "has no settings any more" if self._path.exists() else "was deleted"
            raise SettingsError(f"{self._path} {what}.", hint="Put it back; to run without it, restart the server.")
        settings = _build_settings(self._path, text)
        self._held = holds
        return settings

    def _holds(self, text: str) -> bool:
        return _holds_key(_parse_toml(self._path, text))


def _build_settings(path: Path, text: str) -> Settings:
    surroundings = SettingsOrigin(path, text, os.environ)
    faults = list(_find_unknown_variables(os.environ))
    held, owners = _read_secret_files(os.environ, faults), _read_owners_secrets(os.environ, faults)
    try:
        values = {"home": str(path.parent / ".footnote"), **_anchor_paths(_parse_toml(path, text), path.parent)}
        settings = Settings(**dict(_EnvironmentSettings(**_merge(values, held))))
        if faults:
            raise join_errors(faults)
        completed = {
            "model": settings.model.completed(owners),
            **{name: entry.read(settings).completed(owners) for name, entry in load_platforms().items()},
        }
        return settings.model_copy(update=completed)
    except ValidationError as error:
        raise join_errors([*explain_validation_errors(error.errors(), surroundings), *faults]) from error
    except UnreadableVariable as error:
        field = re.search(r'field "(\w+)"', str(error))
        name = ENV_PREFIX + field[1].upper() if field else "A variable"
        raise SettingsError(f"{name} is not valid JSON.", hint="Lists and tables are written as JSON.") from error


def load_platform_tables(config: Path | None = None) -> Settings:
    """Return the settings of the platforms alone, even if others are wrong. Invalid tables get their defaults."""
    path, values, faults = config or FILE_NAME, dict[str, Any](), list[SettingsError]()
    with suppress(SettingsError):
        values = _parse_toml(path, _read_text(path, must_exist=False))
    values, owners = _merge(values, _read_secret_files(os.environ, faults)), _read_owners_secrets(os.environ, faults)
    default = Settings()
    tables = {name: getattr(default, name) for name in load_platforms()}
    for name in tables:
        with suppress(ValidationError, UnreadableVariable):
            tables[name] = getattr(_EnvironmentSettings(**{key: values[key] for key in {name} & values.keys()}), name)
    return default.model_copy(update={name: table.completed(owners) for name, table in tables.items()})


def find_home(config: Path | None = None) -> Path:
    """Return the home that settings name, even if other settings are wrong."""
    path = config or FILE_NAME
    with suppress(SettingsError):
        return load_settings(config).home
    values: dict[str, Any] = {}
    with suppress(SettingsError):
        values = _anchor_paths(_parse_toml(path, _read_text(path, must_exist=False)), path.parent)
    named = os.environ.get(f"{ENV_PREFIX}HOME") or values.get("home")
    return (expand_home(Path(named)) if isinstance(named, str) else path.parent / ".footnote").absolute()


def list_old_keys(path: Path) -> list[str]:
    """List the outdated keys of a settings file: those of a corpus's `readers`, which is `visible_to` now."""
    corpora = _parse_toml(path, _read_text(path, must_exist=False)).get("corpus", ())
    return [format_key(("corpus", place, "readers")) for place, corpus in enumerate(corpora) if "readers" in corpus]


def _read_text(path: Path, *, must_exist: bool) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        if not must_exist:
            return ""
        raise SettingsError(f"There is no settings file {path}.", hint="`footnote init` writes one.") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path} is not UTF-8 text.", hint="Save it as UTF-8.") from error
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}.", hint="Name another file.") from error


_TOML_HINTS = {
    "Invalid value": 'Put text in quotes: name = "value".',
    "Expected '='": 'Each line is a key and its value: name = "value"; a comment begins with #.',
    "Cannot overwrite": "That key or table is given twice: keep one of them.",
    "Cannot declare": "That key or table is given twice: keep one of them.",
    "Unclosed": "Close the bracket.",
    "Illegal character": "Close the quotes in that line.",
    "Unescaped": "Write \\ twice between double quotes, or once between single quotes.",
}


def _parse_toml(path: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        hint = next((hint for start, hint in _TOML_HINTS.items() if start in str(error)), "Put text in quotes.")
        raise SettingsError(f"{path} is not valid TOML: {error}.", hint=f"Correct that line. {hint}") from error


def _holds_key(value: Any) -> bool:
    """Return whether a table or a table within it sets any value."""
    return any(map(_holds_key, value.values())) if isinstance(value, dict) else True


def _anchor_paths(values: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Resolve relative paths in the file against the file's folder."""
    corpora = values.get("corpus")
    if isinstance(corpora, list):
        values = values | {"corpus": [_anchor_source(corpus, folder) for corpus in corpora]}
    if values.get("home") and isinstance(values["home"], str):
        values = values | {"home": _anchor_path(folder, values["home"])}
    record = values.get("record", {})
    if isinstance(record, dict):
        values = values | {"record": _anchor_fields({"key_path": KEY_NAME, **record}, RecordSettings, folder)}
    return values


def _anchor_source(corpus: Any, folder: Path) -> Any:
    source = corpus.get("source") if isinstance(corpus, dict) else None
    if not isinstance(source, dict):
        return corpus
    entry = SOURCE_ENTRIES.get(str(source.get("type")))
    return corpus | {"source": _anchor_fields(source, entry.settings, folder) if entry else source}


def _anchor_fields(values: dict[str, Any], table: type[SettingsTable], folder: Path) -> dict[str, Any]:
    named = [key for key, field in table.model_fields.items() if is_path_type(field.annotation)]
    paths = {key: values[key] for key in named if isinstance(values.get(key), str) and values[key]}
    return values | {key: _anchor_path(folder, path) for key, path in paths.items()}


def _anchor_path(folder: Path, path: str) -> str:
    return str(folder / expand_home(Path(path)))


def _read_secret_files(environment: Mapping[str, str], faults: list[SettingsError]) -> dict[str, Any]:
    """Return the values of variables such as `FOOTNOTE_DATABASE_FILE`, each of which names a file with a secret."""
    values: dict[str, Any] = {}
    for name in _own_variables(environment):
        if not name.lower().endswith(FILE_SUFFIX) or not environment[name]:
            continue
        value: Any = _read_secret(name, Path(environment[name]), faults)
        for key in reversed(name.lower().removeprefix(ENV_PREFIX.lower()).removesuffix(FILE_SUFFIX).split("__")):
            value = {key: value}
        values = _merge(values, value)
    return values


def _read_owners_secrets(environment: Mapping[str, str], faults: list[SettingsError]) -> Mapping[str, str]:
    """Return the environment with secrets from files: `OPENAI_API_KEY_FILE` names the file of `OPENAI_API_KEY`."""
    files = {name: environment.get(f"{name}_FILE", "") for name in OWNERS_SECRETS}
    named = {name: path for name, path in files.items() if path and not environment.get(name)}
    return {**environment, **{name: _read_secret(f"{name}_FILE", Path(path), faults) for name, path in named.items()}}


def _read_secret(name: str, path: Path, faults: list[SettingsError]) -> str:
    """Return the text of a file with a secret; if it cannot be read, add an error to `faults`."""
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        message = f"The file that {name} names cannot be read: {_explain_unreadable(error)}."
        # The path is not shown: it may be the secret itself.
        faults.append(SettingsError(message, hint="Fix the path, or put the value into the variable without _FILE."))
        return ""


def _merge(low: Mapping[str, Any], high: Mapping[str, Any]) -> dict[str, Any]:
    tables = [key for key in low.keys() & high.keys() if isinstance(low[key], dict) and isinstance(high[key], dict)]
    both = {key: _merge(low[key], high[key]) for key in tables}
    return {**low, **high, **both}


def _find_unknown_variables(environment: Mapping[str, str]) -> Iterator[SettingsError]:
    for name in _own_variables(environment):
        key = name.lower().removeprefix(ENV_PREFIX.lower()).split("__")[0].removesuffix(FILE_SUFFIX)
        if not (key in Settings.model_fields or key in OTHER_VARIABLES or ORCHESTRATOR_VARIABLE.match(key)):
            yield explain_unknown_key((key,), where=name)


def _own_variables(environment: Mapping[str, str]) -> list[str]:
    return [name for name in environment if name.upper().startswith(ENV_PREFIX)]
