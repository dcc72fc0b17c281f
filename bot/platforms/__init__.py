"""List the platforms that `footnote serve` knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bot.platforms.shared.platform_connection import OpenPlatform


def list_platforms() -> Mapping[str, OpenPlatform]:
    """Return what opens each by its name, configured or not."""
    from bot.platforms.discord import open_discord  # settings import this package
    from bot.platforms.slack import open_slack

    return {"slack": open_slack, "discord": open_discord}
