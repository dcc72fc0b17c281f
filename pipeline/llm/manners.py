"""What a server was found to want of calls to a model, beyond what all take. Pure: the model remembers it.

Servers differ by version, model and flags, and no list of them stays right; so a call is made the plain way, and what
the server objects to is left out from then on.
"""

import re
from dataclasses import dataclass, replace

from pipeline.llm.settings import ModelSettings

MODEST = frozenset({"temperature", "reasoning_effort", "stream_options", "max_tokens"})
"""Arguments that a call can do without; `max_tokens` has a newer name."""
SCHEMA = "response_format"
_SECRETIVE = re.compile(r"(?i)(?<![a-z])(?:o[1-9](?![0-9])|gpt-5|gpt-oss)")
"""Names of models whose thoughts a server keeps to itself, or apart."""
_OUTSPOKEN = re.compile(r"(?i)(?<![a-z])r1(?![0-9])|qwq|qwen3|think|reason|magistral")
"""Names of models whose thoughts may stand in the text."""
_TALKERS = re.compile(r"(?i)instruct|chat|non-?(?:think|reason)")


@dataclass(frozen=True, slots=True)
class Manners:
    """What was found out so far."""

    left_out: frozenset[str] = frozenset()
    """Arguments that the server does not take."""
    plain_roles: bool = False
    """Whether it takes only a user and an assistant who take turns."""
    thinks: bool | None = None
    """Whether the model thinks before it replies; None: not seen yet."""
    unopened: bool | None = None
    """Whether its thoughts end in the text without having begun there; None: not seen yet."""

    def without(self, argument: str) -> "Manners":
        """Return the manners of a server that does not take an argument."""
        return replace(self, left_out=self.left_out | {argument})

    def joined(self, other: "Manners") -> "Manners":
        """Return what is known by both, as calls at once find out different things."""
        return Manners(
            self.left_out | other.left_out,
            self.plain_roles or other.plain_roles,
            self.thinks if other.thinks is None else other.thinks,
            self.unopened if other.unopened is None else other.unopened,
        )

    @property
    def schema(self) -> bool:
        """Whether a schema may be sent, as far as is known."""
        return SCHEMA not in self.left_out


class Memory:
    """What was found out about each model of a server."""

    def __init__(self) -> None:
        self._manners: dict[str, Manners] = {}

    def of(self, model: str) -> Manners:
        """Return what is known of calls to a model."""
        return self._manners.get(model, Manners())

    def learn(self, model: str, found: Manners) -> None:
        """Add what was found out by a call to a model."""
        self._manners[model] = self.of(model).joined(found)


def thinks(settings: ModelSettings, model: str, manners: Manners) -> bool:
    """Return whether a model thinks before it replies: as set, else as seen, else by its name."""
    known = settings.thinks if settings.thinks is not None else manners.thinks
    if known is not None:
        return known
    return bool(_SECRETIVE.search(model) or _OUTSPOKEN.search(model)) and not _TALKERS.search(model)


def begins_unopened(settings: ModelSettings, model: str, manners: Manners) -> bool:
    """Return whether a stream may begin in the middle of a thought, so that its beginning must be held back."""
    if manners.unopened is not None:
        return manners.unopened
    return thinks(settings, model, manners) and not _SECRETIVE.search(model)
