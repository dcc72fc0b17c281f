"""Everything that Discord hands to us: what it is, who does it, and what is done about it.

What asks for an answer is on the disk before an interaction is deferred. Whatever goes wrong with one event is told in
the log, without what it said, and the next goes on.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bot.desk.channel_settings import ChannelSettingsCommand
from bot.desk.desk import Desk
from bot.desk.types import IntakeStatus, TaskKind
from bot.discord import invoking, reading
from bot.discord.acting import Pressing
from bot.discord.answering import Answering, sentence
from bot.discord.asking import Asking
from bot.discord.configuring import configured
from bot.discord.happening import Erased, Learned, Rewritten, Us, Written
from bot.discord.invoking import COMMAND, PRESS, SUBMIT, Invoked
from bot.discord.taking import Taking
from bot.settings.platform_settings import DiscordSettings
from bot.views.catalog import translate

Json = Mapping[str, Any]

log = logging.getLogger(__name__)

INTERACTION = "INTERACTION_CREATE"


@dataclass(frozen=True, slots=True)
class Listening:
    """What listens to Discord."""

    us: Us
    settings: DiscordSettings
    desk: Desk
    taking: Taking
    asking: Asking
    pressing: Pressing
    answering: Answering
    configuring: ChannelSettingsCommand

    async def hear(self, event: str, data: Json) -> None:
        """Do what an event means. Raises nothing: nobody waits who could do better."""
        try:
            if event == INTERACTION:
                if found := invoking.invoked(data, self.us):
                    await self._invoked(found)
            else:
                await self._happened(reading.read(event, data, self.us))
        except Exception as error:  # noqa: BLE001 - whatever it is, the next event is heard
            cause = f"{type(error).__name__}: {error}"
            log.error("something of Discord's was not taken in", extra={"event": event, "cause": cause})  # noqa: TRY400

    async def _happened(self, meaning: reading.Meaning) -> None:
        match meaning:
            case Written() as written:
                await self.taking.take(written)
            case Rewritten() as rewritten:
                await self.taking.rewritten(rewritten)
            case Erased() as erased:
                await self.taking.erased(erased)
            case Learned() as learned:
                self.taking.places.learn(learned)

    async def _invoked(self, found: Invoked) -> None:
        if asked := invoking.asked(found):
            await self._ask(found, *asked)
        elif found.kind == COMMAND:
            await self._command(found)
        elif await self.asking.denied(found):
            await self.answering.say(found, translate("discord_denied", found.locale))
        elif found.kind == PRESS:
            await self.pressing.press(found)
        elif found.kind == SUBMIT:
            await self.pressing.comment(found)

    async def _ask(self, found: Invoked, task: TaskKind, text: str) -> None:
        """Take a question, and only then say that an answer comes."""
        question = await self.asking.question(found, task, text)
        if isinstance(question, str):
            await self.answering.say(found, question)
            return
        with self.answering.deferring(question.key):
            if await self.desk.take(question) is not IntakeStatus.KNOWN:
                await self.answering.defer(found, private=question.only_asker)

    async def _command(self, found: Invoked) -> None:
        match found.name:
            case invoking.ASK_ABOUT:
                await self._ask_about(found)
            case invoking.SOURCES:
                await self._sources(found)
            case invoking.PRIVACY:
                await self.answering.say(found, self.settings.privacy or translate("discord_privacy", found.locale))
            case invoking.CONFIGURE:
                await self._configure(found)
            case invoking.TAKE_BACK:
                await self._take_back(found)
            case _:
                await self.answering.say(found, translate("discord_unknown_command", found.locale))

    async def _ask_about(self, found: Invoked) -> None:
        if refusal := await self.asking.refusal(found):
            await self.answering.say(found, refusal)
        elif found.text:
            await self.answering.modal(found, invoking.about_modal(found.text, found.locale))
        else:
            await self.answering.say(found, translate("discord_no_text", found.locale))

    async def _sources(self, found: Invoked) -> None:
        if refusal := await self.asking.refusal(found):
            await self.answering.say(found, refusal)
        else:
            await self.pressing.sources(found)

    async def _configure(self, found: Invoked) -> None:
        """Show or change what holds in a channel, for whom Discord lets use the command there."""
        await self.answering.defer(found, private=True)
        written = " ".join(filter(None, (found.option("setting"), found.option("value"))))
        words = await self.configuring.answer(written, await self.pressing.by(found), found.locale)
        await self.answering.change(found, sentence(words, configured))

    async def _take_back(self, found: Invoked) -> None:
        ticket = await self.asking.ticket_of(found)
        if ticket is None:
            await self.answering.say(found, translate("discord_no_answer", found.locale))
        else:
            await self.pressing.take_back(found, ticket)
