"""Read a git repository: the files of one branch, each with the date and commit of its last change.

Files are read from the objects of a mirror and never checked out, so that no file of a repository can reach beyond it.
All files are listed each time, so that what could not be read is reported again; git's identifier of their content is
their fingerprint. Links, submodules and what Git LFS keeps are unreadable.
"""

import hashlib
import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import Any

from ingest.readers import file_formats, front_matter
from ingest.sandbox import Sandbox
from ingest.sources.default_ignore import DEFAULT_IGNORE
from ingest.sources.filters import HIDDEN, DocumentTraits, SelectionRules, build_filter, build_path_explainer, utc_now
from ingest.sources.folder import DUPLICATE_NAME, LARGEST_FILE, is_hidden, normalize_name
from ingest.sources.git.git_mirror import BranchHead, GitMirror, LastChange, TreeEntry
from ingest.sources.git.git_program import build_file_url
from ingest.sources.published_address import build_published_url
from ingest.types import (
    EMPTY,
    ChangedDocument,
    DeletedDocument,
    LeftOut,
    ListedItem,
    Listing,
    Page,
    Site,
    Unreadable,
    UnreadableDocument,
)

_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
_REASONS: Mapping[str, str] = MappingProxyType({
    "link": "is a symbolic link, which may lead anywhere: name the file itself",
    "submodule": "is a submodule: give its repository a corpus of its own",
})  # fmt: skip

_ReadBlob = Callable[[str], bytes]


@dataclass(frozen=True, slots=True)
class RepositoryScope:
    """Say what of a repository is read, and how its files are cited."""

    folder: str = ""  # the folder in the repository, with `/` within it; empty for all
    template: str = ""
    """Of web addresses, with `{path}` and perhaps `{branch}` and `{commit}`; or what the path is appended to."""
    site: Site = ""  # the generator of the site that it is published on, at the template
    rules: SelectionRules = field(default_factory=partial(SelectionRules, ignore=DEFAULT_IGNORE))
    largest: int = LARGEST_FILE  # bytes


class GitSource:
    reference = False

    def __init__(
        self,
        mirror: GitMirror,
        wanted: RepositoryScope,
        *,
        now: Callable[[], datetime] = utc_now,
        sandbox: Sandbox | None = None,
    ) -> None:
        self._mirror, self._wanted, self._now = mirror, wanted, now
        self._sandbox = sandbox or Sandbox()
        self._listed_branch: _BranchListing | None = None
        self.left_out: Sequence[LeftOut] = ()
        """What the last listing left out."""

    def expected(self) -> int:
        """Count the documents there are now: fetches. Blocks. Raises `SourceUnavailable`."""
        self._listed_branch = self._list_branch()
        return len(self._listed_branch.entries)

    def documents(self, known: Mapping[str, str] = EMPTY, since: str = "") -> Listing:
        """List every document that there is now, by path. Blocks. Raises `SourceUnavailable`."""
        del since  # the fingerprints tell what changed, whatever became of the commit that was read before
        look, self._listed_branch = self._listed_branch or self._list_branch(), None
        return Listing(self._items(look, known), edition=look.head.commit[:12])

    def one(self, address: str, known: Mapping[str, str]) -> ListedItem | None:
        """Return the file of this address or path, as it stands now. Blocks. Raises `SourceUnavailable`."""
        look = self._list_branch()
        if "{commit}" in self._wanted.template:
            look = replace(look, changes=self._find_changes(look, look.entries))
        keys = (key for key in look.entries if address in (key, self._file_url(look.head, key, look.changes.get(key))))
        if key := next(keys, "") or self._find_published(look, address):
            entry = look.entries[key]
            changes = look.changes or self._find_changes(look, {key: entry})
            fingerprint = self._make_fingerprint(look, key, entry)
            return self._make_item(look, key, entry, changes, self._mirror.blob, fingerprint)
        return next(
            (DeletedDocument(key) for key in known if address in (key, self._file_url(look.head, key, None))), None
        )

    def _find_published(self, look: "_BranchListing", address: str) -> str:
        """Return the key of the file whose front matter gives it this address; empty for none."""
        if "{path}" in self._wanted.template or not address.startswith(("http://", "https://")):
            return ""
        with self._mirror.blobs() as read:
            for key, entry in look.entries.items():
                if self._find_refusal(key, entry):
                    continue
                if address == self._file_url(
                    look.head, key, look.changes.get(key), front_matter.read_fields(read(entry.blob))
                ):
                    return key
        return ""

    def stop(self) -> None:
        self._mirror.git.stop()
        self._sandbox.stop()

    def _list_branch(self) -> "_BranchListing":
        head = self._mirror.update()
        rules = self._wanted.rules
        explain = build_path_explainer(rules)
        left_out = list[LeftOut]()
        named: dict[str, TreeEntry] = {}
        twice: set[str] = set()
        for entry in self._mirror.entries(head.commit, self._wanted.folder.strip("/")):
            key = normalize_name(entry.path).rstrip("/")
            if reason := HIDDEN if any(map(is_hidden, key.split("/"))) else explain(key):
                left_out.append(LeftOut(key, reason))
                continue
            if key in named:
                twice.add(key)
            named.setdefault(key, entry)
        self.left_out = left_out
        look = _BranchListing(head, named, {}, frozenset(twice))
        return look if rules.newest_days is None else self._filter_by_age(look)

    def _filter_by_age(self, look: "_BranchListing") -> "_BranchListing":
        """Leave out what was last changed before so many days; what history tells no date of is kept."""
        changes = self._find_changes(look, look.entries)
        young = build_filter(self._wanted.rules, self._now())
        kept = {
            key: entry
            for key, entry in look.entries.items()
            if young(DocumentTraits(key, changed=changes[key].date if key in changes else None))
        }
        return replace(look, entries=kept, changes=changes)

    def _items(self, look: "_BranchListing", known: Mapping[str, str]) -> Iterator[ListedItem]:
        prints = {key: self._make_fingerprint(look, key, entry) for key, entry in look.entries.items()}
        new = {key: entry for key, entry in look.entries.items() if known.get(key) != prints[key]}
        readable = {key: entry for key, entry in new.items() if not self._find_refusal(key, entry)}
        changes = look.changes or self._find_changes(look, readable)
        with self._sandbox, self._mirror.blobs() as read:
            for key, entry in look.entries.items():
                yield self._make_item(look, key, entry, changes, read, prints[key])
                if key in look.twice:
                    yield Unreadable(key, DUPLICATE_NAME)

    def _make_item(
        self,
        look: "_BranchListing",
        key: str,
        entry: TreeEntry,
        changes: Mapping[str, LastChange],
        read: _ReadBlob,
        fingerprint: str,
    ) -> ListedItem:
        if reason := self._find_refusal(key, entry):
            return Unreadable(key, reason)
        change = changes.get(key)
        url_of = partial(self._file_url, look.head, key, change)
        load = partial(_load, self._sandbox, read, key, entry, url_of, change)
        return ChangedDocument(key, fingerprint, entry.size, load)

    def _find_refusal(self, key: str, entry: TreeEntry) -> str:
        if reason := _REASONS.get(entry.kind) or file_formats.explain_refusal(key, self._sandbox.programs):
            return reason
        return f"is larger than {self._wanted.largest // 2**20} MB" if entry.size > self._wanted.largest else ""

    def _make_fingerprint(self, look: "_BranchListing", key: str, entry: TreeEntry) -> str:
        mark = file_formats.make_reader_mark(key, self._sandbox.programs)
        state = "\x1f".join((mark, entry.blob, self._file_url(look.head, key, None)))
        return hashlib.sha256(state.encode()).hexdigest()

    def _find_changes(self, look: "_BranchListing", entries: Mapping[str, TreeEntry]) -> dict[str, LastChange]:
        folder = self._wanted.folder.strip("/").encode()
        paths = {posixpath.join(folder, entry.path): key for key, entry in entries.items()}
        found = self._mirror.changes(look.head.commit, set(paths))
        return {paths[path]: change for path, change in found.items()}

    def _file_url(
        self, head: BranchHead, key: str, change: LastChange | None, fields: Mapping[str, Any] = EMPTY
    ) -> str:
        if "{path}" not in self._wanted.template:
            return build_published_url(self._wanted.template, key, fields, self._wanted.site)
        return build_file_url(
            self._wanted.template,
            path=posixpath.join(self._wanted.folder.strip("/"), key),
            within=key,
            branch=head.branch or head.commit,
            commit=change.commit if change else "",
        )


@dataclass(frozen=True, slots=True)
class _BranchListing:
    head: BranchHead
    entries: Mapping[str, TreeEntry]
    changes: Mapping[str, LastChange]
    """Of all files, where their age decides whether they are wanted."""
    twice: frozenset[str]  # keys that another file has too


def _load(
    sandbox: Sandbox,
    read: _ReadBlob,
    key: str,
    entry: TreeEntry,
    url_of: Callable[[Mapping[str, Any]], str],
    change: LastChange | None,
) -> Page:
    content = read(entry.blob)
    if content.startswith(_LFS_POINTER):
        raise UnreadableDocument("is kept in Git LFS, which is not read: keep the text itself in the repository")
    exact = change if change and change.exact else None
    revision = f"git:{change.commit[:12] if change else entry.blob[:12]}"
    url = url_of(front_matter.read_fields(content))
    return sandbox.page(content, key, url=url, revision=revision, modified=exact.date if exact else None)
