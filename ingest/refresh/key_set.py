"""A set of keys that stores numbers, such as page ids, as one bit each: a Wikipedia has many millions."""

from collections.abc import Iterable, Iterator, MutableSet

_MOST_DIGITS = 9  # more would take hundreds of megabytes


class KeySet(MutableSet[str]):
    def __init__(self, keys: Iterable[str] = ()) -> None:
        self._bits = bytearray()
        self._number = 0
        self._others: set[str] = set()
        for key in keys:
            self.add(key)

    def add(self, value: str) -> None:
        place, bit = _locate(value)
        if not bit:
            self._others.add(value)
            return
        if place >= len(self._bits):
            self._bits.extend(bytes(place + 1 - len(self._bits) + (len(self._bits) >> 2)))
        self._number += not self._bits[place] & bit
        self._bits[place] |= bit

    def discard(self, value: str) -> None:
        place, bit = _locate(value)
        if not bit:
            self._others.discard(value)
        elif value in self:
            self._bits[place] &= ~bit
            self._number -= 1

    def __contains__(self, value: object) -> bool:
        if not isinstance(value, str):
            return False
        place, bit = _locate(value)
        return bool(self._bits[place] & bit) if bit and place < len(self._bits) else not bit and value in self._others

    def __iter__(self) -> Iterator[str]:
        for place, bits in enumerate(self._bits):
            if bits:
                yield from (str(8 * place + bit) for bit in range(8) if bits & 1 << bit)
        yield from self._others

    def __len__(self) -> int:
        return self._number + len(self._others)

    @property
    def others(self) -> frozenset[str]:
        """Return the keys that are not numbers."""
        return frozenset(self._others)


def _locate(key: str) -> tuple[int, int]:
    """Return the byte and the bit of a number as it is usually written; no bit for any other key."""
    if not key.isdecimal() or not key.isascii() or len(key) > _MOST_DIGITS or (key[0] == "0" and key != "0"):
        return 0, 0
    place, bit = divmod(int(key), 8)
    return place, 1 << bit
