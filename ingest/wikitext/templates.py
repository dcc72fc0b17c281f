"""Render templates and parser functions, both of which are written in double braces, by their names.

Infoboxes, which are templates with named arguments on separate lines, become rows of "Label: value". Parser functions
(`{{#if:...}}`, `{{formatnum:...}}`) are evaluated as far as that is possible without the wiki.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType

from ingest.wikitext import quantity_templates, word_templates
from ingest.wikitext.html_tags import render_latex
from ingest.wikitext.infoboxes import BOX_HANDLERS, is_no_box, render_box
from ingest.wikitext.markup_cleanup import HOLE, PAGE_NAME, escape_markup
from ingest.wikitext.quantity_templates import evaluate_expression, make_money_handler
from ingest.wikitext.wiki_site import load_meanings
from ingest.wikitext.word_templates import (
    TEMPLATE_SIGNS,
    TemplateArguments,
    TemplateHandler,
    parse_arguments,
)
from storage.language.lazy_pattern import lazy_compile


def _evaluate_switch(value: str, cases: list[str]) -> str:
    default = ""
    matched = False
    for case in cases:
        name, equals, result = case.partition("=")
        matched = matched or name.strip() == value.strip()
        if equals and matched:
            return result
        if name.strip() == "#default" or not equals:
            default = result or name
    return default


def _evaluate_tag(name: str, content: list[str]) -> str:
    if name.strip() == "math" and content:
        return escape_markup(render_latex(content[0]))
    return "".join(content[:1]) if name.strip() in ("poem", "small", "span", "div", "nowiki") else ""


def _first_branch(_: str, branches: list[str]) -> str:
    return "".join(branches[:1])


_DIGITS = lazy_compile(r"[0-9]{1,30}")
_COMMAS = frozenset({"", "en", "he", "ja", "ko", "simple", "th", "zh"})
_FUNCTIONS: Mapping[str, Callable[[str, list[str]], str]] = MappingProxyType(
    {
        "#if": lambda condition, branches: branches[0] if condition.strip() else "".join(branches[1:2]),
        "#ifeq": lambda left, rest: (
            "".join(rest[1:2]) if rest and left.strip() == rest[0].strip() else "".join(rest[2:3])
        ),
        "#iferror": lambda value, rest: "".join(rest[1:2]) or value,
        "#ifexpr": _first_branch,
        "#ifexist": _first_branch,
        "#expr": lambda value, _: evaluate_expression(value),
        "#switch": _evaluate_switch,
        "#tag": _evaluate_tag,
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


def group_digits(number: str, language: str) -> str:
    """Separate the thousands of a number by commas, if its language does so."""
    whole, point, part = number.strip().partition(".")
    if language not in _COMMAS or not _DIGITS.fullmatch(whole):
        return number.strip()
    return f"{int(whole):,}{point}{part}"


def evaluate_function(name: str, rest: str, language: str = "") -> str | None:
    """Return the result of `{{name:...|rest}}`; `name` includes the text after its colon. None if it is a template.

    Functions that query the wiki (`#invoke`, `#property`) and magic words (`DEFAULTSORT:`) yield an empty text.
    """
    function, colon, value = name.strip().partition(":")
    function = function.lower()
    if not colon or (function[:1] != "#" and function not in _FUNCTIONS and function != "formatnum"):
        return "" if colon and function.replace(" ", "").isalpha() and name.strip()[:2].isupper() else None
    if function == "formatnum":
        return group_digits(value, language) if "r" not in rest.lower() else value.strip()
    known = _FUNCTIONS.get(function)
    return known(value, rest.split("|") if rest else []).strip() if known else ""


_HANDLERS = MappingProxyType(
    {
        **word_templates.WORD_HANDLERS,
        **quantity_templates.DATE_HANDLERS,
        **quantity_templates.QUANTITY_HANDLERS,
        **BOX_HANDLERS,
    }
)
_BOX_NAME = lazy_compile(
    r"infobox|info(?:/|box|kast|skreine)|taxobox|automatic taxobox|speciesbox|ficha|taxotabla|"
    r"карточк|картка|infokutija|"
    r"chembox|drugbox|geobox|基礎情報|صندوق|معلومات|جعبه|정보|סטטיסטיקה|infoboks|bilgi kutusu|hộp thông tin|"
    r"personendaten|bio$|historical populations|us census population|weather box|election box|speciesbox|subspeciesbox|"
    r"planetbox|starbox|tietolaatikko|infolenteles?|infokast|infotaula|πλαίσιο|кутия|картуш|таксобокс"
)
_LANGUAGE = lazy_compile(r"(?:lang|vol|langue)-([a-z-]{2,12})|(?:lang)-?([a-z]{2,3})-?short")
_IN_LANGUAGE = lazy_compile(r"\s*[A-Za-z]{2,3}S\s*")
_ITSELF = lazy_compile(r"\d+(?:er|re|e|ère|ème|ª|º)s?|[IVXLC]+(?:er|re|e)s?|[IVXLC]+e siècle(?: av\. J\.-C\.)?")
_LOCAL = MappingProxyType({
    "fr": {"citation": "quoted", "s": "century", "h": "clock"},
    "es": {"s": "century"},
    "it": {"m": "measure"},
    "ru": {"s": "first", "c": "first"},
})  # fmt: skip
"""Names with another meaning in one language."""
_MANY = 4
"""Named arguments on separate lines that make an unknown template a box."""


_HOLLOW_ARGUMENT = lazy_compile(rf"(?<=[|=:])\s*{HOLE}[\s{HOLE}]*(?=\||$)")


def expand_template(body: str, language: str = "") -> str:
    """Return the text that replaces `{{body}}`: words, rows on separate lines, or nothing.

    A `HOLE` in it stands for content that only the wiki knows.
    """
    if HOLE in body:
        body = _HOLLOW_ARGUMENT.sub("", body)
    name, _, rest = body.partition("|")
    if ":" in name and (result := evaluate_function(name, rest, language)) is not None:
        return result or (HOLE if name.lstrip().lower().startswith(_ASKING) else "")
    handler = _find_handler(name, language)
    return handler(rest) or ("" if handler is _omit or "\n" in body else HOLE)


_ASKING = ("#expr", "#invoke", "#property", "formatnum")  # functions whose result a reader sees


def _omit(_: str) -> str:
    return ""


@lru_cache(maxsize=65536)
def _find_handler(name: str, language: str) -> Callable[[str], str]:
    """Return the function that renders templates of this name; `_omit` if such templates show nothing."""
    written = " ".join(name.replace("_", " ").split())
    known = written.lower().removeprefix("template:")
    if written.endswith(("PAGENAME", "PAGENAMEE")):
        return lambda _: PAGE_NAME
    if _ITSELF.fullmatch(written) or written in load_meanings("country_names"):
        text = load_meanings("country_names").get(written, written) if language == "en" else written
        return lambda _: text
    if not known or load_meanings("template_names").get(known) == "silent":
        return _omit
    if handler := _find_by_name(known, language) or _find_by_form(known, written):
        return lambda rest: handler(parse_arguments(rest, language))
    if _BOX_NAME.match(known):
        return lambda rest: render_box(parse_arguments(rest, language))
    return _omit if is_no_box(known) else lambda rest: _render_unknown(rest, language)


def _find_by_name(name: str, language: str) -> TemplateHandler | None:
    if (sign := TEMPLATE_SIGNS.get(name)) is not None:
        return lambda _: sign
    if word := load_meanings("template_words").get(name):
        return lambda arguments: arguments.at(0) or word
    if currency := load_meanings("currency_signs").get(name):
        return make_money_handler(currency)
    if load_meanings("template_names").get(name) == "vessel":
        return lambda arguments: f"{name.upper()} {arguments.at(0)}".strip()
    if name == "langx":
        return lambda arguments: _label_language(arguments.at(0), arguments.at(1), arguments.language)
    return _HANDLERS.get(_LOCAL.get(language, {}).get(name) or load_meanings("template_names").get(name, ""))


def _find_by_form(name: str, written: str) -> TemplateHandler | None:
    """Return the handler of a family of names, such as `lang-de`, or `deS` in the German Wikipedia; or None."""
    if match := _LANGUAGE.fullmatch(name):
        return lambda arguments: _label_language(match[1] or "", word_templates.first(arguments), arguments.language)
    if _IN_LANGUAGE.fullmatch(written):
        return word_templates.first
    return None


def _label_language(code: str, text: str, language: str) -> str:
    """Put the name of their language before foreign words, as the English Wikipedia does; only there."""
    label = load_meanings("language_names").get(code) if language == "en" else None
    return f"{label}: {text}" if label and text else text


def _render_unknown(rest: str, language: str) -> str:
    """Render an unknown template as a box, if it has many named arguments on separate lines."""
    if rest.count("=") < _MANY or rest.count("\n") < _MANY:
        return ""
    arguments: TemplateArguments = parse_arguments(rest, language)
    return render_box(arguments) if len(arguments.names) >= _MANY else ""
