"""Read a git repository: the files of one branch, each with the date and commit of its last change.

Files are read from a mirror's objects without a checkout, so a repository cannot reach files outside of it. Every
listing has all files, and reports unreadable ones again. Fingerprints contain git's blob ids. Links, submodules and
files in Git LFS are unreadable.
"""

import hashlib
import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from ingest.readers import file_formats, front_matter
from ingest.sandbox import Sandbox
from ingest.sources.default_ignore import DEFAULT_IGNORE
from ingest.sources.filters import HIDDEN, DocumentTraits, SelectionRules, build_filter, build_path_explainer
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
from storage.clock import Clock, utc_now

_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
_REASONS: Mapping[str, str] = MappingProxyType({
    "link": "is a symbolic link, which may lead anywhere: include the file itself",
    "submodule": "is a submodule: add its repository as a separate corpus",
})  # fmt: skip

_ReadBlob = Callable[[str], bytes]


@dataclass(frozen=True, slots=True)
class RepositoryScope:
    """The part of a repository to read, and the form of addresses in citations."""

    folder: str = ""  # a path in the repository; empty: all of it
    template: str = ""  # of addresses, with `{path}`, `{branch}` and `{commit}`; without `{path}` it is a prefix
    site: Site = ""  # the generator of the site at `template`
    rules: SelectionRules = field(default_factory=partial(SelectionRules, ignore=DEFAULT_IGNORE))
    largest: int = LARGEST_FILE  # bytes


class GitSource:
    reference = False

    def __init__(
        self,
        mirror: GitMirror,
        scope: RepositoryScope,
        *,
        now: Clock = utc_now,
        sandbox: Sandbox | None = None,
    ) -> None:
        self._mirror = mirror
        self._scope = scope
        self._now = now
        self._sandbox = sandbox or Sandbox()
        self._listed_branch: _BranchListing | None = None
        self.left_out: Sequence[LeftOut] = ()  # files skipped by the last listing

    def expected(self) -> int:
        """Fetch the branch and count its documents. Blocks. Raises `SourceUnavailable`."""
        self._listed_branch = self._list_branch()
        return len(self._listed_branch.entries)

    def documents(self, known: Mapping[str, str] = EMPTY, since: str = "") -> Listing:
        """List every document by path. Blocks. Raises `SourceUnavailable`."""
        del since  # fingerprints show changes, even if the last commit read no longer exists
        listing = self._listed_branch or self._list_branch()
        self._listed_branch = None
        return Listing(self._items(listing, known), edition=listing.head.commit[:12])

    def one(self, address: str, known: Mapping[str, str]) -> ListedItem | None:
        """Return the current file with this address or path. Blocks. Raises `SourceUnavailable`."""
        listing = self._list_branch()
        if "{commit}" in self._scope.template:
            listing = replace(listing, changes=self._find_changes(listing, listing.entries))
        urls = ((key, self._file_url(listing.head, key, listing.changes.get(key))) for key in listing.entries)
        key = next((key for key, url in urls if address in (key, url)), "")
        if key := key or self._find_published(listing, address):
            entry = listing.entries[key]
            changes = listing.changes or self._find_changes(listing, {key: entry})
            fingerprint = self._make_fingerprint(listing, key, entry)
            return self._make_item(listing, key, entry, changes, self._mirror.blob, fingerprint)
        return next(
            (DeletedDocument(key) for key in known if address in (key, self._file_url(listing.head, key, None))), None
        )

    def _find_published(self, listing: "_BranchListing", address: str) -> str:
        """Return the key of the file whose front matter states this address; empty if no file does."""
        if "{path}" in self._scope.template or not address.startswith(("http://", "https://")):
            return ""
        with self._mirror.blobs() as read:
            for key, entry in listing.entries.items():
                if self._find_refusal(key, entry):
                    continue
                fields = front_matter.read_fields(read(entry.blob))
                if address == self._file_url(listing.head, key, listing.changes.get(key), fields):
                    return key
        return ""

    def stop(self) -> None:
        self._mirror.git.stop()
        self._sandbox.stop()

    def _list_branch(self) -> "_BranchListing":
        head = self._mirror.update()
        rules = self._scope.rules
        explain = build_path_explainer(rules)
        left_out = list[LeftOut]()
        entries: dict[str, TreeEntry] = {}
        duplicates: set[str] = set()
        for entry in self._mirror.entries(head.commit, self._scope.folder.strip("/")):
            key = normalize_name(entry.path).rstrip("/")
            if reason := HIDDEN if any(map(is_hidden, key.split("/"))) else explain(key):
                left_out.append(LeftOut(key, reason))
                continue
            if key in entries:
                duplicates.add(key)
            entries.setdefault(key, entry)
        self.left_out = left_out
        listing = _BranchListing(head, entries, {}, frozenset(duplicates))
        return listing if rules.newest_days is None else self._filter_by_age(listing)

    def _filter_by_age(self, listing: "_BranchListing") -> "_BranchListing":
        """Leave out files that were last changed more than `newest_days` ago. Files without a known date stay."""
        changes = self._find_changes(listing, listing.entries)
        is_selected = build_filter(self._scope.rules, self._now())
        dates = {key: change.date for key, change in changes.items()}
        entries = {
            key: entry
            for key, entry in listing.entries.items()
            if is_selected(DocumentTraits(key, changed=dates.get(key)))
        }
        return replace(listing, entries=entries, changes=changes)

    def _items(self, listing: "_BranchListing", known: Mapping[str, str]) -> Iterator[ListedItem]:
        fingerprints = {key: self._make_fingerprint(listing, key, entry) for key, entry in listing.entries.items()}
        new = {key: entry for key, entry in listing.entries.items() if known.get(key) != fingerprints[key]}
        readable = {key: entry for key, entry in new.items() if not self._find_refusal(key, entry)}
        changes = listing.changes or self._find_changes(listing, readable)
        with self._sandbox, self._mirror.blobs() as read:
            for key, entry in listing.entries.items():
                yield self._make_item(listing, key, entry, changes, read, fingerprints[key])
                if key in listing.duplicates:
                    yield Unreadable(key, DUPLICATE_NAME)

    def _make_item(
        self,
        listing: "_BranchListing",
        key: str,
        entry: TreeEntry,
        changes: Mapping[str, LastChange],
        read: _ReadBlob,
        fingerprint: str,
    ) -> ListedItem:
        if reason := self._find_refusal(key, entry):
            return Unreadable(key, reason)
        change = changes.get(key)
        url_of = partial(self._file_url, listing.head, key, change)
        load = partial(_load, self._sandbox, read, key, entry, url_of, change)
        return ChangedDocument(key, fingerprint, entry.size, load)

    def _find_refusal(self, key: str, entry: TreeEntry) -> str:
        if reason := _REASONS.get(entry.kind) or file_formats.explain_refusal(key, self._sandbox.programs):
            return reason
        return f"is larger than {self._scope.largest // 2**20} MB" if entry.size > self._scope.largest else ""

    def _make_fingerprint(self, listing: "_BranchListing", key: str, entry: TreeEntry) -> str:
        mark = file_formats.make_reader_mark(key, self._sandbox.programs)
        state = "\x1f".join((mark, entry.blob, self._file_url(listing.head, key, None)))
        return hashlib.sha256(state.encode()).hexdigest()

    def _find_changes(self, listing: "_BranchListing", entries: Mapping[str, TreeEntry]) -> dict[str, LastChange]:
        folder = self._scope.folder.strip("/").encode()
        paths = {posixpath.join(folder, entry.path): key for key, entry in entries.items()}
        changes = self._mirror.changes(listing.head.commit, set(paths))
        return {paths[path]: change for path, change in changes.items()}

    def _file_url(
        self, head: BranchHead, key: str, change: LastChange | None, fields: Mapping[str, Any] = EMPTY
    ) -> str:
        if "{path}" not in self._scope.template:
            return build_published_url(self._scope.template, key, fields, self._scope.site)
        return build_file_url(
            self._scope.template,
            path=posixpath.join(self._scope.folder.strip("/"), key),
            branch=head.branch or head.commit,
            commit=change.commit if change else "",
        )


@dataclass(frozen=True, slots=True)
class _BranchListing:
    head: BranchHead
    entries: Mapping[str, TreeEntry]
    changes: Mapping[str, LastChange]  # of all files if `newest_days` is set
    duplicates: frozenset[str]  # keys of several files


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
        raise UnreadableDocument("is stored in Git LFS, which is not read: store the text itself in the repository")
    exact = change if change and change.exact else None
    revision = f"git:{change.commit[:12] if change else entry.blob[:12]}"
    url = url_of(front_matter.read_fields(content))
    return sandbox.page(content, key, url=url, revision=revision, modified=exact.date if exact else None)
