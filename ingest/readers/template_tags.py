"""Read the tags of site generators (Liquid, Jinja, Nunjucks, Handlebars, Hugo) and the components of MDX. Pure.

Arguments that are meant for readers become text, and so do addresses. All other output becomes a gap.
"""

import re
from collections.abc import Iterator, Sequence
from html import escape
from typing import Literal, NamedTuple

from storage.language.lazy_pattern import lazy_compile

TAG = r"""\{\{[<%](?:(?!\{\{).){0,1000}?[%>]\}\}    # Hugo: {{< figure >}}
    | \{%(?:(?!\{%).){0,1000}?%\}                # Liquid, Jinja: {% include %}
    | \{\{!?--(?:(?!\{\{).){0,1000}?--!?\}\}      # Handlebars: {{!-- a comment --}}
    | \{\#(?!\#|[\w-]+\})(?:(?!\{\#).){0,1000}?\#\}  # Jinja: {# a comment #}
    | \{\{\{(?:(?!\{\{).){1,300}?\}\}\}          # Handlebars: {{{ body }}}
    | \{\{(?![\s{}]{0,200}\})(?:(?!\{\{).){1,300}?\}\}  # {{ site.name }}, {{generator:team_members}}
"""
_TAG = lazy_compile(TAG, re.VERBOSE | re.DOTALL)

GAP = "x-gap"
"""The element that replaces removed markup; it holds the text of the markup, if any."""

Need = Literal["", "optional", "closing"]
"""How much a sentence needs the content of a gap: "" if required; "closing" for the end of a tag."""


def make_gap(text: str = "", need: Need = "") -> str:
    """Return the element that stands in for removed template markup, for readers that convert a format to HTML."""
    return f'<{GAP} need="{need}">{escape(text)}</{GAP}>' if need else f"<{GAP}>{escape(text)}</{GAP}>"


class Reading(NamedTuple):
    """The text of a tag, and how much its sentence needs the output of the tag."""

    text: str = ""
    need: Need = ""
    parts: bool = False  # whether it separates the text of alternatives
    opens: bool = False  # whether its content follows its text

    @property
    def gap(self) -> str:
        return f"{' ' if self.parts else ''}{make_gap(self.text, self.need)}{' ' if self.opens else ''}"


class _Arguments(NamedTuple):
    named: dict[str, str]
    quoted: list[str]
    bare: list[str]


_ARGUMENT = lazy_compile(
    r"""(?:(?P<name>[A-Za-z_][\w:.-]{0,60}+)\s*=\s*)?+
    (?: "(?P<double>(?:[^"\\]|\\.)*+)" | '(?P<single>(?:[^'\\]|\\.)*+)' | `(?P<back>[^`]*+)` | “(?P<curly>[^”]*+)”
      | (?P<braces>\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*+\})*+\})*+\}) | (?P<bare>[^\s,"'`=(){}|]++) | [,=(){}|"'`“”] )""",
    re.VERBOSE | re.DOTALL,
)
_NAME = lazy_compile(r"[#/>^&]?\s*[\w.:/-]*")
_CALL = lazy_compile(r"([A-Za-z_]\w*(?:\.\w+)*)\((.*)\)\s*(?:\|.*)?", re.DOTALL)
_LITERAL = lazy_compile(r"([\"'`])([^\"'`<>{}]*)\1\s*(?:\|.*)?", re.DOTALL)
_DATE_FILTER = lazy_compile(r"\|\s*(?:date|strftime)")
_CONTROL_NAMES = (
    "if unless else elsif elif elseif case when for range with raw verbatim comment assign set let capture import from "
    "extends block macro call filter autoescape break continue increment decrement layout toc load define template "
    "switch each cycle tablerow liquid spaceless trans blocktrans csrf_token do without return var"
)
_CONTROL = frozenset(_CONTROL_NAMES.split())
"""Tags that print nothing themselves."""
_INCLUDE_NAMES = (
    "include include_relative include_cached includes partial render readfile snippet embed gist youtube vimeo tweet "
    "twitter instagram video audio iframe component literalinclude svg param"
)
_INCLUDES = frozenset(_INCLUDE_NAMES.split())
"""Tags whose arguments name files, not text."""
_ADDRESS_NAMES = "page link ref relref url post_url xref doc download asset path url_for pathto relurl absurl href"
_ADDRESSES = frozenset(_ADDRESS_NAMES.split())
_PICTURE = lazy_compile(r"(?:^|[_-])(?:ima?ge?s?|figure|picture|icons?|emoji|badge|logo|avatar|photo)(?:$|[_-])")
_TITLED = lazy_compile(
    r"(?:tab|step|accordion|details|expand|collapse|collapsible|panel|card|section|summary|spoiler)(?:[-_]?item)?"
)
CODE = frozenset({"highlight", "code", "codeblock", "code-block", "prism"})
_HEADS = ("title", "label", "heading", "header", "summary", "term", "question")
_BODIES = ("text", "content", "caption", "description", "message", "body", "quote", "answer", "note")
_LESSER = ("alt", "aria-label", "tooltip", "name")
_CHANNEL = lazy_compile(r"[#@][\w.-]+|\w+(?:-\w+)+")
_SLUG = lazy_compile(r"[a-z0-9_.:#?&=%+-]*|\S*/\S*|\S+\.\w{2,5}")
_ADDRESS = lazy_compile(r"\S*/\S*|\S+\.\w{2,5}")
_BASE = lazy_compile(
    r"(?:site\.|page\.|config\.|\.Site\.)?(?:base_?url|url|root|path_?prefix)\s*(?:\|.*)?", re.IGNORECASE | re.DOTALL
)
_MARKUP = lazy_compile(r"</?[A-Za-z][^<>]*>|\*\*|__|`")


def read_tag(tag: str, paired: frozenset[str] = frozenset(), after: str = "") -> Reading:
    """Read a tag. `paired` are the names of the tags that the text both opens and closes.

    `after` is the text that follows the tag, which may continue an address.
    """
    if tag.startswith(("{#", "{{!", "{/*")):
        return Reading(need="optional")
    prints = tag.startswith("{{") and tag[2:3] not in {"<", "%"}
    inside = tag.strip("{}%<>").strip("-~ \t\n").strip()
    if prints:
        return _read_output(inside, paired, after)
    name = _tag_name(inside)
    rest = inside[len(name) :].removesuffix("/")
    if name.startswith(("/", "end")):
        return Reading(need="closing" if _opener(name) in paired else "optional")
    if name in _CONTROL:
        return Reading(need="optional", parts=name.startswith("el"))
    reading = _read_call(name, rest, paired=name in paired, computed=False)
    return reading._replace(opens=bool(reading.text) and name in paired)


def _opener(name: str) -> str:
    """Return the name of the tag that this tag closes; empty for the bare `end` of Hugo and Go."""
    return name.removeprefix("/").removeprefix("end").strip(" _") if name.startswith(("/", "end")) else "/"


def tag_name(tag: str) -> str:
    """Return the name of a tag: `slack_channel` for `{% slack_channel "help" %}`."""
    return _tag_name(tag.strip("{}%<>").strip("-~ \t\n"))


def _tag_name(inside: str) -> str:
    match = _NAME.match(inside)
    return match[0] if match else ""


def _read_output(inside: str, paired: frozenset[str], after: str) -> Reading:
    if literal := _LITERAL.fullmatch(inside):
        return Reading() if _DATE_FILTER.search(inside, literal.end(2)) else Reading(_plain(literal[2]))
    if after[:1] == "/" and after[1:2].isalnum() and _BASE.fullmatch(inside):
        return Reading(need="closing")
    if call := _CALL.fullmatch(inside):
        return _read_call(call[1].rpartition(".")[2], call[2], paired=False, computed=True)
    name = _tag_name(inside)
    if name.startswith(("#", "^", "/")) or name in {"end", *_CONTROL} or inside.startswith("$"):
        return Reading(need="closing" if _opener(name) in paired else "optional")
    return Reading()


def _read_call(name: str, rest: str, *, paired: bool, computed: bool) -> Reading:
    arguments = _parse_arguments(rest)
    texts = [text for text in map(_plain, arguments.quoted) if text]
    words = [text for text in texts if not _SLUG.fullmatch(text)]
    if text := _named_text(arguments.named):
        return Reading(text)
    if _PICTURE.search(name):
        return Reading(words[0] if words else "", "optional")
    if name in _INCLUDES or words:
        return Reading("" if name in _INCLUDES else words[0])
    if _TITLED.fullmatch(name) and (texts or arguments.bare) and not arguments.named:
        return Reading(texts[0] if texts else " ".join(arguments.bare))
    if paired:
        return Reading(need="optional")
    return Reading(_read_label(name, texts, () if computed or arguments.named else arguments.bare))


def _read_label(name: str, texts: Sequence[str], bare: Sequence[str]) -> str:
    """Return the label among a tag's arguments, such as a channel's name, or else an address, or else ""."""
    if names := [text for text in texts if name in _ADDRESSES or not _ADDRESS.fullmatch(text)] or texts:
        return names[0]
    return bare[0] if len(bare) == 1 and _CHANNEL.fullmatch(bare[0]) else ""


def _parse_arguments(rest: str) -> _Arguments:
    named, quoted, bare = dict[str, str](), list[str](), list[str]()
    for match in _ARGUMENT.finditer(rest):
        text = next((match[kind] for kind in ("double", "single", "back", "curly") if match[kind] is not None), None)
        if match["braces"] and (inner := _LITERAL.fullmatch(match["braces"][1:-1].strip())):
            text = inner[2]
        if match["name"] and text is not None:
            named.setdefault(match["name"].lower(), text)
        elif text is not None:
            quoted.append(text)
        elif match["name"]:
            named.setdefault(match["name"].lower(), "")
        elif match["bare"]:
            bare.append(match["bare"])
    return _Arguments(named, quoted, bare)


def _named_text(named: dict[str, str]) -> str:
    """Return the text among named arguments: a heading and a body, or else an alternative text."""
    stated = {name: text for name, value in named.items() if (text := _plain(value))}
    head, body, lesser = (
        next((stated[name] for name in names if name in stated), "") for names in (_HEADS, _BODIES, _LESSER)
    )
    if head and body:
        return f"{head} {body}" if head.endswith((".", "!", "?", ":")) else f"{head}: {body}"
    return head or body or lesser


def _plain(text: str) -> str:
    return " ".join(_MARKUP.sub("", _TAG.sub("", text.replace("\\n", " ").replace("\\", ""))).split())


COMPONENT = r"""<(?P<close>/?)(?P<name>[A-Z][\w.]{0,60})
    (?P<props>(?:\s++(?:[A-Za-z_][\w:.-]*+
        (?:=(?:"[^"]*+"|'[^']*+'|\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*+\})*+\})*+\}|[^\s"'{}<>=]++))?+
      |\{(?:[^{}]|\{[^{}]*+\})*+\}))*+)
    \s*+(?P<alone>/?)>"""
"""A JSX tag of a component, whose name begins with a capital letter."""


def read_component(name: str, props: str) -> str:
    """Return the text that the properties of a component contain."""
    return "" if _PICTURE.search(name.lower()) else _named_text(_parse_arguments(props).named)


_PAIR = lazy_compile(
    r"\{%-?\s*(?P<end>end_?)?(?P<liquid>[\w./-]+)|\{\{[<%]\s*(?P<slash>/\s*)?(?P<hugo>[\w./-]+)"
    r"|\{\{(?:[#^]|(?P<shut>/))\s*(?P<bars>\w+)|<(?P<stop>/)?(?P<jsx>[A-Za-z][\w.-]*)"
    r"|\{\{-?\s*(?:(?P<over>end\b)|(?:if|range|with|define|block)\b)"
)


def find_pairs(text: str) -> frozenset[str]:
    """Return the names of tags and elements that a text both opens and closes."""
    names: dict[bool, set[str]] = {True: set(), False: set()}
    for match in _PAIR.finditer(text):
        name = match["liquid"] or match["hugo"] or match["bars"] or match["jsx"] or ""
        ends = any(match[kind] for kind in ("end", "slash", "shut", "stop", "over"))
        names[ends].add(name)
    return frozenset(names[True] & names[False])


def hide_pipes(text: str) -> str:
    """Replace each `|` inside of a tag, as it would end the cell of a table row."""
    return _TAG.sub(lambda tag: tag[0].replace("|", HIDDEN_PIPE), text) if "|" in text and "{" in text else text


HIDDEN_PIPE = "\ue004"
_HTML_START = lazy_compile(
    r"<(?:!--|(?P<verbatim>pre|code|kbd|samp|script|style|textarea)\b|/?[A-Za-z])|\{[{%#]", re.IGNORECASE
)
_ELEMENT = lazy_compile(
    rf"""</?[A-Za-z](?:[^<>"'{{]|"[^"]{{0,2000}}+"|'[^']{{0,2000}}+'|{TAG}|\{{)*+>""", re.VERBOSE | re.DOTALL
)


def replace_tags(markup: str) -> str:
    """Replace template tags in HTML by gaps, and remove those inside of HTML's own tags. Code stays unchanged."""
    if not any(begins in markup for begins in ("{{", "{%", "{#")):
        return markup
    return "".join(_replace_tags(markup, find_pairs(markup)))


def _replace_tags(markup: str, paired: frozenset[str]) -> Iterator[str]:
    at, unclosed = 0, set[str]()
    last = max(markup.rfind(end) for end in ("}}", "%}", "#}"))
    while start := _HTML_START.search(markup, at, max(last, 0)):
        yield markup[at : start.start()]
        at = start.start()
        verbatim = "--" if start[0] == "<!--" else (start["verbatim"] or "").lower()
        if verbatim and verbatim not in unclosed:
            end = _find_end(markup, at, verbatim)
            if end > 0:
                yield markup[at:end]
                at = end
                continue
            unclosed.add(verbatim)
        if tag := _TAG.match(markup, at):
            yield read_tag(tag[0], paired, markup[tag.end() : tag.end() + 2]).gap
            at = tag.end()
            if tag_name(tag[0]) == "comment" and "comment" not in unclosed:
                at = _find_end(markup, at, "comment") or at
                unclosed.update(["comment"] if at == tag.end() else [])
        elif element := _ELEMENT.match(markup, at):
            yield _TAG.sub("", element[0])
            at = element.end()
        else:
            yield markup[at : start.end()]
            at = start.end()
    yield markup[at:]


def _find_end(markup: str, at: int, verbatim: str) -> int:
    sign = {"--": "-->", "comment": r"\{%-?\s*end_?comment\s*-?%\}"}.get(verbatim, f"</{verbatim}")
    end = re.compile(sign, re.IGNORECASE).search(markup, at)
    return end.end() if end else 0
