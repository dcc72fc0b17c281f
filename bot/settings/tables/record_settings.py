"""Define the settings of the record: what signs it, where its heads go, how long words are kept, who learns of it."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from bot.settings.tables.field_types import EMPTY_IS_NONE, FullPath, SettingsTable, validate_web_address

KEY_NAME = "footnote-record.key"


class RecordSettings(SettingsTable):
    """How the record is proved, and what is cleaned up of it."""

    key_path: FullPath = Path(KEY_NAME)  # the key that signs checkpoints; apart from the home
    heads_path: Annotated[FullPath | None, EMPTY_IS_NONE] = None  # a file that each day's checkpoint is added to
    heads_url: Annotated[str, AfterValidator(validate_web_address)] = ""  # an address that it is posted to
    heads_channel: bool = False  # whether the admins' channel is told it
    keep_days: int = Field(default=0, ge=0, le=36_500)  # after so many days words are erased; 0 keeps them
    hold: tuple[str, ...] = ()
    """People, channels and answers of which nothing is erased, such as `slack:T1/U1`."""
    recheck: Literal["off", "digest", "note"] = "digest"
    """Who is told that what an answer cites has changed so that it no longer holds: nobody, the admins, its thread."""
    recheck_days: int = Field(default=30, ge=0, le=3_650)  # how old answers are checked again at most; 0: none is
    recheck_most: int = Field(default=20, ge=1, le=1_000)  # how many notes a day, or answers a digest names, at most


class DistillationSettings(SettingsTable):
    """What recorded turns may be made into lessons for a model of one's own; nothing, unless both say so."""

    places: tuple[str, ...] = ()
    """Where turns were asked: `terminal`, channels such as `slack:T1/C1`, people in a DM such as `slack:T1/U1`."""
    corpora: tuple[str, ...] = ()  # what lessons may quote
