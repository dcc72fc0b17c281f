"""What a line of a reply begins with: bullets, numbers, quote signs and heading signs, in every script.

A number with a full stop is an item's only where it goes on counting, so that `12. Mai` and `1990. The` keep theirs.
"""

import re
from dataclasses import dataclass
from typing import Literal

from storage.language.vocabulary import lists

_KIND = Literal["item", "quote", "heading"]
_BULLET = re.compile(
    r"(?:[-*+–—―·∙✓✔✗※](?=\s|\Z)|[•‣⁃◦▪▫●○■□◆◇◉➢➤➔►▶❖⮚])\s*(?:\[[ xX✓]\]\s)?|\d\ufe0f?\u20e3\s*|[①-⑳❶-❿]\s*"
)
_QUOTE = re.compile(r">(?!=)\s?")
_HEADING = re.compile(r"#{1,6}\s+")
_ENCLOSED = re.compile(
    r"(?P<bold>\*\*)?(?P<opened>[(（])?(?P<count>\d{1,3}|[^\W\d_]|[ivx]{1,4}|(?(opened)[一二三四五六七八九十]{1,3}|(?!)))[)）]"
    r"(?P<closed>\*\*)?(?:\s+|\Z|(?<=）))"
)
_LETTERED = re.compile(
    r"(?:[\u05d0-\u05ea]\.|[\u0621-\u064a]\s?[.-]|[٠-٩۰-۹०-९]{1,2}\s?[-–])\s+"
    r"|[一二三四五六七八九十]{1,3}[、．.]\s*"
)
_COUNTED = re.compile(
    r"(?P<bold>\*\*)?(?P<count>\d{1,3}|[a-z])(?:[.．](?P<closed>\*\*)?(?:\s+|\Z)|、\s*)(?P<next>[^\W\d_]*)"
)


@dataclass(frozen=True, slots=True)
class Lead:
    """What a line begins with, and how many characters of it go; `bold` keeps the stars that open emphasis there."""

    kind: _KIND
    length: int
    number: int = 0
    """Which item it is, if it counts."""
    bold: bool = False


def lead(line: str, last: int) -> Lead | None:
    """Return what stands before the words of `line`, the beginning of a line without its indent; None if nothing.

    `last` is the largest number of an item before, 0 where none was. Leads may follow one another (`> - text`).
    """
    if found := _QUOTE.match(line):
        return Lead("quote", found.end())
    if found := _HEADING.match(line):
        return Lead("heading", found.end())
    if found := _BULLET.match(line) or _LETTERED.match(line):
        return Lead("item", found.end())
    if found := _ENCLOSED.match(line):
        return _item(found, found.end())
    found = _COUNTED.match(line)
    if not found or found["next"].casefold() in lists("abbreviations")["month"]:
        return None
    return _item(found, found.start("next")) if _count(found["count"]) <= last + 1 else None


def _item(found: re.Match[str], length: int) -> Lead:
    return Lead("item", length, _count(found["count"]), bold=bool(found["bold"]) and not found["closed"])


def _count(written: str) -> int:
    """Return which item a number or a Latin letter names, 0 for other signs."""
    if written.isdecimal():
        return int(written)
    return "abcdefghijklmnopqrstuvwxyz".find(written.lower()) + 1
