"""Give the simulated model the habits of a real one of 135 million parameters: loops, cuts, drift, echoes. Pure.

A loop ends at the bounds of a schema, or if repetition is penalised; else only at the limit of tokens.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from itertools import accumulate
from random import Random
from typing import Any

from evaluation.simulated_model.chat_protocol import get_schema
from evaluation.simulated_model.model_pace import HabitRates
from storage.language.sentences import sentence_spans

_LOOPED_CHARACTERS = 8_000  # more than any limit of tokens lets through
_GERMAN = "Das ist eine Regel, und so steht es hier{}."
_ECHOED = re.compile(r"\b1\. \[2, 3\] who:|numbers of the notes")  # the instructions of verdicts and of drafts
_SHORT = 20  # characters
_COUNTED = "Sentence {} says that it is so, but it is not so in the context of the claim. "


@dataclass(frozen=True, slots=True)
class SpoiltReply:
    text: str
    cut: bool = False  # whether the server reports that it was cut off


def spoil_reply(asked: Mapping[str, Any], text: str, rates: HabitRates, random: Random) -> SpoiltReply:
    """Return a reply after the habit that is drawn for it, if any; the real model echoes only free text."""
    drawn = random.random()
    habits = (_loop, _cut, _drift, _echo)
    ends = accumulate(astuple(rates))
    habit = next((habit for habit, end in zip(habits, ends, strict=True) if drawn < end), None)
    return habit(asked, text, random) if habit else SpoiltReply(text)


def _loop(asked: Mapping[str, Any], text: str, _: Random) -> SpoiltReply:
    if asked.get("frequency_penalty"):
        return SpoiltReply(text)
    if schema := get_schema(asked):
        return _loop_json(json.loads(text), schema["properties"])
    start, end = next(iter(sentence_spans(text)), (0, len(text)))
    line = text[start:end].partition("\n")[0]
    return SpoiltReply(f"{line}\n\n" * (_LOOPED_CHARACTERS // (len(line) + 2)))


def _loop_json(reply: Mapping[str, Any], properties: Mapping[str, Any]) -> SpoiltReply:
    """Return a JSON reply whose first list, or else its first text, is repeated as far as the schema allows."""
    listed = next((name for name, value in reply.items() if value and isinstance(value, list)), "")
    name = listed or next((name for name, value in reply.items() if isinstance(value, str)), "")
    if not name:
        return SpoiltReply(json.dumps(reply))
    most = properties[name].get("maxItems" if listed else "maxLength")
    repeated: Any = reply[name][:1] * (most or _LOOPED_CHARACTERS // 40)
    if not listed:
        repeated = "".join(map(_COUNTED.format, range(1, _LOOPED_CHARACTERS // len(_COUNTED))))[:most]
    text = json.dumps({**reply, name: repeated}, ensure_ascii=False)
    return SpoiltReply(text) if most else SpoiltReply(text[: text.rindex('"')], cut=True)


def _cut(_: Mapping[str, Any], text: str, __: Random) -> SpoiltReply:
    return SpoiltReply(text[: max(1, 2 * len(text) // 3)], cut=True)


def _drift(asked: Mapping[str, Any], text: str, _: Random) -> SpoiltReply:
    """Return running text in German, with the citations of the reply; replies in other formats stay."""
    marks = re.findall(r"( \[\d+\])\.", text)
    if get_schema(asked) or "\n" in text:
        return SpoiltReply(text)
    return SpoiltReply(" ".join(map(_GERMAN.format, marks or [""])))


def _echo(asked: Mapping[str, Any], text: str, random: Random) -> SpoiltReply:
    """Return the reply of a worked example, or the last message of the prompt."""
    messages: Sequence[Mapping[str, str]] = asked["messages"]
    if get_schema(asked) or not _ECHOED.search(messages[0]["content"]):
        return SpoiltReply(text)
    replies = [message["content"] for message in messages[:-2] if message["role"] == "assistant"]
    examples = [reply for reply in replies if len(reply) > _SHORT]  # “NOTHING” would be a good reply
    return SpoiltReply(random.choice([*examples, messages[-1]["content"]]))
