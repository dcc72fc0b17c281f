"""The command line: its commands, its options, and its way in. What they do stands in `bot.commands`."""

import io
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import EntryPoints, entry_points
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from bot.commands import (
    asking,
    auditing,
    chatting,
    checking,
    doctoring,
    forgetting,
    indexes,
    ingesting,
    serving,
    setting_up,
)
from bot.commands.frame import examples, invocation_of
from bot.console import opened_output, told_plainly

PLUGINS = "footnote.commands"
"""The entry-point group in which packages above `bot` offer commands of their own."""

ORDER = ("init", "doctor", "ingest", "forget", "corpora", "reindex", "search", "ask", "check", "chat", "serve", "audit")


class Commands(TyperGroup):
    """Our commands, and those of packages above, which are imported only when they are named or listed."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return all names: ours in the order in which one comes to need them, then those of others."""
        return [*sorted(super().list_commands(ctx), key=ORDER.index), *sorted(_plugins().names)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command by its name; None if there is none. Another package's is only its name, to be listed."""
        if own := super().get_command(ctx, cmd_name):
            return own
        if cmd_name not in _plugins().names:
            return None
        return TyperCommand(cmd_name, help=f"See `footnote {cmd_name} --help`.")

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that was named, and load it if it is another package's."""
        found = next(iter(_plugins().select(name=args[0])), None)
        if not found:
            return super().resolve_command(ctx, args)
        command = typer.main.get_command(found.load())
        command.name = args[0]
        return args[0], command, args[1:]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the options, which may stand behind the command's name as well."""
        return super().parse_args(ctx, leading(args))


app = typer.Typer(
    name="footnote",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    epilog=examples(
        "footnote ingest folder handbook --corpus handbook",
        "footnote ask 'How many days of leave do I get?'",
    ),
)
app.command(epilog=examples("footnote init"))(setting_up.init)
app.command(epilog=examples("footnote doctor", "footnote doctor --model", "footnote doctor --model --stage verify"))(
    doctoring.doctor
)
app.add_typer(ingesting.app, name="ingest")
app.command(epilog=examples("footnote forget https://docs.example.com/old.html", "footnote forget 'Old rules'"))(
    forgetting.forget
)
app.command(epilog=examples("footnote corpora"))(indexes.corpora)
app.command(epilog=examples("footnote reindex"))(indexes.reindex)
app.command(epilog=examples("footnote search 'parental leave' -k 5 --corpus handbook"))(asking.search)
app.command(epilog=examples("footnote ask 'How many days of leave do I get?'", "footnote ask - --json < question.txt"))(
    asking.ask
)
app.command(epilog=examples("footnote check 'The office closes at six.'", "footnote check - --json < claim.txt"))(
    checking.check
)
app.command(epilog=examples("footnote chat", "footnote chat --corpus handbook < questions.txt"))(chatting.chat)
app.command(epilog=examples("footnote serve", "footnote --config /etc/footnote.toml serve"))(serving.serve)
app.add_typer(auditing.app, name="audit")


def _version(*, wanted: bool) -> None:
    if wanted:
        from bot.versions import VERSION

        typer.echo(f"footnote {VERSION}")
        raise typer.Exit


@app.callback()
def footnote(
    context: typer.Context,
    config: Annotated[
        Path | None, typer.Option(envvar="FOOTNOTE_CONFIG", help="The settings file, instead of ./footnote.toml.")
    ] = None,
    *,
    debug: Annotated[
        bool, typer.Option("--debug", envvar="FOOTNOTE_DEBUG", help="Show where an unexpected error came from.")
    ] = False,
    version: Annotated[  # noqa: ARG001 - its callback acts
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Answer questions from your own documents, with a footnote to every sentence."""
    context.obj = replace(invocation_of(context), config=config, debug=debug)


def main() -> None:
    """Run the command line of this process."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show a character shows another
    with told_plainly(opened_output(as_json="--json" in sys.argv, debug="--debug" in sys.argv)):
        app()


def leading(arguments: Sequence[str]) -> list[str]:
    """Return arguments with the options of `footnote` itself moved to the front, wherever before `--` they stood."""
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


def _plugins() -> EntryPoints:
    return entry_points(group=PLUGINS)
