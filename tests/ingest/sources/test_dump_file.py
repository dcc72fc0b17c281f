"""A dump's XML is the same in every compression and encoding; other files are rejected by kind."""

import bz2
import gzip

import pytest

from ingest.sources.dumps.dump_file import DumpError, DumpTruncated, detect_compression, read_blocks
from tests.ingest.sources.dumps import dump, page

XML = dump(page(1, "Ada", "Größe &amp; Ruhm. " * 100))


@pytest.mark.parametrize(
    "content",
    [
        XML,
        bz2.compress(XML),
        bz2.compress(XML[:100]) + bz2.compress(XML[100:]),
        gzip.compress(XML),
        gzip.compress(XML[:100]) + gzip.compress(XML[100:]),
        XML.decode().encode("utf-16"),
        XML.decode().encode("utf-16-be"),
        b"\xef\xbb\xbf" + XML,
        bz2.compress(XML.decode().encode("utf-16")),
    ],
    ids=[
        "plain",
        "bz2",
        "bz2 of two streams",
        "gz",
        "gz of two",
        "UTF-16",
        "UTF-16 without a mark",
        "UTF-8 mark",
        "both",
    ],
)
def test_blocks_are_utf_8(tmp_path, content):
    path = tmp_path / "dump"
    path.write_bytes(content)

    assert b"".join(read_blocks(path)) == XML


def test_declared_encoding_is_decoded(tmp_path):
    path = tmp_path / "dump"
    path.write_bytes(b'<?xml version="1.0" encoding="ISO-8859-1"?>' + XML.decode().encode("latin-1"))

    assert b"".join(read_blocks(path)).endswith(XML)


@pytest.mark.parametrize("pack", [bz2.compress, gzip.compress])
def test_content_before_truncation_is_yielded(tmp_path, pack):
    xml = dump(*(page(number, f"Page {number}", f"{number * 7919} " * 300) for number in range(3000)))
    packed = pack(xml)
    path = tmp_path / "dump"
    path.write_bytes(packed[: len(packed) * 2 // 3])
    read = []

    with pytest.raises(DumpTruncated, match=r"ends too early, at byte [\d,]+ of the file"):
        read.extend(read_blocks(path))
    assert xml.startswith(b"".join(read))
    assert sum(map(len, read)) > len(xml) // 3


def test_damage_is_located_in_the_packed_file(tmp_path):
    packed = bytearray(bz2.compress(dump(*(page(n, f"Page {n}", f"{n * 7919} " * 300) for n in range(3000)))))
    packed[len(packed) // 2] ^= 0xFF
    path = tmp_path / "dump.bz2"
    path.write_bytes(packed)

    with pytest.raises(DumpTruncated, match="damaged near byte"):
        list(read_blocks(path))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"[{}]", "is JSON"),
        (b"<!DOCTYPE html><html></html>", "is a web page"),
        (b"<html><body>404</body></html>", "is a web page"),
        (b"PK\x03\x04...", "is a zip archive"),
        (b"-- MySQL dump 10.19", "is an SQL dump"),
        (b"7z\xbc\xaf\x27\x1c..", "is a 7z archive"),
        (b"# Notes\n", "is not XML"),
        (b"<rss></rss>", "not a wiki's export"),
        (gzip.compress(b"{}", mtime=0), "is JSON"),
        (bz2.compress(b""), "contains no text"),
    ],
)
def test_wrong_files_are_rejected_with_a_hint(tmp_path, content, message):
    path = tmp_path / "dump"
    path.write_bytes(content)

    with pytest.raises(DumpError, match=message) as failure:
        list(read_blocks(path))
    assert failure.value.hint


def test_missing_file_and_folder_are_rejected(tmp_path):
    with pytest.raises(DumpError, match="There is no file"):
        list(read_blocks(tmp_path / "none"))
    with pytest.raises(DumpError, match="is a folder"):
        detect_compression(tmp_path)
