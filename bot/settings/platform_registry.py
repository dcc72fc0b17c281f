"""Find the available platforms: those in `bot.platforms`, and those of installed packages.

A platform is a package with a `PlatformEntry` named `PLATFORM`. Settings, `footnote serve` and the doctor use
only the entries. Heavy parts are named by their path and imported when they are used.
"""

import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from textwrap import shorten
from typing import Annotated, Any, ClassVar, Self, cast

from pydantic import AfterValidator, SecretStr

from bot.settings.tables.field_types import LIVE, SettingsTable
from bot.settings.tables.network_settings import is_mcp_reader
from storage.language.lazy_pattern import lazy_compile

FOLDER = "bot.platforms"
EVERYONE = "*"  # the reader id that admits every place of the team
GROUP = "footnote.platforms"  # the entry points by which a package brings platforms: each names a `PlatformEntry`
_ID = lazy_compile(r"[a-z][a-z0-9-]*:[^/\s#]+/[^/\s#]+")
_NAME = lazy_compile(r"([a-z][a-z0-9-]*):(?:([^/\s#]+)/)?#([^/\s#]+)")


@dataclass(frozen=True, slots=True)
class SecretShape:
    """The form by which a kind of secret is recognised."""

    pattern: str  # of the whole value
    title: str  # with its article: "a bot token (xoxb-…)"
    key: str = ""  # of its setting; empty if there is none
    where: str = ""  # the page that shows it to its owner
    unique: bool = True  # whether it is recognised in other platforms' settings, too


@dataclass(frozen=True, slots=True)
class PlatformEntry:
    """A platform: its names, its table of settings, and the paths of its other parts."""

    name: str  # of its table in `footnote.toml`, and of its ids: `slack:T1/C1`
    title: str  # for people: "Slack"
    workspace: str  # the kind of thing that the first part of its ids names, in capitals: "TEAM"
    settings: "type[PlatformSettings]"
    opener: str  # the path of its `OpenPlatform`: `package.module:function`
    checker: str  # the path of its `HealthCheck`
    shapes: tuple[SecretShape, ...] = ()  # the forms of its secrets
    guide: str = ""  # the path of its `PlatformSetup`; without one `footnote setup` does not offer it

    @property
    def check(self) -> Any:
        """The platform's `HealthCheck` for `footnote doctor`, imported now."""
        return pkgutil.resolve_name(self.checker)

    @property
    def setup(self) -> Any:
        """The platform's `PlatformSetup` for `footnote setup`, imported now."""
        return pkgutil.resolve_name(self.guide)

    def read(self, settings: object) -> "PlatformSettings":
        """Return the platform's table of the `Settings`."""
        return cast("PlatformSettings", getattr(settings, self.name))


@cache
def load_platforms() -> Mapping[str, PlatformEntry]:
    package = importlib.import_module(FOLDER)
    packages = [
        importlib.import_module(f"{FOLDER}.{module.name}")
        for module in pkgutil.iter_modules(package.__path__)
        if module.ispkg and module.name != "shared"
    ]
    entries: list[PlatformEntry] = [module.PLATFORM for module in packages]
    entries.sort(key=lambda entry: entry.name, reverse=True)
    entries += [point.load() for point in entry_points(group=GROUP)]
    return {entry.name: entry for entry in entries}


def platform_of(place: str) -> str:
    return place.partition(":")[0]


def is_place_id(text: str) -> bool:
    """Return whether a text has the form of a channel's or a person's id on a known platform."""
    return bool(_ID.fullmatch(text)) and platform_of(text) in load_platforms()


def is_channel_name(text: str) -> bool:
    """Return whether a text has the form of a channel's name on a known platform: `slack:#hr`."""
    return bool(_NAME.fullmatch(text)) and platform_of(text) in load_platforms()


def split_channel_name(text: str) -> tuple[str, str]:
    """Return the workspace in a channel's name, and the name within it. An empty workspace means all workspaces."""
    match = _NAME.fullmatch(text)
    return (match[2] or "", match[3]) if match else ("", "")


def describe_ids(what: str, *others: str) -> str:
    """Describe the form of ids on each platform: `"slack:TEAM/USER" or "discord:SERVER/USER"`."""
    *most, last = [*others, *(f'"{entry.name}:{entry.workspace}/{what}"' for entry in load_platforms().values())]
    return f"{', '.join(most)} or {last}"


def channel_id(text: str) -> str:
    """Return the id or the name of a channel unchanged. Raises `ValueError` for anything else."""
    if not (is_place_id(text) or is_channel_name(text)):
        forms = f"{describe_ids('CHANNEL')}, by their ids, or a channel's name: {_describe_name()}"
        raise ValueError(f"must be {forms}{_suggest_name(text)}")
    return text


def person_id(text: str) -> str:
    """Return the id of a person unchanged. Raises `ValueError` for anything else."""
    if not is_place_id(text):
        raise ValueError(f"must be {describe_ids('USER')}, by their ids, not their names")
    return text


def reader_id(text: str) -> str:
    """Return a reader of a corpus unchanged. Raises `ValueError` unless it is a place, person, program or everyone."""
    if text != EVERYONE and not (is_place_id(text) or is_channel_name(text) or is_mcp_reader(text)):
        shown = shorten(f'"{text}"', 60, placeholder="…")
        ids = describe_ids("CHANNEL-USER-OR-GROUP", f'"{EVERYONE}"')
        forms = f'{ids}, a channel\'s name ({_describe_name()}) or a program ("mcp:tokens/NAME", "mcp:groups/NAME")'
        raise ValueError(f"must be {forms}, not {shown}{_suggest_name(text)}")
    return text


def _describe_name() -> str:
    return f'"{next(iter(load_platforms()))}:#NAME"'


def _suggest_name(text: str) -> str:
    """Return a question that suggests a channel's name with the missing `#` or platform; empty if none fits."""
    platform, colon, place = text.rpartition(":")
    workspace, slash, called = place.rpartition("/")
    name = f"{platform or next(iter(load_platforms()))}:{workspace}{slash}#{called.removeprefix('#')}"
    meant = (colon or text.startswith("#")) and is_channel_name(name)
    return f'; did you mean "{name}"?' if meant else ""


ChannelId = Annotated[str, AfterValidator(channel_id)]
PersonId = Annotated[str, AfterValidator(person_id)]
ReaderId = Annotated[str, AfterValidator(reader_id)]


def require_people_of(platform: str) -> AfterValidator:
    def validate(people: tuple[str, ...]) -> tuple[str, ...]:
        if stranger := next((person for person in people if platform_of(person) != platform), ""):
            entry = load_platforms()[platform]
            form = f"{platform}:{entry.workspace}/USER"
            raise ValueError(f'names {stranger}, who is not on {entry.title}; write "{form}"')
        return people

    return AfterValidator(validate)


class PlatformSettings(SettingsTable):
    """A platform's table in `footnote.toml`. The platform is configured when one of its secrets is set."""

    SECRETS: ClassVar[Mapping[str, str]] = {}
    """The variables that hold its secrets in the platform's own tools, by key."""

    admins: Annotated[tuple[PersonId, ...], LIVE] = ()
    """The people who may change channels by command, and stop or retract any answer."""

    @classmethod
    def read_from(cls, settings: object) -> Self:
        """Return the table of this class in the `Settings`."""
        (table,) = (value for value in vars(settings).values() if type(value) is cls)
        return table

    @property
    def configured(self) -> bool:
        return any(getattr(self, name) for name in self.SECRETS)

    @property
    def missing(self) -> tuple[str, ...]:
        return ()

    @property
    def form(self) -> str:
        """The part of a sentence that names the setting on which required secrets depend: ` with mode = "socket"`."""
        return ""

    def completed(self, environ: Mapping[str, str]) -> Self:
        """Return the table with missing secrets taken from the variables of the platform's own tools."""
        missing = [name for name in self.SECRETS if not getattr(self, name)]
        secrets = {name: SecretStr(environ.get(self.SECRETS[name], "").strip()) for name in missing}
        return self.model_copy(update=secrets)
