"""`footnote evaluate systems`: the same conversations answered by two systems, and where what they say differs."""

import asyncio
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from bot.access import Asker
from bot.answering import answer
from bot.app import App, open_app
from bot.settings import Settings
from bot.turns import Answered, Asked
from evaluation.claims.altering import true_sentences
from evaluation.posing import Exam, read_exam
from evaluation.systems.conversing import Known, conversations
from evaluation.systems.model import reader
from ingest.refreshing import refresh
from storage.types import Verdict

QUESTIONS = Path(__file__).parents[1] / "questions" / "example_handbook.json"
SYSTEMS = ("wikichat", "wikichat-fast")
COUNT = 20
_ASKER = Asker(platform="terminal", kind="terminal")


@dataclass(frozen=True, slots=True)
class Spoken:
    """What one system made of a conversation."""

    status: str
    said: frozenset[str]
    withheld: int
    verdicts: Mapping[str, Verdict]
    """By claim of the model's own."""
    calls: int


@dataclass(frozen=True, slots=True)
class Pair:
    """What both made of it."""

    known: Known
    one: Spoken
    other: Spoken

    @property
    def differences(self) -> tuple[str, ...]:
        """What is not the same: sentences that only one said, verdicts, how it ended, and how much was withheld."""
        first, second = SYSTEMS
        alone = ((first, self.one.said - self.other.said), (second, self.other.said - self.one.said))
        found = [f"only {name} says: {text}" for name, texts in alone for text in sorted(texts)]
        found += [
            f"{self.one.verdicts.get(claim)} and {self.other.verdicts.get(claim)}: {claim}"
            for claim in sorted({*self.one.verdicts, *self.other.verdicts})
            if self.one.verdicts.get(claim) != self.other.verdicts.get(claim)
        ]
        if self.one.status != self.other.status:
            found.append(f"{first} {self.one.status}, {second} {self.other.status}")
        if self.one.withheld != self.other.withheld:
            found.append(f"{first} withholds {self.one.withheld}, {second} {self.other.withheld}")
        return tuple(found)


def systems(
    questions: Annotated[Path, typer.Argument(help="A file of questions over a handbook.")] = QUESTIONS,
    count: Annotated[int, typer.Option(min=1, help="How many conversations.")] = COUNT,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Answer conversations with wikichat and with wikichat-fast, and list what only one of them says.

    Search, prompts, gate and check are the real ones. The model is scripted: it takes sentences out by their words,
    copies notes, and adds false statements to what it claims and drafts. The exit status is 1 if a false one is said.

    Example: footnote evaluate systems --count 5
    """
    pairs = asyncio.run(compared(read_exam(questions), count))
    print(json.dumps({"schema": 1, "conversations": [_plain(one) for one in pairs]}) if as_json else table(pairs))
    if any(lies(one) for one in pairs):
        raise typer.Exit(1)


async def compared(exam: Exam, count: int) -> list[Pair]:
    """Index an exam's documents, and answer so many of its conversations by both systems."""
    sentences = (one.text for one in true_sentences(exam.source))
    chosen = conversations(exam.questions, sentences, count)
    with tempfile.TemporaryDirectory() as home:
        async with open_app(Settings(home=Path(home))) as app:
            await refresh(exam.source, exam.corpus, app.passages, progress=lambda _: None)
            return [Pair(one, *[await _spoken(app, one, name) for name in SYSTEMS]) for one in chosen]


async def _spoken(app: App, known: Known, system: str) -> Spoken:
    asked = Asked(known.posed.text, _ASKER, earlier=known.posed.talk.earlier, system=system)
    return spoken(await answer(replace(app, llm=reader(known)), asked, lambda _: None))


def spoken(done: Answered) -> Spoken:
    """Return of an answer what is compared."""
    verdicts = {one.claim.text: one.verdict for one in done.answer.claims if one.claim.origin == "model"}
    said = frozenset(sentence.text for sentence in done.answer.sentences)
    return Spoken(done.answer.status, said, done.answer.withheld, verdicts, done.usage.llm_calls)


def lies(pair: Pair) -> tuple[str, ...]:
    """Return the false statements that either said."""
    return tuple(text for text in pair.known.false if text in pair.one.said | pair.other.said)


def table(pairs: Sequence[Pair]) -> str:
    """Return a row for each conversation, what differs beneath, and a count of it all."""
    rows = [
        f"| {one.known.posed.text} | {one.one.status} | {len(one.one.said & one.other.said)} "
        f"| {len(one.one.said - one.other.said)} | {len(one.other.said - one.one.said)} "
        f"| {one.one.withheld}, {one.other.withheld} | {one.one.calls}, {one.other.calls} |"
        for one in pairs
    ]
    told = [f"{one.known.posed.text} {difference}" for one in pairs for difference in one.differences]
    alike, false = sum(not one.differences for one in pairs), sum(len(lies(one)) for one in pairs)
    lines = [
        "| question | ended | said by both | only by wikichat | only by wikichat-fast | withheld | calls |",
        "|---|---|---|---|---|---|---|",
        *rows,
        "",
        *told,
        f"{alike} of {len(pairs)} conversations are alike; {false} false statements said",
    ]
    return "\n".join(lines)


def _plain(pair: Pair) -> dict[str, Any]:
    ways = dict(zip(SYSTEMS, (pair.one, pair.other), strict=True))
    told = {
        name: {
            "status": one.status,
            "said": sorted(one.said),
            "withheld": one.withheld,
            "verdicts": dict(one.verdicts),
            "calls": one.calls,
        }
        for name, one in ways.items()
    }
    return {"question": pair.known.posed.text, "differences": pair.differences, "lies": lies(pair), **told}
