"""The latest finished dump of a wiki, from a mirror of Wikimedia's: found, downloaded, and read as any dump.

It is downloaded once, into a folder of its own, where an interrupted download is gone on with. One that was read in
already is not read again; older ones are removed once the new one was. What keeps it from being had is said in one
line, and nothing is touched then: what was read in before stays as it is.
"""

import json
import logging
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Protocol

from ingest.sources.dumps.status import DumpFile, Edition, days, finished, readable, size_of
from ingest.sources.dumps.wikipedia import WikipediaDump
from ingest.types import Item, Listing, ReadAsWhole, SourceUnavailable, Unreadable
from ingest.web.fetching import Web
from ingest.web.line import NOTHING
from ingest.wikitext.reading import VERSION

MIRROR = "https://dumps.wikimedia.org"
_LOOKED_AT = 6
"""Dates, the newest first: dumps are kept for some months, and one that is older is better asked for by hand."""
_FIRST_GROWTH = 12
"""Bytes of the home that a byte of a packed dump becomes, about, when it is read in for the first time."""
_NEXT_GROWTH = 1

log = logging.getLogger(__name__)


class Dump(Protocol):
    """What reads the files of a dump."""

    def expected(self) -> int | None:
        """Return how many documents there will be."""
        ...

    def documents(self, known: Mapping[str, str]) -> Listing:
        """List them."""
        ...


Find = Callable[[Web, str], Edition | None]
"""Finds the newest finished dump that is not older than a day of eight digits, which may be empty; None if there is
none but those. Raises `SourceUnavailable`."""
Read = Callable[[tuple[Path, ...]], Dump]


def articles(mirror: str, wiki: str) -> Find:
    """Return what finds the newest dump of a wiki whose articles are finished."""
    return partial(_latest, mirror.rstrip("/"), wiki)


def wikitext(paths: tuple[Path, ...]) -> WikipediaDump:
    """Return what reads a dump of articles in wikitext."""
    return WikipediaDump(*paths)


class DumpMirror:
    """The latest finished dump of one wiki. A listing of it is whole, or empty where it was read in already."""

    reference = True

    def __init__(
        self,
        wiki: str,
        web: Web,
        folder: Path,
        *,
        find: Find,
        read: Read = wikitext,
        version: str = VERSION,
        keep: int = 1,
        free: Callable[[Path], int] = lambda folder: shutil.disk_usage(folder).free,
    ) -> None:
        """Keep dumps in `folder`.

        Args:
            wiki: The name of its database, such as `simplewiki`.
            web: The way to the mirror.
            folder: Where dumps are kept; made if there is none.
            find: Finds the dump.
            read: Reads it.
            version: Of how it is read: another one reads the same dump again.
            keep: How many dumps are kept once the last one was read in.
            free: Tells how many bytes are free on the disk of a folder.
        """
        self._wiki = wiki
        self._web = web
        self._folder = folder
        self._find = find
        self._read = read
        self._version = version
        self._keep = keep
        self._free = free
        self._dump: Dump | None = None
        self.doing = ""
        """What takes a while just now, in a few words; another thread may read it."""

    def expected(self) -> int | None:
        """Return how many articles there are; None before `documents`, which brings the dump. Raises `DumpError`."""
        return self._dump.expected() if self._dump else None

    def documents(self, known: Mapping[str, str] = NOTHING, since: str = "") -> Listing:
        """Bring the latest finished dump, and list what is in it. Blocks, perhaps for hours.

        Where the dump of `since` is still the latest one, nothing is listed, and nothing downloaded.

        Raises:
            SourceUnavailable: None can be had, or the disk is too small for it.
            DumpError: It cannot be read.
        """
        whole = bool(known) and all(known.values())  # of what was not read to its end, nothing is known
        read_in = since.partition("-")[0] if whole and since.endswith(f"-{self._version}") else ""
        with self._web:
            self.doing = f"looks for the latest dump of {self._wiki}"
            edition = self._find(self._web, since.partition("-")[0])
            if edition is None or edition.day == read_in:
                day = edition.day if edition else since.partition("-")[0]
                return Listing(iter(()), whole=False, mark=lambda: since, edition=readable(day))
            self._bring(edition, growth=_NEXT_GROWTH if known else _FIRST_GROWTH)
        self._dump = self._read(tuple(self._folder / file.name for file in edition.dumps))
        damaged: list[str] = []
        items = _watched(self._dump.documents(known).items, {file.name for file in edition.dumps}, damaged)
        return Listing(items, mark=lambda: self._done(edition, damaged), edition=readable(edition.day))

    def one(self, address: str, known: Mapping[str, str]) -> Item | None:
        """Raise `ReadAsWhole`: nobody can tell where in a dump a page stands."""
        del known
        raise ReadAsWhole(
            f"{address} cannot be read alone: its corpus comes from dumps, which are read as a whole.",
            hint="It is brought up to date with the next dump.",
        )

    def stop(self) -> None:
        """End a download soon, from another thread; the next one goes on with it."""
        self._web.stop()

    def _bring(self, edition: Edition, *, growth: int) -> None:
        """Download what is not there yet, if there is room for it and for what it becomes."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            reason = (error.strerror or type(error).__name__).lower()
            hint = "Check the permissions of the home."
            raise SourceUnavailable(f"{self._folder} cannot be made: {reason}.", hint=hint) from error
        missing = [file for file in edition.files if not _is_there(self._folder / file.name, file)]
        here = sum(_size(self._folder / f"{file.name}.part") for file in missing)
        needed = size_of(missing) - here + growth * size_of(edition.dumps)
        if (free := self._free(self._folder)) < needed:
            said = f"The dump of {self._wiki} of {readable(edition.day)} takes about {_gigabytes(needed)} here with its"
            hint = "Make room, or move the home to a larger disk."
            raise SourceUnavailable(f"{said} index, and {_gigabytes(free)} are free.", hint=hint)
        for file in missing:
            log.info("%s: downloading %s (%s)", self._wiki, file.name, _gigabytes(file.size or 0))
            path = self._folder / file.name
            self._web.download(file.url, path, size=file.size, digest=file.digest, progress=self._told(file.name))
        self.doing = "opens the dump"

    def _told(self, name: str) -> Callable[[int, int | None], None]:
        """Return what notes how far a download has come, and logs it at each tenth."""
        last = 0

        def tell(done: int, total: int | None) -> None:
            nonlocal last
            self.doing = f"downloads {name}, {_gigabytes(done)}" + (f" of {_gigabytes(total)}" if total else "")
            if total and (tenth := done * 10 // total) > last:
                last = tenth
                log.info("%s: %d%% of %s", name, tenth * 10, _gigabytes(total))

        return tell

    def _done(self, edition: Edition, damaged: list[str]) -> str:
        """Remove older dumps, and return the mark; none where the dump was damaged, so that it is looked at again."""
        mine = re.compile(rf"{re.escape(self._wiki)}[_-]\D*(\d{{8}})-.*")
        there = [(path, found[1]) for path in self._folder.iterdir() if (found := mine.fullmatch(path.name))]
        kept = sorted({day for _, day in there if day <= edition.day}, reverse=True)[: self._keep]
        for path, day in there:
            if day <= edition.day and day not in kept:
                path.unlink(missing_ok=True)
        return "" if damaged else f"{edition.day}-{self._version}"


def _latest(mirror: str, wiki: str, web: Web, since: str) -> Edition | None:
    base = f"{mirror}/{wiki}"
    reply = web.get(f"{base}/")
    if reply.status != 200:  # noqa: PLR2004 - HTTP's word for all is well
        hint = "Check the name of the wiki, such as simplewiki, and the address of the mirror."
        raise SourceUnavailable(f"{base}/ answers HTTP {reply.status}.", hint=hint)
    listed = days(reply.content.decode(errors="replace"))
    if not listed:
        raise SourceUnavailable(f"{base}/ lists no dumps.", hint="Check the address of the mirror.")
    reasons = []
    for day in [day for day in listed if day >= since][:_LOOKED_AT]:
        found = _looked_at(web, f"{base}/{day}", wiki, day)
        if isinstance(found, Edition):
            return found
        reasons.append(f"{readable(day)}: {found}")
    if since:
        return None
    raise SourceUnavailable(
        f"No dump of {wiki} at {mirror} can be used: {'; '.join(reasons)}.", hint="It is looked for again next time."
    )


def _looked_at(web: Web, base: str, wiki: str, day: str) -> Edition | str:
    reply = web.get(f"{base}/dumpstatus.json")
    if reply.status != 200:  # noqa: PLR2004 - see above
        return f"its dumpstatus.json answers HTTP {reply.status}"
    try:
        status = json.loads(reply.content)
    except (ValueError, RecursionError):
        return "its dumpstatus.json is cut short or broken"
    return finished(status, base, wiki, day)


def _watched(items: Iterator[Item], names: set[str], damaged: list[str]) -> Iterator[Item]:
    """Pass everything on, and note which files turned out to be damaged."""
    for item in items:
        if isinstance(item, Unreadable) and item.key in names:
            damaged.append(item.key)
        yield item


def _is_there(path: Path, file: DumpFile) -> bool:
    """Whether it was downloaded: it gets its name only once it is whole and was checked."""
    return path.is_file() and (file.size is None or _size(path) == file.size)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:,.1f} GB" if size >= 10**8 else f"{size / 1e6:,.1f} MB"
