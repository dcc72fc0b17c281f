"""The fingerprints of a corpus by key, in a tenth of a dictionary's memory: a Wikipedia has seven million of them."""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping

import numpy as np


class FingerprintTable(Mapping[str, str]):
    """Map keys to fingerprints, in the order in which they came; each key comes once."""

    def __init__(self, rows: Iterable[tuple[str, str]]) -> None:
        text, ends, hashes = bytearray(), array("Q", [0]), array("q")
        for key, fingerprint in rows:
            named = key.encode("utf-8", "surrogatepass")
            text += named + b"\0" + fingerprint.encode("utf-8", "surrogatepass")
            ends.append(len(text))
            hashes.append(hash(named))
        self._text, self._ends = bytes(text), ends
        order = np.argsort(np.frombuffer(hashes, np.int64), kind="stable") if hashes else np.empty(0, np.int64)
        self._order = array("I", order.astype(np.uint32).tobytes())
        self._hashes = array("q", np.frombuffer(hashes, np.int64)[order].tobytes() if hashes else b"")

    def __getitem__(self, key: str) -> str:
        named = key.encode("utf-8", "surrogatepass")
        sought = hash(named)
        named += b"\0"
        at = bisect_left(self._hashes, sought)
        while at < len(self._hashes) and self._hashes[at] == sought:
            place = self._order[at]
            start, end = self._ends[place], self._ends[place + 1]
            if self._text.startswith(named, start, end):
                return self._text[start + len(named) : end].decode("utf-8", "surrogatepass")
            at += 1
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        start = 0
        for end in self._ends[1:]:
            yield self._text[start : self._text.index(b"\0", start, end)].decode("utf-8", "surrogatepass")
            start = end

    def __len__(self) -> int:
        return len(self._order)
