"""Halves of surrogate pairs, which JSON's escapes can spell and no encoding of text can hold. Pure."""

import re

_HALVES = re.compile("[\ud800-\udfff]")


def sound(text: str) -> str:
    """Return a text that can be sent: halves that belong together are joined, others are replaced by U+FFFD."""
    if not _HALVES.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
