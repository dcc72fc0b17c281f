"""Reads one file as a refresh does and says what it came to: a process of its own, so that what it takes is measured.

Run by `command` as `python -m evaluation.hostile.reading FILE`.
"""

import json
import resource
import sys
import time
from pathlib import Path

from ingest import cleaning, converting
from ingest.chunking import passages
from ingest.sources.folder import Folder
from ingest.types import Found, Unreadable, UnreadableDocument
from ingest.wikitext.reading import outline, sections


def main(path: Path) -> None:
    """Read it, cut it into passages, and print one JSON document."""
    converting.page(b"# A\n\nText.", "warm.md")
    before = _memory()
    started = time.perf_counter()
    count, reason = 0, ""
    try:
        count = _passages(path)
    except UnreadableDocument as error:
        reason = str(error)
    except Exception as error:  # noqa: BLE001 - as a refresh does, which goes on with the next
        reason = f"({type(error).__name__})"
    seconds = time.perf_counter() - started
    print(
        json.dumps(
            {
                "passages": count,
                "reason": reason,
                "seconds": seconds,
                "mb": _memory(),
                "before": before,
                "reader": _reader(),
            }
        )
    )


def _passages(path: Path) -> int:
    if path.suffix == ".wiki":
        text = path.read_text(encoding="utf-8")
        return sum(len(section.blocks) for section in sections(outline(text)))
    for item in Folder(path.parent, include=[path.name]).documents():
        if isinstance(item, Unreadable):
            raise UnreadableDocument(item.reason)
        if isinstance(item, Found):
            return len(passages("hostile", item.key, cleaning.cleaned(item.load())))
    return 0


def _reader() -> float:
    """The most that a process held which read documents for this one, in MB; 0 if there was none."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


def _memory() -> float:
    """The most that this process held since it began, in MB, as Linux has it."""
    said = Path("/proc/self/status").read_text(encoding="ascii")
    return int(said.partition("VmHWM:")[2].split()[0]) / 1024


if __name__ == "__main__":
    main(Path(sys.argv[1]))
