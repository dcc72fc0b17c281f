"""Find one document by an address, key or title, and forget it or ingest it again."""

import asyncio
import shlex
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches

from bot.app import App
from bot.server.refresh.source_factory import open_source
from bot.settings.tables.source_settings import SourceContext, SourceSettings
from bot.views.error_messages import ReportableError
from ingest.refresh.document_refresh import forget_documents, refresh_document
from ingest.types import RefreshReport, SingleReadUnsupported
from ingest.web.search_engines.engine import normalize_address
from storage.errors import StorageError
from storage.types import DocumentRef, is_web_corpus


@dataclass(frozen=True, slots=True)
class ForgottenDocument:
    document: DocumentRef
    passages: int  # how many of its passages are no longer found


MAX_SIMILAR = 3
_MAX_QUERY = 200
_MIN_SIMILARITY = 0.8  # how similar two names must be, 0 to 1


class NoSuchDocument(Exception):
    """No document has that name. `str()` is one plain line; `hint` lists similar names."""

    kind = "unknown_document"

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


class SeveralDocuments(Exception):
    """Several documents have that name; `hint` lists them."""

    kind = "ambiguous_document"

    def __init__(self, address: str, found: Sequence[DocumentRef]) -> None:
        super().__init__(f"“{address}” names {len(found)} documents.")
        some = "; ".join(_name_document(document) for document in found[: 2 * MAX_SIMILAR])
        more = f", and {len(found) - 2 * MAX_SIMILAR} more" if len(found) > 2 * MAX_SIMILAR else ""
        self.hint = f"Name one by its key or address, or choose with --corpus: {some}{more}."


async def forget_document(app: App, address: str, corpus: str = "") -> ForgottenDocument:
    """Forget the document with this address, key or title, so that it is no longer found, cited or ingested.

    Raises `NoSuchDocument` or `SeveralDocuments` if not exactly one document has it, and `StorageError` if the document
    cannot be removed.
    """
    documents = select_documents(await app.manifest.find(address), address, corpus)
    if not documents and (page := _name_web_page(address, corpus)):
        documents = (page,)
    if not documents:
        raise await _build_unknown_error(app, address, corpus)
    if len(documents) > 1:
        raise SeveralDocuments(address, documents)
    report = await forget_documents(app.passages, documents[0].corpus, [documents[0].key])
    return ForgottenDocument(documents[0], report.passages_removed)


def _name_web_page(address: str, corpus: str) -> DocumentRef | None:
    """Return the page with this address in a search engine's corpus; None for other corpora."""
    key = normalize_address(address) if is_web_corpus(corpus) else ""
    return DocumentRef(corpus, key, key, key) if key else None


async def reread_document(
    app: App, address: str, sources: Mapping[str, SourceSettings], context: SourceContext
) -> tuple[RefreshReport, ...]:
    """Ingest the document with this address, key or title again; return a report for each corpus that has it.

    For a known or forgotten document, only the sources of its corpora are read; for an unknown one, all `sources` (by
    corpus). Raises `NoSuchDocument` if no source has it, and `SeveralDocuments` if several documents of one corpus have
    this title. If only one source may have it and fails, its error is raised. A forgotten web page is only remembered
    again, and read when a search engine names it.
    """
    forgotten = await app.manifest.find_forgotten(address)
    if pages := [document for document in forgotten if is_web_corpus(document.corpus)]:
        for page in pages:
            await app.manifest.remember(page.corpus, [page.key])
        return tuple(RefreshReport(page.corpus, added=1) for page in pages)  # it is read when an engine names it
    named = (*forgotten, *await app.manifest.find(address))
    called = {(document.corpus, document.key): document for document in named}
    known = [document for document in select_documents(tuple(called.values()), address) if document.corpus in sources]
    if len(known) > len({document.corpus for document in known}):
        raise SeveralDocuments(address, known)
    names = {document.corpus: document.key for document in known} or dict.fromkeys(sources, address)
    reports, failures = list[RefreshReport](), list[Exception]()
    for corpus, name in names.items():
        try:
            source = await asyncio.to_thread(open_source, sources[corpus], context)
            if report := await refresh_document(source, corpus, app.passages, name):
                reports.append(report)
        except Exception as error:
            if not isinstance(error, ReportableError):
                raise
            failures.append(error)
    # A dump reports this for any address, so it is evidence only for the dump's own documents.
    unheard = [failure for failure in failures if known or not isinstance(failure, SingleReadUnsupported)]
    if not reports and (unheard or (failures and len(failures) == len(names))):
        raise (*unheard, *failures)[0]
    if not reports:
        raise await _build_unknown_error(app, address, "", sources)
    return tuple(reports)


def select_documents(documents: Sequence[DocumentRef], address: str, corpus: str = "") -> tuple[DocumentRef, ...]:
    """Return the documents that are in `corpus`, or all if it is empty.

    If `address` is the key of some, return only those.
    """
    matching = tuple(document for document in documents if not corpus or document.corpus == corpus)
    return tuple(document for document in matching if document.key == address.strip()) or matching


async def _build_unknown_error(
    app: App, address: str, corpus: str, sources: Mapping[str, SourceSettings] | None = None
) -> NoSuchDocument:
    """Return the error for an unknown or forgotten name, with the corpora searched and similar names."""
    names = [info.name for info in await app.manifest.catalogue() if corpus in {"", info.name}]
    if sources is None and select_documents(await app.manifest.find_forgotten(address), address, corpus):
        (one, *_) = select_documents(await app.manifest.find_forgotten(address), address, corpus)
        again = f"`{name_restoring_command(one, app.settings.sources)}` brings it back."
        return NoSuchDocument(f"“{address}” was forgotten already.", hint=again)
    looked = ", ".join(names if sources is None else sources) or "any corpus"
    where = f"No document of {looked} is" if sources is None else f"No source of {looked} has"
    away = find_similar(address, await app.manifest.all_forgotten(), names)
    similar = await _search_similar(app, address, names)
    near = [*(f"{_name_document(document)}, which was forgotten" for document in away), *map(_name_document, similar)]
    near = near[:MAX_SIMILAR]
    hint = f"Similar: {'; '.join(near)}." if near else "Give its address, its key, or its exact title."
    return NoSuchDocument(f"{where} “{address}”.", hint=hint)


def name_restoring_command(one: DocumentRef, sources: Collection[str]) -> str:
    """Return the command that restores a forgotten document; `sources` are the corpora with a known source."""
    if one.corpus in sources or is_web_corpus(one.corpus):
        return f"footnote ingest --only {shlex.quote(one.url or one.key)}"
    return f"footnote ingest folder PATH --corpus {one.corpus} --restore"


def find_similar(address: str, forgotten: Sequence[DocumentRef], corpora: Collection[str]) -> list[DocumentRef]:
    """Return the forgotten documents of `corpora` with a similar name, because the search does not find them."""
    names: dict[str, DocumentRef] = {}
    for document in forgotten:
        if document.corpus in corpora:
            names |= {name.casefold(): document for name in (document.url, document.key, document.title) if name}
    close = (names[name] for name in get_close_matches(address.strip().casefold(), names, MAX_SIMILAR, _MIN_SIMILARITY))
    return list(dict.fromkeys(close))


async def _search_similar(app: App, address: str, corpora: Sequence[str]) -> tuple[DocumentRef, ...]:
    """Search for an address or a title, and return the documents that are found, best first."""
    words = "".join(char if char.isalnum() else " " for char in address.rpartition("://")[2])[:_MAX_QUERY]
    with suppress(StorageError):
        if words.strip():
            hits = await app.passages.search(words, corpora, 4 * MAX_SIMILAR)
            rows = (hit.document for hit in hits)
            near = {(row.corpus, row.key): DocumentRef(row.corpus, row.key, row.title, row.url) for row in rows}
            return tuple(near.values())[:MAX_SIMILAR]
    return ()


def _name_document(one: DocumentRef) -> str:
    where = one.url or one.key
    return f"{one.corpus}: {one.title} ({where})" if one.title != where else f"{one.corpus}: {where}"
