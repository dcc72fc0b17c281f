"""Run `footnote mcp`: answer programs over MCP, and make the tokens with which they ask a server."""

import asyncio
import secrets
from typing import Annotated

import typer

from bot.cli.command_context import CommandContext, JsonOption, format_examples, open_bare_command, open_command
from bot.cli.questions.question_commands import identify_terminal_user
from bot.cli.terminal_output import CommandError, build_document
from bot.settings.tables.network_settings import format_token_line, list_token_ids
from bot.views.error_messages import Fault
from bot.views.text_layout import Text

mcp_app = typer.Typer(
    add_completion=False,
    no_args_is_help=False,
    epilog=format_examples("footnote mcp", "footnote --config /etc/footnote.toml mcp --as editors"),
)


@mcp_app.callback(invoke_without_command=True)
def mcp(
    context: typer.Context,
    reader: Annotated[
        str, typer.Option("--as", metavar="NAME", help="Read only what the token with this name may read.")
    ] = "",
) -> None:
    if context.invoked_subcommand is None:
        with open_command(context, as_json=False) as ctx:
            asyncio.run(_answer_program(ctx, reader))


async def _answer_program(ctx: CommandContext, reader: str) -> None:
    # `footnote mcp token` does not need the library of MCP.
    from bot.server.mcp.mcp_server import serve_stdio
    from bot.server.mcp.shared_home import SharedHome
    from bot.server.mcp.tool_calls import make_owner_asker, make_token_asker

    tokens = {token.name: token for token in ctx.settings.mcp.tokens}
    if reader and reader not in tokens:
        hint = f"There are: {', '.join(tokens)}." if tokens else "`footnote mcp token NAME` makes one."
        raise CommandError(Fault("unknown_token", f"There is no token {reader!r} under [mcp].", hint))
    token, owner = tokens.get(reader), identify_terminal_user().user
    asker = make_token_asker(token.name, token.groups) if token else make_owner_asker(owner)
    await serve_stdio(SharedHome(lambda: ctx.services.open_home(ctx.settings)), ctx.settings, asker)


@mcp_app.command(epilog=format_examples("footnote mcp token anna", "footnote mcp token ci --group editors"))
def token(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="The name of the person or program that will use it.")],
    groups: Annotated[list[str] | None, typer.Option("--group", help="A group of the token; repeatable.")] = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Make a token with which a program asks `footnote serve`. It is shown only now; the settings store its digest."""
    with open_bare_command(context, as_json=as_json) as output:
        secret = secrets.token_urlsafe(32)
        try:
            line = format_token_line(name, tuple(groups or ()), secret)
        except ValueError as error:
            message = "A name has at most 60 letters, digits, dots, dashes and underscores."
            raise typer.BadParameter(message) from error
        readers = " or ".join(f'"{reader}"' for reader in list_token_ids(name, groups or ()))
        lines = (
            f"The token, to give only to the program: {secret}",
            f"The line for `tokens` under [mcp]:  {line}",
            f"To let it read a corpus, name it in visible_to of the [[corpus]]: {readers}",
            "`footnote reload` applies these; if [mcp] enabled = true is new, restart the server.",
        )
        output.give(build_document(token=secret, line=line), Text("\n".join(lines)))
