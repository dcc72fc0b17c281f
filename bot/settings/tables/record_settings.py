"""Define the settings of the record: its key, the receivers of checkpoints, retention of words, and rechecks."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from bot.settings.tables.field_types import EMPTY_IS_NONE, FullPath, SettingsTable, WebAddress

KEY_NAME = "footnote-record.key"


class RecordSettings(SettingsTable):
    """How the record is signed, and how long its words are stored."""

    key_path: FullPath = Field(default=Path(KEY_NAME), validate_default=True)
    """The key that signs checkpoints; apart from the home."""
    heads_path: Annotated[FullPath | None, EMPTY_IS_NONE] = None  # each day's checkpoint is appended to it
    heads_url: WebAddress = ""  # an address to which it is posted
    heads_channel: bool = False  # whether it is posted to the admins' channel
    keep_days: int = Field(default=0, ge=0, le=36_500)  # words are erased after so many days; 0 for never
    hold: tuple[str, ...] = ()
    """People, channels and answers on hold, of which nothing is erased, such as `slack:T1/U1`."""
    recheck: Literal["off", "digest", "note"] = "digest"
    """Who is notified that a cited page changed so that an answer no longer holds: no one, the admins, its thread."""
    recheck_days: int = Field(default=30, ge=0, le=3_650)  # answers up to this age are rechecked; 0: none
    recheck_most: int = Field(default=20, ge=1, le=1_000)  # the most notes per day, or answers in a digest


class DistillationSettings(SettingsTable):
    """Which recorded turns may become lessons for your own model. Both its place and its corpora must be listed."""

    places: tuple[str, ...] = ()
    """Places of turns: `terminal`, channels such as `slack:T1/C1`, people in a DM such as `slack:T1/U1`."""
    corpora: tuple[str, ...] = ()  # that lessons may quote
