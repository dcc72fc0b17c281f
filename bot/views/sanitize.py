"""Make text harmless: remove terminal commands, and break up what a chat client would make a mention or a link; pure.

Each platform's escaping begins with `defang_text`. It inserts an invisible word joiner (U+2060) after `@` and `<`,
between the dots of a domain, the colon and slashes of an address, and the brackets of a Markdown link. It also inserts
one at both ends of a text, because the neighbouring text is unknown. People see the same words; a copied address,
file name or path contains joiners.
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
# Controls except tab and line feed, marks that reorder text, lone surrogates.
_HARMFUL = lazy_compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
_LINKABLE = lazy_compile(r"(?:https?|mailto):[^\s\"<>\\^`{|}]+", re.IGNORECASE)


def sanitize_text(text: str) -> str:
    """Remove control sequences and control characters; tabs and line breaks stay."""
    return _HARMFUL.sub("", _BREAKS.sub("\n", _SEQUENCES.sub("", text)))


def sanitize_line(text: str) -> str:
    """Remove control sequences and control characters, and return the text on one line."""
    return " ".join(sanitize_text(text).split())


def sanitize_link(url: str) -> str:
    """Return the address if a terminal may show it as a link, otherwise an empty string."""
    return url if _LINKABLE.fullmatch(url) and sanitize_text(url) == url else ""


def replace_unencodable(text: str) -> str:
    """Replace characters that UTF-8 cannot encode, such as an argument's invalid bytes."""
    return text.encode("utf-8", "replace").decode("utf-8")


WORD_JOINER = "\u2060"  # invisible, has no width, and prevents a line break
# Controls, marks that override direction, lone surrogates, soft hyphens, zero-width spaces, joiners and operators, and
# the tag characters that hide text. Scripts and emoji need zero-width joiners and non-joiners, and direction marks
# that override nothing.
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
# Characters that begin a heading, list, quotation, rule, table or code block at the start of a line.
_LINE = lazy_compile(r"^(?=[ \t]*(?:[^\w\s]|\d+[.)])|[ ]{2}|\t)", re.MULTILINE)
_SAFE = "%/:=?&#+,;$-._~"
"""Characters of an address that are not percent-encoded; encoding the others prevents early ends and mentions."""


def strip_invisible(text: str) -> str:
    """Return the text without controls, reordering marks and invisible characters.

    It removes nothing else. In contrast, `sanitize_text` may also remove the text after a stray escape byte, which
    begins an unterminated sequence.
    """
    return _UNSEEN.sub("", _BREAKS.sub("\n", text))


@lru_cache(maxsize=512)  # each state of a growing view measures and shows the same runs again
def defang_text(text: str) -> str:
    """Insert joiners, so that a chat client makes no mention, link or block of the text."""
    parted = _PARTED.sub(_join_mark, _JOINABLE.sub(WORD_JOINER, strip_invisible(text)))
    return _LINE.sub(WORD_JOINER, parted)


def sanitize_url(url: str) -> str:
    """Return a linkable web address, in ASCII without spaces, quotes or brackets; empty for other addresses."""
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


def _join_mark(match: re.Match[str]) -> str:
    if match["number"]:
        return match["number"]
    mark, before = match["begun"], match.string[max(match.start() - 1, 0) : match.start()]
    # `www.` and `mailto:` make a link of whatever follows, even of invisible characters.
    both = not before or (mark == "." and before in "wW") or (mark == ":" and before.isalpha())
    return f"{WORD_JOINER}{mark}{WORD_JOINER}" if both else f"{mark}{WORD_JOINER}"


def count_units(text: str) -> int:
    """Return the length in UTF-16 units; a lone surrogate counts as its replacement."""
    return len(text.encode("utf-16-le", "replace")) // 2
