"""List the platforms that `footnote serve` knows."""

from collections.abc import Mapping

from bot.platforms.discord import open_discord
from bot.platforms.shared.platform_connection import OpenPlatform
from bot.platforms.slack import open_slack


def list_platforms() -> Mapping[str, OpenPlatform]:
    """Return what opens each by its name, configured or not."""
    return {"slack": open_slack, "discord": open_discord}
