"""Turn wikitext into sections of plain text, step by step. Pure; takes linear time.

Nested double braces and brackets are read with a stack in one pass. Links become their labels.
"""

import re
from collections.abc import Callable
from functools import partial

from ingest.types import Block, Section
from ingest.wikitext import markup_cleanup
from ingest.wikitext.html_tags import replace_tags
from ingest.wikitext.markup_cleanup import CODE, HOLE, PAGE_NAME, PIPE, ROW, escape_markup, strip_marks
from ingest.wikitext.page_layout import PageOutline, read_layout
from ingest.wikitext.templates import expand_template
from ingest.wikitext.wiki_site import load_other_names
from storage.language.lazy_pattern import lazy_compile
from storage.types import PassageKind

SIMPLE_LINK = lazy_compile(r"\[\[(?:[^\[\]{}|:\n]*+\|)?+([^\[\]{}|:\n]*+)\]\]")
"""A link without a colon, template or other link in it, as nearly all are. Its group is the label."""
_EXTERNAL_LINK = lazy_compile(
    r"\[(?:https?:|ftps?:|mailto:|news:|irc:|//)[^\s\[\]]*+[ \t\xa0]*+([^\[\]\n]*+)\]", re.IGNORECASE
)
_LANGUAGE_PREFIX = lazy_compile(r"[a-z]{2,3}(?:-[a-z]{2,8}){0,2}")
_SHOWN_PREFIXES = frozenset({
    "wikt", "wiktionary", "wikisource", "wikiquote", "wikibooks", "wikinews", "wikispecies", "commons", "meta",
    "mw", "doi", "rfc",
})  # fmt: skip
_SOUND = lazy_compile(r"\.(?:og[ga]|mp3|wav|flac)$", re.IGNORECASE)
_PARENTHESIS = lazy_compile(r"\s*[(（][^()（）]*[)）]$")


def replace_simple_links(text: str) -> str:
    # Split and join replace each match by its group, without a function call for each.
    return "".join(SIMPLE_LINK.split(text))


def replace_external_links(text: str) -> str:
    return "".join(_EXTERNAL_LINK.split(text))


def get_link_label(body: str, hidden: frozenset[str]) -> str:
    """Return the label of a link `[[...]]`; empty for files, categories, `hidden` namespaces and other languages."""
    target, pipe, shown = body.partition("|")
    target = target.strip()
    if target.startswith(":"):
        return shown.strip() or target.lstrip(":").strip()
    prefix, colon, rest = target.partition(":")
    if colon:
        name = prefix.strip().lower().replace(" ", "_")
        if name in load_other_names("namespace") or name in hidden:
            return HOLE if _SOUND.search(target) else ""
        if _LANGUAGE_PREFIX.fullmatch(prefix):
            return (shown or rest).strip() if prefix in _SHOWN_PREFIXES else ""
        target = rest if name in _SHOWN_PREFIXES or len(name) == 1 else target
    if pipe:
        return shown.strip("\n") or _PARENTHESIS.sub("", target)
    return target.lstrip("#/").rstrip("/")


_BRACKETS = lazy_compile(r"(\{\{|\}\}|\[\[|\]\])")
_PARAMETER = lazy_compile(r"\{\{\{[^{}|]*(?:\|([^{}|]*))?\}\}\}")
_DEEPEST = 40
"""Limit of nested brackets, far beyond real markup; it bounds how often text is copied."""
_SHORT_TEXT = 300

RenderMarkup = Callable[[str], str]  # from the content of a pair of brackets to its text


def expand_brackets(text: str, template: RenderMarkup, link: RenderMarkup) -> str:
    """Replace each `{{...}}` and `[[...]]` by the result of `template` or `link` for its content."""
    if "{{{" in text:
        text = _PARAMETER.sub(lambda match: match[1] or "", text)
    pieces = iter(_BRACKETS.split(text))
    nest = _BracketStack(template, link)
    nest.out.append(next(pieces))
    for sign, following in zip(pieces, pieces, strict=True):
        if sign in ("{{", "[["):
            nest.open(sign)
        elif sign == "}}":
            nest.close_template()
        else:
            nest.close_link()
        if following:
            nest.out.append(following)
    return nest.end()


class _BracketStack:
    """The brackets that are open, and the text collected inside of each."""

    def __init__(self, template: RenderMarkup, link: RenderMarkup) -> None:
        self._template = template
        self._link = link
        self._open: list[tuple[str, list[str]]] = []
        self._templates = 0
        self.out: list[str] = []  # within the innermost open bracket

    def open(self, sign: str) -> None:
        if len(self._open) < _DEEPEST:
            self._open.append((sign, self.out))
            self._templates += sign == "{{"
            self.out = []

    def close_template(self) -> None:
        if not self._templates:
            return
        while self._open[-1][0] == "[[":  # a link that was never closed
            self._dissolve()
        body = "".join(self.out)
        _, self.out = self._open.pop()
        self._templates -= 1
        # A heading within a template shows that braces above were never closed; the text matters more.
        self.out.append(body if "\n==" in body else self._template(body))

    def close_link(self) -> None:
        if self._has_unclosed_template():
            self._dissolve()
        if self._open and self._open[-1][0] == "[[":
            body = "".join(self.out)
            _, self.out = self._open.pop()
            self.out.append(self._link(body))

    def _has_unclosed_template(self) -> bool:
        """Return whether a closing link contains an unclosed template: `[[File:a.png|{{lang|de|b}]]`."""
        signs = [sign for sign, _ in self._open[-2:]]
        return signs == ["[[", "{{"] and len(self.out) < _SHORT_TEXT and sum(map(len, self.out)) < _SHORT_TEXT

    def _dissolve(self) -> None:
        sign, outer = self._open.pop()
        self._templates -= sign == "{{"
        outer += self.out
        self.out = outer

    def end(self) -> str:
        """Return the whole text. Brackets that are still open are removed."""
        return "".join(part for _, parts in self._open for part in parts) + "".join(self.out)


WIKITEXT_VERSION = "2"  # raised when wikitext yields other text, so that every page is read again

_BLOCK_KINDS = {ROW: PassageKind.TABLE, CODE: PassageKind.CODE}


def parse_wikitext(
    text: str, *, title: str = "", language: str = "", hidden: frozenset[str] = frozenset()
) -> PageOutline:
    """Read the wikitext of a page. `hidden` are the names of its wiki's file and category namespaces. Never raises."""
    text = replace_tags(strip_marks(text))
    text = replace_simple_links(text)
    text = expand_brackets(text, partial(expand_template, language=language), partial(get_link_label, hidden=hidden))
    text = markup_cleanup.strip_double_brackets(text)
    if PIPE in text:
        text = text.replace(PIPE, "|")
    if PAGE_NAME in text:
        text = text.replace(PAGE_NAME, escape_markup(title))
    text = markup_cleanup.strip_quotes(markup_cleanup.strip_switches(replace_external_links(text)))
    if HOLE in text:
        text = markup_cleanup.close_gaps(text)
    text = markup_cleanup.close_holes(markup_cleanup.normalize_spaces(text))
    # Text removed since may have separated single brackets.
    return read_layout(markup_cleanup.strip_double_brackets(text))


def make_sections(outline: PageOutline) -> tuple[Section, ...]:
    return tuple(
        Section(
            path,
            tuple(Block(block[1:], kind) if (kind := _BLOCK_KINDS.get(block[0])) else Block(block) for block in blocks),
        )
        for path, blocks in outline
    )
