"""How settings name a channel or a person of a platform: `slack:T1/C1`, `discord:G1/U1`. Pure."""

from typing import Annotated

from pydantic import AfterValidator

from storage.language.lazy_pattern import lazy_compile

_ID = lazy_compile(r"(slack|discord):[^/\s]+/[^/\s]+")


def platform_of(place: str) -> str:
    """Return the platform that an id is of."""
    return place.partition(":")[0]


def channel_id(text: str) -> str:
    """Return the id of a channel as it is. Raises `ValueError` unless it is one."""
    if not _ID.fullmatch(text):
        raise ValueError('must be "slack:TEAM/CHANNEL" or "discord:SERVER/CHANNEL", by their ids, not their names')
    return text


def person_id(text: str) -> str:
    """Return the id of a person as it is. Raises `ValueError` unless it is one."""
    if not _ID.fullmatch(text):
        raise ValueError('must be "slack:TEAM/USER" or "discord:SERVER/USER", by their ids, not their names')
    return text


ChannelId = Annotated[str, AfterValidator(channel_id)]
PersonId = Annotated[str, AfterValidator(person_id)]
