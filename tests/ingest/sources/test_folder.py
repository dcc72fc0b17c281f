"""A folder of documents: what is found, what is left out, what cannot be read."""

import os
import signal
import unicodedata
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ingest.sources.folder import FolderError, FolderSource
from ingest.types import ChangedDocument, Unreadable, UnreadableDocument

ROOT_READS_ALL = pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")


def filled(folder, *names, text="Some text."):
    """Write files, and return their folder."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def keys(folder, **kwargs):
    """Return the keys of all documents."""
    return [document.key for document in FolderSource(folder, **kwargs).documents()]


def only(folder, **kwargs):
    """Return the one document there is."""
    [document] = FolderSource(folder, **kwargs).documents()
    return document


def interrupt(*_):
    """End what waits for ever."""
    raise TimeoutError


def test_every_file_is_found_in_a_stable_order(tmp_path):
    """By folder and name, however the system lists them."""
    filled(tmp_path, "b.md", "a.md", "x/c.md", "x/a/b.txt", "LICENSE")

    assert keys(tmp_path) == ["LICENSE", "a.md", "b.md", "x/a/b.txt", "x/c.md"]
    assert FolderSource(tmp_path).expected() == 5


def test_what_is_no_document_is_left_out(tmp_path):
    """Hidden files, what Office and package managers leave behind."""
    filled(tmp_path, ".git/a.md", ".hidden.md", "~$a.docx", "node_modules/x/README.md", "__pycache__/a.txt", "a.md")

    assert keys(tmp_path) == ["a.md"]


def test_what_was_left_out_is_told(tmp_path):
    """By the listing, and before it by a preview that opens nothing; of a folder its key stands for all in it."""
    filled(tmp_path, "a.md", "b.png", ".c.md", "node_modules/x/README.md", "drafts/d.md", "yarn.lock")
    source = FolderSource(tmp_path, exclude=["drafts"])

    assert [document.key for document in source.documents()] == ["a.md", "b.png"]
    assert {one.key: one.reason for one in source.left_out} == {
        ".c.md": "hidden, or open in Office",
        "drafts/": "exclude names it",
        "node_modules/": "packages of others",
        "yarn.lock": "lock files and lists of packages",
    }
    assert dict(source.preview()) == {one.key: one.reason for one in source.left_out} | {
        "a.md": "",
        "b.png": "pictures are not read",
    }


def test_include_and_exclude(tmp_path):
    """Patterns say what is read; a folder that is excluded is not entered."""
    filled(tmp_path, "a.MD", "b.txt", "drafts/c.md", "x/drafts/d.md", "x/e.md")

    assert keys(tmp_path, include=["**/*.md"], exclude=["drafts"]) == ["a.MD", "x/e.md"]
    assert keys(tmp_path, exclude=["drafts/**", "*.txt"]) == ["a.MD", "x/drafts/d.md", "x/e.md"]


def test_a_document_is_loaded(tmp_path):
    """With address, revision and date."""
    path = filled(tmp_path, "on call/rota #1.md", text="# Rota\n\nText.") / "on call/rota #1.md"
    os.utime(path, (1_700_000_000, 1_700_000_000.5))
    found = only(tmp_path, url_base="https://x.org/handbook/")

    page = found.load()

    assert found.size == len("# Rota\n\nText.")
    assert page.title == "Rota"
    assert page.url == "https://x.org/handbook/on%20call/rota%20%231.md"
    assert page.revision.startswith("sha256:")
    assert len(page.revision) == len("sha256:") + 12
    assert page.date == datetime.fromtimestamp(1_700_000_000, UTC)


def test_a_document_is_cited_and_found_where_its_site_publishes_it(tmp_path):
    """By its front matter, else by its generator's habits."""
    filled(tmp_path, "docs/01-leave.md", "docs/plain.txt")
    filled(tmp_path, "docs/pay.md", text="---\nslug: /salary\n---\nText.")
    source = FolderSource(tmp_path, url_base="https://x.org", site="docusaurus")

    assert [found.load().url for found in source.documents()] == [
        "https://x.org/docs/leave",
        "https://x.org/docs/salary",
        "https://x.org/docs/plain.txt",
    ]
    assert source.one("https://x.org/docs/salary", {}).key == "docs/pay.md"
    assert source.one("https://x.org/docs/leave", {}).key == "docs/01-leave.md"
    assert source.one("https://x.org/docs/none", {}) is None


def test_the_fingerprint_follows_what_would_be_stored(tmp_path):
    """The bytes, the address, and the file's date where the document tells none."""
    path = filled(tmp_path, "a.md") / "a.md"
    os.utime(path, (1, 1))
    first = only(tmp_path).fingerprint

    assert only(tmp_path).fingerprint == first
    assert only(tmp_path, url_base="https://x.org").fingerprint != first
    os.utime(path, (2, 2))
    assert only(tmp_path).fingerprint != first
    os.utime(path, (1, 1))
    assert only(tmp_path).fingerprint == first
    path.write_text("Other text")
    os.utime(path, (1, 1))
    assert only(tmp_path).fingerprint != first


def test_touching_a_document_that_tells_its_date_changes_nothing(tmp_path):
    """Its file's date is not stored."""
    path = filled(tmp_path, "a.md", text="---\ndate: 2024-05-06\n---\nText.") / "a.md"
    first = only(tmp_path).fingerprint
    os.utime(path, (1, 1))

    assert only(tmp_path).fingerprint == first


@pytest.mark.parametrize(
    ("change", "reason"), [(lambda p: p.write_text("New"), "changed while it was read"), (Path.unlink, "deleted")]
)
def test_a_document_that_changes_meanwhile_is_not_read(tmp_path, change, reason):
    """Its fingerprint would be that of another text."""
    found = only(filled(tmp_path, "a.md"))
    change(tmp_path / "a.md")

    with pytest.raises(UnreadableDocument, match=reason):
        found.load()


def test_what_cannot_be_read_is_listed_with_its_reason(tmp_path):
    """So that the numbers add up."""
    filled(tmp_path, "a.png", "b.md", "c.bin")
    (tmp_path / "d.md").symlink_to(tmp_path / "nowhere.md")
    os.mkfifo(tmp_path / "e.md")
    (tmp_path / "f.md").write_bytes(bytes(2 * 2**20))

    found = list(FolderSource(tmp_path, largest=2**20).documents())

    assert {document.key: document.reason for document in found if isinstance(document, Unreadable)} == {
        "a.png": "pictures are not read",
        "c.bin": "programs are not read",
        "d.md": "is a broken link, or was deleted meanwhile",
        "e.md": "is not a regular file",
        "f.md": "is larger than 1 MB",
    }
    assert len(found) == 6


@ROOT_READS_ALL
def test_what_may_not_be_read_is_listed(tmp_path):
    """A file, and a folder under a key that ends in a slash."""
    filled(tmp_path, "a.md", "x/b.md")
    (tmp_path / "a.md").chmod(0)
    (tmp_path / "x").chmod(0)

    found = list(FolderSource(tmp_path).documents())
    (tmp_path / "x").chmod(0o700)

    assert found == [
        Unreadable("a.md", "cannot be read: permission denied"),
        Unreadable("x/", "the folder cannot be listed: permission denied"),
    ]


def test_links_are_followed_but_not_in_circles(tmp_path):
    """A folder within itself ends the walk."""
    filled(tmp_path / "handbook", "a.md", "x/b.md")
    (tmp_path / "handbook/again").symlink_to(tmp_path / "handbook")
    (tmp_path / "handbook/linked").symlink_to(tmp_path / "handbook/x")
    (tmp_path / "handbook/x/back").symlink_to(tmp_path / "handbook")
    (tmp_path / "handbook/c.md").symlink_to("x/b.md")
    (tmp_path / "handbook/self.md").symlink_to(tmp_path / "handbook/self.md")
    (tmp_path / "given").symlink_to(tmp_path / "handbook")

    assert keys(tmp_path / "handbook") == ["a.md", "c.md", "linked/b.md", "self.md", "x/b.md"]
    assert keys(tmp_path / "given") == keys(tmp_path / "handbook")


def test_links_that_lead_out_of_the_folder_are_not_followed(tmp_path):
    """Whoever may add a link could publish any file; a link to a link, or out of a linked folder, is no way round."""
    filled(tmp_path / "elsewhere", "secret.md")
    filled(tmp_path / "handbook-2", "near.md")
    filled(tmp_path / "handbook", "a.md", "x/b.md")
    for name, target in {
        "file.md": "../elsewhere/secret.md",
        "folder": "../elsewhere",
        "near": tmp_path / "handbook-2",
        "twice.md": "file.md",
        "x/up.md": "../../elsewhere/secret.md",
        "y": "x",
        "z.png": "../elsewhere/secret.md",
    }.items():
        (tmp_path / "handbook" / name).symlink_to(target)

    found = list(FolderSource(tmp_path / "handbook", include=["*.md"]).documents())

    reason = "is a link that leads out of the folder: put the file itself there"
    assert [document.key for document in found if isinstance(document, ChangedDocument)] == ["a.md", "x/b.md", "y/b.md"]
    assert [document for document in found if isinstance(document, Unreadable)] == [
        Unreadable(key, reason) for key in ("file.md", "folder", "near", "twice.md", "x/up.md", "y/up.md")
    ]


@pytest.mark.parametrize("when", ["listed", "loaded"])
@pytest.mark.parametrize("swapped", ["x", "x/b.md"])
def test_what_becomes_a_link_or_a_pipe_meanwhile_is_not_followed(tmp_path, swapped, when):
    """Neither a file nor a folder on the way; whoever may write there would else publish what they may not read."""
    filled(tmp_path / "elsewhere", "b.md")
    filled(tmp_path / "handbook", "a.md", "x/b.md")
    found = FolderSource(tmp_path / "handbook").documents()
    first = next(iter(found))
    late = next(iter(found)) if when == "loaded" else None
    (tmp_path / "handbook" / swapped).rename(tmp_path / "before")
    (tmp_path / "handbook" / swapped).symlink_to(tmp_path / "elsewhere" / swapped.removeprefix("x").strip("/"))

    assert first.key == "a.md"
    if late:
        with pytest.raises(UnreadableDocument, match="changed while it was read"):
            late.load()
    else:
        assert [type(one) for one in found] == [Unreadable]
    (tmp_path / "handbook" / swapped).unlink()
    if late and swapped == "x/b.md":
        os.mkfifo(tmp_path / "handbook" / swapped)
        signal.signal(signal.SIGALRM, interrupt)
        signal.alarm(5)  # opening a pipe that nobody writes to waits for ever
        with pytest.raises(UnreadableDocument, match="not a regular file"):
            late.load()
        signal.alarm(0)


def test_accents_are_one_name_on_every_system(tmp_path):
    """Keys are composed; two files that then have one name are told apart."""
    composed, parted = unicodedata.normalize("NFC", "Büro.md"), unicodedata.normalize("NFD", "Büro.md")
    filled(tmp_path, composed, parted)

    first, second = FolderSource(tmp_path).documents()

    assert (first.key, second.key) == (composed, composed)
    assert isinstance(first, ChangedDocument)
    assert isinstance(second, Unreadable)


def test_a_name_that_is_no_text_is_read_all_the_same(tmp_path):
    """Its key can be stored and its address be followed as far as may be."""
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.md")).write_text("Text.")

    found = only(tmp_path, url_base="https://x.org")

    assert found.load().url.isascii()
    assert found.key.encode()


@pytest.mark.parametrize(("name", "message"), [("nowhere", "There is no folder"), ("a.md", "is a file, not a folder")])
def test_a_folder_that_is_none_is_told_at_once(tmp_path, name, message):
    """Not when the first document is asked for."""
    folder = FolderSource(filled(tmp_path, "a.md") / name)

    with pytest.raises(FolderError, match=message) as told:
        folder.documents()
    assert told.value.hint


def test_an_empty_folder_has_no_documents(tmp_path):
    """It is no error here."""
    assert keys(tmp_path) == []
