"""A platform's part of `footnote setup`: its questions, how answers are tried, and where the bot is."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bot.doctor.diagnosis import CheckResult


@dataclass(frozen=True, slots=True)
class SetupQuestion:
    """A question of `footnote setup`. Its answer is stored under `key` in the platform's table."""

    key: str
    prompt: str
    where: str  # where to find the answer, in a sentence
    secret: bool = True
    default: str = ""


@dataclass(frozen=True, slots=True)
class Workspace:
    """A workspace, server or team that the bot is in."""

    id: str
    title: str


@dataclass(frozen=True, slots=True)
class BotLocation:
    """Where the bot is, as the platform shows it."""

    mention: str  # how people call it: "@footnote"
    workspaces: tuple[Workspace, ...] = ()
    invitation: str = ""  # how to invite it, if it is in no workspace
    changes: Mapping[str, Any] = field(default_factory=dict)  # settings of its table that follow from what was found


@dataclass(frozen=True, slots=True)
class PlatformSetup:
    """How a platform is set up. Its functions may call the platform's API, and raise its errors."""

    steps: tuple[str, ...]  # to do first on the platform's own pages
    list_questions: Callable[[Any], Sequence[SetupQuestion]]  # receives the platform's table of the settings
    try_answer: Callable[[Any, str], Awaitable[Sequence[CheckResult]]]
    """Tries an answer; receives the table that contains it, and its key."""
    locate_bot: Callable[[Any], Awaitable[BotLocation]]
    list_channels: Callable[[Any, str], Awaitable[Mapping[str, str]]]
    """The ids of a workspace's channels, by their names without #."""
    invite: str  # how to add the bot to a channel, in a sentence
    workspaces_key: str = ""  # of the setting that lists the team's own workspaces


def explain_unreached(error: Exception, title: str) -> str:
    """Return in plain words why a platform did not answer."""
    cause = error.__cause__ or error
    kinds = {kind.__name__ for kind in type(cause).__mro__}
    if isinstance(cause, TimeoutError):
        return "it does not answer in time"
    if kinds & {"SSLError", "ClientSSLError", "ClientConnectorCertificateError"}:
        return "its certificate is not trusted here; perhaps a proxy decrypts the traffic"
    return "there is no connection" if isinstance(cause, OSError) else f"it answers unlike {title}"
