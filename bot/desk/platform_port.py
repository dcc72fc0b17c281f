"""Define what the desk needs of a platform, and what may go wrong there.

Slack, Discord and the tests' own platform implement `Platform`.
"""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from bot.access import Asker
from bot.types import ConversationMessage, DeliveryCapabilities, Place, PostedMessages, ProgressSign, Question
from bot.views.turn_view import View


class PlatformError(Exception):
    """A call of a platform failed. `str()` is one plain line without secrets."""

    kind = "platform"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class PlatformUnavailable(PlatformError):
    """It does not answer, or asks us to wait.

    With `seconds`, after which to try again, nothing was posted: that is sure, and every message that a call tried to
    post is posted by the next try. Without, it is in doubt: something may have been posted, and where the platform
    cannot be asked, it is not posted again. An edit is in no doubt, since it may be made twice; nor is a removal.
    """

    kind = "platform_unavailable"

    def __init__(self, message: str, *, hint: str = "", seconds: float | None = None) -> None:
        super().__init__(message, hint=hint)
        self.seconds = seconds

    def doubted(self) -> "PlatformUnavailable":
        """Return the same in doubt: an earlier part, or an earlier try, may have been done."""
        return PlatformUnavailable(str(self), hint=self.hint)


class CannotPost(PlatformError):
    """It refuses for good."""

    kind = "cannot_post"


class ContentRefused(CannotPost):
    """It refuses what a message is made of: as plain text it may be taken."""

    kind = "content_refused"


class RateLimited(PlatformUnavailable):
    """It wants no more calls for now. Nothing was done."""

    kind = "rate_limited"


class AccessDenied(PlatformUnavailable):
    """It does not take our token. Nothing was done, and nothing can be until it does."""

    kind = "access_denied"

    def for_good(self) -> CannotPost:
        """Return the same for whoever only begins: nothing is under way yet that could rest."""
        return CannotPost(str(self), hint=self.hint)


class PostGone(PlatformError):
    """A message of ours is no longer there."""

    kind = "post_gone"


class Platform(Protocol):
    """A chat platform as the desk sees it. Every method raises `PlatformError`.

    Nothing it posts pings anybody, links anywhere or unfurls, but for `View.mentions` and the addresses of `Source`s.
    """

    @property
    def name(self) -> str:
        """As in `Place.platform`."""
        ...

    def ways(self, question: Question) -> DeliveryCapabilities:
        """Say what can be done with the answer to a question."""
        ...

    async def asker(self, question: Question) -> Asker:
        """Return who asked, and where they stand by now: it may be shared, they may have left or be denied.

        What is no longer known counts against the place. Raises `PlatformUnavailable` where that cannot be told now.
        """
        ...

    async def show(self, question: Question, view: View, posted: PostedMessages) -> PostedMessages:
        """Bring what is posted in answer to a question to what the view shows, and return all messages of it.

        Posts what is not posted yet, edits what is, and removes messages that are no longer needed. Posts are marked
        so that `find` finds them. May leave out a view that is not `done` where it would come too fast; a `done` one
        is shown whole, in as many messages as it needs, or it raises. Where a message cannot be found again, it is
        posted empty first and returned as `begun`: once its id is stored, this is called again and fills it.
        """
        ...

    async def show_sign(self, question: Question, view: View) -> ProgressSign:
        """Show without a message that a question was taken, and how it stands if that can be told; return what is seen.

        Only called before anything is posted, and again every few seconds: what is too often, or fails, is left out.
        """
        ...

    async def find(self, question: Question) -> PostedMessages:
        """Ask the platform for our own messages in answer to a question; none if there are none.

        Only called where `ways(question).reads_back`.
        """
        ...

    async def remove(self, question: Question, posted: PostedMessages) -> None:
        """Delete what was posted; what is gone already is no error."""
        ...

    async def tell(self, question: Question, text: str) -> None:
        """Say a sentence of ours to the asker, at most once and kept nowhere: what could not even be taken."""
        ...

    async def call(self, place: Place, text: str, people: Sequence[str]) -> PostedMessages:
        """Post a sentence of ours that mentions these people, and no other."""
        ...

    async def heard(self, question: Question, most: int) -> tuple[ConversationMessage, ...]:
        """Return the conversation before the question, oldest first: its last messages, however many pages it has."""
        ...

    def connected(self) -> AbstractAsyncContextManager[None]:
        """Be connected within the block: events arrive and are handed to the desk."""
        ...

    @property
    def ready(self) -> str:
        """Why events cannot arrive just now, in one line; empty when all is well."""
        ...
