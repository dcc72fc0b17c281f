"""The platforms that `footnote serve` knows. A further one is a line here."""

from collections.abc import Sequence

from bot.discord.opening import open_discord
from bot.serving import OpenPlatform
from bot.slack.opening import open_slack


def known() -> Sequence[OpenPlatform]:
    """Return what opens each, configured or not."""
    return (open_slack, open_discord)
