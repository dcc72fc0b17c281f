"""Define `footnote evaluate dialogues` and `judge`: hold dialogues, judge them, and write the report."""

from collections.abc import Iterable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from bot.app import App
from bot.cli.command_context import CommandContext, JsonOption, open_command
from bot.cli.terminal_output import build_document, show_progress
from bot.views.text_formats import ProgressCallback
from evaluation import EvaluationError
from evaluation.dialogues.dialogue_run import DialogueRun, plan_dialogues
from evaluation.dialogues.dialogue_types import DialogueTurn, JudgedTurn, RunManifest
from evaluation.dialogues.judging.judge_run import JudgeRun
from evaluation.dialogues.models.estimate import describe_expectation, expect_run
from evaluation.dialogues.run_folder import RunFolder, count_planned, describe_missing, list_keys
from evaluation.dialogues.run_setup import (
    RunModels,
    RunOptions,
    build_manifest,
    count_kinds,
    list_changes,
    order_searches,
    refuse_other_dialogues,
    refuse_other_options,
)
from evaluation.dialogues.topics import CHOSEN_KINDS

FolderArgument = Annotated[Path, typer.Argument(help="The folder of a run.")]
AtOnceOption = Annotated[int, typer.Option(min=1, max=64, help="How many dialogues or turns run at once.")]
OUT = Path("evaluation-run")


def dialogues(
    context: typer.Context,
    system: Annotated[
        list[str] | None, typer.Option(help="Such as augmenter or augmenter:policy=always; default from settings.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Every system.")] = False,
    alone: Annotated[bool, typer.Option("--alone", help="Also ask the model alone, unchecked.")] = False,
    model: Annotated[
        list[str] | None, typer.Option(help="A model of the configured server; scripted or simulated for none.")
    ] = None,
    user: Annotated[str, typer.Option(help="The model that plays the user, or stand-in; default from settings.")] = "",
    judge: Annotated[str, typer.Option(help="The model that judges, or stand-in; default from settings.")] = "",
    corpus: Annotated[list[str] | None, typer.Option(help="Only this corpus; may be given several times.")] = None,
    topics: Annotated[
        Path | None, typer.Option(help="A file with a title on each line; default: topics are chosen.")
    ] = None,
    count: Annotated[int, typer.Option(min=1, help="How many topics of each kind are chosen.")] = 20,
    turns: Annotated[int, typer.Option(min=1, max=50, help="How many turns each dialogue has.")] = 5,
    seed: Annotated[int, typer.Option(help="The seed of all random choices.")] = 1,
    out: Annotated[Path, typer.Option(help="The folder of the run; an existing run continues.")] = OUT,
    at_once: AtOnceOption = 4,
    estimate: Annotated[bool, typer.Option("--estimate", help="Estimate the cost and exit.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Start without confirmation, whatever the cost.")] = False,
    report: Annotated[bool, typer.Option(help="Judge the dialogues, and write the report.")] = True,
    *,
    as_json: JsonOption = False,
) -> None:
    """Let a simulated user talk with systems about topics of the corpora, judge their replies, and write a report.

    The same command continues a stopped run. Without a configured model, rules replace the model, the user and the
    judge; the report says so.

    Example: footnote evaluate dialogues --all --model scripted --count 20 --turns 5 --out run
    """
    options = RunOptions(system or (), every, alone, model or (), user, judge, corpus or (), topics, count, turns, seed)
    folder = RunFolder(out)
    with open_command(context, as_json=as_json) as ctx:
        run = partial(_hold, ctx, folder, options, at_once, estimate=estimate, yes=yes, judging=report)
        begun = ctx.call(ctx.services.open_app(ctx.settings), run)
        if begun and report:
            _write_report(ctx, folder)
        if begun:
            _refuse_missing(folder, judging=report)


def judge_dialogues(
    context: typer.Context, run: FolderArgument = OUT, at_once: AtOnceOption = 4, *, as_json: JsonOption = False
) -> None:
    """Judge the turns of a run that have no judgement yet, and write its report again.

    Example: footnote evaluate judge run
    """
    folder = RunFolder(run)
    with open_command(context, as_json=as_json) as ctx:
        manifest = folder.read_manifest()
        refuse_other_dialogues(manifest, folder.read_dialogues(), folder.path)
        with folder.lock():
            ctx.call(ctx.services.open_app(ctx.settings), partial(_judge, ctx, folder, manifest, at_once))
        _write_report(ctx, folder)
        _refuse_missing(folder, judging=True)


async def _hold(
    ctx: CommandContext,
    folder: RunFolder,
    options: RunOptions,
    at_once: int,
    app: App,
    *,
    estimate: bool,
    yes: bool,
    judging: bool,
) -> bool:
    """Hold the dialogues and judge them. Return False if only the cost was estimated."""
    if folder.exists:
        manifest = folder.read_manifest()
        refuse_other_options(manifest, options, folder.path)
        if changed := list_changes(manifest, app):
            ctx.output.note(f"changed since the run started: {', '.join(changed)}")
    else:
        folder.refuse_lost_manifest()
        manifest = await build_manifest(app, options)
    existing = folder.read_dialogues()
    refuse_other_dialogues(manifest, existing, folder.path)
    done = folder.read_judgements().keys() & list_keys(existing)
    judged = len(done) if judging else count_planned(manifest, len(plan_dialogues(manifest)))
    expected = expect_run(manifest, ctx.settings.model.plain().prices, existing, judged)
    dialogues = len(plan_dialogues(manifest))
    ctx.output.note(f"{dialogues} dialogues of {manifest.turns} turns about {count_kinds(manifest.topics)} topics")
    if not options.topics and len(manifest.topics) < options.count * len(CHOSEN_KINDS):
        ctx.output.note(f"the corpora have fewer than {options.count} topics of some kind")
    for line in manifest.stand_ins:
        ctx.output.note(f"rules replace a model: {line}")
    ctx.output.note(f"expected: {describe_expectation(expected, at_once)}")
    if estimate:
        ctx.output.give(build_document(dialogues=dialogues, expected=expected.describe()))
        return False
    dear = expected.cost > ctx.settings.evaluation.ask_above
    question = "That is more than [evaluation] ask_above." if dear else "The cost is unknown."
    ctx.confirm(question, confirmed=yes or not (dear or expected.unpriced))
    async with AsyncExitStack() as stack:
        stack.enter_context(folder.lock())
        folder.write_manifest(manifest)
        if dropped := folder.drop_unconnected():
            ctx.output.note(f"{dropped} turns are held again: an earlier turn is missing")
        models = RunModels(app, manifest, folder.calls, stack)
        with show_progress(ctx.output.err, label="dialogues", unit="turns") as progress:
            finished = [turn for dialogue in existing for turn in dialogue.turns]
            use = _UseCount(dialogues * manifest.turns, progress, finished)
            ordered = order_searches(app, manifest)
            run = DialogueRun(ordered, folder, manifest, models.open_turn_model, models.simulator, use.add, at_once)
            await run.hold()
        if judging:
            await _judge(ctx, folder, manifest, at_once, app)
    return True


async def _judge(ctx: CommandContext, folder: RunFolder, manifest: RunManifest, at_once: int, app: App) -> None:
    known = folder.read_judgements()
    total = sum(len(dialogue.turns) for dialogue in folder.read_dialogues())
    async with AsyncExitStack() as stack:
        judge = RunModels(app, manifest, folder.calls, stack).judge
        with show_progress(ctx.output.err, label="judged", unit="turns") as progress:
            use = _UseCount(total, progress, known.values())
            await JudgeRun(app, folder, manifest, judge, use.add, at_once).judge_all()


class _UseCount:
    """Shows the number of finished turns, and their cost, in a progress bar."""

    def __init__(self, total: int, progress: ProgressCallback, done: Iterable[DialogueTurn | JudgedTurn]) -> None:
        self._total, self._progress, self._done = total, progress, [*done]

    def add(self, turn: DialogueTurn | JudgedTurn) -> None:
        self._done.append(turn)
        calls = sum(finished.calls for finished in self._done)
        tokens = sum(finished.prompt_tokens + finished.completion_tokens for finished in self._done)
        costs = [finished.cost for finished in self._done if finished.calls]
        money = "" if None in costs else f", {sum(filter(None, costs)):,.2f} spent"
        self._progress(len(self._done), self._total, f"{calls:,} calls, {tokens:,} tokens{money}")


def _refuse_missing(folder: RunFolder, *, judging: bool) -> None:
    """Raise `EvaluationError` if a run lacks turns or expected judgements."""
    manifest, turns = folder.read_manifest(), list_keys(folder.read_dialogues())
    judged = len(folder.read_judgements().keys() & turns) if judging else None
    if lacking := describe_missing(count_planned(manifest), len(turns), judged):
        raise EvaluationError(f"The run is not whole: {lacking}", hint="`footnote evaluate dialogues` continues it.")


def _write_report(ctx: CommandContext, folder: RunFolder) -> None:
    from evaluation.reports.run_report import write_report

    page = write_report(folder)
    ctx.output.give(build_document(folder=str(folder.path), report=str(page)), str(page))
