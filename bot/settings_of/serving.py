"""The tables of the settings that rule what `footnote serve` does beside answering: `[http]`, `[log]`, `[schedule]`."""

import re
from datetime import time
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from bot.place_ids import channel_id
from bot.values import Values

_TIME = re.compile(r"([01]\d|2[0-3]):[0-5]\d")


def _time_of_day(text: str) -> str:
    if text and not _TIME.fullmatch(text):
        raise ValueError('must be a time of day like "03:00", or empty')
    return text


def _channel_or_none(text: str) -> str:
    return channel_id(text) if text else text


class HttpSettings(Values):
    """Where the server listens: its health, its pages, and what platforms send over HTTP."""

    host: str = Field(default="127.0.0.1", min_length=1)
    port: int = Field(default=8710, ge=0, le=65_535)
    """0 takes any that is free."""


class LogSettings(Values):
    """What a server logs, on stderr."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """The least that is told."""


class ScheduleSettings(Values):
    """When every source is read in again."""

    nightly: Annotated[str, AfterValidator(_time_of_day)] = ""
    """The time of day in the time zone of the settings; empty: never."""
    admin_channel: Annotated[str, AfterValidator(_channel_or_none)] = ""
    """Where it is told what failed at night, and what to do; empty: only in the server's log."""
    heartbeat: bool = False
    """Whether one line is posted there each day, also when all went well."""

    @property
    def at(self) -> time | None:
        """The time of day at which it happens; None where it never does."""
        return time.fromisoformat(self.nightly) if self.nightly else None
