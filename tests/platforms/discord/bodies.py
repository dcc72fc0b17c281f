"""Checks of a message's body: of a new or edited one, or a reply to an interaction."""

from collections.abc import Iterator, Mapping
from typing import Any

from tests.platforms.discord import components, limits
from tests.platforms.discord.mentions import allowed_mentions, snowflake
from tests.platforms.discord.refusing import invalid, refusal
from tests.platforms.discord.state import SUPPRESS_EMBEDS, V2
from tests.platforms.shapes import BOOL, Check, anything, choice, fields, kind, nullable, several, string, wrong


def _edited_flags(value: Any, where: str) -> Iterator[str]:
    """Check the flags that an edit may set: who sees a message is settled when it is posted."""
    yield from kind(int)(value, where)
    if isinstance(value, int) and value & ~(SUPPRESS_EMBEDS | V2):
        yield wrong(where, "only SUPPRESS_EMBEDS and IS_COMPONENTS_V2 can be set")


_SHARED: dict[str, Check] = {
    "content": nullable(string(limits.CONTENT, 0)),
    "allowed_mentions": nullable(allowed_mentions),
    "components": nullable(anything),
    "flags": nullable(kind(int)),
    "attachments": nullable(several(anything, 0)),
    "tts": BOOL,
}
"""What every message may have; `attachments` only to take them away. discord.py sends `tts` with edits too."""
REFERENCE = fields(
    {"message_id": snowflake},
    {"channel_id": snowflake, "guild_id": nullable(snowflake), "fail_if_not_exists": BOOL, "type": choice(0)},
)
_NEW: dict[str, Check] = {"nonce": nullable(string(limits.NONCE)), "enforce_nonce": BOOL}
_NEW |= {"message_reference": REFERENCE}
CREATE, EDIT = fields({}, {**_SHARED, **_NEW}), fields({}, {**_SHARED, "flags": nullable(_edited_flags)})


def checked(body: Any, shape: Check, *, new: bool, where: str = "") -> Mapping[str, Any]:
    """Return a message's body, checked. `new`: whether it is of components as `IS_COMPONENTS_V2` has it.

    Raises `Refusal`.
    """
    if objections := list(_objections(body, shape, new=new, where=where)):
        raise invalid(objections)
    return body  # type: ignore[no-any-return]


def is_new(body: Any, before: int = 0) -> bool:
    """Return whether a message is of components as `IS_COMPONENTS_V2` has it, or was."""
    flags = body.get("flags") if isinstance(body, dict) else 0
    return bool((before | (flags if isinstance(flags, int) else 0)) & V2)


def _objections(body: Any, shape: Check, *, new: bool, where: str) -> Iterator[str]:
    yield from shape(body, where)
    if not isinstance(body, dict):
        return
    if body.get("components") is not None:
        yield from components.message(body["components"], f"{where}/components", new=new)
    if new and body.get("content"):
        yield wrong(f"{where}/content", "cannot be used with IS_COMPONENTS_V2")


def not_empty(content: Any, parts: Any) -> None:
    """Refuse a message that says nothing. Raises `Refusal`."""
    if not (content or "").strip() and not parts:
        raise refusal(50006)
