"""Makes text from documents, people and services safe to print: nothing in it can command the terminal. Pure."""

import re

_SEQUENCES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"  # colours, cursor moves
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"  # titles, links, device strings
    r"|\x1b[ -/]*[0-~]?"
)
_BREAKS = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
# Controls but tab and line feed, marks that reorder what is read, halves of surrogate pairs.
_HARMFUL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
_LINKABLE = re.compile(r"(?:https?|mailto):[^\s\"<>\\^`{|}]+", re.IGNORECASE)


def safe(text: str) -> str:
    """Return the text without control sequences and control characters; tabs and line breaks stay."""
    return _HARMFUL.sub("", _BREAKS.sub("\n", _SEQUENCES.sub("", text)))


def one_line(text: str) -> str:
    """Return the text made safe, on one line."""
    return " ".join(safe(text).split())


def linkable(url: str) -> str:
    """Return the address if a terminal may make a link of it, else an empty string."""
    return url if _LINKABLE.fullmatch(url) and safe(url) == url else ""


def encodable(text: str) -> str:
    """Return the text with what is no Unicode character replaced, such as bytes of an argument that are no UTF-8."""
    return text.encode("utf-8", "replace").decode("utf-8")
