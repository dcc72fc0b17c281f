"""What we say in Slack besides answers: how a command is used, what holds in a channel, what one could ask."""

import logging
from collections.abc import Mapping
from typing import Any

from bot.desk.channel_settings import ChannelSettingsCommand
from bot.platform import PlatformError
from bot.slack.calling import Calling
from bot.slack.configuring import configured
from bot.slack.escaping import escaped
from bot.slack.happening import Opened
from bot.slack.invoking import Invoked
from bot.slack.places import Places
from bot.slack.reading import is_direct
from bot.views.catalog import translate

log = logging.getLogger(__name__)


class Answering:
    """Answers commands that ask nothing, and people who open a chat."""

    def __init__(self, call: Calling, places: Places, configuring: ChannelSettingsCommand) -> None:
        """Take the way to Slack, what is known of people, and what sets channels."""
        self._call, self._places, self._configuring = call, places, configuring

    async def configure(self, command: Mapping[str, Any]) -> str:
        """Return the answer to `/footnote`, as mrkdwn."""
        channel, user = str(command.get("channel_id", "")), str(command.get("user_id", ""))
        by = await self._places.asker(channel, user, direct=is_direct(channel))
        language = await self._places.language(user)
        return configured(await self._configuring.answer(str(command.get("text") or ""), by, language or "en"))

    async def usage(self, invoked: Invoked) -> str:
        """Return how a command is used, as mrkdwn."""
        language = await self._places.language(invoked.user)
        return escaped(translate(f"slack_{invoked.task}_usage", language or "en"))

    async def suggest(self, opened: Opened) -> None:
        """Suggest what one could begin with to somebody who opens the chat."""
        language = await self._places.language(opened.user) or "en"
        prompts = [
            {"title": translate("slack_prompt_who", language), "message": translate("slack_prompt_hello", language)}
        ]
        facts: dict[str, Any] = {
            "channel_id": opened.channel,
            "title": translate("slack_prompts", language),
            "prompts": prompts,
        }
        try:
            # Of an agent's chat no thread is named; Slack would leave them out.
            await self._call("assistant.threads.setSuggestedPrompts", **facts)
        except PlatformError as error:
            log.warning("nothing could be suggested", extra={"cause": str(error)})
