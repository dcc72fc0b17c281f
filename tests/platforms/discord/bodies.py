"""Checks of a message's body: of a new or edited one, or a reply to an interaction."""

from collections.abc import Iterator, Mapping
from typing import Any

from tests.platforms.discord import components, limits
from tests.platforms.discord.mentions import allowed_mentions
from tests.platforms.discord.refusing import Wrong, invalid, refusal
from tests.platforms.discord.shapes import (
    Check,
    Path,
    anything,
    boolean,
    fields,
    integer,
    nullable,
    several,
    snowflake,
    string,
)
from tests.platforms.discord.state import SUPPRESS_EMBEDS, V2


def _nonce(value: Any, path: Path) -> Iterator[Wrong]:
    if not isinstance(value, int):
        yield from string(limits.NONCE)(value, path)


def _edited_flags(value: Any, path: Path) -> Iterator[Wrong]:
    """Check the flags that an edit may set: who sees a message is settled when it is posted."""
    yield from integer()(value, path)
    if isinstance(value, int) and value & ~(SUPPRESS_EMBEDS | V2):
        yield Wrong(path, "MESSAGE_FLAGS_INVALID", "Only SUPPRESS_EMBEDS and IS_COMPONENTS_V2 can be set.")


_SHARED: dict[str, Check] = {
    "content": nullable(string(limits.CONTENT)),
    "allowed_mentions": nullable(allowed_mentions),
    "components": nullable(anything),
    "flags": nullable(integer()),
    "attachments": nullable(several(anything, 0)),
    "tts": boolean,
}
"""What every message may have; `attachments` only to take them away. discord.py sends `tts` with edits too."""
REFERENCE = fields(
    {"message_id": snowflake},
    {"channel_id": snowflake, "guild_id": nullable(snowflake), "fail_if_not_exists": boolean, "type": integer(0, 0)},
)
_NEW: dict[str, Check] = {"nonce": nullable(_nonce), "enforce_nonce": boolean}
_NEW |= {"message_reference": REFERENCE}
CREATE, EDIT = fields({}, {**_SHARED, **_NEW}), fields({}, {**_SHARED, "flags": nullable(_edited_flags)})


def checked(body: Any, shape: Check, *, new: bool, where: Path = ()) -> Mapping[str, Any]:
    """Return a message's body, checked. `new`: whether it is of components as `IS_COMPONENTS_V2` has it.

    Raises `Refusal`.
    """
    wrongs = [
        Wrong((*where, *objection.path), objection.code, objection.message)
        for objection in _objections(body, shape, new=new)
    ]
    if wrongs:
        raise invalid(wrongs)
    return body  # type: ignore[no-any-return]


def is_new(body: Any, before: int = 0) -> bool:
    """Return whether a message is of components as `IS_COMPONENTS_V2` has it, or was."""
    flags = body.get("flags") if isinstance(body, dict) else 0
    return bool((before | (flags if isinstance(flags, int) else 0)) & V2)


def _objections(body: Any, shape: Check, *, new: bool) -> Iterator[Wrong]:
    yield from shape(body, ())
    if not isinstance(body, dict):
        return
    if body.get("components") is not None:
        yield from components.message(body["components"], new=new)
    if new and body.get("content"):
        yield Wrong(
            ("content",),
            "MESSAGE_CANNOT_USE_LEGACY_FIELDS_WITH_COMPONENTS_V2",
            "The 'content' field cannot be used when using MessageFlags.IS_COMPONENTS_V2",
        )


def not_empty(content: Any, parts: Any) -> None:
    """Refuse a message that says nothing. Raises `Refusal`."""
    if not (content or "").strip() and not parts:
        raise refusal(50006)
