"""Ask a student held-out lessons, and compare its replies with its teacher's: `footnote distil compare`.

By stage: how often the format was kept, and how often both come to the same decision. `footnote evaluate dialogues`
with both models compares whole answers.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from bot.cli.command_context import JsonOption, format_examples, open_command
from bot.cli.terminal_output import build_document
from evaluation import EvaluationError
from evaluation.distillation.lesson_export import SPLITS, read_lessons
from evaluation.distillation.student_lessons import Lesson, read_lesson
from evaluation.reports.printing import render_table
from evaluation.reports.word_measures import f1
from pipeline.errors import PipelineError, UnreadableReply
from pipeline.llm.model import LLM, Budget, BudgetMeter, ChatMessage, ModelCall
from pipeline.stages.concurrency import gather_all

REPLY_TOKENS = 700


@dataclass(frozen=True, slots=True)
class StudentReply:
    """A student's reply to a lesson."""

    lesson: Lesson
    text: str
    readable: bool
    agrees: bool | None  # whether it decides as the teacher; None for free text
    overlap: float  # F1 of the words of both
    tokens: int
    seconds: float
    fault: str = ""  # why the reply is missing


def agrees(lesson: Lesson, value: Any, expected: Any) -> bool | None:
    """Return whether two replies to a lesson make the same decision; None for free text."""
    decide = _DECISIONS.get(lesson.template)
    return decide(value) == decide(expected) if decide else None


def _cited(items: Sequence[Any]) -> frozenset[int]:
    """Return the numbers of the sentences that bullets or sentences of a draft cite."""
    return frozenset(number for item in items for number in getattr(item, "sentences", getattr(item, "numbers", ())))


def _rulings(rulings: Sequence[Any]) -> dict[int, object]:
    return {ruling.claim: ruling.found.verdict for ruling in rulings}


_DECISIONS: Mapping[str, Callable[[Any], object]] = {
    "query": lambda found: (found is None, found and found.time),
    "web_query": lambda found: (found is None, found and found.time),
    "need": lambda found: found is None,
    "summarise": _cited,
    "bullets": _cited,
    "split": len,
    "claims": len,
    "verify": lambda found: found.verdict,
    "verdicts": _rulings,
    "answer": _cited,
}  # the decision of a reply: the search and its time, the cited sentences, the number of claims, the verdicts


async def ask_student(lesson: Lesson, llm: LLM, spent: BudgetMeter) -> StudentReply:
    """Ask a model a lesson, once."""
    messages = (ChatMessage("system", lesson.instruction), ChatMessage("user", lesson.input))
    try:
        reply = await llm.complete(ModelCall(lesson.stage, messages, max_tokens=REPLY_TOKENS), spent)
    except PipelineError as error:
        return StudentReply(lesson, "", readable=False, agrees=False, overlap=0, tokens=0, seconds=0, fault=str(error))
    readable, same = True, None
    try:
        same = agrees(lesson, read_lesson(replace(lesson, output=reply.text)), read_lesson(lesson))
    except UnreadableReply:
        readable = False
    return StudentReply(
        lesson,
        reply.text,
        readable=readable,
        agrees=same if readable else False,
        overlap=f1(reply.text, lesson.output),
        tokens=reply.completion_tokens,
        seconds=reply.milliseconds / 1_000,
    )


def compare(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(help="The folder that `footnote distil export` wrote.")],
    split: Annotated[str, typer.Option(help=f"Which lessons: {', '.join(SPLITS)}.")] = "test",
    count: Annotated[int, typer.Option(min=1, help="How many lessons at most.")] = 200,
    as_json: JsonOption = False,
) -> None:
    """Ask the configured model the held-out lessons, and compare it with its teacher by stage."""
    with open_command(context, as_json=as_json) as ctx:
        lessons = read_lessons(folder / f"{split}.jsonl")[:count]
        if not lessons:
            raise EvaluationError(f"{folder} has no lessons in its {split} split.", hint="Name another with --split.")
        model = ctx.settings.model
        if not model.configured:
            raise EvaluationError(
                "No model is configured.", hint="Set OPENAI_BASE_URL and OPENAI_MODEL to the student's server."
            )
        opening = ctx.services.open_model(model.plain())
        replies = ctx.call(opening, lambda llm: ask_all(lessons, llm, model.max_concurrency))
        figures = summarise(replies)
        if all(reply.fault for reply in replies):
            raise EvaluationError(
                f"The student answered no example; the first failure: {replies[0].fault}", hint="Check its server."
            )
        ctx.output.give(build_document(split=split, stages=figures), _render(figures))


EPILOG = format_examples("footnote distil compare lessons/ --split test")


async def ask_all(lessons: Sequence[Lesson], llm: LLM, at_once: int) -> tuple[StudentReply, ...]:
    """Ask all lessons, `at_once` at a time, and return the replies in order."""
    spent = BudgetMeter(Budget(calls=10 * len(lessons), tokens=100_000 * len(lessons)))
    free = asyncio.Semaphore(at_once)

    async def ask(lesson: Lesson) -> StudentReply:
        async with free:
            return await ask_student(lesson, llm, spent)

    return tuple(await gather_all(map(ask, lessons)))


def summarise(replies: Sequence[StudentReply]) -> list[dict[str, Any]]:
    """Return the figures of each template, and of all."""
    groups = {
        name: [reply for reply in replies if reply.lesson.template == name] for name in _sorted_templates(replies)
    }
    return [_summarise_group(name, group) for name, group in (*groups.items(), ("all", list(replies)))]


def _sorted_templates(replies: Sequence[StudentReply]) -> list[str]:
    return sorted({reply.lesson.template for reply in replies})


def _summarise_group(name: str, replies: Sequence[StudentReply]) -> dict[str, Any]:
    decided = [reply.agrees for reply in replies if reply.agrees is not None]
    return {
        "template": name,
        "lessons": len(replies),
        "format_kept": sum(reply.readable for reply in replies) / len(replies),
        "agrees": sum(decided) / len(decided) if decided else None,
        "words_in_common": sum(reply.overlap for reply in replies) / len(replies),
        "reply_tokens": sum(reply.tokens for reply in replies) / len(replies),
        "seconds": sum(reply.seconds for reply in replies) / len(replies),
        "no_reply": sum(bool(reply.fault) for reply in replies),
    }


def _render(figures: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        (
            figure["template"],
            figure["lessons"],
            f"{figure['format_kept']:.2f}",
            "–" if figure["agrees"] is None else f"{figure['agrees']:.2f}",
            f"{figure['words_in_common']:.2f}",
            f"{figure['reply_tokens']:.0f}",
            f"{figure['seconds']:.2f}",
            figure["no_reply"],
        )
        for figure in figures
    ]
    head = ("template", "lessons", "format kept", "says the same", "words in common", "tokens", "seconds", "no reply")
    return render_table(head, rows)
