"""The routes of the API that the fake Discord knows."""

from tests.platforms.discord.calls import Route
from tests.platforms.discord.methods import commands, interactions, messages, people, threads

ROUTES: tuple[Route, ...] = tuple(
    route for family in (messages, threads, people, commands, interactions) for route in family.ROUTES
)
