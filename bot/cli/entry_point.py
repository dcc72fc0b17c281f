"""Define the command line: its commands, its global options, and its entry point.

A command's module is imported only when the command is named, so that `footnote --help` starts fast.
"""

import inspect
import io
import os
import pkgutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoints, entry_points
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, TextIO

import typer
from typer.core import TyperCommand, TyperGroup

from bot import read_version
from bot.cli.command_context import find_cli_state, format_examples, parse_path
from bot.cli.terminal_output import CommandError, open_output, report_errors
from bot.views.error_messages import Fault

PLUGIN_GROUP = "footnote.commands"  # the entry-point group in which other packages offer commands


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """Where a command or a group of commands is defined, and what `footnote --help` shows of it."""

    place: str  # the function or `typer.Typer` beneath `bot.cli`: `package.module:name`
    summary: str  # the first paragraph of its help; further ones are the docstring of its function
    examples: Sequence[str] = ()

    def load(self, name: str) -> Any:
        """Import the command, and return it as a Click command."""
        target = pkgutil.resolve_name(f"bot.cli.{self.place}")
        if isinstance(target, typer.Typer):
            command = typer.main.get_command(target)
            command.help = self.summary
        else:
            text = f"{self.summary}\n\n{inspect.getdoc(target) or ''}".strip()
            single = typer.Typer(add_completion=False)
            single.command(help=text, epilog=format_examples(*self.examples))(target)
            command = typer.main.get_command(single)
        command.name = name
        return command


PANELS: Mapping[str, Mapping[str, CommandEntry]] = MappingProxyType({
    "First steps": {
        "setup": CommandEntry(
            "setup.setup_command:setup",
            "Set everything up: documents, chat platforms, a model. Tries each of your answers, and asks a first "
            "question.",
            ("footnote setup", "footnote setup --documents handbook --platform none --yes"),
        ),
        "init": CommandEntry(
            "setup.init_command:init",
            "Write a footnote.toml with every setting, explained and at its default.",
            ("footnote init",),
        ),
        "doctor": CommandEntry(
            "operations.doctor_command:doctor",
            "Check everything, and say how to fix it. With --model, measure the model, and advise settings for it.",
            ("footnote doctor", "footnote doctor --model", "footnote doctor --model --stage verify"),
        ),
    },
    "Documents": {
        "ingest": CommandEntry(
            "corpora.ingest_commands:ingest_app",
            "Ingest documents. When run again, it reads changed documents and removes deleted ones.",
        ),
        "forget": CommandEntry(
            "corpora.document_commands:forget",
            "Forget one document at once: it is no longer found or cited, and refreshes skip it.",
            ("footnote forget https://docs.example.com/old.html", "footnote forget 'Old rules'"),
        ),
        "corpora": CommandEntry(
            "corpora.corpus_commands:corpora",
            "List the indexed corpora: documents, passages, age, last refresh, and readers.",
            ("footnote corpora",),
        ),
        "passages": CommandEntry(
            "corpora.document_commands:passages",
            "Show the stored passages of one document, word for word, as they are searched and quoted.",
            ("footnote passages 'Annual leave'", "footnote passages people/leave.md --json"),
        ),
        "reindex": CommandEntry(
            "corpora.corpus_commands:reindex",
            "Rebuild this home's indexes from the database, for example after a change of the embedding function.",
            ("footnote reindex",),
        ),
    },
    "Ask": {
        "search": CommandEntry(
            "questions.question_commands:search",
            "Show the passages that match a query best, the best first. `--json` adds scores, which only rank the hits "
            "of one search.",
            ("footnote search 'parental leave' -k 5 --corpus handbook",),
        ),
        "ask": CommandEntry(
            "questions.question_commands:ask",
            "Answer one question, with a footnote to every sentence.",
            ("footnote ask 'How many days of leave do I get?'", "footnote ask - --json < question.txt"),
        ),
        "check": CommandEntry(
            "questions.question_commands:check",
            "Check one statement: do the documents support it, refute it, or say too little?",
            ("footnote check 'The office closes at six.'", "footnote check - --json < claim.txt"),
        ),
        "chat": CommandEntry(
            "questions.chat_session:chat",
            "Hold a conversation: follow-up questions refer to earlier ones.",
            ("footnote chat", "footnote chat --corpus handbook < questions.txt"),
        ),
    },
    "Serve": {
        "serve": CommandEntry(
            "operations.server_commands:serve",
            "Serve the configured platforms until a signal stops it; other commands can be used meanwhile.",
            ("footnote serve", "footnote --config /etc/footnote.toml serve"),
        ),
        "reload": CommandEntry(
            "operations.server_commands:reload",
            "Make the running server read changed settings; show which took effect, and which wait for a restart.",
            ("footnote reload",),
        ),
        "pages": CommandEntry(
            "operations.pages_command:pages",
            "Serve the pages that show the record, alone or next to a running server, until Ctrl-C.",
            ("footnote pages", "footnote pages --port 0"),
        ),
        "mcp": CommandEntry(
            "operations.mcp_commands:mcp_app",
            "Answer the assistant or editor that starts this, over MCP on stdin and stdout; a server may be running.",
        ),
        "backup": CommandEntry(
            "operations.backup_commands:backup",
            "Back up the record, the documents' text and the settings into one file, also while a server runs.",
            ("footnote backup footnote.tar.gz", "footnote backup /var/backups/footnote"),
        ),
        "restore": CommandEntry(
            "operations.backup_commands:restore",
            "Restore a backup into a home that has no database, verify its record, and rebuild its indexes.",
            ("footnote restore footnote.tar.gz", "footnote restore footnote.tar --home new"),
        ),
    },
    "Record": {
        "audit": CommandEntry("audit.audit_commands:audit_app", "Read the record of all questions and answers."),
        "erase": CommandEntry(
            "audit.erase_command:erase",
            "Erase words from the record, the queue and the examples. The erasure itself is recorded; proofs stay "
            "valid.",
            ("footnote erase --person slack:T1/U1", "footnote erase --older-than 365d --why Policy --yes"),
        ),
        "examples": CommandEntry(
            "audit.example_commands:examples_app",
            "Choose which answers the system in-context shows to a model as worked examples.",
        ),
        "answers": CommandEntry(
            "audit.example_commands:answers_app",
            "Pin answers to questions: the same question gets the pinned answer while its passages are unchanged.",
        ),
    },
})  # fmt: skip
"""Our commands in the order of first use, as `footnote --help` groups them."""
COMMANDS = {name: entry for entries in PANELS.values() for name, entry in entries.items()}


class CommandGroup(TyperGroup):
    """Our commands and those of plugins; only the command that the user names is imported."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - the signature is Click's
        """Return the names of all commands: ours in the order in which users need them, then those of plugins."""
        return [*COMMANDS, *sorted(_find_plugins().names)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - the signature is Click's
        """Return a command with only the texts that the list of commands shows; None for an unknown name."""
        for panel, entries in PANELS.items():
            if entry := entries.get(cmd_name):
                return TyperCommand(cmd_name, help=entry.summary, rich_help_panel=panel)
        if cmd_name not in _find_plugins().names:
            return None
        return TyperCommand(cmd_name, help=f"See `footnote {cmd_name} --help`.", rich_help_panel="Measure")

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Import the command that the user named; return its name, the command, and the remaining arguments."""
        name, *rest = args
        if entry := COMMANDS.get(name):
            return name, entry.load(name), rest
        plugin = next(iter(_find_plugins().select(name=name)), None)
        if not plugin:
            return super().resolve_command(ctx, args)
        command = typer.main.get_command(plugin.load())
        command.name = name
        return name, command, rest

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the global options, which may follow the command's name as well."""
        return super().parse_args(ctx, move_options_first(args))


def _find_plugins() -> EntryPoints:
    """Return the commands of installed packages. The container image does not include `evaluation`."""
    plugins = entry_points(group=PLUGIN_GROUP)
    return EntryPoints(plugin for plugin in plugins if find_spec(plugin.module.partition(".")[0]))


def move_options_first(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with the global options first, wherever before `--` the user typed them."""
    front: list[str] = []
    rest: list[str] = []
    remaining: Iterator[str] = iter(arguments)
    for argument in remaining:
        if argument == "--":
            rest += [argument, *remaining]
        elif argument == "--config":
            front += [argument, *(value for value in [next(remaining, None)] if value is not None)]
        elif argument == "--debug" or argument.startswith("--config="):
            front.append(argument)
        else:
            rest.append(argument)
    return front + rest


app = typer.Typer(
    name="footnote",
    cls=CommandGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    epilog=format_examples(
        "footnote ingest folder handbook --corpus handbook", "footnote ask 'How many days of leave do I get?'"
    ),
)


def _print_version(*, requested: bool) -> None:
    if requested:
        typer.echo(f"footnote {read_version()}")
        raise typer.Exit


@app.callback()
def footnote(
    context: typer.Context,
    config: Annotated[
        Path | None,
        typer.Option(
            parser=parse_path, envvar="FOOTNOTE_CONFIG", help="The settings file, instead of ./footnote.toml."
        ),
    ] = None,
    *,
    debug: Annotated[
        bool, typer.Option("--debug", envvar="FOOTNOTE_DEBUG", help="Show the traceback of an unexpected error.")
    ] = False,
    version: Annotated[  # noqa: ARG001 - its callback acts
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Answer questions from your own documents, with a footnote to every sentence."""
    context.obj = replace(find_cli_state(context), config=config, debug=debug)
    from bot.settings.settings_reader import adopt_variables  # help does without all settings

    adopt_variables(config, os.environ)


def find_platform_fault(system: str) -> Fault | None:
    """Return why Footnote cannot run on an operating system, named as in `sys.platform`; None if it can."""
    if system != "win32":
        return None
    hint = "Run it in WSL 2 or in Docker; docs/installing.md says how."
    return Fault("unsupported_system", "Footnote runs on Linux and macOS, and not on Windows itself.", hint)


def replace_unsupported(stream: TextIO) -> None:
    """Make a stream print a substitute for each character that its encoding lacks."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="replace")


def main() -> None:
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        replace_unsupported(stream)
    with report_errors(open_output(as_json="--json" in sys.argv, debug="--debug" in sys.argv)):
        if fault := find_platform_fault(sys.platform):
            raise CommandError(fault)
        app()
