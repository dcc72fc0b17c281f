"""Reads the lines of a stream of server-sent events as they arrive. Pure.

Of that format, servers of this protocol use one line an event, `data: {...}`, and comments to say they are alive;
llama.cpp puts errors on `error: {...}`.
"""

from collections.abc import Iterator

DONE = b"[DONE]"
_FIELDS = (b"data", b"error")


class EventReader:
    """Fed with bytes in any pieces; gives back the data of each whole line."""

    def __init__(self) -> None:
        self._begun: list[bytes] = []

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Take a piece; yield the data of the lines that it ends. Lines end in CR, LF or CRLF."""
        # CRLF so ends a line twice, of which the second is empty and says nothing.
        *whole, rest = chunk.replace(b"\r", b"\n").split(b"\n")
        for end in whole:
            line = b"".join((*self._begun, end))
            self._begun = []
            yield from _data(line)
        self._begun.append(rest)

    def end(self) -> Iterator[bytes]:
        """Say that no more will come; yield the data of a last line without an end."""
        line, self._begun = b"".join(self._begun), []
        yield from _data(line)


def _data(line: bytes) -> Iterator[bytes]:
    name, _, value = line.partition(b":")
    if name in _FIELDS and (data := value.strip()):
        yield data
