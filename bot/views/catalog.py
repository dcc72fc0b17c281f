"""The bot's own sentences by language and message id, read from the JSON files in `words/`, one a subject."""

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources


def translate(occasion: str, language: str, **facts: object) -> str:
    """Return the sentence for an occasion in a language (ISO 639-1), in English where there is none, with its facts.

    Raises:
        KeyError: There is no such occasion, or a fact is missing.
    """
    return _load_language(language)[occasion].format(**facts)


def has_message(occasion: str) -> bool:
    return occasion in _load_language("en")


def list_languages() -> tuple[str, ...]:
    return tuple(sorted(_load_catalog()))


def _load_language(language: str) -> Mapping[str, str]:
    table = _load_catalog()
    return table.get(language, table["en"])


@cache
def _load_catalog() -> Mapping[str, Mapping[str, str]]:
    table: dict[str, dict[str, str]] = {}
    for file in (resources.files("bot.views") / "words").iterdir():
        if file.name.endswith(".json"):
            subject: dict[str, dict[str, str]] = json.loads(file.read_text(encoding="utf-8"))
            for language, sentences in subject.items():
                table.setdefault(language, {}).update(sentences)
    return table
