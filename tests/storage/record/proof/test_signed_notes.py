"""Tests of signed notes and keys, against published vectors and with every byte changed."""

from collections.abc import Callable

import pytest

from storage.record.proof.signed_notes import (
    NoteInvalid,
    make_signing_key,
    open_note,
    read_public_key,
    read_signing_key,
    sign_note,
)

# The example of Go's golang.org/x/mod/sumdb/note.
PUBLIC = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
SECRET = "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz"
TEXT = "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n"
NOTE = (
    f"{TEXT}\n— PeterNeumann "
    "x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n"
)
STRANGER = make_signing_key("stranger")


def test_published_note_is_signed_and_opened() -> None:
    key = read_signing_key(SECRET)

    assert (str(key.public), key.reveal()) == (PUBLIC, SECRET)
    assert sign_note(TEXT, key) == NOTE
    assert open_note(NOTE, [STRANGER.public, read_public_key(PUBLIC)]) == (TEXT, key.public)


def test_signature_by_an_unknown_key_is_ignored() -> None:
    other = sign_note(TEXT, STRANGER).rpartition("\n\n")[2]

    assert open_note(NOTE + other, [read_public_key(PUBLIC)])[0] == TEXT
    with pytest.raises(NoteInvalid, match="no known key"):
        open_note(sign_note(TEXT, STRANGER), [read_public_key(PUBLIC)])


def open_again(text: str) -> object:
    return open_note(text, [read_public_key(PUBLIC)])


@pytest.mark.parametrize(
    ("text", "read"),
    [(NOTE, open_again), (PUBLIC, read_public_key), (SECRET, read_signing_key)],
    ids=["note", "public", "secret"],
)
def test_changed_character_of_a_note_or_key_is_refused(text: str, read: Callable[[str], object]) -> None:
    for place, character in enumerate(text):
        changed = text[:place] + chr(ord(character) ^ 1) + text[place + 1 :]
        with pytest.raises(NoteInvalid):
            read(changed)


WRONG = ["", "\n\n", "text\n", f"\n{NOTE}"[:5], NOTE[:-1], NOTE.replace("—", "-"), f"a\0{NOTE}"]


@pytest.mark.parametrize("note", WRONG)
def test_text_that_is_not_a_note_is_refused(note: str) -> None:
    with pytest.raises(NoteInvalid):
        open_again(note)


def test_no_secret_is_shown() -> None:
    assert repr(STRANGER.seed) not in repr(STRANGER)
