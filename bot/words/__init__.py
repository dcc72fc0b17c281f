"""Our own sentences by language and occasion, in one JSON file a subject: the files beside this one, taken together."""

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources


def say(occasion: str, language: str, **facts: object) -> str:
    """Return the sentence for an occasion in a language (ISO 639-1), in English where there is none, with its facts.

    Raises:
        KeyError: There is no such occasion, or a fact is missing.
    """
    return _sentences(language)[occasion].format(**facts)


def has(occasion: str) -> bool:
    """Return whether there is a sentence for an occasion."""
    return occasion in _sentences("en")


def languages() -> tuple[str, ...]:
    """Return the languages that there are sentences in."""
    return tuple(sorted(_table()))


def _sentences(language: str) -> Mapping[str, str]:
    table = _table()
    return table.get(language, table["en"])


@cache
def _table() -> Mapping[str, Mapping[str, str]]:
    table: dict[str, dict[str, str]] = {}
    for file in resources.files("bot.words").iterdir():
        if file.name.endswith(".json"):
            subject: dict[str, dict[str, str]] = json.loads(file.read_text(encoding="utf-8"))
            for language, sentences in subject.items():
                table.setdefault(language, {}).update(sentences)
    return table
