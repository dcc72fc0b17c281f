"""A folder of documents: listed, skipped and unreadable files."""

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
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def keys(folder, **kwargs):
    return [document.key for document in FolderSource(folder, **kwargs).documents()]


def only(folder, **kwargs):
    [document] = FolderSource(folder, **kwargs).documents()
    return document


def interrupt(*_):
    raise TimeoutError


def test_files_are_listed_in_stable_order(tmp_path):
    filled(tmp_path, "b.md", "a.md", "x/c.md", "x/a/b.txt", "LICENSE")

    assert keys(tmp_path) == ["LICENSE", "a.md", "b.md", "x/a/b.txt", "x/c.md"]
    assert FolderSource(tmp_path).expected() == 5


def test_files_that_are_not_documents_are_skipped(tmp_path):
    filled(tmp_path, ".git/a.md", ".hidden.md", "~$a.docx", "node_modules/x/README.md", "__pycache__/a.txt", "a.md")

    assert keys(tmp_path) == ["a.md"]


def test_skipped_files_are_listed_and_previewed(tmp_path):
    filled(tmp_path, "a.md", "b.png", ".c.md", "node_modules/x/README.md", "drafts/d.md", "yarn.lock")
    source = FolderSource(tmp_path, exclude=["drafts"])

    assert [document.key for document in source.documents()] == ["a.md", "b.png"]
    assert {skipped.key: skipped.reason for skipped in source.left_out} == {
        ".c.md": "hidden, or open in Office",
        "drafts/": "exclude names it",
        "node_modules/": "packages of others",
        "yarn.lock": "lock files and lists of packages",
    }
    assert dict(source.preview()) == {skipped.key: skipped.reason for skipped in source.left_out} | {
        "a.md": "",
        "b.png": "pictures are not read",
    }


def test_include_and_exclude_select_files(tmp_path):
    filled(tmp_path, "a.MD", "b.txt", "drafts/c.md", "x/drafts/d.md", "x/e.md")

    assert keys(tmp_path, include=["**/*.md"], exclude=["drafts"]) == ["a.MD", "x/e.md"]
    assert keys(tmp_path, exclude=["drafts/**", "*.txt"]) == ["a.MD", "x/drafts/d.md", "x/e.md"]


def test_document_has_address_revision_and_date(tmp_path):
    path = filled(tmp_path, "on call/rota #1.md", text="# Rota\n\nText.") / "on call/rota #1.md"
    os.utime(path, (1_700_000_000, 1_700_000_000.5))
    document = only(tmp_path, url_base="https://x.org/handbook/")

    page = document.load()

    assert document.size == len("# Rota\n\nText.")
    assert page.title == "Rota"
    assert page.url == "https://x.org/handbook/on%20call/rota%20%231.md"
    assert page.revision.startswith("sha256:")
    assert len(page.revision) == len("sha256:") + 12
    assert page.date == datetime.fromtimestamp(1_700_000_000, UTC)


def test_document_is_found_by_its_published_address(tmp_path):
    filled(tmp_path, "docs/01-leave.md", "docs/plain.txt")
    filled(tmp_path, "docs/pay.md", text="---\nslug: /salary\n---\nText.")
    source = FolderSource(tmp_path, url_base="https://x.org", site="docusaurus")

    assert [document.load().url for document in source.documents()] == [
        "https://x.org/docs/leave",
        "https://x.org/docs/salary",
        "https://x.org/docs/plain.txt",
    ]
    assert source.one("https://x.org/docs/salary", {}).key == "docs/pay.md"
    assert source.one("https://x.org/docs/leave", {}).key == "docs/01-leave.md"
    assert source.one("https://x.org/docs/none", {}) is None


def test_fingerprint_depends_on_stored_facts(tmp_path):
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


def test_touching_a_dated_document_changes_nothing(tmp_path):
    path = filled(tmp_path, "a.md", text="---\ndate: 2024-05-06\n---\nText.") / "a.md"
    first = only(tmp_path).fingerprint
    os.utime(path, (1, 1))

    assert only(tmp_path).fingerprint == first


@pytest.mark.parametrize(
    ("change", "reason"), [(lambda p: p.write_text("New"), "changed while it was read"), (Path.unlink, "deleted")]
)
def test_document_changed_meanwhile_is_unreadable(tmp_path, change, reason):
    document = only(filled(tmp_path, "a.md"))
    change(tmp_path / "a.md")

    with pytest.raises(UnreadableDocument, match=reason):
        document.load()


def test_unreadable_files_are_listed_with_reasons(tmp_path):
    filled(tmp_path, "a.png", "b.md", "c.bin")
    (tmp_path / "d.md").symlink_to(tmp_path / "nowhere.md")
    os.mkfifo(tmp_path / "e.md")
    (tmp_path / "f.md").write_bytes(bytes(2 * 2**20))

    documents = list(FolderSource(tmp_path, largest=2**20).documents())

    assert {document.key: document.reason for document in documents if isinstance(document, Unreadable)} == {
        "a.png": "pictures are not read",
        "c.bin": "programs are not read",
        "d.md": "is a broken link, or was deleted meanwhile",
        "e.md": "is not a regular file",
        "f.md": "is larger than 1 MB",
    }
    assert len(documents) == 6


@ROOT_READS_ALL
def test_files_and_folders_without_read_permission_are_reported(tmp_path):
    filled(tmp_path, "a.md", "x/b.md")
    (tmp_path / "a.md").chmod(0)
    (tmp_path / "x").chmod(0)

    documents = list(FolderSource(tmp_path).documents())
    (tmp_path / "x").chmod(0o700)

    assert documents == [
        Unreadable("a.md", "cannot be read: permission denied"),
        Unreadable("x/", "the folder cannot be listed: permission denied"),
    ]


def test_links_are_followed_without_circles(tmp_path):
    filled(tmp_path / "handbook", "a.md", "x/b.md")
    (tmp_path / "handbook/again").symlink_to(tmp_path / "handbook")
    (tmp_path / "handbook/linked").symlink_to(tmp_path / "handbook/x")
    (tmp_path / "handbook/x/back").symlink_to(tmp_path / "handbook")
    (tmp_path / "handbook/c.md").symlink_to("x/b.md")
    (tmp_path / "handbook/self.md").symlink_to(tmp_path / "handbook/self.md")
    (tmp_path / "given").symlink_to(tmp_path / "handbook")

    assert keys(tmp_path / "handbook") == ["a.md", "c.md", "linked/b.md", "self.md", "x/b.md"]
    assert keys(tmp_path / "given") == keys(tmp_path / "handbook")


def test_links_out_of_the_folder_are_not_followed(tmp_path):
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

    documents = list(FolderSource(tmp_path / "handbook", include=["*.md"]).documents())

    reason = "is a link that leads out of the folder: put the file itself there"
    assert [document.key for document in documents if isinstance(document, ChangedDocument)] == [
        "a.md",
        "x/b.md",
        "y/b.md",
    ]
    assert [document for document in documents if isinstance(document, Unreadable)] == [
        Unreadable(key, reason) for key in ("file.md", "folder", "near", "twice.md", "x/up.md", "y/up.md")
    ]


@pytest.mark.parametrize("when", ["listed", "loaded"])
@pytest.mark.parametrize("swapped", ["x", "x/b.md"])
def test_files_replaced_by_links_or_pipes_during_a_listing_are_not_read(tmp_path, swapped, when):
    filled(tmp_path / "elsewhere", "b.md")
    filled(tmp_path / "handbook", "a.md", "x/b.md")
    documents = FolderSource(tmp_path / "handbook").documents()
    first = next(iter(documents))
    late = next(iter(documents)) if when == "loaded" else None
    (tmp_path / "handbook" / swapped).rename(tmp_path / "before")
    (tmp_path / "handbook" / swapped).symlink_to(tmp_path / "elsewhere" / swapped.removeprefix("x").strip("/"))

    assert first.key == "a.md"
    if late:
        with pytest.raises(UnreadableDocument, match="changed while it was read"):
            late.load()
    else:
        assert [type(document) for document in documents] == [Unreadable]
    (tmp_path / "handbook" / swapped).unlink()
    if late and swapped == "x/b.md":
        os.mkfifo(tmp_path / "handbook" / swapped)
        signal.signal(signal.SIGALRM, interrupt)
        signal.alarm(5)  # opening a pipe without a writer blocks
        with pytest.raises(UnreadableDocument, match="not a regular file"):
            late.load()
        signal.alarm(0)


def test_composed_and_decomposed_names_share_a_key(tmp_path):
    composed, parted = unicodedata.normalize("NFC", "Büro.md"), unicodedata.normalize("NFD", "Büro.md")
    filled(tmp_path, composed, parted)

    first, second = FolderSource(tmp_path).documents()

    assert (first.key, second.key) == (composed, composed)
    assert isinstance(first, ChangedDocument)
    assert isinstance(second, Unreadable)


def test_undecodable_name_gets_a_storable_key(tmp_path):
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.md")).write_text("Text.")

    document = only(tmp_path, url_base="https://x.org")

    assert document.load().url.isascii()
    assert document.key.encode()


@pytest.mark.parametrize(("name", "message"), [("nowhere", "There is no folder"), ("a.md", "is a file, not a folder")])
def test_missing_folder_is_reported_immediately(tmp_path, name, message):
    folder = FolderSource(filled(tmp_path, "a.md") / name)

    with pytest.raises(FolderError, match=message) as error:
        folder.documents()
    assert error.value.hint


def test_empty_folder_has_no_documents(tmp_path):
    assert keys(tmp_path) == []
