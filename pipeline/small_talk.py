"""Greetings, thanks and goodbyes: what a bot answers shortly, without looking anything up. Pure.

A message is small talk only if nothing else is in it: "hi, how many days of leave do I get?" is a question. The
phrases stand in `small_talk.json`, by kind; fillers are what people put around them.
"""

import json
import re
import unicodedata
from collections.abc import Iterable
from enum import StrEnum
from functools import cache
from importlib import resources


class SmallTalk(StrEnum):
    """What kind of small talk a message is, so that the reply can fit it."""

    THANKS = "thanks"
    FAREWELL = "farewell"
    GREETING = "greeting"


_MENTION = re.compile(r"<[@!#][^>]*>|@\w+")


def small_talk(text: str) -> SmallTalk | None:
    """Return what kind of small talk the whole text is; None when it says anything else, or nothing at all.

    Thanks win over goodbyes and goodbyes over greetings: "hi, thanks, bye" is answered as thanks.
    """
    plain = _plain(_MENTION.sub(" ", text))
    whole, kinds = _patterns()
    if not whole.fullmatch(plain):
        return None
    return next((kind for kind in SmallTalk if kinds[kind].search(plain)), None)


def _plain(text: str) -> str:
    """Return a text's words in lower case without marks, one blank between them."""
    folded = unicodedata.normalize("NFKD", text.casefold().replace("’", "'"))
    kept = "".join(char for char in folded if unicodedata.category(char) != "Mn")
    return " ".join(re.findall(r"[^\W_]+(?:'[^\W_]+)*", kept))


@cache
def _patterns() -> tuple[re.Pattern[str], dict[SmallTalk, re.Pattern[str]]]:
    """Return the pattern of a text that is nothing but small talk, and the pattern of each kind within it."""
    phrases = json.loads(resources.files("pipeline").joinpath("small_talk.json").read_text(encoding="utf-8"))
    everything = [_phrase(phrase) for kind in phrases.values() for phrase in kind]
    whole = re.compile(f"(?:(?:{_any(everything)}) ?)++")
    return whole, {kind: re.compile(_any(map(_phrase, phrases[kind]))) for kind in SmallTalk}


def _phrase(phrase: str) -> str:
    """Return the pattern of one phrase: between word ends, except in scripts that put no spaces between words."""
    plain = _plain(phrase)
    return re.escape(plain) if plain[0] > "\u0e00" else rf"\b{re.escape(plain)}\b"


def _any(patterns: Iterable[str]) -> str:
    return "|".join(sorted(set(patterns), key=len, reverse=True))
