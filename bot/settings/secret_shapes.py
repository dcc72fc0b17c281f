"""Recognise misplaced secrets by their form, such as an app token in place of a bot token. Pure; shows no secret."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from bot.settings.platform_registry import PlatformEntry


@dataclass(frozen=True, slots=True)
class MisplacedSecret:
    found: str  # description of the value
    hint: str


def find_misplaced_secret(
    platforms: Iterable[PlatformEntry], owner: PlatformEntry, key: str, value: str
) -> MisplacedSecret | None:
    """Return a description of a value that is certainly not the right secret; None if it may be right, or is empty."""
    required = next((shape for shape in owner.shapes if shape.key == key), None)
    if not value:
        return None
    needed = (
        f"This setting needs {required.title}{required.where and f', {required.where}'}."
        if required
        else "Copy it again."
    )
    if flaw := _describe_spoilt(value):
        return MisplacedSecret(flaw, needed)
    if required and re.fullmatch(required.pattern, value):
        return None
    others = [(each, shape) for each in platforms for shape in each.shapes if each is owner or shape.unique]
    others.sort(key=lambda pair: pair[0] is not owner)
    for entry, shape in others:
        if re.fullmatch(shape.pattern, value):
            variable = entry.settings.SECRETS.get(shape.key, "")
            belongs = f"That belongs in {variable}. " if variable and (entry, shape.key) != (owner, key) else ""
            return MisplacedSecret(f"{shape.title}{'' if entry is owner else f' of {entry.title}'}", belongs + needed)
    return None


def _describe_spoilt(value: str) -> str:
    """Return a description of characters in a value that no secret contains; empty if there are none."""
    if value[0] in "\"'" or value[-1] in "\"'":
        return "quotes around it, which are not part of it"
    if not value.isascii():
        return "characters that no secret has: perhaps it is an example, or was shortened with …"
    return "a space, or several words" if re.search(r"\s", value) else ""
