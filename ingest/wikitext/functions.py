"""Parser functions (`{{#if:...}}`, `{{formatnum:...}}`), as far as a page can say what they yield without its wiki."""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from ingest.wikitext.marks import sheltered
from ingest.wikitext.mathematics import plain


def _if(condition: str, branches: list[str]) -> str:
    return branches[0] if condition.strip() else "".join(branches[1:2])


def _if_equal(left: str, rest: list[str]) -> str:
    return "".join(rest[1:2]) if rest and left.strip() == rest[0].strip() else "".join(rest[2:3])


def _switch(value: str, cases: list[str]) -> str:
    default, wanted = "", False
    for case in cases:
        name, equals, said = case.partition("=")
        wanted = wanted or name.strip() == value.strip()
        if equals and wanted:
            return said
        if name.strip() == "#default" or not equals:
            default = said or name
    return default


def _tag(name: str, content: list[str]) -> str:
    if name.strip() == "math" and content:
        return sheltered(plain(content[0]))
    return "".join(content[:1]) if name.strip() in ("poem", "small", "span", "div", "nowiki") else ""


def _first_branch(_: str, branches: list[str]) -> str:
    return "".join(branches[:1])


_DIGITS = re.compile(r"[0-9]{1,30}")
_COMMAS = frozenset({"", "en", "he", "ja", "ko", "simple", "th", "zh"})
_FUNCTIONS: Mapping[str, Callable[[str, list[str]], str]] = MappingProxyType(
    {
        "#if": _if,
        "#ifeq": _if_equal,
        "#iferror": lambda value, rest: "".join(rest[1:2]) or value,
        "#ifexpr": _first_branch,
        "#ifexist": _first_branch,
        "#switch": _switch,
        "#tag": _tag,
        "#time": lambda _, __: "",
        "#formatdate": lambda value, _: value,
        "#dateformat": lambda value, _: value,
        "lc": lambda value, _: value.lower(),
        "uc": lambda value, _: value.upper(),
        "lcfirst": lambda value, _: value[:1].lower() + value[1:],
        "ucfirst": lambda value, _: value[:1].upper() + value[1:],
        "plural": _first_branch,
        "padleft": lambda value, _: value,
        "nowrap": lambda value, _: value,
    }
)


def grouped(number: str, language: str) -> str:
    """A number as wikis write it whose language groups by commas; as it is elsewhere."""
    whole, point, part = number.strip().partition(".")
    if language not in _COMMAS or not _DIGITS.fullmatch(whole):
        return number.strip()
    return f"{int(whole):,}{point}{part}"


def result(name: str, rest: str, language: str = "") -> str | None:
    """What `{{name:...|rest}}` yields, `name` with its colon and what follows it; None if it is no parser function.

    Functions that ask the wiki (`#invoke`, `#expr`, `#property`) and magic words (`DEFAULTSORT:`) yield nothing.
    """
    function, colon, value = name.strip().partition(":")
    function = function.lower()
    if not colon or (function[:1] != "#" and function not in _FUNCTIONS and function != "formatnum"):
        return "" if colon and function.replace(" ", "").isalpha() and name.strip()[:2].isupper() else None
    if function == "formatnum":
        return grouped(value, language) if "r" not in rest.lower() else value.strip()
    known = _FUNCTIONS.get(function)
    return known(value, rest.split("|") if rest else []).strip() if known else ""
