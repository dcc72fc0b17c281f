"""Define the settings of the record: what signs it, where its heads go, and how long words are kept."""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from bot.settings.field_types import EMPTY_IS_NONE, FullPath, SettingsTable, validate_web_address

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
