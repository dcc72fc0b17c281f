"""What the bot says in its own words, in the asker's language; everything else it says is quoted or checked.

The sentences stand in `wording.json`, by language and occasion; a language that is not there is answered in English.
"""

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Literal

from pipeline.small_talk import small_talk
from pipeline.types import Answer, AnsweredSentence, Status, Turn

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


def wording(answer: Answer, question: Turn) -> str:
    """Return the text of an answer: its sentences with footnote marks, or our own words for its status; pure."""
    if answer.status is Status.ANSWERED:
        return "".join(map(_marked, answer.sentences)).strip()
    if answer.status is Status.CHATTED:
        kind = small_talk(question.text)
        return say(kind.value if kind else "greeting", question.language)
    if answer.status is Status.ABSTAINED:
        return say("abstained", question.language)
    return say("failed", question.language)


def _marked(sentence: AnsweredSentence) -> str:
    note = f"({sentence.note}) " if sentence.note else ""
    marks = "".join(f"[{number}]" for number in sentence.citations)
    before = "\n\n" if sentence.paragraph else " "
    return f"{before}{note}{sentence.text} {marks}"
