"""Compare two systems over the same conversations with the same scripted model, and list where they differ.

Of a question that is answered the model knows the true sentence and the same with another number; of one that is not it
makes something up. Whatever it claims besides the truth must be withheld.
"""

import asyncio
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from bot.answering import answer
from bot.desk.types import TurnRequest
from bot.wiring import App
from evaluation.question_sets import Exam, ExamQuestion, find_true_sentences, has_all_strings, read_exam
from evaluation.workbench import EXAMPLE_QUESTIONS, TERMINAL, StagedLLM, open_corpus, render_table
from pipeline.systems import DEFAULT_SYSTEM, find_system
from storage.language.words import content_terms
from storage.types import Verdict

NUMBER_CHANGE = 7
_NUMBER = re.compile(r"(?<![\d.,])\d{1,4}(?![\d.,]*\d)")
_MADE_UP = "The number of the thing that is asked for is 4711."


@dataclass(frozen=True, slots=True)
class ScriptedConversation:
    """A conversation, and what the model claims by itself: true statements, and false ones."""

    posed: ExamQuestion
    true: tuple[str, ...]
    false: tuple[str, ...]


def choose_conversations(
    questions: Sequence[ExamQuestion], sentences: Iterable[str], count: int
) -> tuple[ScriptedConversation, ...]:
    """Return at most `count` conversations, a fifth of them about what nothing answers.

    `sentences` are all those of the documents.
    """
    every = tuple(sentences)
    known = [one for posed in questions if posed.answers and (one := _script_conversation(posed, every))]
    unknown = [ScriptedConversation(posed, (), (_MADE_UP,)) for posed in questions if not posed.answers]
    vain = unknown[: count // 5]
    return (*known[: count - len(vain)], *vain)


def _script_conversation(posed: ExamQuestion, sentences: Sequence[str]) -> ScriptedConversation | None:
    answering = (text for text in sentences if any(has_all_strings(strings, text) for strings in posed.answers))
    true = next((text for text in answering if _NUMBER.search(text)), None)
    if not true:
        return None
    false = _NUMBER.sub(lambda match: str(int(match[0]) + NUMBER_CHANGE), true, count=1)
    return ScriptedConversation(posed, (true,), (false,))


_PIECE = 9
_MOST_NOTES = 4
_LEAST_OVERLAP = 0.6  # share of a claim's words, and of a question's, that a sentence must have
_NUMBERED = re.compile(r"^(\d+): (.*)$", re.MULTILINE)
_NOTE = re.compile(r"^\[(\d+)\] (.*) \(from: .*\)$", re.MULTILINE)
_CLAIM = re.compile(r"^Claim(?: (\d+))?: (.*)$", re.MULTILINE)
_FEEDBACK = "\n".join(
    f"{name}: It is as it should be. 100/100"
    for name in ("Relevant", "Natural", "Non-repetitive", "Temporally correct")
)


def _reply_query(known: ScriptedConversation, _: str) -> str:
    return f"Search: yes\nQuery: {known.posed.text.rstrip('?')}\nTime: none"


def _reply_summary(known: ScriptedConversation, turn: str) -> str:
    asked = set(content_terms(known.posed.text))
    bullets = [
        f"- {text} [{number}]"
        for number, text in _NUMBERED.findall(turn)
        if len(asked & set(content_terms(text))) >= _LEAST_OVERLAP * len(asked) or text in known.true
    ]
    return "\n".join(bullets) or "None"


def _reply_claims(known: ScriptedConversation, turn: str) -> str:
    said = (*known.true, *known.false)
    if "Which claims" in turn or "Which facts" in turn:
        return "\n".join(f"- {text} | none" for text in said)
    return " ".join(said)


def _reply_verdicts(_: ScriptedConversation, turn: str) -> str:
    sentences = _NUMBERED.findall(turn)
    lines = [(number, *_judge_claim(claim, sentences)) for number, claim in _CLAIM.findall(turn)]
    if lines[0][0]:
        return "\n".join(
            f"{claim}. {verdict}{f' [{named}]' if named else ''} So it is." for claim, verdict, named in lines
        )
    _, verdict, named = lines[0]
    return f"Reasoning: So it is.\nSentences: {named or '-'}\nVerdict: {verdict}"


def _judge_claim(claim: str, sentences: list[tuple[str, str]]) -> tuple[str, str]:
    """Return a verdict by words, and the number of the sentence that settles it: other numbers refute."""
    terms = {term for term in content_terms(claim) if not term.isdigit()}
    shares = {number: len(terms & set(content_terms(text))) / max(1, len(terms)) for number, text in sentences}
    best = max(shares, key=lambda number: shares[number], default="")
    if not best or shares[best] < _LEAST_OVERLAP:
        return "NOT ENOUGH INFO", ""
    figures = set(re.findall(r"\d+", claim))
    return ("SUPPORTS" if figures <= set(re.findall(r"\d+", dict(sentences)[best])) else "REFUTES"), best


def _reply_draft(known: ScriptedConversation, turn: str) -> str:
    """Copy the notes, and repeat what is false as if the first of them said so."""
    notes = _NOTE.findall(turn)[:_MOST_NOTES]
    copied = [f"{text.rstrip('.')} [{number}]." for number, text in notes]
    lies = [f"{text.rstrip('.')} [{notes[0][0]}]." for text in known.false] if notes else []
    return " ".join((*copied, *lies)) or "NOTHING"


_REPLIES: Mapping[str, Callable[[ScriptedConversation, str], str]] = {
    "query": _reply_query,
    "summarise": _reply_summary,
    "generate": _reply_claims,
    "split": _reply_claims,
    "verify": _reply_verdicts,
    "draft": _reply_draft,
    "refine": lambda _, __: _FEEDBACK,
}  # the reply at each stage, by the conversation and the last message of the prompt

CONVERSATIONS = 20
COMPARED = ("wikichat", DEFAULT_SYSTEM)  # two that should say the same


@dataclass(frozen=True, slots=True)
class SystemReply:
    system: str
    status: str
    said: frozenset[str]
    withheld: int
    verdicts: Mapping[str, Verdict]
    calls: int


@dataclass(frozen=True, slots=True)
class ReplyPair:
    known: ScriptedConversation
    one: SystemReply
    other: SystemReply

    @property
    def differences(self) -> tuple[str, ...]:
        """List what differs: sentences that only one said, verdicts, the status, and how much was withheld."""
        first, second = self.one.system, self.other.system
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
    questions: Annotated[Path, typer.Argument(help="A file of questions over a handbook.")] = EXAMPLE_QUESTIONS,
    count: Annotated[int, typer.Option(min=1, help="How many conversations.")] = CONVERSATIONS,
    system: Annotated[list[str] | None, typer.Option(help=f"Which two; {' and '.join(COMPARED)} if none.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Answer the same conversations with two systems, and list what only one of them says.

    Search, prompts, gate and check are the real ones. The model is scripted: it takes sentences out by their words,
    copies notes, and adds false statements to what it claims and drafts. The exit status is 1 if a false one is said.

    Example: footnote evaluate systems --count 5
    """
    names = system or COMPARED
    if len(names) != 2:
        raise typer.BadParameter("Two systems are compared.")
    first, second = (find_system(name).name for name in names)
    pairs = asyncio.run(compare_systems(read_exam(questions), count, (first, second)))
    print(
        json.dumps({"schema": 1, "conversations": [_pair_document(one) for one in pairs]})
        if as_json
        else render_comparison(pairs)
    )
    if any(false_statements(one) for one in pairs):
        raise typer.Exit(1)


async def compare_systems(
    exam: Exam, count: int, systems: tuple[str, str], home: Path | None = None
) -> list[ReplyPair]:
    """Hold conversations with two systems, over an index that is kept in `home` if it is named."""
    sentences = (one.text for one in find_true_sentences(exam.source))
    chosen = choose_conversations(exam.questions, sentences, count)
    async with open_corpus(exam.source, exam.corpus, home) as app:
        return [ReplyPair(one, *[await _ask_system(app, one, name) for name in systems]) for one in chosen]


async def _ask_system(app: App, known: ScriptedConversation, system: str) -> SystemReply:
    asked = TurnRequest(known.posed.text, TERMINAL, earlier=known.posed.talk.earlier, system=system)
    reader = StagedLLM("reader", {stage: partial(say, known) for stage, say in _REPLIES.items()}, _PIECE)
    done = await answer(replace(app, llm=reader), asked, lambda _: None)
    verdicts = {one.claim.text: one.verdict for one in done.answer.claims if one.claim.origin == "model"}
    said = frozenset(sentence.text for sentence in done.answer.sentences)
    return SystemReply(system, done.answer.status, said, done.answer.withheld, verdicts, done.usage.llm_calls)


def false_statements(pair: ReplyPair) -> tuple[str, ...]:
    return tuple(text for text in pair.known.false if text in pair.one.said | pair.other.said)


def render_comparison(pairs: Sequence[ReplyPair]) -> str:
    head = (
        "question",
        "ended",
        "said by both",
        *(f"only by {one.system}" for one in (pairs[0].one, pairs[0].other)),
        "withheld",
        "calls",
    )
    rows = [_comparison_row(one.known.posed.text, one.one, one.other) for one in pairs]
    listed = [f"{one.known.posed.text} {difference}" for one in pairs for difference in one.differences]
    alike, false = sum(not one.differences for one in pairs), sum(len(false_statements(one)) for one in pairs)
    count = f"{alike} of {len(pairs)} conversations are alike; {false} false statements said"
    return "\n".join((render_table(head, rows), "", *listed, count))


def _comparison_row(question: str, one: SystemReply, other: SystemReply) -> tuple[object, ...]:
    said = (len(one.said & other.said), len(one.said - other.said), len(other.said - one.said))
    return (question, one.status, *said, f"{one.withheld}, {other.withheld}", f"{one.calls}, {other.calls}")


def _pair_document(pair: ReplyPair) -> dict[str, Any]:
    replies = {
        one.system: {
            "status": one.status,
            "said": sorted(one.said),
            "withheld": one.withheld,
            "verdicts": dict(one.verdicts),
            "calls": one.calls,
        }
        for one in (pair.one, pair.other)
    }
    return {
        "question": pair.known.posed.text,
        "differences": pair.differences,
        "lies": false_statements(pair),
        **replies,
    }
