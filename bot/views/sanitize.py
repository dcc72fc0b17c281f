"""Remove from text what could command a terminal, or what a chat client could turn into a ping or a link; pure.

Each platform's escaping begins with `defang_text`. An invisible word joiner (U+2060) parts what must not be read as
one: `@` and the name after it, `<` and what it begins, the dots of a domain, the colon and slashes of an address, the
brackets of a Markdown link. As the neighbours of a piece are not known here, its ends are parted too. A person sees
the same words; who copies an address, a file's name or a path gets joiners with it, the price of its not becoming a
link.
"""

import re
from functools import lru_cache
from urllib.parse import quote, urlsplit

from storage.language.lazy_pattern import lazy_compile

_SEQUENCES = lazy_compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"  # colours, cursor moves
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"  # titles, links, device strings
    r"|\x1b[ -/]*[0-~]?"
)
_BREAKS = lazy_compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
# Controls but tab and line feed, marks that reorder what is read, halves of surrogate pairs.
_HARMFUL = lazy_compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
_LINKABLE = lazy_compile(r"(?:https?|mailto):[^\s\"<>\\^`{|}]+", re.IGNORECASE)


def sanitize_text(text: str) -> str:
    """Remove control sequences and control characters; tabs and line breaks stay."""
    return _HARMFUL.sub("", _BREAKS.sub("\n", _SEQUENCES.sub("", text)))


def sanitize_line(text: str) -> str:
    """Remove the same, and return the text on one line."""
    return " ".join(sanitize_text(text).split())


def sanitize_link(url: str) -> str:
    """Return the address if a terminal may make a link of it, else an empty string."""
    return url if _LINKABLE.fullmatch(url) and sanitize_text(url) == url else ""


def replace_unencodable(text: str) -> str:
    """Replace what is no Unicode character, such as bytes of an argument that are no UTF-8."""
    return text.encode("utf-8", "replace").decode("utf-8")


WORD_JOINER = "\u2060"  # is not seen, takes no room, and breaks no line
# Controls, marks that override direction, halves of surrogate pairs, soft hyphens, zero-width spaces, joiners and
# operators, and the tag characters that hide text. What scripts and emoji need stays: zero-width joiner and non-joiner,
# and the marks of direction that override nothing.
_UNSEEN = lazy_compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff"
    "\u00ad\u034f\u180e\u200b\u2060-\u2064\U000e0000-\U000e007f]"
)
_PARTED = lazy_compile(
    r"(?P<number>(?<![\w.])\d+\.\d+(?![\w.])|(?<=\d):(?=\d))"  # 3.14 and 10:30 are left alone
    r"|(?P<begun>[@<:](?=\S|\Z)|&(?=\\*(?:[#\w]|\Z))|\\(?=[uUxX.]|\Z)|\#(?=\\*(?:\w|\Z))|/(?=\\*(?:/|\Z))"
    r"|\.(?=[\w\u200c-\u200f]|\Z)|(?:(?<=[wW])|\A)\.|[．｡](?=\S|\Z)|。(?=[A-Za-z0-9]|\Z)|\](?=\\*(?:[(\[:]|\Z)))"
)
_JOINABLE = lazy_compile(r"\A(?=[(\[:])")
# What begins a heading, a list, a quotation, a rule, a table or a block of code where it begins a line.
_LINE = lazy_compile(r"^(?=[ \t]*(?:[^\w\s]|\d+[.)])|[ ]{2}|\t)", re.MULTILINE)
_SAFE = "%/:=?&#+,;$-._~"
"""What stands in an address as it is; all else is written in percents: no address ends early or names anyone."""


def strip_invisible(text: str) -> str:
    """Return the text without controls, without what reorders it, and without characters that cannot be seen.

    Unlike `sanitize_text`, it takes no more than these: a stray byte does not begin a sequence that ends nowhere.
    """
    return _UNSEEN.sub("", _BREAKS.sub("\n", text))


@lru_cache(maxsize=512)  # of a view that grows, each run is measured and shown again with each state
def defang_text(text: str) -> str:
    """Insert joiners, so that nothing of the text pings, links, or becomes a block of its own."""
    parted = _PARTED.sub(_join_mark, _JOINABLE.sub(WORD_JOINER, strip_invisible(text)))
    return _LINE.sub(WORD_JOINER, parted)


def sanitize_url(url: str) -> str:
    """Return a web address that can be linked to, in ASCII without spaces, quotes or brackets; else empty."""
    try:
        parts = urlsplit(url.strip())
        host = (parts.hostname or "").encode("idna").decode("ascii")
        port = f":{parts.port}" if parts.port else ""
    except (ValueError, UnicodeError):
        return ""
    if parts.scheme not in {"http", "https"} or not re.fullmatch(r"[\w.-]+", host) or "@" in parts.netloc:
        return ""
    rest = parts._replace(scheme="", netloc="").geturl()
    return f"{parts.scheme}://{host}{port}{quote(strip_invisible(rest), safe=_SAFE, errors='replace')}"


def _join_mark(found: re.Match[str]) -> str:
    if found["number"]:
        return found["number"]
    mark, before = found["begun"], found.string[max(found.start() - 1, 0) : found.start()]
    # `www.` and `mailto:` alone make a link of whatever comes, seen or not.
    both = not before or (mark == "." and before in "wW") or (mark == ":" and before.isalpha())
    return f"{WORD_JOINER}{mark}{WORD_JOINER}" if both else f"{mark}{WORD_JOINER}"
