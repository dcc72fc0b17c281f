"""What travels between this process and the one that reads: frames of bytes, and in them an answer as JSON.

A library that a document has taken over may write what it likes into the pipe: all that comes back is text, in a frame
of limited length. Only what goes there is pickled, which we wrote ourselves.
"""

import json
import struct
from dataclasses import dataclass
from datetime import datetime
from typing import IO, Any

from ingest.types import Block, Page, Section
from storage.types import Kind

LONGEST = 256 << 20
"""Bytes of an answer: a document of as many characters as are taken in stays below it in any script."""
_HEAD = struct.Struct(">Q")


@dataclass(frozen=True, slots=True)
class Failed:
    """A document that was not read, and why; `memory` if for want of it."""

    reason: str = ""
    memory: bool = False


Answer = Page | Failed


class Garbled(Exception):
    """What came is no answer."""


def write(pipe: IO[bytes], content: bytes) -> None:
    """Send a frame."""
    pipe.write(_HEAD.pack(len(content)))
    pipe.write(content)
    pipe.flush()


def read(pipe: IO[bytes], longest: int | None = None) -> bytes | None:
    """Wait for a frame; None where the other side has ended. Raises `Garbled` if it is longer than `longest`."""
    head = pipe.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    length = _HEAD.unpack(head)[0]
    if longest is not None and length > longest:
        raise Garbled
    content = pipe.read(length)
    return content if len(content) == length else None


def packed(answer: Answer) -> bytes:
    """An answer as bytes."""
    if isinstance(answer, Failed):
        said: Any = {"reason": answer.reason, "memory": answer.memory}
    else:
        said = {
            "title": answer.title,
            "sections": [[part.path, [[block.text, block.kind] for block in part.blocks]] for part in answer.sections],
            "url": answer.url,
            "revision": answer.revision,
            "date": answer.date.isoformat() if answer.date else None,
            "language": answer.language,
            "aliases": answer.aliases,
            "disambiguation": answer.disambiguation,
        }
    # Halves of surrogate pairs are mended later, by `cleaning`.
    return json.dumps(said, ensure_ascii=False).encode("utf-8", "surrogatepass")


def unpacked(content: bytes) -> Answer:
    """Return the answer. Raises `Garbled` if there is none."""
    try:
        said = json.loads(content.decode("utf-8", "surrogatepass"))
        if "reason" in said:
            return Failed(str(said["reason"]), bool(said["memory"]))
        return Page(
            title=str(said["title"]),
            sections=tuple(map(_section, said["sections"])),
            url=str(said["url"]),
            revision=str(said["revision"]),
            date=datetime.fromisoformat(said["date"]) if said["date"] else None,
            language=str(said["language"]),
            aliases=tuple(map(str, said["aliases"])),
            disambiguation=bool(said["disambiguation"]),
        )
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Garbled from error


def _section(said: Any) -> Section:
    path, blocks = said
    return Section(tuple(map(str, path)), tuple(Block(str(text), Kind(kind)) for text, kind in blocks))
