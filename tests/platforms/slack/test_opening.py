"""Slack as `footnote serve` opens it: by the settings, on a free port, and only if it is configured."""

import asyncio
import shutil
from pathlib import Path

import pytest

from bot.desk.platform_port import CannotPost
from bot.desk.turn_policy import open_desk
from bot.platforms.shared.platform_connection import open_platform
from bot.settings.platform_registry import load_platforms
from tests.platforms.example_app import open_example_app
from tests.platforms.slack.running import configure
from tests.platforms.slack.server import serve
from tests.platforms.slack.state import BOT_TOKEN
from tests.platforms.workspace import Target

SLACK = load_platforms()["slack"]


async def test_platform_without_settings_is_not_opened(filled: Path, tmp_path: Path) -> None:
    with open_example_app(Path(shutil.copytree(filled, tmp_path / "home"))) as app:
        async with open_platform(SLACK, app, open_desk(app, {})) as opened:
            assert opened is None


async def test_refused_token_is_reported_with_a_hint(filled: Path, tmp_path: Path) -> None:
    with open_example_app(Path(shutil.copytree(filled, tmp_path / "home"))) as plain:
        async with serve() as slack:
            slack.state.tokens[BOT_TOKEN].error = "token_revoked"
            app = configure(plain, Target(slack.url, slack.clock))
            with pytest.raises(CannotPost, match="token_revoked") as caught:
                async with open_platform(SLACK, app, open_desk(app, {})):
                    pass
    assert "install the app again" in caught.value.hint


async def test_refused_app_token_is_reported(filled: Path, tmp_path: Path) -> None:
    with open_example_app(Path(shutil.copytree(filled, tmp_path / "home"))) as plain:
        async with serve() as slack:
            app = configure(plain, Target(slack.url, slack.clock))
            slack.sockets.allowed = False
            async with open_platform(SLACK, app, open_desk(app, {})) as opened:
                assert opened
                with pytest.raises(CannotPost, match=r"apps\.connections\.open"):
                    async with opened.platform.connected():
                        await asyncio.sleep(0)
