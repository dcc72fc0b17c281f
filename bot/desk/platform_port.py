"""Define the interface of a platform for the desk, and its errors."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from bot.access import Asker
from bot.types import ConversationMessage, DeliveryCapabilities, Place, PostedMessages, ProgressSign, Question
from bot.views.turn_view import View


class PlatformError(Exception):
    """A call of a platform failed. `str()` is one line without secrets."""

    kind = "platform"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class PlatformUnavailable(PlatformError):
    """The platform does not answer, or asks us to wait.

    `seconds` is how long to wait. It is set only if certainly nothing was posted, so that the next try posts every
    message of the call. If it is None, something may have been posted; if the platform cannot be asked for it, the
    message is not posted again. Edits and deletions can always be repeated.
    """

    kind = "platform_unavailable"

    def __init__(self, message: str, *, hint: str = "", seconds: float | None = None) -> None:
        super().__init__(message, hint=hint)
        self.seconds = seconds

    def doubted(self) -> "PlatformUnavailable":
        """Return the same error without `seconds`, because an earlier part or try may have been posted."""
        return PlatformUnavailable(str(self), hint=self.hint)


class CannotPost(PlatformError):
    """The platform permanently refuses posts in this place."""

    kind = "cannot_post"


class ContentRefused(CannotPost):
    """The platform refuses the content of a message; it may accept plain text."""

    kind = "content_refused"


class RateLimited(PlatformUnavailable):
    """The platform accepts no more calls for now. Nothing was done."""

    kind = "rate_limited"


class AccessDenied(PlatformUnavailable):
    """The platform rejects our token. Nothing was done, and every call fails until the token is accepted again."""

    kind = "access_denied"

    def for_good(self) -> CannotPost:
        """Return this error as a permanent one, to raise when a platform starts.

        At that time, no work is running that could wait for a valid token.
        """
        return CannotPost(str(self), hint=self.hint)


class PostGone(PlatformError):
    """One of our messages no longer exists."""

    kind = "post_gone"


class Platform(Protocol):
    """A chat platform as the desk sees it. Every method raises `PlatformError`.

    Its posts mention only `View.mentions`, link only to the addresses of sources, and show no link previews.
    """

    @property
    def name(self) -> str:
        """The name in `Place.platform`."""
        ...

    def ways(self, question: Question) -> DeliveryCapabilities:
        """Return the platform's features for the answer to a question."""
        ...

    async def asker(self, question: Question) -> Asker:
        """Return the asker with current facts: the channel may be shared, the asker may have left or be denied.

        Unknown facts default to the restrictive value. Raises `PlatformUnavailable` if they cannot be looked up now.
        """
        ...

    async def show(self, question: Question, view: View, posted: PostedMessages) -> PostedMessages:
        """Make the posts in answer to a question show the view, and return all of them.

        Posts new messages, edits existing ones, and deletes those no longer needed. Posts are marked so that `find`
        finds them. A view that is not `done` may be skipped if it comes too fast; a `done` one is shown completely, in
        as many messages as it needs, or this raises. A message that could not be found again is first posted empty and
        returned as `begun`; once its id is stored, this is called again and fills it.
        """
        ...

    async def show_sign(self, question: Question, view: View) -> ProgressSign:
        """Show, without posting a message, that a question was accepted, and its progress if possible.

        Returns what the asker can see. Called every few seconds before anything is posted; calls that are too frequent
        or fail are skipped.
        """
        ...

    async def find(self, question: Question) -> PostedMessages:
        """Fetch our messages in answer to a question from the platform. Only called if `ways(question).reads_back`."""
        ...

    async def remove(self, question: Question, posted: PostedMessages) -> None:
        """Delete posts; a post that no longer exists is not an error."""
        ...

    async def tell(self, question: Question, text: str) -> None:
        """Notify the asker, at most once and without storing anything, that the question could not be accepted."""
        ...

    async def call(self, place: Place, text: str, people: Sequence[str]) -> PostedMessages:
        """Post a text that mentions `people` and no one else."""
        ...

    async def heard(self, question: Question, most: int) -> tuple[ConversationMessage, ...]:
        """Return the last messages of the conversation before the question, oldest first."""
        ...

    def connected(self) -> AbstractAsyncContextManager[None]:
        """Stay connected within the block, and pass events to the desk."""
        ...

    @property
    def ready(self) -> str:
        """Why events cannot arrive now, in one line; empty if they can."""
        ...
