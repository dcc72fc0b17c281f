"""Measure the rule by which some messages are searched unchanged: how many of these are self-contained.

In TREC CAsT, a message is self-contained if its manual rewrite has the same words. For INSCIT and MTRAG, a reader's
labels are in standalone_labels.json.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from evaluation.answers.question_sets import UnreadableSet
from evaluation.reports.printing import render_table
from pipeline.stages.question_analysis import read_as_query
from pipeline.types import Conversation, Turn

LABELS = Path(__file__).with_name("standalone_labels.json")
"""A string for each conversation, with 1 for each self-contained turn and 0 for each other turn."""


@dataclass(frozen=True, slots=True)
class LabelledMessage:
    talk: Conversation
    standalone: bool

    @property
    def first(self) -> bool:
        return len(self.talk.turns) == 1

    @property
    def accepted(self) -> bool:
        return read_as_query(self.talk) is not None


def read_messages(path: Path) -> tuple[LabelledMessage, ...]:
    """Read conversations in the published formats of TREC CAsT, INSCIT or MTRAG. Raises `UnreadableSet`.

    The first message of a conversation always counts as self-contained.
    """
    labels: Mapping[str, str] = json.loads(LABELS.read_text(encoding="utf-8"))
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return tuple(_read_rewritten(document) if isinstance(document, list) else _read_labelled(document, labels))
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        message = f"{path} has no labelled conversations of TREC CAsT, INSCIT or MTRAG."
        raise UnreadableSet(message, hint="Give an unmodified file of one of these data sets.") from error


def _read_rewritten(topics: list[dict[str, Any]]) -> Iterator[LabelledMessage]:
    for topic in topics:
        turns = list[Turn]()
        for turn in topic["turn"]:
            raw = turn["raw_utterance"]
            alone = not turns or _plain(raw) == _plain(turn["manual_rewritten_utterance"])
            yield LabelledMessage(Conversation((*turns, Turn("user", raw))), alone)
            turns += [Turn("user", raw), Turn("bot", turn.get("passage") or "")]


def _plain(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold().removeprefix("utterance: "))


def _read_labelled(document: Mapping[str, Any], labels: Mapping[str, str]) -> Iterator[LabelledMessage]:
    for key, number, messages in _mtrag_turns(document) if "tasks" in document else _inscit_turns(document):
        turns = (Turn("bot" if place % 2 else "user", text) for place, text in enumerate(messages))
        yield LabelledMessage(Conversation(tuple(turns)), number == 1 or labels[key][number - 1] == "1")


def _inscit_turns(document: Mapping[str, Any]) -> Iterator[tuple[str, int, list[str]]]:
    for key, dialogue in document.items():
        for number, turn in enumerate(dialogue["turns"], start=1):
            yield key, number, turn["context"]


def _mtrag_turns(document: Mapping[str, Any]) -> Iterator[tuple[str, int, list[str]]]:
    for task in document["tasks"]:
        yield task["task_id"].split("<")[0], int(task["Turn"]), [message["text"] for message in task["input"]]


def standalone(
    files: Annotated[list[Path], typer.Argument(help="Conversations of TREC CAsT, INSCIT or MTRAG.")],
    listed: Annotated[
        bool, typer.Option("--list", help="List accepted or self-contained messages after the first.")
    ] = False,
) -> None:
    """Measure which messages are searched unchanged, and how many of those are self-contained.

    Example: footnote evaluate standalone data/trec_cast_2021_manual.json
    """
    messages_by_file = {path.stem: read_messages(path) for path in files}
    all_messages = [message for messages in messages_by_file.values() for message in messages]
    rows = [
        (name, place, *count_accepted([message for message in messages if message.first is (place == "first")]))
        for name, messages in (*messages_by_file.items(), ("all", all_messages))
        for place in ("first", "later")
    ]
    print(render_table(("messages", "", "in all", "self-contained", "accepted", "precision", "recall"), rows))
    for message in all_messages if listed else ():
        if not message.first and (message.accepted or message.standalone):
            wrong = "" if message.standalone else ", WRONG"
            print(f"{'accepted' if message.accepted else 'skipped'}{wrong}: {message.talk.question.text}")


def count_accepted(messages: Sequence[LabelledMessage]) -> tuple[int, int, int, str, str]:
    """Return the numbers of all, self-contained and accepted messages, then the rule's precision and recall."""
    alone = sum(message.standalone for message in messages)
    accepted = [message for message in messages if message.accepted]
    right = sum(message.standalone for message in accepted)
    precision, recall = (f"{right / whole:.3f}" if whole else "" for whole in (len(accepted), alone))
    return len(messages), alone, len(accepted), precision, recall
