"""Square brackets of wikitext: links become their label; files, categories and links to other languages go."""

import re

from ingest.wikitext.names import namespaces

SIMPLE = re.compile(r"\[\[(?:[^\[\]{}|:\n]*+\|)?+([^\[\]{}|:\n]*+)\]\]")
"""A link without a colon, a template or another link in it: nearly all are. Its group is the label."""
_EXTERNAL = re.compile(
    r"\[(?:https?:|ftps?:|mailto:|news:|irc:|//)[^\s\[\]]*+[ \t\xa0]*+([^\[\]\n]*+)\]", re.IGNORECASE
)
_LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[a-z]{2,8}){0,2}")
_SHOWN = frozenset({
    "wikt", "wiktionary", "wikisource", "wikiquote", "wikibooks", "wikinews", "wikispecies", "commons", "meta",
    "mw", "doi", "rfc",
})  # fmt: skip
_PARENTHESIS = re.compile(r"\s*[(（][^()（）]*[)）]$")


def without_simple_links(text: str) -> str:
    """Text whose simple links are their labels."""
    # Splitting at a pattern with one group and joining again replaces each match by its group without a call for each.
    return "".join(SIMPLE.split(text))


def without_external_links(text: str) -> str:
    """Text whose links to the web are their labels."""
    return "".join(_EXTERNAL.split(text))


def label(body: str, hidden: frozenset[str]) -> str:
    """What the inside of any `[[...]]` shows; empty for files, categories and links to other languages.

    `hidden` are further names of such namespaces, in lower case, spaces as underscores.
    """
    target, pipe, shown = body.partition("|")
    target = target.strip()
    if target.startswith(":"):
        return shown.strip() or target.lstrip(":").strip()
    prefix, colon, rest = target.partition(":")
    if colon:
        name = prefix.strip().lower().replace(" ", "_")
        if name in namespaces() or name in hidden:
            return ""
        if _LANGUAGE.fullmatch(prefix):
            return (shown or rest).strip() if prefix in _SHOWN else ""
        target = rest if name in _SHOWN or len(name) == 1 else target
    if pipe:
        return shown.strip("\n") or _PARENTHESIS.sub("", target)
    return target.lstrip("#/").rstrip("/")
