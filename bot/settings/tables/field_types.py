"""Define the base of every table of the settings, and common types of fields."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, tzinfo
from functools import cache
from pathlib import Path
from typing import Annotated, Any, get_args
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict


class SettingsTable(BaseModel):
    """A table of the settings: frozen, and strict about keys, so that a misspelt key is an error."""

    # pydantic's own message about a wrong value shows the whole table, which may contain a key.
    # Defaults are not validated at each start: a test does that.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, hide_input_in_errors=True)


@dataclass(frozen=True, slots=True)
class Effect:
    """When a changed value takes effect in a running server."""

    live: bool  # when the server reads its settings again; otherwise at its next start
    scope: bool = False  # whether it decides who may read what; each change is recorded


LIVE, SCOPE, RESTART = Effect(live=True), Effect(live=True, scope=True), Effect(live=False)
"""Marks of fields. The mark of a table applies to all its fields without a mark of their own."""


def require(is_right: Callable[[Any], object], message: str) -> AfterValidator:
    """Return a validator that refuses a value unless `is_right`.

    `message` completes a sentence that begins with the key.
    """

    def validate(value: Any) -> Any:
        if not is_right(value):
            raise ValueError(message)
        return value

    return AfterValidator(validate)


def validate_web_address(url: str) -> str:
    """Return an address unchanged. Raises `ValueError` unless it is empty or on the web."""
    if url and not url.startswith(("http://", "https://")):
        raise ValueError('must be empty or begin with "http://" or "https://"')
    return url


WebAddress = Annotated[str, AfterValidator(validate_web_address)]


def _validate_contact(text: str) -> str:
    if text and (not re.fullmatch(r"[!-'*-~]+", text) or not ("@" in text or text.startswith(("http://", "https://")))):
        raise ValueError('must be an e-mail address, or a page that begins with "https://"')
    return text


Contact = Annotated[str, AfterValidator(_validate_contact)]
"""The address at which operators of sources can reach ours; empty for none."""


MAX_TONE = 200  # characters


def _validate_tone(text: str) -> str:
    text = text.strip()
    if len(text) > MAX_TONE or not text.isprintable():
        raise ValueError(f"must be one line of at most {MAX_TONE} characters")
    return text


Tone = Annotated[str, AfterValidator(_validate_tone)]
"""How a model should word its answers; empty for plainly."""


def _none_if_empty(value: object) -> object:
    return None if value == "" else value


EMPTY_IS_NONE = BeforeValidator(_none_if_empty)  # TOML has no null: `""` means None


def expand_home(path: Path) -> Path:
    """Expand `~`, if the user exists."""
    try:
        return path.expanduser()
    except RuntimeError:
        return path


def is_path_type(annotation: Any) -> bool:
    """Return whether values of a type may be paths, such as `FullPath | None`."""
    return annotation is Path or any(map(is_path_type, get_args(annotation)))


def _make_absolute(path: Path) -> Path:
    return expand_home(path).absolute()


def _refuse_empty(value: object) -> object:
    if value == "":
        raise ValueError('must name a path; "." is the folder of the settings file')
    return value


FullPath = Annotated[Path, BeforeValidator(_refuse_empty), AfterValidator(_make_absolute)]


@cache
def load_time_zone(name: str) -> tzinfo:
    """Return a time zone by its name, such as `Europe/Berlin`. Raises `ValueError` for an unknown name."""
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError) as error:
        raise ValueError(f'{name!r} is not a time zone; write one like "Europe/Berlin" or "UTC"') from error
