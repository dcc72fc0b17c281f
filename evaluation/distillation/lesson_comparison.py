"""Ask a student held-out lessons, and compare its replies with its teacher's: `footnote distil compare`.

The comparison shows, for each stage, how often the student kept the format and made the teacher's decision. One that
agrees no more than the commonest decision knows formats alone. `footnote evaluate dialogues` compares whole answers.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from bot.cli.command_context import JsonOption, format_examples, open_command
from bot.cli.terminal_output import build_document
from evaluation import EvaluationError
from evaluation.distillation.lesson_export import SPLITS, read_lessons
from evaluation.distillation.student_lessons import Lesson, read_lesson
from evaluation.reports.printing import compute_mean, format_figure, render_table
from evaluation.reports.word_measures import f1
from evaluation.workbench import gather_limited
from pipeline.errors import PipelineError, UnreadableReply
from pipeline.llm.model import LLM, Budget, BudgetMeter, ChatMessage, ModelCall

REPLY_TOKENS = 700


@dataclass(frozen=True, slots=True)
class StudentReply:
    """A student's reply to a lesson."""

    lesson: Lesson
    text: str
    readable: bool
    agrees: bool | None  # whether its decision is the teacher's; None for free text
    overlap: float  # F1 of the words of both
    tokens: int
    seconds: float
    fault: str = ""  # why the reply is missing


def agrees(lesson: Lesson, value: Any, expected: Any) -> bool | None:
    """Return whether two replies to a lesson make the same decision; None if they are free text."""
    decide = _DECISIONS.get(lesson.template)
    return decide(value) == decide(expected) if decide else None


def _cited(items: Sequence[Any]) -> frozenset[int]:
    """Return the numbers of the sentences that bullets, or sentences of a draft, cite."""
    return frozenset(number for item in items for number in getattr(item, "sentences", getattr(item, "numbers", ())))


def _rulings(rulings: Sequence[Any]) -> frozenset[tuple[int, object]]:
    return frozenset({ruling.claim: ruling.found.verdict for ruling in rulings}.items())


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
}
"""The decision in a reply, by template: search and time, cited sentences, number of claims, or verdicts."""


async def ask_student(lesson: Lesson, llm: LLM, spent: BudgetMeter) -> StudentReply:
    """Have a model reply to a lesson, once."""
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
    """Ask the configured model the held-out lessons, and compare it with its teacher at each stage."""
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
    """Have a model reply to all lessons, `at_once` at a time. Replies are in the order of the lessons."""
    spent = BudgetMeter(Budget(calls=10 * len(lessons), tokens=100_000 * len(lessons)))
    return await gather_limited(at_once, lambda lesson: ask_student(lesson, llm, spent), lessons)


def summarise(replies: Sequence[StudentReply]) -> list[dict[str, Any]]:
    """Return the figures of each template, and of all templates together."""
    names = sorted({reply.lesson.template for reply in replies})
    groups = [(name, [reply for reply in replies if reply.lesson.template == name]) for name in names]
    return [
        {
            "template": name,
            "lessons": len(group),
            **{figure: compute_mean(map(measure, group)) for figure, (_, measure, _) in _MEANS.items()},
            "commonest_decision": _share_commonest(reply.lesson for reply in group),
            "no_reply": sum(bool(reply.fault) for reply in group),
        }
        for name, group in (*groups, ("all", replies))
    ]


def _share_commonest(lessons: Iterable[Lesson]) -> float | None:
    """Return how often a template's most frequent decision is the teacher's; None if all replies are free text."""
    counts = defaultdict[str, Counter[object]](Counter)
    for lesson in lessons:
        if decide := _DECISIONS.get(lesson.template):
            counts[lesson.template][decide(read_lesson(lesson))] += 1
    right, decided = (sum(map(count, counts.values())) for count in (lambda each: max(each.values()), Counter.total))
    return right / decided if decided else None


_MEANS: Mapping[str, tuple[str, Callable[[StudentReply], float | None], str]] = {
    "format_kept": ("format kept", lambda reply: reply.readable, ".2f"),
    "agrees": ("same decision", lambda reply: reply.agrees, ".2f"),
    "words_in_common": ("words in common", lambda reply: reply.overlap, ".2f"),
    "reply_tokens": ("tokens", lambda reply: reply.tokens, ".0f"),
    "seconds": ("seconds", lambda reply: reply.seconds, ".2f"),
}
"""The means over replies by their names in JSON: title, value of a reply, and format."""


def _render(figures: Sequence[Mapping[str, Any]]) -> str:
    head = ("template", "lessons", *(title for title, _, _ in _MEANS.values()), "commonest decision", "no reply")
    forms = {name: form for name, (_, _, form) in _MEANS.items()} | {"commonest_decision": ".2f"}
    means = ([format_figure(figure[name], form) for name, form in forms.items()] for figure in figures)
    ends = ((figure["template"], figure["lessons"], figure["no_reply"]) for figure in figures)
    return render_table(
        head, [(name, count, *cells, lost) for (name, count, lost), cells in zip(ends, means, strict=True)]
    )
