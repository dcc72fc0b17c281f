"""Find the latest finished dump of a wiki on a mirror of Wikimedia's dumps, download it and read it.

`/WIKI/` lists dates. `/WIKI/DATE/dumpstatus.json` has the state of each job, as writing a dump takes days, and the
sizes and checksums of its files. Dumps of CirrusSearch are in
`/other/cirrus_search_index/DATE/index_name=WIKI_content/` with `_SUCCESS` once complete; until the end of 2025 in
`/other/cirrussearch/DATE/`, one file per wiki. They have no checksums.
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

from ingest.sources.dumps.dump_file import refuse_single
from ingest.sources.dumps.wikipedia_dump import WikipediaDump
from ingest.types import EMPTY, Engine, ListedItem, Listing, SourceUnavailable, Unreadable, describe_os_error
from ingest.web.download import measure_file
from ingest.web.web_client import WebClient
from ingest.wikitext.wikitext_parser import WIKITEXT_VERSION
from storage.language.lazy_pattern import lazy_compile

_LINKED_DAY = lazy_compile(r"""href=["']?(?:\./)?(\d{8})/?["'> ]""")
# The best first: one file with an index, parts with indexes, one file, parts.
_ARTICLE_JOBS = ("articlesmultistreamdumprecombine", "articlesmultistreamdump", "articlesdumprecombine", "articlesdump")
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
    """A finished dump. `day` is its date as eight digits.

    The files `dumps` are read; `indexes` are stored next to them.
    """

    day: str
    dumps: tuple[DumpFile, ...]
    indexes: tuple[DumpFile, ...] = ()

    @property
    def files(self) -> tuple[DumpFile, ...]:
        """Return all files. Indexes come first, because a dump without its index would be read in another way."""
        return (*self.indexes, *self.dumps)


def parse_days(listing: str) -> tuple[str, ...]:
    return tuple(sorted({day for day in _LINKED_DAY.findall(listing) if _is_date(day)}, reverse=True))


def find_finished(status: object, base: str, wiki: str, day: str) -> DumpEdition | str:
    """Return the dump of a day if its articles are finished according to `dumpstatus.json`, or why it is unusable."""
    jobs = status.get("jobs") if isinstance(status, Mapping) else None
    if not isinstance(jobs, Mapping):
        return "its dumpstatus.json contains no jobs"
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
    # Names become local paths and addresses, so only exactly matching ones are used.
    entries = {name: files[name] for name in files if named.fullmatch(name)} if isinstance(files, Mapping) else {}
    parsed = [_parse_file(name, entry, f"{base}/{name}") for name, entry in entries.items()]
    if not parsed or None in parsed:
        return None
    first = {name: int(part[1]) if (part := _FIRST_PAGE.search(name)) else 0 for name in entries}
    ordered = sorted(filter(None, parsed), key=lambda file: (first[file.name], file.name))
    dumps = tuple(file for file in ordered if "-index" not in file.name)
    indexes = tuple(file for file in ordered if "-index" in file.name)
    return DumpEdition(day, dumps, indexes) if dumps else None


def _parse_file(name: str, entry: object, url: str) -> DumpFile | None:
    """Parse the entry of a file; None if it has no size, as then the file does not exist yet."""
    if not isinstance(entry, Mapping) or not isinstance(entry.get("size"), int) or entry["size"] <= 0:
        return None
    digests = [(kind, str(entry[kind])) for kind in _DIGESTS if _HEX.fullmatch(str(entry.get(kind, "")))]
    return DumpFile(name, url, entry["size"], digests[0] if digests else None)


def _job_state(job: object) -> str:
    """Return the state of a job, in words for users."""
    status = job.get("status") if isinstance(job, Mapping) else None
    return {"done": "done", "failed": "failed", "skipped": "skipped"}.get(str(status), "still being written")


def _is_date(day: str) -> bool:
    try:
        date.fromisoformat(format_day(day))
    except ValueError:
        return False
    return True


def format_day(day: str) -> str:
    return f"{day[:4]}-{day[4:6]}-{day[6:]}"


FindEdition = Callable[[WebClient, str], DumpEdition | None]
"""Finds the newest finished dump since a day of eight digits; None if all are older. Raises `SourceUnavailable`."""
_CheckDay = Callable[[WebClient, str, str, str], DumpEdition | str]
_OK = 200
_LATEST_DAYS = 6  # newest dumps that are tried


def _find_newest(
    web: WebClient, base: str, wiki: str, days: Iterable[str], check: _CheckDay, reasons: list[str]
) -> DumpEdition | None:
    for day in islice(days, _LATEST_DAYS):
        edition = check(web, f"{base}/{day}", wiki, day)
        if isinstance(edition, DumpEdition):
            return edition
        reasons.append(f"{format_day(day)}: {edition}")
    return None


def make_cirrus_finder(mirror: str, wiki: str) -> FindEdition:
    """Return a function that finds the newest finished CirrusSearch dump of a wiki."""
    return partial(_find_cirrus, f"{mirror.rstrip('/')}/other", wiki)


def _find_cirrus(base: str, wiki: str, web: WebClient, since: str) -> DumpEdition | None:
    reasons: list[str] = []
    for folder, check in (("cirrus_search_index", _find_in_parts), ("cirrussearch", _find_in_one)):
        reply = web.get(f"{base}/{folder}/")
        listed = parse_days(reply.content.decode(errors="replace")) if reply.status == _OK else ()
        days = (day for day in listed if day >= since)
        if edition := _find_newest(web, f"{base}/{folder}", wiki, days, check, reasons):
            return edition
    if since:
        return None
    listed_reasons = "; ".join(reasons) or "it lists none"
    raise SourceUnavailable(
        f"No CirrusSearch dump of {wiki} at {base} can be used: {listed_reasons}.",
        hint="Check the name of the wiki, or remove `cirrus` to read its articles from wikitext.",
    )


def _find_in_parts(web: WebClient, base: str, wiki: str, day: str) -> DumpEdition | str:
    folder = f"{base}/index_name%3D{wiki}_content"
    reply = web.get(f"{folder}/")
    if reply.status != _OK:
        return f"it contains no {wiki}_content"
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
    """Return the dump with the sizes of its files, to check the free space, or the reason why it is unusable."""
    if not names:
        return "it has no files of this wiki"
    addresses = [(name, f"{folder}/{name}") for name in names]
    files = [DumpFile(name, address, web.size(address), None) for name, address in addresses]
    unsized = [file.name for file in files if file.size is None]
    return f"{unsized[0]} does not exist" if unsized else DumpEdition(day, tuple(files))


_FIRST_GROWTH = 12  # bytes in the home per byte of a packed dump at the first ingest
_PACKED_GROWTH = 4  # the same without embeddings
_NEXT_GROWTH = 1

log = logging.getLogger(__name__)


class ReadableDump(Protocol):
    def expected(self) -> int | None: ...

    def documents(self, known: Mapping[str, str]) -> Listing: ...


OpenDump = Callable[[tuple[Path, ...]], ReadableDump]


def make_article_finder(mirror: str, wiki: str) -> FindEdition:
    """Return a function that finds the newest dump of a wiki whose articles are finished."""
    return partial(_find_articles, mirror.rstrip("/"), wiki)


def open_wikitext_dump(
    paths: tuple[Path, ...], engine: Engine | None = None, survey: Path | None = None
) -> WikipediaDump:
    return WikipediaDump(*paths, engine=engine, survey=survey)


class DumpMirror:
    """Reads the latest finished dump of one wiki. The listing is complete, or empty if that dump was read before."""

    reference = True
    one = staticmethod(refuse_single)

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
        """Store the last `keep` dumps in `folder`. If `version` changes, the same dump is read again."""
        self._wiki, self._web, self._folder = wiki, web, folder
        self._find, self._read, self._version, self._keep, self._free = find, read, version, keep, free
        self._dump: ReadableDump | None = None
        self._corpus = ""
        self.doing = ""  # the current step, for progress; other threads may read it

    def expected(self) -> int | None:
        return self._dump.expected() if self._dump else None

    def documents(self, known: Mapping[str, str] = EMPTY, since: str = "") -> Listing:
        """Download the latest finished dump and list its pages. If `since` is the mark of this dump, list nothing."""
        whole = bool(known) and all(known.values())  # an interrupted ingest leaves empty fingerprints
        ingested = since.partition("-")[0] if whole and since.endswith(f"-{self._version}") else ""
        with self._web:
            self.doing = f"looks for the latest dump of {self._wiki}"
            edition = self._find(self._web, since.partition("-")[0])
            if edition is None or edition.day == ingested:
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

    def stop(self) -> None:
        self._web.stop()

    def _download(self, edition: DumpEdition, *, growth: int) -> None:
        """Download the missing files, if there is enough space for them and for the growth of the index."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            reason = describe_os_error(error)
            hint = "Check the permissions of the home."
            raise SourceUnavailable(f"{self._folder} cannot be created: {reason}.", hint=hint) from error
        # A file gets its final name only once it is complete and verified.
        sizes = {file: measure_file(self._folder / file.name) for file in edition.files}
        missing = [file for file, size in sizes.items() if not size or (file.size is not None and size != file.size)]
        partial_bytes = sum(measure_file(self._folder / f"{file.name}.part") for file in missing)
        packed = sum(file.size or 0 for file in edition.dumps)
        needed = sum(file.size or 0 for file in missing) - partial_bytes + growth * packed
        if (free := self._free(self._folder)) < needed:
            takes = f"needs about {_gigabytes(needed)} with its index, and {_gigabytes(free)} are free"
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
        """Return a function that updates the progress of a download, and logs each tenth."""
        last = 0

        def update(done: int, total: int | None) -> None:
            nonlocal last
            self.doing = f"downloads {name}, {_gigabytes(done)}" + (f" of {_gigabytes(total)}" if total else "")
            if total and (tenth := done * 10 // total) > last:
                last = tenth
                log.info("%s: %d%% of %s", name, tenth * 10, _gigabytes(total))

        return update

    def _finish(self, edition: DumpEdition, damaged: list[str]) -> str:
        """Delete older dumps, and return the mark of this one; empty after a damaged dump, so that it is read again."""
        name = re.compile(rf"{re.escape(self._wiki)}[_-]\D*(\d{{8}})-.*")
        files = [(path, match[1]) for path in self._folder.iterdir() if (match := name.fullmatch(path.name))]
        newest = sorted({day for _, day in files if day <= edition.day}, reverse=True)[: self._keep]
        for path, day in files:
            if day <= edition.day and day not in newest:
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
    edition = _find_newest(web, base, wiki, (day for day in listed if day >= since), _check_day, reasons)
    if edition or since:
        return edition
    raise SourceUnavailable(
        f"No dump of {wiki} at {mirror} can be used: {'; '.join(reasons)}.", hint="The next refresh tries again."
    )


def _check_day(web: WebClient, base: str, wiki: str, day: str) -> DumpEdition | str:
    reply = web.get(f"{base}/dumpstatus.json")
    if reply.status != _OK:
        return f"its dumpstatus.json answers HTTP {reply.status}"
    try:
        status = json.loads(reply.content)
    except (ValueError, RecursionError):
        return "its dumpstatus.json is truncated or broken"
    return find_finished(status, base, wiki, day)


def _note_damaged(items: Iterator[ListedItem], names: set[str], damaged: list[str]) -> Iterator[ListedItem]:
    """Yield all items, and collect the names of damaged files in `damaged`."""
    for item in items:
        if isinstance(item, Unreadable) and item.key in names:
            damaged.append(item.key)
        yield item


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:,.1f} GB" if size >= 10**8 else f"{size / 1e6:,.1f} MB"
