"""Tell secrets apart by their shape, as where an app token stands in the place of a bot token. Pure; shows none."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from bot.settings.platform_registry import PlatformEntry


@dataclass(frozen=True, slots=True)
class MisplacedSecret:
    found: str  # what was found in place of it
    hint: str


def find_misplaced_secret(
    platforms: Iterable[PlatformEntry], owner: PlatformEntry, key: str, held: str
) -> MisplacedSecret | None:
    """Say what a setting holds that is surely not what belongs there; None where it may be, or is empty."""
    wanted = next((shape for shape in owner.shapes if shape.key == key), None)
    if not held:
        return None
    needed = f"It wants {wanted.title}{wanted.where and f', {wanted.where}'}." if wanted else "Copy it anew."
    if found := _describe_spoilt(held):
        return MisplacedSecret(found, needed)
    if wanted and re.fullmatch(wanted.pattern, held):
        return None
    others = [(one, shape) for one in platforms for shape in one.shapes if one is owner or shape.unique]
    others.sort(key=lambda pair: pair[0] is not owner)
    for one, shape in others:
        if re.fullmatch(shape.pattern, held):
            variable = one.settings.SECRETS.get(shape.key, "")
            belongs = f"That belongs into {variable}. " if variable and (one, shape.key) != (owner, key) else ""
            return MisplacedSecret(f"{shape.title}{'' if one is owner else f' of {one.title}'}", belongs + needed)
    return None


def _describe_spoilt(held: str) -> str:
    """Say what no secret has in it; empty where there is nothing of it."""
    if held[0] in "\"'" or held[-1] in "\"'":
        return "quotes around it, which are not part of it"
    if not held.isascii():
        return "letters that no secret has: perhaps it is an example, or was cut with …"
    return "a space, or several words" if re.search(r"\s", held) else ""
