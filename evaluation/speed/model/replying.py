"""What the simulated model replies: in the form that a prompt asks for, as long as is set, made from the prompt.

What it takes from passages it takes word for word, so that the local check lets it pass; the claims it makes up bear
numbers that no passage has, so that the sentences found for them are said in their place. Pure.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import Any

from evaluation.speed.model.counting import CHARACTERS_A_TOKEN
from evaluation.speed.model.lengths import drawn, length_of
from evaluation.speed.model.recognising import kind_of, schema_of
from evaluation.speed.model.settings import Length, Simulated

_ASKED = re.compile(r"^User: (.*)$", re.MULTILINE)
_NUMBERED = re.compile(r"^(\d+): (.*)$", re.MULTILINE)
_CLAIM = re.compile(r"^Claim (\d+): ", re.MULTILINE)
_NOTE = re.compile(r"^\[(\d+)\] (.*) \(from: .*\)$", re.MULTILINE)
_DRAFTED = re.compile(r"^(.*\[\d+\].*)$", re.MULTILINE)
_CRITERIA = ("Relevant", "Natural", "Non-repetitive", "Temporally correct")
_SMALL = re.compile(
    r"\b(?:what|who|when|where|which|how|why|is|are|do|does|did|can|may|must|the|a|an|of|to|in)\b", re.IGNORECASE
)
_ASPECTS = ("allowance", "budget", "contract", "deadline", "doctor", "holiday", "invoice", "meal", "office", "repair")
_FILLING = "as far as anybody who works here has ever said or written about it in so many words"


@dataclass(frozen=True, slots=True)
class Reply:
    """A text in stretches, each of so many tokens: one an item, such as a claim."""

    stretches: tuple[tuple[str, int], ...]

    @property
    def text(self) -> str:
        """All of it."""
        return "".join(text for text, _ in self.stretches)

    def pieces(self) -> Iterator[str]:
        """Yield its tokens: of each stretch as many as it has, of about the same length."""
        for text, tokens in self.stretches:
            cuts = [round(len(text) * place / tokens) for place in range(tokens + 1)]
            yield from (text[start:end] for start, end in pairwise(cuts))


def reply_to(asked: Mapping[str, Any], simulated: Simulated) -> Reply:
    """Return the reply to a request, the same each time."""
    kind = kind_of(asked)
    turn = asked["messages"][-1]["content"]
    length = length_of(kind, turn, simulated)
    stretches = _MAKERS[kind](turn, length, drawn(kind, turn, simulated.seed))
    if schema_of(asked):
        return Reply(((_as_json(kind, "".join(stretches)), length.tokens * len(stretches)),))
    return Reply(tuple((text, length.tokens) for text in stretches))


def _query(turn: str, length: Length, _: Random) -> Sequence[str]:
    frame = "Search: yes\nQuery: {}\nTime: none"
    room = max(12, length.tokens * CHARACTERS_A_TOKEN - len(frame))
    words = _topic(turn) or "everything"
    return [frame.format(words[:room].rsplit(" ", 1)[0] if len(words) > room else words)]


def _bullets(turn: str, length: Length, random: Random) -> Sequence[str]:
    """Return a stretch for each passage."""
    passages = [_NUMBERED.findall(passage) for passage in turn.split("\nFrom: ")]
    chosen = [_about(length, [(text, number) for number, text in found], random) for found in passages if found]
    ended = ["".join(f"- {text} [{number}]\n" for text, number in one) for one in chosen]
    return [*ended[:-1], ended[-1].rstrip()] if ended else ["None"]


def _prose(turn: str, length: Length, _: Random) -> Sequence[str]:
    sentence = f"I would say of {_topic(turn)} that it is so, {_FILLING}. "
    return [(sentence * 100)[: length.tokens * CHARACTERS_A_TOKEN]]


def _claims(turn: str, length: Length, random: Random) -> Sequence[str]:
    """Return one line each; what is beyond their length is filled up with what says nothing."""
    about = _topic(turn)
    room = length.tokens * CHARACTERS_A_TOKEN
    aspects, lines = random.sample(_ASPECTS, len(_ASPECTS)), list[str]()
    for place in range(length.items):
        said = f"- The {aspects[place % len(aspects)]} of {about[: room // 2]} is {random.randint(11_000, 99_000):,}"
        filling = f", {_FILLING}"[: max(0, room - len(said) - len(". | none\n"))].rsplit(" ", 1)[0]
        lines.append(f"{said}{filling}. | none" + ("\n" if place < length.items - 1 else ""))
    return lines


def _verdict(turn: str, length: Length, random: Random) -> Sequence[str]:
    numbers = [number for number, _ in _NUMBERED.findall(turn)]
    if not numbers:
        return ["Reasoning: Nothing is said of it.\nSentences: -\nVerdict: NOT ENOUGH INFO"]
    number = random.choice(numbers)
    end = f"\nSentences: {number}\nVerdict: SUPPORTS"
    room = length.tokens * CHARACTERS_A_TOKEN - len(end)
    reasoning = f"Reasoning: Sentence {number} says so, {_FILLING}"[: max(room - 1, 32)]
    return [f"{reasoning.rsplit(' ', 1)[0]}.{end}"]


def _verdicts(turn: str, length: Length, random: Random) -> Sequence[str]:
    """Return a line for each claim, its verdict before its reason."""
    numbers = [number for number, _ in _NUMBERED.findall(turn)]
    lines = []
    for claim in _CLAIM.findall(turn):
        said = f"{claim}. SUPPORTS [{random.choice(numbers)}] " if numbers else f"{claim}. NOT ENOUGH INFO "
        room = max(12, length.tokens * CHARACTERS_A_TOKEN - len(said))
        lines.append(f"{said}It is so {_FILLING}"[: len(said) + room].rsplit(" ", 1)[0] + ".\n")
    return [*lines[:-1], lines[-1].rstrip()] if lines else ["NOT ENOUGH INFO"]


def _draft(turn: str, length: Length, random: Random) -> Sequence[str]:
    notes = [(text, number) for number, text in _NOTE.findall(turn)]
    chosen = _about(length, notes, random)
    return [" ".join(f"{text.rstrip('.')} [{number}]." for text, number in chosen) or "NOTHING"]


def _feedback(_: str, length: Length, __: Random) -> Sequence[str]:
    room = length.tokens * CHARACTERS_A_TOKEN // len(_CRITERIA)
    lines = []
    for name in _CRITERIA:
        remark = f"It could be said more plainly, {_FILLING}"[: max(16, room - len(name) - len(": . 40/100\n"))]
        lines.append(f"{name}: {remark.rsplit(' ', 1)[0]}. 40/100")
    return ["\n".join(lines)]


def _revised(turn: str, _: Length, __: Random) -> Sequence[str]:
    return ["".join(_DRAFTED.findall(turn)[-1:]) or "NOTHING"]


_MAKERS: Mapping[str, Callable[[str, Length, Random], Sequence[str]]] = {
    "query": _query,
    "summarise": _bullets,
    "generate": _prose,
    "split": _claims,
    "verify": _verdict,
    "verdicts": _verdicts,
    "draft": _draft,
    "feedback": _feedback,
    "refine": _revised,
}


def _topic(turn: str) -> str:
    """Return the words of substance that the user said last."""
    said = _ASKED.findall(turn)
    return " ".join(_SMALL.sub(" ", said[-1] if said else "").strip("?!. ").split())


def _about(length: Length, texts: Sequence[tuple[str, str]], random: Random) -> Sequence[tuple[str, str]]:
    """Return texts in their order, beginning somewhere, whose length together comes near to what is wanted."""
    room, taken, start = length.tokens * CHARACTERS_A_TOKEN, list[tuple[str, str]](), 0
    if len(texts) > 1 and sum(len(text) for text, _ in texts) > 2 * room:
        start = random.randrange(len(texts) // 2)
    for text, number in texts[start:]:
        if taken and room < len(text) // 2:
            break
        taken.append((text, number))
        room -= len(text)
    return taken


def _as_json(kind: str, text: str) -> str:
    """Return the same as one JSON object that fits the schema of its kind."""
    return json.dumps(_OBJECTS[kind](text), ensure_ascii=False)


def _labelled(text: str, name: str) -> str:
    found = re.search(rf"^{name}: (.*)$", text, re.MULTILINE)
    return found[1] if found else ""


def _items(text: str) -> Iterator[str]:
    return (line.removeprefix("- ") for line in text.splitlines() if line.startswith("- "))


def _bullet(line: str) -> dict[str, Any]:
    said, _, number = line.rpartition(" [")
    return {"text": said, "sentences": [int(number.rstrip("]"))]}


def _claim(line: str) -> dict[str, Any]:
    said, _, time = line.rpartition(" | ")
    return {"text": said, "time": time}


def _verdict_object(text: str) -> dict[str, Any]:
    numbers = [int(number) for number in re.findall(r"\d+", _labelled(text, "Sentences"))]
    return {
        "reasoning": _labelled(text, "Reasoning"),
        "sentences": numbers,
        "verdict": _labelled(text, "Verdict"),
    }


def _points(text: str) -> dict[str, Any]:
    said = {name.lower().replace("-", "_").replace(" ", "_"): _labelled(text, name) for name in _CRITERIA}
    return {name: {"remark": remark.rpartition(" ")[0], "score": 40} for name, remark in said.items()}


_OBJECTS: Mapping[str, Callable[[str], dict[str, Any]]] = {
    "query": lambda text: {"search": True, "query": _labelled(text, "Query"), "time": "none"},
    "summarise": lambda text: {"bullets": [_bullet(line) for line in _items(text)]},
    "split": lambda text: {"claims": [_claim(line) for line in _items(text)]},
    "verify": _verdict_object,
    "feedback": _points,
}
