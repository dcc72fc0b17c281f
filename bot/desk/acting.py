"""What people do with an answer once they have its ticket: one face for platforms, which call it beside the desk.

A ticket is all that a button knows, so that it works after a restart too. Everything is held to what may be read where
somebody stands, at that moment.
"""

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Literal

from bot.access import Asker
from bot.app import App
from bot.desk.asking_people import ask_people
from bot.desk.evidence import evidence_of
from bot.desk.feedback import note_feedback
from bot.desk.permitted import Denied
from bot.desk.reporting import report
from bot.desk.seen import Seen, seen
from bot.desk.sharing import share
from bot.desk.sources import sources_of
from bot.platform import Platform
from bot.showing.view import EvidenceView
from bot.words import say
from storage.errors import StorageError


class Acting:
    """Acts for people. Every method raises `Denied`, whose words are for whoever pressed, and nothing else.

    `language` is theirs, where the platform knows it; without it they are answered in the question's, and refused in
    English, so that a refusal does not tell whether there is a question.
    """

    def __init__(self, app: App, platforms: Mapping[str, Platform]) -> None:
        """Take the opened app, and the platforms by name."""
        self._app, self._platforms = app, platforms
        self._busy: set[int] = set()

    async def evidence(self, ticket: int, by: Asker, *, language: str = "") -> EvidenceView:
        """Show what a turn checked, and the passages it stands on."""
        async with self._looking(language):
            return await evidence_of(self._app, await seen(self._app, ticket, by, language))

    async def sources(self, conversation: str, by: Asker, *, language: str = "") -> EvidenceView:
        """Show all pages that a conversation's answers cite."""
        async with self._looking(language):
            return await sources_of(self._app, conversation, by, language)

    async def feedback(
        self, ticket: int, by: Asker, what: Literal["up", "down"], comment: str = "", *, language: str = ""
    ) -> str:
        """Note what somebody thinks of an answer."""
        async with self._acting(ticket, by, language) as found:
            return await note_feedback(self._app, found, what, comment)

    async def ask_person(self, ticket: int, by: Asker, *, language: str = "") -> str:
        """Call the people whom the channel's settings name to a question."""
        async with self._once(ticket, by, language) as found:
            return await ask_people(self._app, self._platform(found), found)

    async def share(self, ticket: int, by: Asker, *, language: str = "") -> str:
        """Show the channel an answer that the asker alone was shown."""
        async with self._once(ticket, by, language) as found:
            return await share(self._app, self._platform(found), found)

    def _platform(self, found: Seen) -> Platform:
        """Return where a question stands; whoever acts may be elsewhere, such as at the terminal."""
        if platform := self._platforms.get(found.question.place.platform):
            return platform
        raise found.denied("acting_unavailable")

    @asynccontextmanager
    async def _once(self, ticket: int, by: Asker, language: str) -> AsyncIterator[Seen]:
        """Look a turn up for what is done once: whoever presses twice does not start it twice."""
        async with self._acting(ticket, by, language) as found:
            pass  # Who may not see it is told that first.
        if ticket in self._busy:
            raise found.denied("acting_busy")
        self._busy.add(ticket)
        try:
            # What was done meanwhile counts.
            async with self._acting(ticket, by, language) as found:
                yield found
        finally:
            self._busy.discard(ticket)

    @asynccontextmanager
    async def _acting(self, ticket: int, by: Asker, language: str) -> AsyncIterator[Seen]:
        async with self._looking(language):
            found = await seen(self._app, ticket, by, language)
        try:
            yield found
        except StorageError as error:
            report(logging.ERROR, "an act could not be recorded", found.question, error)
            raise found.denied("acting_unrecorded") from error

    @asynccontextmanager
    async def _looking(self, language: str) -> AsyncIterator[None]:
        try:
            yield
        except (StorageError, ValueError) as error:
            report(logging.ERROR, "a turn could not be looked up", error=error)
            raise Denied(say("acting_unavailable", language or "en")) from error
