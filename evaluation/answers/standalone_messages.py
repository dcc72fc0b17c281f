"""Measure the rule that searches a message as it is: how many of the messages that it takes do stand alone.

Of topics with manual rewrites (TREC CAsT) a message stands alone if its rewrite says it in the same words; of INSCIT
and MTRAG the labels of a reader beside this file tell it.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from evaluation.answers.question_sets import UnreadableSet
from evaluation.workbench import render_table
from pipeline.stages.question_analysis import read_as_query
from pipeline.types import Conversation, Turn

LABELS = Path(__file__).with_name("standalone_labels.json")
"""By conversation: 1 for each turn that stands alone, 0 for each that does not."""


@dataclass(frozen=True, slots=True)
class LabelledMessage:
    talk: Conversation
    stands_alone: bool

    @property
    def first(self) -> bool:
        return len(self.talk.turns) == 1

    @property
    def taken(self) -> bool:
        return read_as_query(self.talk) is not None


def read_messages(path: Path) -> tuple[LabelledMessage, ...]:
    """Read conversations as TREC CAsT, INSCIT or MTRAG publish them; a first message always stands alone.

    Raises `UnreadableSet`.
    """
    labels: Mapping[str, str] = json.loads(LABELS.read_text(encoding="utf-8"))
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return tuple(_read_rewritten(found) if isinstance(found, list) else _read_labelled(found, labels))
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        what = f"{path} has no conversations of TREC CAsT, INSCIT or MTRAG that are labelled"
        raise UnreadableSet(what, hint="name the file as it was published") from error


def _read_rewritten(topics: list[dict[str, Any]]) -> Iterator[LabelledMessage]:
    for topic in topics:
        said = list[Turn]()
        for turn in topic["turn"]:
            asked = turn["raw_utterance"]
            alone = not said or _plain(asked) == _plain(turn["manual_rewritten_utterance"])
            yield LabelledMessage(Conversation((*said, Turn("user", asked))), alone)
            said += [Turn("user", asked), Turn("bot", turn.get("passage") or "")]


def _plain(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold().removeprefix("utterance: "))


def _read_labelled(found: Mapping[str, Any], labels: Mapping[str, str]) -> Iterator[LabelledMessage]:
    for key, number, said in _mtrag_turns(found) if "tasks" in found else _inscit_turns(found):
        turns = (Turn("bot" if place % 2 else "user", text) for place, text in enumerate(said))
        yield LabelledMessage(Conversation(tuple(turns)), number == 1 or labels[key][number - 1] == "1")


def _inscit_turns(found: Mapping[str, Any]) -> Iterator[tuple[str, int, list[str]]]:
    for key, dialogue in found.items():
        for number, turn in enumerate(dialogue["turns"], start=1):
            yield key, number, turn["context"]


def _mtrag_turns(found: Mapping[str, Any]) -> Iterator[tuple[str, int, list[str]]]:
    for task in found["tasks"]:
        yield task["task_id"].split("<")[0], int(task["Turn"]), [said["text"] for said in task["input"]]


def standalone(
    files: Annotated[list[Path], typer.Argument(help="Conversations of TREC CAsT, INSCIT or MTRAG.")],
    listed: Annotated[bool, typer.Option("--list", help="List later messages that are taken, or stand alone.")] = False,
) -> None:
    """Measure which messages are searched as they are, and how many of those do stand alone.

    Example: footnote evaluate standalone data/trec_cast_2021_manual.json
    """
    found = {path.stem: read_messages(path) for path in files}
    every = [one for messages in found.values() for one in messages]
    rows = [
        (name, place, *count_taken([message for message in messages if message.first is (place == "first")]))
        for name, messages in (*found.items(), ("all", every))
        for place in ("first", "later")
    ]
    print(render_table(("messages", "", "in all", "stand alone", "taken", "precision", "recall"), rows))
    for one in every if listed else ():
        if not one.first and (one.taken or one.stands_alone):
            wrong = "" if one.stands_alone else ", WRONG"
            print(f"{'taken' if one.taken else 'left'}{wrong}: {one.talk.question.text}")


def count_taken(messages: Sequence[LabelledMessage]) -> tuple[int, int, int, str, str]:
    """Return how many there are, stand alone and are taken, and the precision and recall of these."""
    alone, taken = sum(one.stands_alone for one in messages), [message for message in messages if message.taken]
    right = sum(one.stands_alone for one in taken)
    precision, recall = (f"{right / whole:.3f}" if whole else "" for whole in (len(taken), alone))
    return len(messages), alone, len(taken), precision, recall
