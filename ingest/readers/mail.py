"""Read e-mail (.eml, .mbox, .msg): subject (as title), sender, date, text and names of attachments."""

import email.policy
import io
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage, MIMEPart
from typing import Any

import olefile  # type: ignore[import-untyped]  # it ships no types

from ingest.readers import html_tree, plain_text, value_parsers
from ingest.readers.parsed_document import ContentItem, Heading, ParsedDocument
from ingest.types import Block
from storage.language.lazy_pattern import lazy_compile

_MESSAGE_LEVEL = 2
_SEPARATOR = lazy_compile(rb"(?:\A|(?<=\n))From [^\n]*\n")
_QUOTED = lazy_compile(r"^(?:>[ \t]?)+", re.MULTILINE)

# MAPI numbers of the properties of Outlook messages.
_SUBJECT, _SENDER, _SENDER_ADDRESS, _TO, _BODY, _MARKUP = "0037", "0C1A", "0C1F", "0E04", "1000", "1013"
_SENT, _RECEIVED = 0x00390040, 0x0E060040
_FILE_NAME, _LONG_FILE_NAME = "3704", "3707"
_EPOCH = datetime(1601, 1, 1, tzinfo=UTC)


def read_eml(content: bytes) -> ParsedDocument:
    message = _parse_message(content)
    return ParsedDocument(items=tuple(_read_message(message)), title=_header(message, "Subject"), date=_date(message))


def read_mbox(content: bytes) -> ParsedDocument:
    """Read a mailbox: each message becomes a section under its subject; the date is that of the newest message."""
    messages = [_parse_message(part) for part in _SEPARATOR.split(content.replace(b"\r\n", b"\n")) if part.strip()]
    items: list[ContentItem] = []
    for message in messages:
        items += [Heading(_MESSAGE_LEVEL, _header(message, "Subject") or "No subject"), *_read_message(message)]
    return ParsedDocument(items=tuple(items), date=max(filter(None, map(_date, messages)), default=None))


def read_msg(content: bytes) -> ParsedDocument:
    with olefile.OleFileIO(io.BytesIO(content)) as file:
        address = _property(file, _SENDER_ADDRESS)
        sender = " ".join(filter(None, (_property(file, _SENDER), f"<{address}>" if "@" in address else "")))
        sent = _read_outlook_date(file)
        head = _head(sender, _property(file, _TO), sent)
        body = _property(file, _BODY)
        markup = "" if body else _stored_markup(file)
        folders = {path[0] for path in file.listdir() if path[0].startswith("__attach")}
        names = [_property(file, _LONG_FILE_NAME, f) or _property(file, _FILE_NAME, f) for f in sorted(folders)]
        items = [*head, *(html_tree.read_html(markup) if markup else _prose(body)), *_list_attached(names)]
        return ParsedDocument(items=tuple(items), title=_property(file, _SUBJECT), date=sent)


def _parse_message(content: bytes) -> EmailMessage:
    # This policy makes the parser return the newer class, which its types do not show.
    return email.message_from_bytes(content, policy=email.policy.default)


def _read_message(message: EmailMessage) -> Iterator[ContentItem]:
    yield from _head(_header(message, "From"), _header(message, "To"), _date(message))
    body = message.get_body(("plain", "html"))
    if body is not None:
        text = _text(body)
        yield from html_tree.read_html(text) if body.get_content_subtype() == "html" and text.strip() else _prose(text)
    yield from _list_attached([part.get_filename() or "" for part in message.iter_attachments()])


def _text(part: MIMEPart) -> str:
    """Decode a part of a message with its declared encoding, or if that fails, with a guessed one."""
    content = part.get_payload(decode=True)
    if not isinstance(content, bytes):
        return ""
    try:
        return plain_text.strip_control_characters(content.decode(part.get_content_charset() or "utf-8"))
    except (LookupError, UnicodeDecodeError):
        return plain_text.decode_text(content)


def _prose(text: str) -> list[ContentItem]:
    return plain_text.split_paragraphs(_QUOTED.sub("", text))


def _head(sender: str, to: str, sent: datetime | None) -> list[ContentItem]:
    lines = [
        f"From: {sender}" if sender else "",
        f"To: {to}" if to else "",
        f"Date: {sent:%Y-%m-%d %H:%M}" if sent else "",
    ]
    return [Block("\n".join(filter(None, lines)))] if any(lines) else []


def _list_attached(names: list[str]) -> list[ContentItem]:
    named = [name for name in names if name]
    return [Block(f"Attached: {', '.join(named)}")] if named else []


def _header(message: EmailMessage, name: str) -> str:
    return " ".join(plain_text.strip_control_characters(str(message.get(name) or "")).split())


def _date(message: EmailMessage) -> datetime | None:
    return value_parsers.parse_date(str(message.get("Date") or ""))


def _property(file: Any, number: str, folder: str = "") -> str:
    """Read a text property of an Outlook message; empty if missing. It is in UTF-16 or in an unstated encoding."""
    for kind in ("001F", "001E"):
        path = [*filter(None, [folder]), f"__substg1.0_{number}{kind}"]
        if file.exists(path):
            content = file.openstream(path).read()
            text = content.decode("utf-16-le", "replace") if kind == "001F" else plain_text.decode_text(content or b" ")
            return plain_text.strip_control_characters(text).strip()
    return ""


def _stored_markup(file: Any) -> str:
    path = f"__substg1.0_{_MARKUP}0102"
    return plain_text.decode_text(file.openstream(path).read()) if file.exists(path) else _property(file, _MARKUP)


def _read_outlook_date(file: Any) -> datetime | None:
    """Return when an Outlook message was sent, or else received.

    The properties, of 16 bytes each, follow a header of 32 bytes.
    """
    if not file.exists("__properties_version1.0"):
        return None
    content = file.openstream("__properties_version1.0").read()
    properties = {
        int.from_bytes(content[at : at + 4], "little"): int.from_bytes(content[at + 8 : at + 16], "little")
        for at in range(32, len(content) - 15, 16)
    }
    ticks = properties.get(_SENT) or properties.get(_RECEIVED)
    return _EPOCH + timedelta(microseconds=ticks // 10) if ticks else None
