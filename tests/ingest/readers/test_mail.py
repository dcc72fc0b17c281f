"""E-mail becomes head and text."""

from datetime import UTC, datetime

from ingest.readers import mail
from ingest.readers.parsed_document import Heading
from ingest.types import Block

MESSAGE = (
    b"From: Ann <ann@x.org>\r\nTo: Bob <bob@x.org>\r\nSubject: =?utf-8?q?Caf=C3=A9_closed?=\r\n"
    b"Date: Mon, 06 May 2024 09:08:09 +0200\r\nMIME-Version: 1.0\r\n"
    b'Content-Type: multipart/mixed; boundary="b"\r\n\r\n'
    b"--b\r\nContent-Type: multipart/alternative; boundary=a\r\n\r\n"
    b"--a\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nIt opens again\r\nin June.\r\n\r\n> Is it open?\r\n"
    b"--a\r\nContent-Type: text/html\r\n\r\n<p>Other</p>\r\n--a--\r\n"
    b"--b\r\nContent-Type: application/pdf\r\nContent-Disposition: attachment; filename=menu.pdf\r\n\r\nx\r\n--b--\r\n"
)


def test_message_has_head_text_and_attachments():
    reading = mail.read_eml(MESSAGE)

    assert reading.title == "Café closed"
    assert reading.date == datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)
    assert [item.text for item in reading.items] == [
        "From: Ann <ann@x.org>\nTo: Bob <bob@x.org>\nDate: 2024-05-06 09:08",
        "It opens again in June.",
        "Is it open?",
        "Attached: menu.pdf",
    ]


def test_html_message_is_read():
    message = b"Subject: x\nContent-Type: text/html; charset=latin-1\n\n<p>Caf\xe9 &amp; <b>bar</b></p>"

    assert mail.read_eml(message).items == (Block("Café & bar"),)


def test_undeclared_encoding_is_guessed():
    text = "Das Büro schließt über die Feiertage für zwei Wochen, die Küche auch.".encode("cp1252")

    assert "Büro schließt" in mail.read_eml(b"Subject: x\nContent-Type: text/plain\n\n" + text).items[0].text


def test_each_message_of_a_mailbox_becomes_a_section():
    box = b"From ann Mon May  6\nSubject: One\n\nFirst.\n\nFrom bob Tue May  7\nSubject: Two\n\nSecond.\n"

    assert mail.read_mbox(box).items == (Heading(2, "One"), Block("First."), Heading(2, "Two"), Block("Second."))
