"""Run `footnote setup`: from a bare machine to a first answer, with platforms and a model if wanted."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from bot.answering.introduction import load_introduction
from bot.cli.command_context import CommandContext, Services, find_cli_state, open_bare_command, parse_path
from bot.cli.corpora.ingest_commands import explain_unread, list_unread, refresh_corpus
from bot.cli.questions.question_commands import TakeTurn, build_request, detect_question_language
from bot.cli.rendering.answer_view import render_answer
from bot.cli.rendering.ingest_view import render_reports
from bot.cli.setup.init_command import ensure_record_key
from bot.cli.setup.interview import GivenAnswers, Interview, find_missing_answers
from bot.cli.setup.prompter import Prompter, Terminal
from bot.cli.setup.setup_choices import SetupChoices
from bot.cli.setup.setup_plan import SetupPlan, build_plan, require_writable, write_plan
from bot.cli.setup.setup_tries import apply_model, make_tries
from bot.cli.terminal_output import EXIT_INTERRUPTED, CommandError, Output
from bot.settings.platform_registry import platform_of, reader_id
from bot.settings.settings_reader import adopt_variables, load_settings, locate_variables, read_variables
from bot.settings.tables.field_types import load_time_zone
from bot.settings.tables.settings_tables import FILE_NAME, Settings
from bot.views.error_messages import explain_failure, explain_nothing_ingested
from bot.views.sanitize import sanitize_line
from pipeline.types import Status
from storage.home.home_folder import find_lock_owner, read_lock_command

INTRO = (
    "This sets up Footnote: your documents, where people ask, and a language model if you want one. Each answer is "
    "tried at once, and you see all changes before they are written. Enter accepts the value in brackets; Ctrl-C "
    "changes nothing."
)
SERVE = "footnote serve"
RELOAD = "footnote reload, because a server is running here; for new tokens, restart it"
UNWRITTEN = "Nothing was written."


def _validate_readers(readers: list[str] | None) -> list[str] | None:
    try:
        return readers and [reader_id(reader) for reader in readers]
    except ValueError as error:
        raise typer.BadParameter(f"It {error}.") from error


def setup(
    context: typer.Context,
    documents: Annotated[
        list[Path] | None,
        typer.Option("--documents", parser=parse_path, metavar="FOLDER", help="A folder of documents; repeatable."),
    ] = None,
    corpus: Annotated[str, typer.Option(help="Corpus name; default: the folder's.")] = "",
    platforms: Annotated[
        list[str] | None,
        typer.Option("--platform", metavar="NAME", help="slack, discord, mattermost or none; repeatable."),
    ] = None,
    visible_to: Annotated[
        list[str] | None,
        typer.Option(
            "--visible-to",
            metavar="ID",
            callback=_validate_readers,
            help="Who may read the documents: '*' (all your own channels), or a channel's id.",
        ),
    ] = None,
    workspaces: Annotated[
        list[str] | None,
        typer.Option("--workspace", metavar="ID", help="The id of your own Discord server or team; repeatable."),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="A model's name, or none; its key is read from OPENAI_API_KEY.")
    ] = None,
    model_url: Annotated[str, typer.Option(help="The address of a model's server.")] = "",
    question: Annotated[str, typer.Option(help="The first question; default: a suggested one.")] = "",
    *,
    yes: Annotated[
        bool, typer.Option("--yes", help="Ask nothing: use options, current settings, and defaults.")
    ] = False,
) -> None:
    """To change something later, run `footnote setup` again.

    Tokens are never options: setup asks for them, or takes them from their variables.
    """
    with open_bare_command(context, as_json=False) as output:
        state = find_cli_state(context)
        options = GivenAnswers(
            documents=tuple(documents) if documents else None,
            corpus=corpus,
            platforms=tuple(platforms) if platforms else None,
            visible_to=tuple(visible_to) if visible_to else None,
            workspaces=tuple(workspaces or ()),
            model=model if model is not None or not model_url else "",
            model_url=model_url,
            defaults=yes,
        )
        SetupRun(state.config or FILE_NAME, output, state.services).run(options, question)


@dataclass(frozen=True, slots=True)
class SetupRun:
    """One run: it asks, shows the changes, and makes them."""

    path: Path
    output: Output
    services: Services

    def run(self, options: GivenAnswers, question: str) -> None:
        terminal, settings = self.services.open_terminal(self.output), self._load()
        require_writable(self.path, settings.home)
        if options.defaults and (missing := find_missing_answers(options, settings)):
            raise CommandError(missing[0]._replace(others=tuple(missing[1:])))
        if not options.defaults:
            terminal.say(INTRO)
        prompter, tries = Prompter(terminal, quiet=options.defaults), make_tries(settings, self.services.open_model)
        try:
            choices = Interview(prompter, tries, settings, options).run(timezone=read_time_zone())
            plan = build_plan(self.path, choices, settings)
            confirmed = not plan.writes or self._confirm(prompter, plan)
        except KeyboardInterrupt as error:
            prompter.head(UNWRITTEN)
            raise SystemExit(EXIT_INTERRUPTED) from error
        if not confirmed:
            terminal.say(UNWRITTEN)
            return
        write_plan(plan)
        ensure_record_key(self.path)
        adopt_variables(self.path, os.environ)
        settings = self._load()
        settings = apply_model(settings, choices.model) if choices.model else settings
        question = asyncio.run(self._read_and_ask(terminal, settings, choices, question, may_ask=not options.defaults))
        serving = bool(find_lock_owner(settings.home)) and read_lock_command(settings.home).endswith("serve")
        reload = RELOAD if plan.writes else ""
        if unwritten := find_unwritten(choices, read_variables(locate_variables(self.path)), os.environ):
            prompter.head(
                f"{' and '.join(unwritten)}: read from the environment; `footnote serve` needs it there, too."
            )
        prompter.head("Done. Next:")
        for line in list_next_steps(choices, question, reload if serving else SERVE):
            prompter.show(line, "-")

    def _load(self) -> Settings:
        return load_settings(self.path, must_exist=False)

    def _confirm(self, prompter: Prompter, plan: SetupPlan) -> bool:
        prompter.head("What happens now")
        for line in plan.describe():
            prompter.show(line, "-")
        for line in plan.list_changes():
            self.output.err.out(f"      {sanitize_line(line)}", highlight=False)
        return prompter.confirm("Go on?")

    async def _read_and_ask(
        self, terminal: Terminal, settings: Settings, choices: SetupChoices, question: str, *, may_ask: bool
    ) -> str:
        """Ingest new corpora and ask the first question. Return a question to suggest in the next steps."""
        context = CommandContext(self.output, settings, self.services)
        async with self.services.open_home(settings) as service:
            terminal.say()
            read = {info.name for info in await service.corpora() if info.refreshed}
            folders = {name: source for name, source in settings.sources.items() if source.type == "folder"}
            new = {folder.corpus for folder in choices.folders}
            reports = [
                await refresh_corpus(context, service, name, source)
                for name, source in folders.items()
                if name in new or name not in read
            ]
            if reports:
                self.output.view(render_reports(reports))
            if unread := await list_unread(service, reports):
                if len(unread) == len(reports):
                    raise CommandError(explain_unread(unread))
                terminal.say(explain_unread(unread).line())
            filled = [info.name for info in await service.corpora() if info.passages]
            if not filled:
                terminal.say(explain_nothing_ingested(settings.sources).line())
                return ""
            suggested = await _suggest_questions(self.services, settings, filled)
            if not question and may_ask:
                example = f" For example: {suggested[0]}" if suggested else ""
                terminal.say()
                terminal.say(f"Ask something that your documents answer.{example}")
                question = terminal.ask(f"Your question{example and ' (Enter: that one)'}:")
            for text in [question] if question else suggested:
                if await self._answer(terminal, service.answer, settings, text):
                    return text
            return next((text for text in suggested if text != question), "")

    async def _answer(self, terminal: Terminal, answer: TakeTurn, settings: Settings, question: str) -> bool:
        """Ask a question, show the result, and return whether it was answered."""
        terminal.say()
        terminal.say(f"> {question}")
        done = await answer(build_request(question, None, ""), lambda _: None)
        if done.fault:
            terminal.say(explain_failure(done.fault).line())
            return False
        language = detect_question_language(question)
        self.output.view(render_answer(done, language=language, zone=settings.zone))
        return done.answer.status is Status.ANSWERED


async def _suggest_questions(services: Services, settings: Settings, corpora: Sequence[str]) -> list[str]:
    """Suggest questions in the language of the documents."""
    async with services.open_records(settings) as records:
        sample = await records.manifest.sample(corpora[0], 1)
        language = next((hit.document.language for hit in sample), "") or "en"
        introduction = await load_introduction(records.manifest, corpora, language)
    return [question.text for question in introduction.questions]


def list_next_steps(choices: SetupChoices, question: str, start: str = SERVE) -> list[str]:
    """List the commands to run, and the steps on platforms. `start`: the command that applies the settings. Pure."""
    steps = [] if choices.platforms else ["footnote ask 'QUESTION'", "footnote chat"]
    steps += [start] if start and (choices.platforms or start != SERVE) else []
    for choice in choices.platforms:
        invite = choice.entry.setup.invite.format(mention=choice.mention)
        readers = {reader for corpus in choices.visible_to.values() for reader in corpus}
        named = [
            choices.channels[channel]
            for channel in sorted(readers & choices.channels.keys())
            if platform_of(channel) == choice.entry.name
        ]
        where = f"in {choice.entry.title}, in {' and '.join(named) or 'a channel'}"
        steps.append(f"{where}: {invite}")
        steps.append(f"and ask there: {choice.mention} {question or 'QUESTION'}")
    return [*steps, "footnote doctor, to check everything", "footnote setup, to change something"]


def find_unwritten(choices: SetupChoices, written: Mapping[str, str], environment: Mapping[str, str]) -> list[str]:
    """Return the platforms' secret variables that are set in the environment, but are not in `written`. Pure."""
    named = [name for choice in choices.platforms for name in choice.entry.settings.SECRETS.values()]
    return [name for name in named if environment.get(name) and name not in written]


def read_time_zone() -> str:
    """Return the name of this machine's time zone; empty if unknown."""
    named = os.environ.get("TZ", "").lstrip(":") or os.path.realpath("/etc/localtime").partition("zoneinfo/")[2]
    try:
        return named.removeprefix("Etc/") if named and load_time_zone(named) else ""
    except ValueError:
        return ""
