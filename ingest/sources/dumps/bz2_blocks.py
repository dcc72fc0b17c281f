"""Unpack one bz2 file in several processes, by finding the marks that precede its blocks.

A block contains at most 900 kB of text, and can be unpacked alone. It begins, at any bit, with a mark of 48 bits. Such
bits also occur by chance, once in 35 terabytes, and these false marks are skipped.
"""

import bz2
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_BLOCK_MARK, _STREAM_END_MARK = 0x314159265359, 0x177245385090
_MARK_BITS = 48
_CHECKSUM_BITS = 32
_LONGEST_BLOCK = 1_000_000  # packed bytes
_FALSE_MARKS = 2  # within one block
RANGE_BYTES = 2 << 20


@dataclass(frozen=True, slots=True)
class UnpackedRange:
    """The content of all blocks that begin in a range. `damage` describes the first unreadable block."""

    content: bytes
    damage: str = ""


@dataclass(frozen=True, slots=True)
class BlockRange:
    """The blocks of a file that begin within a range of its bytes; `end` is exclusive."""

    path: Path
    start: int
    end: int

    def unpack(self) -> UnpackedRange:
        with self.path.open("rb") as file:
            file.seek(self.start)
            packed = file.read(self.end - self.start + _LONGEST_BLOCK)
        # Includes a mark that begins in the range and ends beyond it.
        marks = _find_marks(packed)
        within = 8 * (self.end - self.start)
        pieces: list[bytes] = []
        done = 0
        for number, (position, mark) in enumerate(marks):
            if position >= within:
                break
            if mark == _STREAM_END_MARK or position < done:
                continue
            later = [after for after, _ in marks[number + 1 : number + 2 + _FALSE_MARKS]]
            content, done = _unpack_block(packed, position, later)
            if content is None:
                byte = self.start + position // 8
                lost = "is damaged near" if later else "ends too early, at"
                return UnpackedRange(b"".join(pieces), f"the packed data {lost} byte {byte:,} of the file")
            pieces.append(content)
        return UnpackedRange(b"".join(pieces))


def split_ranges(path: Path) -> Iterator[BlockRange]:
    size = path.stat().st_size
    return (BlockRange(path, start, min(start + RANGE_BYTES, size)) for start in range(0, size, RANGE_BYTES))


def _unpack_block(packed: bytes, start: int, ends: list[int]) -> tuple[bytes | None, int]:
    """Return the content of the block that begins at bit `start`, and the bit where it ends.

    That is the first of `ends` with which the block can be unpacked. If there is none, the content is None.
    """
    for end in ends:
        bits = int.from_bytes(packed[start // 8 : (end + 7) // 8]) >> (-end % 8)
        bits &= (1 << (end - start)) - 1
        checksum = (bits >> (end - start - _MARK_BITS - _CHECKSUM_BITS)) & 0xFFFFFFFF
        # Make it a complete stream, which ends with a mark and the checksum of its only block.
        bits = ((bits << _MARK_BITS | _STREAM_END_MARK) << _CHECKSUM_BITS) | checksum
        length = end - start + _MARK_BITS + _CHECKSUM_BITS
        stream = b"BZh9" + (bits << (-length % 8)).to_bytes((length + 7) // 8)
        try:
            return bz2.decompress(stream), end
        except (OSError, ValueError):
            continue
    return None, start


def _find_marks(packed: bytes) -> list[tuple[int, int]]:
    """Return each mark in order, with the bit where it begins."""
    return sorted((bit, mark) for mark in (_BLOCK_MARK, _STREAM_END_MARK) for bit in _find_mark(packed, mark))


def _find_mark(packed: bytes, mark: int) -> Iterator[int]:
    for shift in range(8):
        written = (mark << (8 - shift)).to_bytes(7)  # shifted by so many bits
        whole = written[1:6] if shift else written[:6]
        before = 1 if shift else 0
        index = packed.find(whole)
        while index >= 0:
            start = index - before
            position = 8 * start + shift
            if start >= 0 and _read_bits(packed, position) == mark:
                yield position
            index = packed.find(whole, index + 1)


def _read_bits(packed: bytes, position: int) -> int:
    start, shift = divmod(position, 8)
    bits = int.from_bytes(packed[start : start + 7].ljust(7, b"\0"))
    return (bits >> (8 - shift)) & ((1 << _MARK_BITS) - 1)
