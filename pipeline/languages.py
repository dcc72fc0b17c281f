"""What languages are called: in English for prompts, and by their own speakers for notes.

The names stand in `languages.json`; which language a text is in is told by `storage.language.detect`.
"""

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources

from pipeline.types import Conversation
from storage.language.detect import detect


def english_name(code: str) -> str:
    """Return what a language (ISO 639-1) is called in English; empty where it is not known."""
    return _names().get(code, ("", ""))[0]


def own_name(code: str) -> str:
    """Return what a language (ISO 639-1) calls itself; empty where it is not known."""
    return _names().get(code, ("", ""))[1]


def spoken(talk: Conversation) -> str:
    """Return the language of the asker, by the question or else by what they said before; empty when unsure."""
    asked = [turn for turn in reversed(talk.turns) if turn.speaker == "user"]
    return next(filter(None, (turn.language or detect(turn.text) for turn in asked)), "")


@cache
def _names() -> Mapping[str, tuple[str, str]]:
    text = resources.files("pipeline").joinpath("languages.json").read_text(encoding="utf-8")
    return {code: (english, own) for code, (english, own) in json.loads(text).items()}
