"""Decide who is answered and who may read which corpora, by the settings.

Nothing is readable unless the settings say so. However a person reaches the bot (a message, an edit, a question caught
up with after an outage, a button), the platform describes them in an `Asker`, and this module decides.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

from bot.settings.platform_registry import EVERYONE, load_platforms
from storage.errors import UnknownCorpus
from storage.types import Corpus, DocumentId

if TYPE_CHECKING:  # `footnote ask --help` imports `Asker`, and needs neither settings nor a database
    from bot.settings.tables.settings_tables import Settings
    from storage.manifest import Manifest


class Exclusion(StrEnum):
    """Why a person is not answered at all."""

    NONE = ""
    ELSEWHERE = "elsewhere"  # the settings allow no answers in this place
    DENIED = "denied"  # the settings deny this person, or one of their roles


@dataclass(frozen=True, slots=True)
class Asker:
    """A user who asks or acts, and where. Unknown facts default to the restrictive value."""

    platform: str  # "terminal", "pages", "mcp", or the name of a platform
    kind: Literal["terminal", "channel", "dm"]
    workspace: str = ""  # Slack's team or Discord's server; empty in a Discord DM
    channel: str = ""
    user: str = ""
    shared_with_other_organisations: bool = True  # whether a Slack channel or DM has members of other organisations
    listed_server: bool = False  # whether the settings list a channel's server as the team's own; not for Slack
    moderates: bool = False  # whether this person may delete others' messages there; known only for actions
    uninvited: bool = False  # whether the bot is not in this Slack channel, so that the channel is unknown
    guest: bool = False  # guests cannot read a corpus that is visible to `*`
    principals: tuple[str, ...] = ()
    """Other ids by which the settings may name the user of a DM: `slack:T1/S1` for a user group, `discord:S1/R1` for a
    role, and `discord:S1/U1` while the user is a member of that server."""
    exclusion: Exclusion = Exclusion.NONE
    name: str = field(default="", compare=False)  # the name that the platform shows, for the record only
    channel_name: str = field(default="", compare=False)

    @property
    def user_id(self) -> str:
        """The person's id in the settings: `slack:T1/U1`."""
        return f"{self.platform}:{self.workspace}/{self.user}"

    @property
    def channel_id(self) -> str:
        """The channel's id in the settings: `slack:T1/C1`."""
        return f"{self.platform}:{self.workspace}/{self.channel}"


def mark_unplaced(asker: Asker) -> Asker:
    """Return the asker with the restrictive values, because their place could not be looked up."""
    return replace(asker, shared_with_other_organisations=True, listed_server=False, guest=True, principals=())


def find_exclusion(*, listed: bool, ids: Collection[str], deny: Collection[str]) -> Exclusion:
    """Return why a person is not answered; `Exclusion.NONE` if they are.

    `listed` says whether the settings list the place; `ids` are those of the person and their roles.
    """
    if not listed:
        return Exclusion.ELSEWHERE
    return Exclusion.DENIED if set(ids) & set(deny) else Exclusion.NONE


def is_admin(settings: "Settings", by: Asker) -> bool:
    """Return whether the settings of any platform list this person as an admin."""
    return any(by.user_id in entry.read(settings).admins for entry in load_platforms().values())


async def list_corpora(settings: "Settings", manifest: "Manifest") -> tuple[Corpus, ...]:
    """Return all existing corpora, including the search engine's web corpus. Raises `StorageError`."""
    web = settings.search_engine.corpus
    return (*await manifest.catalogue(), *((Corpus(web, None, reference=True),) if web else ()))


async def find_visible_corpora(settings: "Settings", manifest: "Manifest", asker: Asker) -> tuple[str, ...]:
    """Return the existing corpora that this asker may read here. Raises `StorageError`."""
    return select_visible(settings, await list_corpora(settings, manifest), asker)


def select_visible(settings: "Settings", corpora: Sequence[Corpus], asker: Asker) -> tuple[str, ...]:
    """Return the names of the given corpora that this asker may read here."""
    readers = settings.visible_to
    return select_readable({corpus.name: readers.get(corpus.name, ()) for corpus in corpora}, asker)


def select_scope(allowed: Sequence[str], requested: Sequence[str]) -> tuple[str, ...]:
    """Return the allowed corpora that are requested; all allowed ones if none is requested.

    Raises `UnknownCorpus` for a requested corpus that is not allowed, whatever the reason.
    """
    for name in requested:
        if name not in allowed:
            known = ", ".join(allowed) or "none yet: run `footnote ingest folder PATH --corpus NAME`"
            raise UnknownCorpus(f"There is no corpus “{name}” to read here.", hint=f"There are: {known}.")
    return tuple(name for name in allowed if not requested or name in requested)


async def find_forgotten_documents(manifest: "Manifest", documents: Collection[DocumentId]) -> frozenset[DocumentId]:
    """Return which of the documents were forgotten. Raises `StorageError`.

    A document without a key counts as forgotten if any document of its corpus was, because it could be that one.
    """
    gone = {corpus: await manifest.forgotten(corpus) for corpus in sorted({corpus for corpus, _ in documents})}
    return frozenset((corpus, key) for corpus, key in documents if gone[corpus] and key in {"", *gone[corpus]})


def select_readable(corpora: Mapping[str, Sequence[str]], asker: Asker) -> tuple[str, ...]:
    """Return the names of the corpora that this asker may read here. `corpora` maps each name to its readers.

    The terminal's user owns the machine and reads every corpus; so do users who are signed in to the pages, which show
    the whole record. A channel reads the corpora whose readers include it. A DM reads those whose readers include the
    user or one of the user's groups. The reader `*` includes every place of the team, except for guests. Excluded
    people read nothing.
    """
    if is_operator(asker):
        return tuple(corpora)
    if asker.exclusion:
        return ()
    return tuple(name for name, readers in corpora.items() if any(_admits(reader, asker) for reader in readers))


def is_operator(asker: Asker) -> bool:
    """Return whether an asker uses the terminal, a program there, or the pages, and not a platform."""
    return asker.kind == "terminal" and asker.platform in {"terminal", "pages", "mcp"}


def _admits(reader: str, asker: Asker) -> bool:
    if reader == EVERYONE:
        return _is_own_place(asker) and not asker.guest
    if asker.kind == "channel":
        return bool(asker.channel) and reader == asker.channel_id
    return bool(asker.user) and (reader == asker.user_id or reader in asker.principals)


def _is_own_place(asker: Asker) -> bool:
    if asker.platform == "slack":
        return not asker.shared_with_other_organisations
    return asker.listed_server


def may_view_turn(asker: Asker, by: Asker, *, alone: bool) -> bool:
    """Return whether `by` is an operator or the asker, or is in the channel that shows the answer.

    `alone`: the answer was shown to its asker only.
    """
    if is_operator(by):
        return True
    return is_same_person(asker, by) or (not alone and is_same_channel(asker, by))


def is_same_channel(asker: Asker, by: Asker) -> bool:
    """Return whether two people are in the same channel; a DM is not a channel."""
    return asker.kind == by.kind == "channel" and asker.channel_id == by.channel_id and bool(by.channel)


def is_same_person(asker: Asker, by: Asker) -> bool:
    """Return whether two askers are one person. A Discord id is valid on all servers, a Slack id in one workspace."""
    if not by.user or (asker.platform, asker.user) != (by.platform, by.user):
        return False
    return by.platform == "discord" or asker.workspace == by.workspace
