"""Encode messages for the control socket: one value per line, as JSON that names its type. Pure.

Pydantic validates messages, so anything malformed is refused. A digest of all their schemas detects two versions of the
code that would misunderstand each other.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from bot.server.refresh.document_lookup import ForgottenDocument
from bot.settings.live.live_settings import ReloadReport
from bot.settings.tables.settings_tables import DenseChoice
from bot.settings.tables.source_registry import AnySource
from bot.types import Failure, TurnRequest, TurnResult
from ingest.types import EngineName, RefreshProgress, RefreshReport
from pipeline.types import (
    ClaimChecked,
    ClaimExplained,
    DraftStarted,
    PageQuoted,
    PassagesFound,
    SearchStarted,
    SentencePassed,
)
from storage.types import CorpusInfo, Hit


class MalformedMessage(Exception):
    """A line that is not a message of this protocol."""


@dataclass(frozen=True, slots=True)
class ServerHello:
    """The server's process, the version of its code, and the digest of its protocol."""

    pid: int
    version: str
    digest: str


@dataclass(frozen=True, slots=True)
class SearchRequest:
    query: str
    corpora: tuple[str, ...]
    count: int


@dataclass(frozen=True, slots=True)
class RefreshRequest:
    corpus: str
    source: AnySource
    confirm_removal: bool = False
    engine: EngineName | None = None
    restore: bool = False
    dense: DenseChoice | None = None


@dataclass(frozen=True, slots=True)
class ReadOneRequest:
    address: str
    sources: dict[str, AnySource]


@dataclass(frozen=True, slots=True)
class ForgetRequest:
    address: str
    corpus: str


@dataclass(frozen=True, slots=True)
class RemoveRequest:
    corpus: str


@dataclass(frozen=True, slots=True)
class ReportList:
    reports: tuple[RefreshReport, ...]


@dataclass(frozen=True, slots=True)
class HitList:
    hits: tuple[Hit, ...]


@dataclass(frozen=True, slots=True)
class CorpusList:
    corpora: tuple[CorpusInfo, ...]


REQUESTS = (TurnRequest, SearchRequest, RefreshRequest, ReadOneRequest, ForgetRequest, RemoveRequest)
EVENTS = (SearchStarted, PassagesFound, PageQuoted, ClaimChecked, ClaimExplained, DraftStarted, SentencePassed)
RESULTS = (
    *(TurnResult, HitList, CorpusList, RefreshReport, ReportList, ForgottenDocument),
    *(ReloadReport, Failure, ServerHello),
)
TYPES = MappingProxyType({kind.__name__: kind for kind in (*REQUESTS, *EVENTS, RefreshProgress, *RESULTS)})
"""All messages, by the name they are sent under."""


class NotText(Exception):
    """A message contains text that is not Unicode, such as a file's name in another encoding."""

    kind = "not_text"
    hint = "Rename it, or stop the server and run the command again."

    def __init__(self) -> None:
        super().__init__("A name in this request is not UTF-8 and cannot be sent to the running server.")


def encode_message(value: object) -> bytes:
    """Encode a value as a line. Raises `NotText` if it contains text that is not Unicode."""
    name = type(value).__name__
    try:
        body = _adapters()[name].dump_json(value)
    except PydanticSerializationError as error:
        raise NotText from error
    return b'{"type":"%b","value":%b}\n' % (name.encode(), body)


def decode_message(line: bytes | str) -> Any:
    """Decode the value of a line. Raises `MalformedMessage`."""
    try:
        payload = json.loads(line)
        return _adapters()[payload["type"]].validate_python(payload["value"], strict=False)
    except (ValueError, LookupError, TypeError) as error:
        reason = "wrong fields" if isinstance(error, ValidationError) else type(error).__name__
        raise MalformedMessage(f"not a message of this protocol: {reason}") from error


@cache
def hash_protocol() -> str:
    """Hash the schemas of all messages."""
    schemas = {name: adapter.json_schema() for name, adapter in _adapters().items()}
    return hashlib.sha256(json.dumps(schemas, sort_keys=True).encode()).hexdigest()[:16]


@cache
def _adapters() -> Mapping[str, TypeAdapter[Any]]:
    return {name: TypeAdapter(kind) for name, kind in TYPES.items()}
