"""What people ask by commands and context menus: whether they may, and the question that it is."""

from bot.desk.types import Question, TaskKind
from bot.discord import invoking
from bot.discord.invoking import Invoked
from bot.discord.standing import is_ours, standing, taken_along
from bot.discord.taking import Taking, cooling
from bot.platform import PlatformError
from bot.settings.platform_settings import DiscordSettings
from bot.views.catalog import translate
from bot.wiring import App


class Asking:
    """Makes questions of what is invoked."""

    def __init__(self, app: App, settings: DiscordSettings, taking: Taking) -> None:
        """Take what is opened, the settings, and what takes messages."""
        self._app, self._settings, self._taking = app, settings, taking

    async def question(self, found: Invoked, task: TaskKind, text: str) -> Question | str:
        """Return the question that something is, or what whoever invoked it is told instead.

        Of what is invoked where the bot itself is not, the answer is for whoever invoked it alone.
        """
        if refusal := await self.refusal(found):
            return refusal
        if not text:
            menu = found.name == invoking.FACT_CHECK
            return translate("discord_no_text" if menu else f"discord_{task}_usage", found.locale)
        cooldown, places = self._taking.cooldown, self._taking.places
        if left := cooldown.left(found.user, found.key):
            return cooling(left, found.locale)
        cooldown.begin(found.user, found.key)
        asker = await standing(places, found)
        if not is_ours(places, found):
            return invoking.question(taken_along(found), task, text, asker, only_asker=True)
        made = invoking.question(found, task, text, asker, only_asker=False)
        settings = await self._taking.settings(made.place.channel_id)
        private = not found.direct and (found.private or settings.ephemeral or found.name == invoking.FACT_CHECK)
        return invoking.question(found, task, text, asker, only_asker=True) if private else made

    async def refusal(self, found: Invoked) -> str:
        """Return why somebody is not answered at all; empty where they are."""
        places = self._taking.places
        ours = is_ours(places, found)
        if not ours and not self._settings.user_install:
            return translate("discord_not_here", found.locale)
        if await self.denied(found):
            return translate("discord_denied", found.locale)
        if ours and found.channel.is_thread and not found.channel.parent:
            return translate("discord_not_here", found.locale)
        return ""

    async def denied(self, found: Invoked) -> bool:
        """Return whether settings deny somebody everything, whatever they use: commands, buttons, modals."""
        places = self._taking.places
        return await places.denied(found.user, found.roles, direct=found.direct or not is_ours(places, found))

    async def ticket_of(self, found: Invoked) -> int | None:
        """Return the ticket that the message of a context menu answers; None where it answers none."""
        try:
            channel = await self._taking.places.channel(found.channel.id, found.guild)
        except (PlatformError, TimeoutError):
            channel = found.channel
        where = channel.parent if channel.is_thread else channel.id
        row = await self._app.queue.by_message(f"discord:{found.guild}/{where}", found.target)
        return row.ticket if row and found.target in row.posted else None
