"""Render a page's template into HTML. All values are escaped, and links are checked."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, tzinfo
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from bot.views.catalog import split_code
from bot.views.sanitize import sanitize_url, strip_invisible

_TEMPLATES = Path(__file__).parent / "templates"
STYLE = _TEMPLATES / "style.css"
SPLIT = Markup("\x00split\x00")  # splits a page that is sent in pieces; texts cannot contain it


def render_page(template: str, zone: tzinfo, facts: Mapping[str, Any]) -> str:
    return _environment().get_template(template).render(zone=zone, style=style_version(), **facts)


def render_macro(template: str, name: str, zone: tzinfo, *values: Any) -> str:
    module = _environment().get_template(template).make_module({"zone": zone})
    return str(getattr(module, name)(*values))


@cache
def style_version() -> str:
    """Return a digest of the style sheet, so that browsers cache it until it changes."""
    return sha256(STYLE.read_bytes()).hexdigest()[:12]


def make_path(*parts: str) -> str:
    """Make the path of a page; each part is quoted."""
    return "/" + "/".join(quote(part, safe="", errors="replace") for part in parts)


def make_query(facts: Mapping[str, Any]) -> str:
    return urlencode({name: value for name, value in facts.items() if value not in {"", None}}, errors="replace")


def format_moment(at: datetime | None, zone: tzinfo) -> str:
    """Format a moment to the minute, with its zone."""
    return f"{at.astimezone(zone):%Y-%m-%d %H:%M %Z}" if at else ""


def mark_quote(text: str, quotation: str) -> Iterator[tuple[str, bool]]:
    """Yield the pieces of a passage's text, and whether each is quoted."""
    place = 0
    for piece in filter(None, quotation.split(" … ")):
        if (start := text.find(piece, place)) >= 0:
            yield from ((text[place:start], False), (piece, True))
            place = start + len(piece)
    yield text[place:], False


def _show_number(value: float | None, digits: int = 0) -> str:
    return "" if value is None else f"{value:,.{digits}f}"


def _show_share(part: float, whole: float) -> str:
    return f"{part / whole:.0%}" if whole else "–"


def _list_facts(value: Any) -> Sequence[tuple[str, str]]:
    """Return the facts of an entry, whatever its format, as pairs of name and text."""
    known = value if isinstance(value, Mapping) else {"said": value}
    return [(str(name).replace("_", " "), _show_value(inner)) for name, inner in known.items()]


def _show_value(value: Any) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case Mapping():
            return ", ".join(f"{name}: {_show_value(inner)}" for name, inner in value.items())
        case list() | tuple():
            return ", ".join(map(_show_value, value))
        case float():
            return f"{value:.6g}"
        case None:
            return ""
    return str(value)


def _clean(value: Any) -> Any:
    """Remove invisible characters and those that change the direction of text."""
    return strip_invisible(value) if type(value) is str else value


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_clean,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    shown = {"moment": format_moment, "web": sanitize_url, "number": _show_number, "facts": _list_facts}
    environment.filters |= {**shown, "code": split_code}
    environment.globals |= {
        "path": make_path,
        "query": make_query,
        "quoted": mark_quote,
        "share": _show_share,
        "split": SPLIT,
    }
    return environment
