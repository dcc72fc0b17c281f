"""A request to the API, its route, and its response."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.platforms.discord.refusing import invalid
from tests.platforms.shapes import Check


@dataclass(frozen=True)
class Call:
    """A received request."""

    route: "Route"
    names: Mapping[str, str]
    """The values in the path."""
    query: Mapping[str, str]
    body: Any = None

    def __getitem__(self, name: str) -> str:
        return self.names[name]


@dataclass(frozen=True)
class Answer:
    """A response."""

    body: Any = None
    status: int = 200


NOTHING = Answer(status=204)


@dataclass(frozen=True)
class Route:
    """A route of the API."""

    name: str
    """The route's name in tests."""
    verb: str
    path: str
    do: Callable[[Any, Call], Answer]
    """Receives the server and the request. Raises `Refusal`."""
    most: int = 50
    seconds: float = 1.0
    """At most `most` requests are accepted within these seconds, for each channel, guild or webhook."""
    token: bool = True
    """Whether the bot's token is needed; interactions have one of their own in the path."""
    shape: Check | None = field(default=None, repr=False)

    @property
    def bodied(self) -> bool:
        return self.verb in {"POST", "PUT", "PATCH"}


def check(body: Any, shape: Check) -> Any:
    """Return a body that is as it should be. Raises `Refusal`."""
    if objections := list(shape({} if body is None else body, "")):
        raise invalid(objections)
    return {} if body is None else body
