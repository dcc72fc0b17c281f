"""Read the settings once, at start: the environment over `footnote.toml` over the defaults.

What is wrong with them is told by `settings_faults`; what they are stands in `settings`.
"""

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict
from pydantic_settings import SettingsError as UnreadableVariable

from bot.settings import FILE_NAME, Settings, SettingsError
from bot.settings_faults import PREFIX, Surroundings, plain_fault, unknown_key
from bot.settings_of import discord as discord_settings
from bot.settings_of import slack as slack_settings
from bot.values import expanded

NOT_SETTINGS = frozenset({"config", "debug", "data"})
"""Variables that the command line and the tests read, not the settings."""
NAMES_FILE = "_file"
"""How variables end that name a file which holds the value."""
SECRETS_OF_OWNERS = (
    *("OPENAI_API_KEY", "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN"),
    *slack_settings.OWNERS_NAMES.values(),
    *discord_settings.OWNERS_NAMES.values(),
)
"""Variables of OpenAI's own client and of the platforms; each may also name a file, as `OPENAI_API_KEY_FILE`."""
FROM_ORCHESTRATORS = re.compile(r"service_|port($|_)")
"""Kubernetes sets such variables for a service that is called `footnote`."""


class _Surrounding(Settings, BaseSettings):
    """Settings that look at the environment while they are made; what they are made with comes from the file."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_nested_delimiter="__", env_ignore_empty=True)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - the signature is pydantic's
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the signature is pydantic's
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the signature is pydantic's
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Let the environment win over the file; variables that name files are read by us."""
        if isinstance(env_settings, EnvSettingsSource):
            variables = env_settings.env_vars.items()
            env_settings.env_vars = {name: value for name, value in variables if not name.lower().endswith(NAMES_FILE)}
        return env_settings, init_settings


def load(config: Path | None = None) -> Settings:
    """Read `config`, else `footnote.toml` of the working directory if it is there, and the environment.

    Raises:
        SettingsError: the file is missing though named, is no TOML, or a key is unknown or has a wrong value.
    """
    path = config or FILE_NAME
    text = _text(path, must_exist=config is not None)
    surroundings = Surroundings(path, text, os.environ)
    _refuse_unknown(os.environ)
    values = {"home": str(path.parent / ".footnote"), **_anchored(_parsed(path, text), path.parent)}
    try:
        settings = Settings(**dict(_Surrounding(**_merged(values, _from_named_files(os.environ)))))
        owners = _of_owners(os.environ)
        completed = {
            "model": settings.model.completed(owners),
            "slack": settings.slack.completed(owners),
            "discord": settings.discord.completed(owners),
        }
        return settings.model_copy(update=completed)
    except ValidationError as error:
        raise plain_fault(error.errors(), surroundings) from error
    except UnreadableVariable as error:
        field = re.search(r'field "(\w+)"', str(error))
        name = PREFIX + field[1].upper() if field else "A variable"
        raise SettingsError(f"{name} is not valid JSON.", hint="Lists and tables are written as JSON.") from error


def _text(path: Path, *, must_exist: bool) -> str:
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


def _parsed(path: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        hint = "Mend that line; text stands in quotes."
        raise SettingsError(f"{path} is not valid TOML: {error}.", hint=hint) from error


def _anchored(values: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Take relative paths in the file as relative to the file."""
    corpora = values.get("corpus")
    if isinstance(corpora, list):
        values = values | {"corpus": [_anchored_source(corpus, folder) for corpus in corpora]}
    if isinstance(values.get("home"), str):
        values = values | {"home": _beside(folder, values["home"])}
    return values


def _anchored_source(corpus: Any, folder: Path) -> Any:
    source = corpus.get("source") if isinstance(corpus, dict) else None
    if not isinstance(source, dict):
        return corpus
    paths = {key: source[key] for key in ("path", "dump") if isinstance(source.get(key), str)}
    return corpus | {"source": source | {key: _beside(folder, path) for key, path in paths.items()}}


def _beside(folder: Path, path: str) -> str:
    return str(folder / expanded(Path(path)))


def _from_named_files(environment: Mapping[str, str]) -> dict[str, Any]:
    """Read the values of variables such as `FOOTNOTE_DATABASE_FILE`, which name a file that holds a secret."""
    values: dict[str, Any] = {}
    for name in _ours(environment):
        if not name.lower().endswith(NAMES_FILE) or not environment[name]:
            continue
        value: Any = _secret(name, Path(environment[name]))
        for key in reversed(name.lower().removeprefix(PREFIX.lower()).removesuffix(NAMES_FILE).split("__")):
            value = {key: value}
        values = _merged(values, value)
    return values


def _of_owners(environment: Mapping[str, str]) -> Mapping[str, str]:
    """Return variables with the secrets that files hold, under the names that their owners use."""
    files = {name: environment.get(f"{name}_FILE", "") for name in SECRETS_OF_OWNERS}
    named = {name: path for name, path in files.items() if path and not environment.get(name)}
    return {**environment, **{name: _secret(f"{name}_FILE", Path(path)) for name, path in named.items()}}


def _secret(name: str, path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", "") or "it is not UTF-8 text"
        hint = "Mend the path; the value itself goes into the variable without _FILE."
        # The path is not shown: where it cannot be read, it may be the secret itself.
        raise SettingsError(f"The file that {name} names cannot be read: {reason}.", hint=hint) from error


def _merged(low: Mapping[str, Any], high: Mapping[str, Any]) -> dict[str, Any]:
    tables = [key for key in low.keys() & high.keys() if isinstance(low[key], dict) and isinstance(high[key], dict)]
    both = {key: _merged(low[key], high[key]) for key in tables}
    return {**low, **high, **both}


def _refuse_unknown(environment: Mapping[str, str]) -> None:
    for name in _ours(environment):
        key = name.lower().removeprefix(PREFIX.lower()).split("__")[0].removesuffix(NAMES_FILE)
        if not (key in Settings.model_fields or key in NOT_SETTINGS or FROM_ORCHESTRATORS.match(key)):
            raise unknown_key((key,), where=name)


def _ours(environment: Mapping[str, str]) -> list[str]:
    return [name for name in environment if name.upper().startswith(PREFIX)]
