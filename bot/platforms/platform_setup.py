"""A platform's part of `footnote setup`: its questions, how answers are tried, and where the bot is."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bot.doctor.diagnosis import CheckResult


@dataclass(frozen=True, slots=True)
class SetupQuestion:
    """One thing to ask, by the key of the platform's table that the answer goes into."""

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
    changes: Mapping[str, Any] = field(default_factory=dict)  # of its table, as found out


@dataclass(frozen=True, slots=True)
class PlatformSetup:
    """How a platform is set up. Its functions may ask the platform, and raise what that raises."""

    steps: tuple[str, ...]  # to do first on the platform's own pages
    list_questions: Callable[[Any], Sequence[SetupQuestion]]  # given its table
    try_answer: Callable[[Any, str], Awaitable[Sequence[CheckResult]]]
    """Tries an answer, given the table with it and its key."""
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
        return "its certificate is not trusted here, as behind a proxy that decrypts traffic"
    return "there is no connection" if isinstance(cause, OSError) else f"it answers unlike {title}"
