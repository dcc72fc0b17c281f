"""The platforms that `footnote serve` knows. A further one is a line here."""

from collections.abc import Mapping

from bot.arriving import OpenPlatform
from bot.discord.opening import open_discord
from bot.slack.opening import open_slack


def known() -> Mapping[str, OpenPlatform]:
    """Return what opens each by its name, configured or not."""
    return {"slack": open_slack, "discord": open_discord}
