"""Run `footnote pages`: serve the pages, alone or next to a running server."""

import asyncio
from typing import Annotated

import typer

from bot.cli.command_context import CommandContext, open_command
from bot.pages.pages_server import serve_pages
from bot.settings.tables.settings_tables import Settings


def pages(
    context: typer.Context,
    port: Annotated[
        int | None, typer.Option("--port", min=0, max=65_535, help="The port; default from settings.")
    ] = None,
) -> None:
    with open_command(context, as_json=False) as ctx:
        settings = ctx.settings
        if port is not None:
            settings = settings.model_copy(update={"pages": settings.pages.model_copy(update={"port": port})})
        asyncio.run(_show_pages(ctx, settings))


async def _show_pages(ctx: CommandContext, settings: Settings) -> None:
    services = ctx.services
    async with (
        services.open_records(settings) as records,
        services.open_history(settings) as history,
        serve_pages(settings, records, history, lambda: services.open_home(settings)) as address,
    ):
        ctx.output.note(f"The pages are at {address} until Ctrl-C.")
        await asyncio.Event().wait()
