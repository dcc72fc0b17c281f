"""What a mirror of Wikimedia's dumps says of the dumps of one wiki: which are finished, and their files. Pure.

`/WIKI/` lists the dates; `/WIKI/DATE/dumpstatus.json` says what became of each job of that date, and the size and the
checksums of its files. A dump is being written for days, and its page is there all the while.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

_LINKED = re.compile(r"""href=["']?(?:\./)?(\d{8})/?["'> ]""")
_JOBS = ("articlesmultistreamdumprecombine", "articlesmultistreamdump", "articlesdumprecombine", "articlesdump")
"""Where the articles may be, the best first: whole with an index, in parts with one each, whole, in parts."""
_DIGESTS = ("sha1", "md5")
_HEX = re.compile(r"[0-9a-f]{32,64}", re.IGNORECASE)
_FIRST_PAGE = re.compile(r"-p(\d+)p\d+")


@dataclass(frozen=True, slots=True)
class DumpFile:
    """A file of a dump: its address, its size in bytes where it is known, and its hash by name where there is one."""

    name: str
    url: str
    size: int | None
    digest: tuple[str, str] | None


@dataclass(frozen=True, slots=True)
class Edition:
    """A finished dump. `day` is its date as eight digits; `dumps` are read, `indexes` lie beside them."""

    day: str
    dumps: tuple[DumpFile, ...]
    indexes: tuple[DumpFile, ...] = ()

    @property
    def files(self) -> tuple[DumpFile, ...]:
        """All that is needed; the indexes first, as a dump without its index would be read another way."""
        return (*self.indexes, *self.dumps)


def days(listing: str) -> tuple[str, ...]:
    """Return the dates that a page links to, the newest first."""
    return tuple(sorted({day for day in _LINKED.findall(listing) if _is_date(day)}, reverse=True))


def finished(status: object, base: str, wiki: str, day: str) -> Edition | str:
    """Return the dump of a day if its articles are finished, else why it cannot be used.

    Args:
        status: What `dumpstatus.json` holds.
        base: The address of the folder in which the files are, without a slash at its end.
        wiki: The name of the wiki's database, such as `simplewiki`.
        day: Eight digits.
    """
    jobs = status.get("jobs") if isinstance(status, Mapping) else None
    if not isinstance(jobs, Mapping):
        return "its dumpstatus.json says nothing of jobs"
    told = [_told(jobs[name]) for name in _JOBS if name in jobs]
    for name in _JOBS:
        if _told(jobs.get(name)) == "done" and (edition := _edition(jobs[name], base, wiki, day)):
            return edition
    if "done" in told:
        return "its dumpstatus.json names no files of its articles"
    return f"its articles are {told[0]}" if told else "it has no articles"


def _edition(job: Mapping[str, Any], base: str, wiki: str, day: str) -> Edition | None:
    files = job.get("files")
    named = re.compile(rf"{re.escape(wiki)}-{day}-pages-articles[a-z0-9.-]*\.(?:xml|txt)[a-z0-9-]*\.bz2")
    # A name becomes a path here and an address there: one that is not exactly as expected is not touched.
    known = {name: said for name, said in files.items() if named.fullmatch(name)} if isinstance(files, Mapping) else {}
    found = [_file(name, said, f"{base}/{name}") for name, said in known.items()]
    if not found or None in found:
        return None
    whole = sorted((file for file in found if file), key=lambda file: (_first_page(file.name), file.name))
    dumps = tuple(file for file in whole if "-index" not in file.name)
    indexes = tuple(file for file in whole if "-index" in file.name)
    return Edition(day, dumps, indexes) if dumps else None


def _file(name: str, said: object, url: str) -> DumpFile | None:
    """Return a file; None where its size is not told, which is how one that is not there yet looks."""
    if not isinstance(said, Mapping) or not isinstance(said.get("size"), int) or said["size"] <= 0:
        return None
    digests = [(kind, str(said[kind])) for kind in _DIGESTS if _HEX.fullmatch(str(said.get(kind, "")))]
    return DumpFile(name, url, said["size"], digests[0] if digests else None)


def _told(job: object) -> str:
    """Return what became of a job, in our words."""
    status = job.get("status") if isinstance(job, Mapping) else None
    return {"done": "done", "failed": "failed", "skipped": "left out"}.get(str(status), "still being written")


def _first_page(name: str) -> int:
    found = _FIRST_PAGE.search(name)
    return int(found[1]) if found else 0


def _is_date(day: str) -> bool:
    try:
        date.fromisoformat(f"{day[:4]}-{day[4:6]}-{day[6:]}")
    except ValueError:
        return False
    return True


def readable(day: str) -> str:
    """Return a date of eight digits as people write it: 2026-11-01."""
    return f"{day[:4]}-{day[4:6]}-{day[6:]}"


def size_of(files: Iterable[DumpFile]) -> int:
    """Return the bytes of files, as far as they are known."""
    return sum(file.size or 0 for file in files)
