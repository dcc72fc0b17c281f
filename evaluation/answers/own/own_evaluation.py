"""Ask systems a team's own questions: `footnote evaluate mine`."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import count, islice, product
from pathlib import Path
from typing import Annotated, Any

import typer

from bot.answering.question_answering import answer
from bot.app import App
from bot.cli.command_context import CommandContext, JsonOption, format_examples, open_command
from bot.cli.terminal_output import build_document, show_progress
from bot.types import TurnRequest
from evaluation import EvaluationError
from evaluation.answers.own.own_questions import MOST_OF_DOCUMENT, QuestionMaking
from evaluation.answers.own.question_file import OwnQuestion, read_questions, write_questions
from evaluation.answers.question_sets import has_all_strings
from evaluation.reports.printing import MISSING, compute_mean, format_figure, format_interval, render_table
from evaluation.reports.significance import SIGNIFICANT, compare_paired, estimate_share
from evaluation.reports.word_measures import f1
from evaluation.system_variants import SystemVariant, parse_variant
from evaluation.workbench import TERMINAL, gather_limited
from pipeline.llm.server_load import LoadWatch
from pipeline.systems import SYSTEMS

AT_ONCE = 4  # concurrent questions
MADE_ARE_FOUND = (
    "A question is made only if the search finds its section; of other questions, fewer will be answered right."
)
ABSTAINED = frozenset({"abstained", "chatted"})


@dataclass(frozen=True, slots=True)
class OwnOutcome:
    """A system's reply to a question, with its quality and cost."""

    question: OwnQuestion
    status: str
    text: str
    right: bool  # answered correctly, or abstained from an unanswerable question
    overlap: float  # F1 of the words of the reply and the expected answer
    seconds: float
    tokens: int
    cost: float | None


def is_right(question: OwnQuestion, status: str, text: str, cited: Sequence[tuple[str, str, str]]) -> bool:
    """Return whether a reply is right. `cited` has the corpus, document and section of each footnote."""
    if not question.answerable:
        return status in ABSTAINED
    if status != "answered":
        return False
    if question.answer:
        return has_all_strings(question.answer, text)
    return any(
        (question.corpus or corpus, question.document, question.section or section) == (corpus, document, section)
        for corpus, document, section in cited
    )


def mine(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="The file of questions; created if missing.")],
    system: Annotated[list[str] | None, typer.Option(help="A system, such as in-context.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Every system; without a model, those that need none.")] = False,
    corpus: Annotated[list[str] | None, typer.Option(help="Only this corpus; may be given several times.")] = None,
    count: Annotated[int, typer.Option(min=1, max=10_000, help="How many questions are made.")] = 100,
    more: Annotated[bool, typer.Option("--more", help="Add questions up to --count, and ask all.")] = False,
    by_model: Annotated[
        bool, typer.Option("--by-model", help="Have the model make the questions, in everyday words.")
    ] = False,
    ask: Annotated[bool, typer.Option(help="Ask the questions; --no-ask only makes them.")] = True,
    seed: Annotated[int, typer.Option(help="The seed of all random choices.")] = 0,
    wrong: Annotated[bool, typer.Option(help="List the wrong replies.")] = False,
    *,
    as_json: JsonOption = False,
) -> None:
    """Make questions about your own documents, and ask them of systems, to find the best system for them.

    Edit the file, add your own questions, and run the command again.
    """
    with open_command(context, as_json=as_json) as ctx:
        options = OwnOptions(
            corpus or (), count, seed, system or (), by_model=by_model, more=more, every=every, ask=ask
        )
        questions, outcomes = ctx.call(ctx.services.open_app(ctx.settings), partial(_run, ctx, file, options))
        if not ask:
            ctx.output.give(build_document(file=str(file), questions=questions), f"{questions} questions: {file}")
            return
        document = build_document(file=str(file), systems=summarise(outcomes, seed))
        ctx.output.give(document, render_outcomes(outcomes, seed, wrong=wrong))


EPILOG = format_examples(
    "footnote evaluate mine questions.json --no-ask", "footnote evaluate mine questions.json --all --wrong"
)


@dataclass(frozen=True, slots=True)
class OwnOptions:
    """The options of the command."""

    corpora: Sequence[str]
    count: int
    seed: int
    systems: Sequence[str]
    by_model: bool
    more: bool
    every: bool
    ask: bool


async def _run(
    ctx: CommandContext, file: Path, options: OwnOptions, app: App
) -> tuple[int, Mapping[str, Sequence[OwnOutcome]]]:
    """Make questions if needed, and ask them. Return the number of questions, and the outcomes by system."""
    app = replace(app, load=LoadWatch())  # a slow model must not be called less than others
    questions = await asyncio.to_thread(read_questions, file)
    if is_short := options.more or not questions:
        ctx.output.note(f"questions are made into {file}; this looks through all documents")
        with show_progress(ctx.output.err, label="making", unit="questions") as progress:
            questions = await _make(app, questions, options, progress)
        await asyncio.to_thread(write_questions, file, questions)
    used = [question for question in questions if question.use]
    if is_short and len(used) < options.count:
        ctx.output.note(f"only {len(used)} of {options.count} questions could be made: {_explain_lack(options)}")
    if not used:
        raise EvaluationError(f"{file} has no question to ask.", hint="Add some, or make more with --more.")
    corpora = await _choose_corpora(app, options.corpora)
    for line in await find_misplaced(app, questions, corpora):
        ctx.output.note(line)
    if not options.ask:
        return len(questions), {}
    variants = choose_variants(app, options.systems, every=options.every)
    if skipped := {*SYSTEMS} - {variant.name for variant in variants} if options.every and not options.systems else ():
        ctx.output.note(f"no model is configured, so these are not asked: {', '.join(sorted(skipped))}")
    done = count(1)
    with show_progress(ctx.output.err, label="mine", unit="questions") as progress:

        async def ask(variant: SystemVariant, question: OwnQuestion) -> OwnOutcome:
            outcome = await ask_question(app, variant, question, corpora)
            progress(next(done), len(used) * len(variants))
            return outcome

        pairs = [*product(variants, used)]
        outcomes = iter(await gather_limited(AT_ONCE, ask, [v for v, _ in pairs], [q for _, q in pairs]))
    return len(questions), {variant.label: [*islice(outcomes, len(used))] for variant in variants}


async def _make(
    app: App, known: Sequence[OwnQuestion], options: OwnOptions, progress: Callable[[int, int], object]
) -> tuple[OwnQuestion, ...]:
    if options.by_model and not app.llm:
        raise EvaluationError("No model is configured.", hint="Set [model], or make questions without --by-model.")
    llm, now = (app.llm, datetime.now(app.settings.zone)) if options.by_model else (None, None)
    corpora = await _choose_corpora(app, options.corpora)
    made = await QuestionMaking(app, corpora, options.seed, llm, now, progress).make(options.count, known)
    if not any(question.answerable for question in made):
        hint = "Write some into the file, or have a model make them with --by-model."
        raise EvaluationError("No question could be made from these documents.", hint=hint)
    return made


async def _choose_corpora(app: App, named: Sequence[str]) -> tuple[str, ...]:
    """Return the named corpora; if none is named, all that have documents. Raises `EvaluationError`."""
    existing = tuple(corpus.name for corpus in await app.manifest.corpora() if corpus.documents)
    if unknown := [corpus for corpus in named if corpus not in existing]:
        hint = f"There are: {', '.join(existing) or 'none yet'}."
        raise EvaluationError(f"There is no corpus {unknown[0]!r} with documents.", hint=hint)
    return tuple(corpus for corpus in existing if not named or corpus in named)


def _explain_lack(options: OwnOptions) -> str:
    if options.by_model:
        return "the search finds no section of any other question that the model made"
    return (
        f"the rules use plain questions and statements, at most {MOST_OF_DOCUMENT[-1]} of each document, if the search "
        "finds their section; a model may make more: --by-model"
    )


async def find_misplaced(app: App, questions: Sequence[OwnQuestion], corpora: Sequence[str]) -> tuple[str, ...]:
    """Return a line for each question that cannot be answered, because its corpus or document is missing."""
    lines = list[str]()
    for number, question in enumerate(questions, 1):
        own = [name for name in corpora if name == (question.corpus or name)]
        if not (question.use and question.answerable):
            continue
        if not own:
            lines.append(f"question {number} (“{question.question}”): no corpus “{question.corpus}” is asked")
        elif question.document and not any([await app.manifest.document(name, question.document) for name in own]):
            lines.append(f"question {number} (“{question.question}”): there is no document “{question.document}”")
    return tuple(lines)


def choose_variants(app: App, systems: Sequence[str], *, every: bool) -> tuple[SystemVariant, ...]:
    """Return the systems to ask. Without a model, those that need one are left out.

    Raises `EvaluationError` if such a system was named.
    """
    named = [*systems] or ([*SYSTEMS] if every else [app.system])
    variants = [parse_variant(label) for label in dict.fromkeys(named)]
    able = [variant for variant in variants if app.llm or not variant.asks_model]
    if lacking := [variant.label for variant in variants if variant not in able and variant.label in systems]:
        raise EvaluationError(f"The system {lacking[0]} needs a model, and none is configured.", hint="Set [model].")
    return tuple(able)


async def ask_question(app: App, variant: SystemVariant, question: OwnQuestion, corpora: Sequence[str]) -> OwnOutcome:
    """Ask one question, as the terminal would."""
    began = time.perf_counter()
    request = TurnRequest(question.question, TERMINAL, corpora=tuple(corpora), system=variant.name)
    done = await answer(variant.apply(app), request, lambda _: None)
    cited = [(citation.corpus, citation.document, citation.section) for citation in done.answer.citations]
    text = " ".join(sentence.text for sentence in done.answer.sentences)
    return OwnOutcome(
        question,
        done.answer.status,
        text,
        is_right(question, done.answer.status, text, cited),
        f1(text, " ".join(question.answer)) if question.answer else 0.0,
        time.perf_counter() - began,
        done.usage.prompt_tokens + done.usage.completion_tokens,
        done.usage.cost,
    )


def summarise(outcomes_by_variant: Mapping[str, Sequence[OwnOutcome]], seed: int) -> list[dict[str, Any]]:
    """Return the figures of each system: shares, each with its 95% interval."""
    return [{"system": label, **_measure(outcomes, seed)} for label, outcomes in outcomes_by_variant.items()]


def _measure(outcomes: Sequence[OwnOutcome], seed: int) -> dict[str, Any]:
    known = [outcome for outcome in outcomes if outcome.question.answerable]
    unknown = [outcome for outcome in outcomes if not outcome.question.answerable]
    return {
        "questions": len(outcomes),
        "right": _share([outcome.right for outcome in known], seed),
        "wrong": _share([not outcome.right and outcome.status not in ABSTAINED for outcome in known], seed),
        "abstained_wrongly": _share([outcome.status in ABSTAINED for outcome in known], seed),
        "abstained_rightly": _share([outcome.right for outcome in unknown], seed),
        "words_in_common": compute_mean(outcome.overlap for outcome in known if outcome.question.answer),
        "seconds": compute_mean(outcome.seconds for outcome in outcomes),
        "tokens": compute_mean(outcome.tokens for outcome in outcomes),
        "cost": compute_mean(outcome.cost for outcome in outcomes),
        "failed": sum(outcome.status in {"failed", "refused"} for outcome in outcomes),
    }


def _share(values: Sequence[bool], seed: int) -> dict[str, float] | None:
    estimate = estimate_share([float(value) for value in values], [1.0] * len(values), seed, proportion=True)
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high} if estimate else None


def render_outcomes(outcomes_by_variant: Mapping[str, Sequence[OwnOutcome]], seed: int, *, wrong: bool) -> str:
    """Render the table and the advice, and with `wrong` also the wrong replies."""
    head = (
        "system", "right", "wrong", "abstained wrongly", "abstained rightly", "seconds", "tokens", "cost", "failed"
    )  # fmt: skip
    rows = [
        (
            figures["system"],
            *(format_interval(figures[name]) for name in ("right", "wrong", "abstained_wrongly", "abstained_rightly")),
            f"{figures['seconds'] or 0:.2f}",
            f"{figures['tokens'] or 0:.0f}",
            format_figure(figures["cost"], ".4f"),
            figures["failed"],
        )
        for figures in summarise(outcomes_by_variant, seed)
    ]
    pairs = [(label, outcome) for label, outcomes in outcomes_by_variant.items() for outcome in outcomes]
    listed = "\n".join(_describe_wrong(*pair) for pair in pairs if wrong and not pair[1].right)
    is_made = any(outcome.question.kind for _, outcome in pairs)
    table = "\n".join(filter(None, (render_table(head, rows), MADE_ARE_FOUND if is_made else "")))
    return "\n\n".join(filter(None, (table, advise(outcomes_by_variant, seed), listed)))


def _describe_wrong(label: str, outcome: OwnOutcome) -> str:
    expected = "; ".join(outcome.question.answer) or outcome.question.document or "nothing answers it"
    reply = f"{outcome.status}: {outcome.text or MISSING}"
    return f"{label}: {outcome.question.question}\n    expected: {expected}\n    {reply}"


def advise(outcomes_by_variant: Mapping[str, Sequence[OwnOutcome]], seed: int) -> str:
    """Return which system is most often right and the setting that selects it, or that its lead may be chance."""
    if len(outcomes_by_variant) < 2:
        return ""
    scored = {label: [float(outcome.right) for outcome in outcomes] for label, outcomes in outcomes_by_variant.items()}
    best, second = sorted(scored, key=lambda label: -sum(scored[label]))[:2]
    test = compare_paired(scored[best], scored[second], seed)
    rights = {label: f"{sum(values):.0f} times" for label, values in scored.items()}
    more = f"{best} is right {rights[best]} of {len(scored[best])}, {second} {rights[second]}"
    if test.randomised is None or test.randomised > SIGNIFICANT:
        return f"{more}: that may be chance. Choose the cheaper one, or ask more questions."
    name, _, listed = best.partition(":")
    limits = [limit for limit in listed.split(",") if limit and not limit.startswith("search=")]
    lines = [f'system = "{name}"', *(["[limits]", *map(_write_limit, limits)] if limits else [])]
    return f"{more} (p = {test.randomised:.3f}). In footnote.toml:\n" + "\n".join(f"    {line}" for line in lines)


def _write_limit(setting: str) -> str:
    name, _, value = setting.partition("=")
    plain = value in {"true", "false"} or value.replace(".", "", 1).isdigit()
    return f"{name} = {value}" if plain else f'{name} = "{value}"'
