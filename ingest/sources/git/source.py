"""A git repository: the files of one branch, each with the date and commit of its last change.

Files are read from the objects of a mirror and never checked out, so that no file of a repository can reach beyond it.
Git knows the content of each file by an identifier, which is its fingerprint here: a file that is unchanged is not even
opened. All files are listed each time, which takes git a moment, so that what could not be read, or was held back, is
told again; the branch may have been rewritten since. A file that was renamed is one that is gone and one that is new.

Links, which may lead anywhere, submodules and what Git LFS keeps are unreadable. Left out is what folders leave out.
"""

import hashlib
import posixpath
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from types import MappingProxyType

from ingest import converting
from ingest.apart.reading import Apart
from ingest.choosing import Rules, Traits, chooser
from ingest.sources.file_names import SAME_NAME, left_out, portable
from ingest.sources.folder import LARGEST
from ingest.sources.git.address import web_address
from ingest.sources.git.mirror import Mirror
from ingest.sources.git.reading import Change, Entry, Head
from ingest.types import Found, Gone, Item, Listing, Page, Unreadable, UnreadableDocument

_LFS = b"version https://git-lfs.github.com/spec/"
_REASONS: Mapping[str, str] = MappingProxyType({
    "link": "is a symbolic link, which may lead anywhere: name the file itself",
    "submodule": "is a submodule: give its repository a corpus of its own",
})  # fmt: skip

_Read = Callable[[str], bytes]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What of a repository is read, and how its files are cited."""

    folder: str = ""
    """The folder in the repository, with `/` within it; empty for all."""
    template: str = ""
    """Of web addresses, with `{path}` and perhaps `{branch}` and `{commit}`; or what the path is appended to."""
    rules: Rules = field(default_factory=Rules)
    largest: int = LARGEST
    """Bytes."""


def _now() -> datetime:
    return datetime.now(UTC)


class Repository:
    """The documents of one branch."""

    reference = False

    def __init__(self, mirror: Mirror, wanted: Wanted, *, now: Callable[[], datetime] = _now) -> None:
        """`now` is what ages are reckoned from."""
        self._mirror, self._wanted, self._now = mirror, wanted, now
        self._apart = Apart()
        self._looked: _Look | None = None

    def expected(self) -> int:
        """How many documents there are now: fetches. Blocks. Raises `SourceUnavailable`."""
        self._looked = self._look()
        return len(self._looked.entries)

    def documents(self, known: Mapping[str, str] = MappingProxyType({}), since: str = "") -> Listing:
        """Every document that there is now, by path. Blocks. Raises `SourceUnavailable`."""
        del since  # the fingerprints tell what changed, whatever became of the commit that was read before
        look, self._looked = self._looked or self._look(), None
        return Listing(self._items(look, known), edition=look.head.commit[:12])

    def one(self, address: str, known: Mapping[str, str]) -> Item | None:
        """Return the file of this address or path, as it stands now. Blocks. Raises `SourceUnavailable`."""
        look = self._look()
        if "{commit}" in self._wanted.template:
            look = replace(look, changes=self._changes(look, look.entries))
        for key, entry in look.entries.items():
            if address in (key, self._url(look.head, key, look.changes.get(key))):
                changes = look.changes or self._changes(look, {key: entry})
                return self._item(look, key, entry, changes, self._mirror.blob, self._fingerprint(look, key, entry))
        return next((Gone(key) for key in known if address in (key, self._url(look.head, key, None))), None)

    def stop(self) -> None:
        """End what git does, and the reading of a document. From any thread."""
        self._mirror.git.stop()
        self._apart.stop()

    def _look(self) -> "_Look":
        head = self._mirror.look()
        rules = self._wanted.rules
        by_path = chooser(Rules(rules.include, rules.exclude), self._now())
        named: dict[str, Entry] = {}
        twice: set[str] = set()
        for entry in self._mirror.entries(head.commit, self._wanted.folder.strip("/")):
            key = portable(entry.path).rstrip("/")
            if any(map(left_out, key.split("/"))) or not by_path(Traits(key)):
                continue
            if key in named:
                twice.add(key)
            named.setdefault(key, entry)
        look = _Look(head, named, {}, frozenset(twice))
        return look if rules.newest_days is None else self._young(look)

    def _young(self, look: "_Look") -> "_Look":
        """Leave out what was last changed before so many days; what history tells no date of is kept."""
        changes = self._changes(look, look.entries)
        young = chooser(self._wanted.rules, self._now())
        kept = {
            key: entry
            for key, entry in look.entries.items()
            if young(Traits(key, changed=changes[key].date if key in changes else None))
        }
        return replace(look, entries=kept, changes=changes)

    def _items(self, look: "_Look", known: Mapping[str, str]) -> Iterator[Item]:
        prints = {key: self._fingerprint(look, key, entry) for key, entry in look.entries.items()}
        new = {key: entry for key, entry in look.entries.items() if known.get(key) != prints[key]}
        readable = {key: entry for key, entry in new.items() if not self._refusal(key, entry)}
        changes = look.changes or self._changes(look, readable)
        with self._apart, self._mirror.blobs() as read:
            for key, entry in look.entries.items():
                yield self._item(look, key, entry, changes, read, prints[key])
                if key in look.twice:
                    yield Unreadable(key, SAME_NAME)

    def _item(
        self, look: "_Look", key: str, entry: Entry, changes: Mapping[str, Change], read: _Read, fingerprint: str
    ) -> Item:
        if reason := self._refusal(key, entry):
            return Unreadable(key, reason)
        change = changes.get(key)
        load = partial(_load, self._apart, read, key, entry, self._url(look.head, key, change), change)
        return Found(key, fingerprint, entry.size, load)

    def _refusal(self, key: str, entry: Entry) -> str:
        if reason := _REASONS.get(entry.kind) or converting.refusal(key):
            return reason
        return f"is larger than {self._wanted.largest // 2**20} MB" if entry.size > self._wanted.largest else ""

    def _fingerprint(self, look: "_Look", key: str, entry: Entry) -> str:
        said = "\x1f".join((converting.READER_VERSION, entry.blob, self._url(look.head, key, None)))
        return hashlib.sha256(said.encode()).hexdigest()

    def _changes(self, look: "_Look", entries: Mapping[str, Entry]) -> dict[str, Change]:
        folder = self._wanted.folder.strip("/").encode()
        paths = {posixpath.join(folder, entry.path): key for key, entry in entries.items()}
        found = self._mirror.changes(look.head.commit, set(paths))
        return {paths[path]: change for path, change in found.items()}

    def _url(self, head: Head, key: str, change: Change | None) -> str:
        if not self._wanted.template:
            return ""
        return web_address(
            self._wanted.template,
            path=posixpath.join(self._wanted.folder.strip("/"), key),
            within=key,
            branch=head.branch or head.commit,
            commit=change.commit if change else "",
        )


@dataclass(frozen=True, slots=True)
class _Look:
    """What a branch holds of what is wanted."""

    head: Head
    entries: Mapping[str, Entry]
    changes: Mapping[str, Change]
    """Of all files, where their age decides whether they are wanted."""
    twice: frozenset[str]
    """Keys that another file has too."""


def _load(apart: Apart, read: _Read, key: str, entry: Entry, url: str, change: Change | None) -> Page:
    content = read(entry.blob)
    if content.startswith(_LFS):
        raise UnreadableDocument("is kept in Git LFS, which is not read: keep the text itself in the repository")
    told = change if change and change.exact else None
    revision = f"git:{change.commit[:12] if change else entry.blob[:12]}"
    return apart.page(content, key, url=url, revision=revision, modified=told.date if told else None)
