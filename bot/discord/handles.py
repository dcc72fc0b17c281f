"""What is needed to answer an interaction: its application and its token, a secret good for 15 minutes; pure."""

import json
from dataclasses import dataclass, field
from typing import TypedDict

GOOD_SECONDS = 15 * 60.0
_MARGIN = 15.0
"""Nobody begins an answer so shortly before the end."""


class Ids(TypedDict):
    """An application and a token, by the names that routes have for them."""

    application: str
    token: str


@dataclass(frozen=True, slots=True)
class Handle:
    """An interaction's application and token."""

    application: str
    token: str = field(repr=False)

    @property
    def text(self) -> str:
        """What `Question.handle` is."""
        return json.dumps([self.application, self.token])

    @property
    def ids(self) -> Ids:
        """What routes of interactions have to be told."""
        return Ids(application=self.application, token=self.token)


def handle_of(text: str) -> Handle | None:
    """Return the handle that a question has; None where it was no interaction."""
    try:
        application, token = json.loads(text)
    except (ValueError, TypeError):
        return None
    return Handle(str(application), str(token))


def is_good(asked: float, now: float) -> bool:
    """Return whether a token is good still, by when the interaction began. Both in seconds since 1970."""
    return now < asked + GOOD_SECONDS - _MARGIN
