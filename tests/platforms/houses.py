"""Every platform that the contract suite runs on, by name: the tests' own, and the real adapters at their fakes."""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from types import MappingProxyType

from tests.platforms.contract import HOUSES as FAKES
from tests.platforms.contract import Street
from tests.platforms.discord.house import house as discord_house
from tests.platforms.discord.joining import joined as discord_joined
from tests.platforms.discord.scenes import SCENES as DISCORD_SCENES
from tests.platforms.killing.scenes import FAKES as FAKE_SCENES
from tests.platforms.killing.scenes import Scene
from tests.platforms.mattermost.house import house as mattermost_house
from tests.platforms.mattermost.scenes import SCENES as MATTERMOST_SCENES
from tests.platforms.slack.house import house
from tests.platforms.slack.joining import joined
from tests.platforms.slack.scenes import SCENES as SLACK_SCENES
from tests.thorough import THOROUGH

HOUSES: Mapping[str, Callable[[], AbstractAsyncContextManager[Street]]] = MappingProxyType(
    {
        **FAKES,
        "slack": house(joined),
        "slack over HTTP": house(joined, mode="http"),
        "discord": discord_house(discord_joined),
        "mattermost": mattermost_house(),
        "mattermost over HTTP": mattermost_house(buttons=True),
    }
)

TRIED = tuple(HOUSES) if THOROUGH else ("slack", "discord", "mattermost")
"""Those that the contract runs on each time: the real ones, each by one transport."""

SCENES: Mapping[str, Callable[[], AbstractAsyncContextManager[Scene]]] = MappingProxyType(
    {**FAKE_SCENES, **SLACK_SCENES, **DISCORD_SCENES, **MATTERMOST_SCENES}
)
"""Where bots are killed."""
