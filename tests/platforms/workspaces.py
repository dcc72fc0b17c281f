"""Every workspace that the contract suite runs on, by name."""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from types import MappingProxyType
from typing import Any

from tests.platforms.discord.workspace import workspaces as discord
from tests.platforms.mattermost.workspace import workspaces as mattermost
from tests.platforms.slack.workspace import workspaces as slack
from tests.thorough import THOROUGH

PLATFORMS: Mapping[str, Callable[..., Callable[[], AbstractAsyncContextManager[Any]]]] = MappingProxyType(
    {"slack": slack, "discord": discord, "mattermost": mattermost}
)
WORKSPACES: Mapping[str, Callable[[], AbstractAsyncContextManager[Any]]] = MappingProxyType(
    {
        **{name: workspaces() for name, workspaces in PLATFORMS.items()},
        "slack over HTTP": slack(http=True),
        "mattermost over HTTP": mattermost(http=True),
    }
)
TESTED = tuple(WORKSPACES) if THOROUGH else tuple(PLATFORMS)
"""The workspaces of every test run: one transport of each platform. Thorough runs use all."""
