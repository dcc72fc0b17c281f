"""Compare systems over the same conversations with the same scripted model.

For an answerable question, the model says the true sentence, and the same sentence with another number. For any other
question, it makes up a claim. Systems must withhold all its false statements.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from bot.answering.question_answering import answer
from bot.app import App
from bot.types import TurnRequest
from evaluation.answers.model_alone import NAME, UncheckedReply, ask_alone
from evaluation.answers.question_sets import Exam, ExamQuestion, find_true_sentences, has_all_strings, read_exam
from evaluation.reports.printing import AsJson, fail_unless, print_report, render_table
from evaluation.simulated_model.model_replies import CLAIM_LINE, NOTE_LINE, SENTENCE_LINE, write_verdicts
from evaluation.simulated_model.scripted_llm import ScriptedLLM, script_stages
from evaluation.workbench import EXAMPLE_QUESTIONS, TERMINAL, open_corpus
from pipeline.systems import DEFAULT_SYSTEM, SYSTEMS, find_system
from storage.language.words import content_terms

NUMBER_CHANGE = 7
_NUMBER = re.compile(r"(?<![\d.,])\d{1,4}(?![\d.,]*\d)")
_MADE_UP = "The number of the thing that is asked for is 4711."


@dataclass(frozen=True, slots=True)
class ScriptedConversation:
    """A conversation, with the true and the false statements that the scripted model makes in it."""

    posed: ExamQuestion
    true: tuple[str, ...]
    false: tuple[str, ...]


def choose_conversations(
    questions: Sequence[ExamQuestion], sentences: Iterable[str], count: int
) -> tuple[ScriptedConversation, ...]:
    """Return at most `count` conversations, a fifth unanswerable. `sentences` are all those of the documents."""
    every = tuple(sentences)
    known = [script for posed in questions if posed.answers and (script := _script_conversation(posed, every))]
    unknown = [ScriptedConversation(posed, (), (_MADE_UP,)) for posed in questions if not posed.answers][: count // 5]
    return (*known[: count - len(unknown)], *unknown)


def _script_conversation(posed: ExamQuestion, sentences: Sequence[str]) -> ScriptedConversation | None:
    answering = (text for text in sentences if any(has_all_strings(strings, text) for strings in posed.answers))
    true = next((text for text in answering if _NUMBER.search(text)), None)
    return ScriptedConversation(posed, (true,), (falsify(true),)) if true else None


def falsify(statement: str) -> str:
    """Return a statement with another first number; if it has no number, a made-up statement."""
    false = _NUMBER.sub(lambda match: str(int(match[0]) + NUMBER_CHANGE), statement, count=1)
    return false if false != statement else _MADE_UP


_PIECES = r"(?s).{1,9}"  # small enough to split words and marks
_MOST_NOTES = 4
_LEAST_OVERLAP = 0.6  # share of a claim's words, and of a question's, that a sentence must have
_FEEDBACK = "\n".join(
    f"{name}: It is as it should be. 100/100"
    for name in ("Relevant", "Natural", "Non-repetitive", "Temporally correct")
)


def _reply_query(known: ScriptedConversation, _: str) -> str:
    return f"Search: yes\nQuery: {known.posed.text.rstrip('?')}\nTime: none"


def _reply_summary(known: ScriptedConversation, turn: str) -> str:
    terms = set(content_terms(known.posed.text))
    bullets = [
        f"- {text} [{number}]"
        for number, text in SENTENCE_LINE.findall(turn)
        if len(terms & set(content_terms(text))) >= _LEAST_OVERLAP * len(terms) or text in known.true
    ]
    return "\n".join(bullets) or "None"


def _reply_claims(known: ScriptedConversation, turn: str) -> str:
    statements = (*known.true, *known.false)
    if "Which claims" in turn or "Which facts" in turn:
        return "\n".join(f"- {text} | none" for text in statements)
    return " ".join(statements)


def _reply_verdicts(_: ScriptedConversation, turn: str) -> str:
    sentences = SENTENCE_LINE.findall(turn)
    return write_verdicts(
        [(number, *_judge_claim(claim, sentences)) for number, claim in CLAIM_LINE.findall(turn)], turn
    )


def _judge_claim(claim: str, sentences: list[tuple[str, str]]) -> tuple[str, str]:
    """Return a verdict by common words, and the number of the deciding sentence. Differing numbers refute."""
    terms = {term for term in content_terms(claim) if not term.isdigit()}
    shares = {number: len(terms & set(content_terms(text))) / max(1, len(terms)) for number, text in sentences}
    best = max(shares, key=lambda number: shares[number], default="")
    if not best or shares[best] < _LEAST_OVERLAP:
        return "NOT ENOUGH INFO", ""
    figures = set(re.findall(r"\d+", claim))
    return ("SUPPORTS" if figures <= set(re.findall(r"\d+", dict(sentences)[best])) else "REFUTES"), best


def _reply_draft(known: ScriptedConversation, turn: str) -> str:
    """Copy the notes, and add the false statements, which cite the first note."""
    notes = NOTE_LINE.findall(turn)[:_MOST_NOTES]
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
}
"""Functions that reply at each stage, from the conversation and the last message of the prompt."""

CONVERSATIONS = 20
COMPARED = ("wikichat", DEFAULT_SYSTEM)


@dataclass(frozen=True, slots=True)
class SystemReply:
    """A system's reply to one question."""

    system: str
    status: str
    said: frozenset[str]
    withheld: int
    calls: int


@dataclass(frozen=True, slots=True)
class ComparedReplies:
    """The replies of several systems to one question."""

    known: ScriptedConversation
    replies: tuple[SystemReply, ...]
    alone: UncheckedReply | None = None  # the model's own reply

    @property
    def lies(self) -> tuple[str, ...]:
        """The false statements that any system said."""
        return tuple(text for text in self.known.false if any(text in reply.said for reply in self.replies))


def systems(
    questions: Annotated[Path, typer.Argument(help="A file of questions over a handbook.")] = EXAMPLE_QUESTIONS,
    count: Annotated[int, typer.Option(min=1, help="How many conversations.")] = CONVERSATIONS,
    system: Annotated[list[str] | None, typer.Option(help=f"Systems; default: {' and '.join(COMPARED)}.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All systems.")] = False,
    alone: Annotated[bool, typer.Option("--alone", help="Also ask the model alone, unchecked.")] = False,
    as_json: AsJson = False,
) -> None:
    """Answer the same conversations with several systems.

    Search, prompts, gate and check are the real ones. The model is scripted: it extracts sentences by their words,
    copies notes, and adds false statements to its claims and drafts. The exit status is 1 if a system says one of them.

    Example: footnote evaluate systems --all --alone --count 5
    """
    names = tuple(find_system(name).name for name in (system or (SYSTEMS if every else COMPARED)))
    compared = asyncio.run(compare_systems(read_exam(questions), count, names, alone=alone))
    documents = [_replies_document(replies) for replies in compared]
    print_report({"conversations": documents}, render_comparison(compared), as_json=as_json)
    fail_unless(not replies.lies for replies in compared)


async def compare_systems(
    exam: Exam, count: int, systems: Sequence[str], home: Path | None = None, *, alone: bool = False
) -> list[ComparedReplies]:
    """Ask systems the chosen questions of an exam, over an index in a named home or a temporary one."""
    sentences = (true_sentence.text for true_sentence in find_true_sentences(exam.source))
    chosen = choose_conversations(exam.questions, sentences, count)
    async with open_corpus(exam.source, exam.corpus, home) as app:
        return [await _ask_systems(app, known, systems, alone=alone) for known in chosen]


def open_scripted_model(known: ScriptedConversation) -> ScriptedLLM:
    """Return a model that replies from the conversation's statements and from its prompts."""
    return script_stages("scripted", {stage: partial(reply, known) for stage, reply in _REPLIES.items()}, _PIECES)


async def _ask_systems(
    app: App, known: ScriptedConversation, systems: Sequence[str], *, alone: bool
) -> ComparedReplies:
    reader = open_scripted_model(known)
    replies = tuple([await _ask_system(replace(app, llm=reader), known, name) for name in systems])
    by_itself = await ask_alone(known.posed.talk, reader, now=datetime.now(UTC)) if alone else None
    return ComparedReplies(known, replies, by_itself)


async def _ask_system(app: App, known: ScriptedConversation, system: str) -> SystemReply:
    request = TurnRequest(known.posed.text, TERMINAL, earlier=known.posed.talk.earlier, system=system)
    done = await answer(app, request, lambda _: None)
    sentences = frozenset(sentence.text for sentence in done.answer.sentences)
    return SystemReply(system, done.answer.status, sentences, done.answer.withheld, done.usage.llm_calls)


def render_comparison(conversations: Sequence[ComparedReplies]) -> str:
    head = ("system", "answered", "abstained", "sentences", "true", "false", "withheld", "calls a turn")
    rows = [_summarise_system(conversations, place) for place in range(len(conversations[0].replies))]
    if unchecked := [
        (conversation.known, conversation.alone.unchecked) for conversation in conversations if conversation.alone
    ]:
        true = sum(statement in text for known, text in unchecked for statement in known.true)
        false = sum(statement in text for known, text in unchecked for statement in known.false)
        rows.append((NAME, len(unchecked), 0, "", true, false, 0, "1.0"))
    return (
        f"{render_table(head, rows)}\n\n{sum(len(compared.lies) for compared in conversations)} false statements said"
    )


def _summarise_system(conversations: Sequence[ComparedReplies], place: int) -> tuple[object, ...]:
    pairs = [(compared.known, compared.replies[place]) for compared in conversations]
    ended = Counter(reply.status for _, reply in pairs)
    true = sum(len(reply.said & {*known.true}) for known, reply in pairs)
    false = sum(len(reply.said & {*known.false}) for known, reply in pairs)
    sentences = sum(len(reply.said) for _, reply in pairs)
    withheld = sum(reply.withheld for _, reply in pairs)
    calls = f"{sum(reply.calls for _, reply in pairs) / len(pairs):.1f}"
    return (pairs[0][1].system, ended["answered"], ended["abstained"], sentences, true, false, withheld, calls)


def _replies_document(compared: ComparedReplies) -> dict[str, Any]:
    replies = {reply.system: asdict(reply) | {"said": sorted(reply.said)} for reply in compared.replies}
    for reply in replies.values():
        del reply["system"]
    return {
        "question": compared.known.posed.text,
        "lies": compared.lies,
        **({"unchecked": compared.alone.unchecked} if compared.alone else {}),
        **replies,
    }
