"""Define the command line: its commands, its options, and its entry point."""

import io
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import EntryPoints, entry_points
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, TextIO

import typer
from typer.core import TyperCommand, TyperGroup

from bot.cli import example_commands, operator_commands
from bot.cli.audit import audit_commands, backup_commands, erase_command
from bot.cli.command_context import find_cli_state, format_examples, parse_path
from bot.cli.corpora import corpus_commands, ingest_commands
from bot.cli.questions import chat_session, question_commands
from bot.cli.setup import setup_command
from bot.cli.terminal_output import CommandError, open_output, report_errors
from bot.settings.environment_file import adopt_variables, locate_variables
from bot.views.error_messages import Fault

PLUGIN_GROUP = "footnote.commands"  # the entry-point group in which other packages offer commands

PANELS: Mapping[str, Sequence[str]] = MappingProxyType({
    "First steps": ("setup", "init", "doctor"),
    "Documents": ("ingest", "forget", "corpora", "passages", "reindex"),
    "Ask": ("search", "ask", "check", "chat"),
    "Serve": ("serve", "reload", "pages", "mcp", "backup", "restore"),
    "What was asked": ("audit", "erase", "examples", "answers"),
})  # fmt: skip
"""Our commands in the order of first use, as `footnote --help` groups them."""
_PANEL_OF = {name: panel for panel, names in PANELS.items() for name in names}
_ORDER = (*_PANEL_OF,)


class CommandGroup(TyperGroup):
    """Our commands, and those of plugins, which are imported only when they are named."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return all names: ours in the order of first use, then those of plugins."""
        return [*sorted(super().list_commands(ctx), key=_ORDER.index), *sorted(_plugins().names)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command by its name; of a plugin only its name, to be listed."""
        own: Any = super().get_command(ctx, cmd_name)
        if own:
            own.rich_help_panel = _PANEL_OF[cmd_name]
            return own
        if cmd_name not in _plugins().names:
            return None
        return TyperCommand(cmd_name, help=f"See `footnote {cmd_name} --help`.", rich_help_panel="Measure")

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that was named, and load it if it is a plugin's."""
        found = next(iter(_plugins().select(name=args[0])), None)
        if not found:
            return super().resolve_command(ctx, args)
        command = typer.main.get_command(found.load())
        command.name = args[0]
        return args[0], command, args[1:]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the options, which may stand behind the command's name as well."""
        return super().parse_args(ctx, move_options_first(args))


def _plugins() -> EntryPoints:
    """Return the commands of packages that are here: the image leaves `evaluation` out."""
    found = entry_points(group=PLUGIN_GROUP)
    return EntryPoints(one for one in found if find_spec(one.module.partition(".")[0]))


def move_options_first(arguments: Sequence[str]) -> list[str]:
    """Move the options of `footnote` itself to the front, wherever before `--` they stand."""
    front: list[str] = []
    rest: list[str] = []
    left = iter(arguments)
    for argument in left:
        if argument == "--":
            rest += [argument, *left]
        elif argument == "--config":
            front += [argument, *(value for value in [next(left, None)] if value is not None)]
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
app.command(epilog=format_examples("footnote setup", "footnote setup --documents handbook --platform none --yes"))(
    setup_command.setup
)
app.command(epilog=format_examples("footnote init"))(operator_commands.init)
app.command(
    epilog=format_examples("footnote doctor", "footnote doctor --model", "footnote doctor --model --stage verify")
)(operator_commands.doctor)
app.add_typer(ingest_commands.ingest_app, name="ingest")
app.command(epilog=format_examples("footnote forget https://docs.example.com/old.html", "footnote forget 'Old rules'"))(
    corpus_commands.forget
)
app.command(epilog=format_examples("footnote corpora"))(corpus_commands.corpora)
app.command(epilog=format_examples("footnote passages 'Annual leave'", "footnote passages people/leave.md --json"))(
    corpus_commands.passages
)
app.command(epilog=format_examples("footnote reindex"))(corpus_commands.reindex)
app.command(epilog=format_examples("footnote search 'parental leave' -k 5 --corpus handbook"))(question_commands.search)
app.command(
    epilog=format_examples("footnote ask 'How many days of leave do I get?'", "footnote ask - --json < question.txt")
)(question_commands.ask)
app.command(
    epilog=format_examples("footnote check 'The office closes at six.'", "footnote check - --json < claim.txt")
)(question_commands.check)
app.command(epilog=format_examples("footnote chat", "footnote chat --corpus handbook < questions.txt"))(
    chat_session.chat
)
app.command(epilog=format_examples("footnote serve", "footnote --config /etc/footnote.toml serve"))(
    operator_commands.serve
)
app.command(epilog=format_examples("footnote reload"))(operator_commands.reload)
app.command(epilog=format_examples("footnote pages", "footnote pages --port 0"))(operator_commands.pages)
app.add_typer(operator_commands.mcp_app, name="mcp")
app.command(epilog=format_examples("footnote backup footnote.tar.gz", "footnote backup /var/backups/footnote"))(
    backup_commands.backup
)
app.command(epilog=format_examples("footnote restore footnote.tar.gz", "footnote restore footnote.tar --home new"))(
    backup_commands.restore
)
app.add_typer(audit_commands.audit_app, name="audit")
app.command(
    epilog=format_examples("footnote erase --person slack:T1/U1", "footnote erase --older-than 365d --why Policy --yes")
)(erase_command.erase)
app.add_typer(example_commands.examples_app, name="examples")
app.add_typer(example_commands.answers_app, name="answers")


def _print_version(*, wanted: bool) -> None:
    if wanted:
        from bot import read_version

        typer.echo(f"footnote {read_version()}")
        raise typer.Exit


@app.callback()
def footnote(
    context: typer.Context,
    config: Annotated[
        Path | None,
        typer.Option(
            parser=parse_path,
            envvar="FOOTNOTE_CONFIG",
            help="The settings file, instead of ./footnote.toml.",
        ),
    ] = None,
    *,
    debug: Annotated[
        bool, typer.Option("--debug", envvar="FOOTNOTE_DEBUG", help="Show where an unexpected error comes from.")
    ] = False,
    version: Annotated[  # noqa: ARG001 - its callback acts
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Answer questions from your own documents, with a footnote to every sentence."""
    context.obj = replace(find_cli_state(context), config=config, debug=debug)
    adopt_variables(locate_variables(config), os.environ)


def find_platform_fault(system: str) -> Fault | None:
    """Return why Footnote cannot run on a system, by its name in `sys.platform`; None where it can."""
    if system != "win32":
        return None
    hint = "Run it in WSL 2 or in Docker; docs/installing.md says how."
    return Fault("unsupported_system", "Footnote runs on Linux and macOS, and not on Windows itself.", hint)


def let_replace(stream: TextIO) -> None:
    """Have a terminal that cannot show a character show another."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="replace")


def main() -> None:
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        let_replace(stream)
    with report_errors(open_output(as_json="--json" in sys.argv, debug="--debug" in sys.argv)):
        if fault := find_platform_fault(sys.platform):
            raise CommandError(fault)
        app()
