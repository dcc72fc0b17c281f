"""What the bot says in its own words, in the asker's language; everything else it says is quoted or checked.

The sentences stand in `wording.json`, by language and occasion; a language that is not there is answered in English.
"""

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Literal

Occasion = Literal["abstained", "nearest", "greeting", "thanks", "farewell", "failed", "too_slow", "unrecorded"]


def say(occasion: Occasion, language: str) -> str:
    """Return the sentence for an occasion in a language (ISO 639-1), in English where there is none."""
    table = _table()
    return table.get(language, table["en"])[occasion]


@cache
def _table() -> Mapping[str, Mapping[str, str]]:
    text = resources.files("bot").joinpath("wording.json").read_text(encoding="utf-8")
    table: dict[str, dict[str, str]] = json.loads(text)
    return table
