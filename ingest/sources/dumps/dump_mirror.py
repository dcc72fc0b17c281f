"""Find the latest finished dump of a wiki on a mirror of Wikimedia's, download it, and read it as any dump.

`/WIKI/` lists the dates; `/WIKI/DATE/dumpstatus.json` says what became of each job of that date, and the size and the
checksums of its files. A dump is being written for days, and its page is there all the while. Those of CirrusSearch are
in `/other/cirrus_search_index/DATE/index_name=WIKI_content/`, with `_SUCCESS` once all files are there; until the end
of 2025 they were in `/other/cirrussearch/DATE/`, one file a wiki. Neither tells checksums.
"""

import json
import logging
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from ingest.sources.dumps.wikipedia_dump import WikipediaDump
from ingest.types import EMPTY, Engine, ListedItem, Listing, SingleReadUnsupported, SourceUnavailable, Unreadable
from ingest.web.web_client import WebClient
from ingest.wikitext.wikitext_parser import WIKITEXT_VERSION
from storage.language.lazy_pattern import lazy_compile

_LINKED_DAY = lazy_compile(r"""href=["']?(?:\./)?(\d{8})/?["'> ]""")
_ARTICLE_JOBS = ("articlesmultistreamdumprecombine", "articlesmultistreamdump", "articlesdumprecombine", "articlesdump")
"""Where the articles may be, the best first: whole with an index, in parts with one each, whole, in parts."""
_DIGESTS = ("sha1", "md5")
_HEX = lazy_compile(r"[0-9a-f]{32,64}", re.IGNORECASE)
_FIRST_PAGE = lazy_compile(r"-p(\d+)p\d+")


@dataclass(frozen=True, slots=True)
class DumpFile:
    name: str
    url: str
    size: int | None
    digest: tuple[str, str] | None


@dataclass(frozen=True, slots=True)
class DumpEdition:
    """Describe a finished dump. `day` is its date as eight digits; `dumps` are read, `indexes` lie beside them."""

    day: str
    dumps: tuple[DumpFile, ...]
    indexes: tuple[DumpFile, ...] = ()

    @property
    def files(self) -> tuple[DumpFile, ...]:
        """Return all that is needed; the indexes first, as a dump without its index would be read another way."""
        return (*self.indexes, *self.dumps)


def parse_days(listing: str) -> tuple[str, ...]:
    return tuple(sorted({day for day in _LINKED_DAY.findall(listing) if _is_date(day)}, reverse=True))


def find_finished(status: object, base: str, wiki: str, day: str) -> DumpEdition | str:
    """Return the dump of a day if its articles are finished, by what its `dumpstatus.json` holds, else why not."""
    jobs = status.get("jobs") if isinstance(status, Mapping) else None
    if not isinstance(jobs, Mapping):
        return "its dumpstatus.json says nothing of jobs"
    states = [_job_state(jobs[name]) for name in _ARTICLE_JOBS if name in jobs]
    for name in _ARTICLE_JOBS:
        if _job_state(jobs.get(name)) == "done" and (edition := _parse_edition(jobs[name], base, wiki, day)):
            return edition
    if "done" in states:
        return "its dumpstatus.json names no files of its articles"
    return f"its articles are {states[0]}" if states else "it has no articles"


def _parse_edition(job: Mapping[str, Any], base: str, wiki: str, day: str) -> DumpEdition | None:
    files = job.get("files")
    named = re.compile(rf"{re.escape(wiki)}-{day}-pages-articles[a-z0-9.-]*\.(?:xml|txt)[a-z0-9-]*\.bz2")
    # A name becomes a path here and an address there: one that is not exactly as expected is not touched.
    known = (
        {name: entry for name, entry in files.items() if named.fullmatch(name)} if isinstance(files, Mapping) else {}
    )
    found = [_parse_file(name, entry, f"{base}/{name}") for name, entry in known.items()]
    if not found or None in found:
        return None
    first = {name: int(part[1]) if (part := _FIRST_PAGE.search(name)) else 0 for name in known}
    whole = sorted((file for file in found if file), key=lambda file: (first[file.name], file.name))
    dumps = tuple(file for file in whole if "-index" not in file.name)
    indexes = tuple(file for file in whole if "-index" in file.name)
    return DumpEdition(day, dumps, indexes) if dumps else None


def _parse_file(name: str, entry: object, url: str) -> DumpFile | None:
    """Return a file; None where its size is not told, which is how one that is not there yet looks."""
    if not isinstance(entry, Mapping) or not isinstance(entry.get("size"), int) or entry["size"] <= 0:
        return None
    digests = [(kind, str(entry[kind])) for kind in _DIGESTS if _HEX.fullmatch(str(entry.get(kind, "")))]
    return DumpFile(name, url, entry["size"], digests[0] if digests else None)


def _job_state(job: object) -> str:
    """Translate the state of a job into our words."""
    status = job.get("status") if isinstance(job, Mapping) else None
    return {"done": "done", "failed": "failed", "skipped": "left out"}.get(str(status), "still being written")


def _is_date(day: str) -> bool:
    try:
        date.fromisoformat(format_day(day))
    except ValueError:
        return False
    return True


def format_day(day: str) -> str:
    return f"{day[:4]}-{day[4:6]}-{day[6:]}"


FindEdition = Callable[[WebClient, str], DumpEdition | None]
"""Finds the newest finished dump that is not older than a day of eight digits, which may be empty; None if there is
none but those. Raises `SourceUnavailable`."""
_CheckDay = Callable[[WebClient, str, str, str], DumpEdition | str]
_OK = 200
_LATEST_DAYS = 6  # the newest first: dumps are kept for some months, and an older one is better asked for by hand


def _find_newest(
    web: WebClient, base: str, wiki: str, days: Iterable[str], check: _CheckDay, reasons: list[str]
) -> DumpEdition | None:
    for day in islice(days, _LATEST_DAYS):
        found = check(web, f"{base}/{day}", wiki, day)
        if isinstance(found, DumpEdition):
            return found
        reasons.append(f"{format_day(day)}: {found}")
    return None


def make_cirrus_finder(mirror: str, wiki: str) -> FindEdition:
    """Return what finds the newest finished CirrusSearch dump of a wiki."""
    return partial(_find_cirrus, f"{mirror.rstrip('/')}/other", wiki)


def _find_cirrus(base: str, wiki: str, web: WebClient, since: str) -> DumpEdition | None:
    reasons: list[str] = []
    for folder, look in (("cirrus_search_index", _find_in_parts), ("cirrussearch", _find_in_one)):
        reply = web.get(f"{base}/{folder}/")
        listed = parse_days(reply.content.decode(errors="replace")) if reply.status == _OK else ()
        days = (day for day in listed if day >= since)
        if found := _find_newest(web, f"{base}/{folder}", wiki, days, look, reasons):
            return found
    if since:
        return None
    listed_reasons = "; ".join(reasons) or "it lists none"
    raise SourceUnavailable(
        f"No CirrusSearch dump of {wiki} at {base} can be used: {listed_reasons}.",
        hint="Check the name of the wiki, or leave out `cirrus` to read its articles from wikitext.",
    )


def _find_in_parts(web: WebClient, base: str, wiki: str, day: str) -> DumpEdition | str:
    folder = f"{base}/index_name%3D{wiki}_content"
    reply = web.get(f"{folder}/")
    if reply.status != _OK:
        return f"it holds no {wiki}_content"
    page = reply.content.decode(errors="replace")
    if not re.search(r"href=[\"']?(?:\./)?_SUCCESS", page):
        return "it is still being written"
    names = sorted(set(re.findall(rf"{re.escape(wiki)}_content-{day}-\d{{5}}\.json\.(?:bz2|gz)", page)))
    return _with_sizes(web, folder, day, names)


def _find_in_one(web: WebClient, base: str, wiki: str, day: str) -> DumpEdition | str:
    reply = web.get(f"{base}/")
    page = reply.content.decode(errors="replace") if reply.status == _OK else ""
    name = f"{wiki}-{day}-cirrussearch-content.json.gz"
    return _with_sizes(web, base, day, [name] if name in page else [])


def _with_sizes(web: WebClient, folder: str, day: str, names: list[str]) -> DumpEdition | str:
    """Return the dump with the sizes of its files, so that free disk space can be checked first."""
    if not names:
        return "it has no files of this wiki"
    addresses = [(name, f"{folder}/{name}") for name in names]
    files = [DumpFile(name, address, web.size(address), None) for name, address in addresses]
    unsized = [file.name for file in files if file.size is None]
    return f"{unsized[0]} is not there" if unsized else DumpEdition(day, tuple(files))


_FIRST_GROWTH = 12
"""Bytes of the home that a byte of a packed dump becomes, about, when it is read in for the first time."""
_PACKED_GROWTH = 4  # the same where nothing is embedded
_NEXT_GROWTH = 1

log = logging.getLogger(__name__)


class ReadableDump(Protocol):
    def expected(self) -> int | None: ...

    def documents(self, known: Mapping[str, str]) -> Listing: ...


OpenDump = Callable[[tuple[Path, ...]], ReadableDump]


def make_article_finder(mirror: str, wiki: str) -> FindEdition:
    """Return what finds the newest dump of a wiki whose articles are finished."""
    return partial(_find_articles, mirror.rstrip("/"), wiki)


def open_wikitext_dump(
    paths: tuple[Path, ...], engine: Engine | None = None, survey: Path | None = None
) -> WikipediaDump:
    return WikipediaDump(*paths, engine=engine, survey=survey)


class DumpMirror:
    """Read the latest finished dump of one wiki. A listing of it is whole, or empty where it was read already."""

    reference = True

    def __init__(
        self,
        wiki: str,
        web: WebClient,
        folder: Path,
        *,
        find: FindEdition,
        read: OpenDump = open_wikitext_dump,
        version: str = WIKITEXT_VERSION,
        keep: int = 1,
        free: Callable[[Path], int] = lambda folder: shutil.disk_usage(folder).free,
    ) -> None:
        """Keep dumps in `folder`, `keep` of them once one was read. Another `version` reads the same one again."""
        self._wiki, self._web, self._folder = wiki, web, folder
        self._find, self._read, self._version, self._keep, self._free = find, read, version, keep, free
        self._dump: ReadableDump | None = None
        self._corpus = ""
        self.doing = ""  # what takes a while just now, in a few words; another thread may read it

    def expected(self) -> int | None:
        return self._dump.expected() if self._dump else None

    def documents(self, known: Mapping[str, str] = EMPTY, since: str = "") -> Listing:
        """Download the latest finished dump and list what is in it; nothing if it is the one of `since`."""
        whole = bool(known) and all(known.values())  # of what was not read to its end, nothing is known
        read_in = since.partition("-")[0] if whole and since.endswith(f"-{self._version}") else ""
        with self._web:
            self.doing = f"looks for the latest dump of {self._wiki}"
            edition = self._find(self._web, since.partition("-")[0])
            if edition is None or edition.day == read_in:
                day = edition.day if edition else since.partition("-")[0]
                return Listing(iter(()), whole=False, mark=lambda: since, edition=format_day(day))
            first = _PACKED_GROWTH if self._corpus else _FIRST_GROWTH
            self._download(edition, growth=_NEXT_GROWTH if known else first)
        self._dump = self._read(tuple(self._folder / file.name for file in edition.dumps))
        if self._corpus and (pack_for := getattr(self._dump, "pack_for", None)):
            pack_for(self._corpus)
        damaged: list[str] = []
        items = _note_damaged(self._dump.documents(known).items, {file.name for file in edition.dumps}, damaged)
        return Listing(items, mark=lambda: self._finish(edition, damaged), edition=format_day(edition.day))

    def pack_for(self, corpus: str) -> None:
        self._corpus = corpus

    def one(self, address: str, known: Mapping[str, str]) -> ListedItem | None:
        del known
        raise SingleReadUnsupported(
            f"{address} cannot be read alone: its corpus comes from dumps, which are read as a whole.",
            hint="It is brought up to date with the next dump.",
        )

    def stop(self) -> None:
        self._web.stop()

    def _download(self, edition: DumpEdition, *, growth: int) -> None:
        """Download what is not there yet, if there is room for it and for what it becomes."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            reason = (error.strerror or type(error).__name__).lower()
            hint = "Check the permissions of the home."
            raise SourceUnavailable(f"{self._folder} cannot be made: {reason}.", hint=hint) from error
        # A file gets its name only once it is whole and was checked.
        sizes = {file: _size(self._folder / file.name) for file in edition.files}
        missing = [file for file, size in sizes.items() if not size or (file.size is not None and size != file.size)]
        here = sum(_size(self._folder / f"{file.name}.part") for file in missing)
        packed = sum(file.size or 0 for file in edition.dumps)
        needed = sum(file.size or 0 for file in missing) - here + growth * packed
        if (free := self._free(self._folder)) < needed:
            takes = f"takes about {_gigabytes(needed)} here with its index, and {_gigabytes(free)} are free"
            hint = "Make room, or move the home to a larger disk."
            raise SourceUnavailable(f"The dump of {self._wiki} of {format_day(edition.day)} {takes}.", hint=hint)
        for file in missing:
            log.info("%s: downloading %s (%s)", self._wiki, file.name, _gigabytes(file.size or 0))
            path = self._folder / file.name
            self._web.download(
                file.url, path, size=file.size, digest=file.digest, progress=self._report_progress(file.name)
            )
        self.doing = "opens the dump"

    def _report_progress(self, name: str) -> Callable[[int, int | None], None]:
        """Return what notes how far a download has come, and logs it at each tenth."""
        last = 0

        def tell(done: int, total: int | None) -> None:
            nonlocal last
            self.doing = f"downloads {name}, {_gigabytes(done)}" + (f" of {_gigabytes(total)}" if total else "")
            if total and (tenth := done * 10 // total) > last:
                last = tenth
                log.info("%s: %d%% of %s", name, tenth * 10, _gigabytes(total))

        return tell

    def _finish(self, edition: DumpEdition, damaged: list[str]) -> str:
        """Remove older dumps, and return the mark; none where the dump was damaged, so that it is looked at again."""
        mine = re.compile(rf"{re.escape(self._wiki)}[_-]\D*(\d{{8}})-.*")
        there = [(path, found[1]) for path in self._folder.iterdir() if (found := mine.fullmatch(path.name))]
        kept = sorted({day for _, day in there if day <= edition.day}, reverse=True)[: self._keep]
        for path, day in there:
            if day <= edition.day and day not in kept:
                path.unlink(missing_ok=True)
        return "" if damaged else f"{edition.day}-{self._version}"


def _find_articles(mirror: str, wiki: str, web: WebClient, since: str) -> DumpEdition | None:
    base = f"{mirror}/{wiki}"
    reply = web.get(f"{base}/")
    if reply.status != _OK:
        hint = "Check the name of the wiki, such as simplewiki, and the address of the mirror."
        raise SourceUnavailable(f"{base}/ answers HTTP {reply.status}.", hint=hint)
    listed = parse_days(reply.content.decode(errors="replace"))
    if not listed:
        raise SourceUnavailable(f"{base}/ lists no dumps.", hint="Check the address of the mirror.")
    reasons: list[str] = []
    found = _find_newest(web, base, wiki, (day for day in listed if day >= since), _check_day, reasons)
    if found or since:
        return found
    raise SourceUnavailable(
        f"No dump of {wiki} at {mirror} can be used: {'; '.join(reasons)}.", hint="It is looked for again next time."
    )


def _check_day(web: WebClient, base: str, wiki: str, day: str) -> DumpEdition | str:
    reply = web.get(f"{base}/dumpstatus.json")
    if reply.status != _OK:
        return f"its dumpstatus.json answers HTTP {reply.status}"
    try:
        status = json.loads(reply.content)
    except (ValueError, RecursionError):
        return "its dumpstatus.json is cut short or broken"
    return find_finished(status, base, wiki, day)


def _note_damaged(items: Iterator[ListedItem], names: set[str], damaged: list[str]) -> Iterator[ListedItem]:
    """Pass everything on, and note which files turned out to be damaged."""
    for item in items:
        if isinstance(item, Unreadable) and item.key in names:
            damaged.append(item.key)
        yield item


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:,.1f} GB" if size >= 10**8 else f"{size / 1e6:,.1f} MB"
