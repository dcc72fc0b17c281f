"""Read a dump to its end in a process of its own, so that all it takes can be measured."""

import json
import sys
import time

from ingest.sources.dumps.wikipedia_dump import WikipediaDump
from ingest.types import ChangedDocument


def read_dump(dump: str, processes: str) -> None:
    """Read every page into sections; print one JSON document."""
    started = time.perf_counter()
    source = WikipediaDump(dump, processes=int(processes))
    source.expected()
    surveyed = time.perf_counter()
    pages = blocks = unreadable = 0
    for item in source.documents():
        if isinstance(item, ChangedDocument):
            pages += 1
            blocks += sum(len(section.blocks) for section in item.load().sections)
        else:
            unreadable += 1
    seconds = {"first_way": surveyed - started, "all": time.perf_counter() - started}
    print(json.dumps({"pages": pages, "unreadable": unreadable, "blocks": blocks, "seconds": seconds}))


if __name__ == "__main__":
    read_dump(*sys.argv[1:])
