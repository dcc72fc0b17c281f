"""The tables of the settings that rule how questions are taken and answered: `[desk]`, `[[channel]]`, and budgets.

What admins set by command stands in the database and narrows a channel's table: see `channel_settings`.
"""

from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator

from bot.place_ids import ChannelId, PersonId, platform_of
from bot.values import EMPTY_IS_NONE, Values


class DeskSettings(Values):
    """How many questions are answered at once, and how long things may wait."""

    at_once: int = Field(default=8, ge=1, le=1_000)
    per_channel: int = Field(default=4, ge=1, le=1_000)
    patience_seconds: float = Field(default=20, gt=0, le=3_600)
    """Who waits longer is told how many are before him."""
    grace_seconds: float = Field(default=20, ge=0, le=3_600)
    """How long answers under way may take to end when the server stops; the rest waits for its next start."""


class BudgetSettings(Values):
    """How much may be asked and used by day and month, as the time zone has them; 0 sets no limit."""

    questions_per_user: int = Field(default=0, ge=0)
    """A day."""
    questions_per_channel: int = Field(default=0, ge=0)
    """A day."""
    tokens_per_day: int = Field(default=0, ge=0)
    tokens_per_month: int = Field(default=0, ge=0)
    cost_per_month: float = Field(default=0, ge=0)
    """In the currency of `[model] prices`."""


class ChannelValues(Values):
    """What is different in one channel."""

    id: ChannelId
    corpora: Annotated[tuple[str, ...] | None, EMPTY_IS_NONE] = None
    """Those of the readable ones that are searched here; None is all of them, and an empty list is none."""
    system: str = ""
    answer: Literal["mention", "every"] = "mention"
    ephemeral: bool = False
    """Whether answers are shown to the asker alone."""
    threads: Literal["never", "long"] = "never"
    """Whether a second question gets a thread, where the platform does not answer in threads anyway."""
    ask: tuple[PersonId, ...] = ()
    """Whom "Ask a person" mentions."""
    paused: bool = False
    """Whether nothing is answered here for now."""

    @field_validator("ask")
    @classmethod
    def _of_its_platform(cls, people: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        here = platform_of(info.data.get("id", ""))
        stranger = next((person for person in people if here and platform_of(person) != here), "")
        if stranger:
            raise ValueError(f"names {stranger}, who is not on {here} as the channel is")
        return people


def all_fit(channels: tuple[ChannelValues, ...], info: ValidationInfo) -> tuple[ChannelValues, ...]:
    """Return the channels as they are. Raises `ValueError` if one stands there twice or names a corpus there is not."""
    ids = [channel.id for channel in channels]
    if twice := sorted({one for one in ids if ids.count(one) > 1}):
        raise ValueError(f"has two entries for {twice[0]}, and there is one for each channel")
    known = {corpus.name for corpus in info.data.get("corpus", ())}
    for channel in channels if "corpus" in info.data else ():
        if unknown := sorted(set(channel.corpora or ()) - known):
            there = f"there are: {', '.join(sorted(known))}" if known else "there is none yet"
            raise ValueError(f"of {channel.id} names the corpus {unknown[0]!r}, which no [[corpus]] has; {there}")
    return channels
