"""One document by what a person calls it: forgotten, or read in anew, within seconds and whatever else is under way."""

import asyncio
import shlex
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches

from bot.app import App
from bot.console import Mendable
from bot.refreshing.forgotten import Forgotten
from bot.refreshing.sources import Surroundings, opened
from bot.settings_of.sources import SourceSettings
from ingest.reports import RefreshReport
from ingest.single import forget, refresh_one
from ingest.types import ReadAsWhole
from storage.errors import StorageError
from storage.refresh_types import Listed

NEAREST = 3
_LONGEST = 200
_ALIKE = 0.8
"""How much of two names must be the same, 0 to 1."""


class NoSuchDocument(Exception):
    """No document is called so. `str()` is one plain line; `hint` names what comes near it."""

    kind = "unknown_document"

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


class SeveralDocuments(Exception):
    """Several are called so; `hint` lists them."""

    kind = "ambiguous_document"

    def __init__(self, address: str, found: Sequence[Listed]) -> None:
        super().__init__(f"“{address}” names {len(found)} documents.")
        some = "; ".join(_named(one) for one in found[: 2 * NEAREST])
        more = f", and {len(found) - 2 * NEAREST} more" if len(found) > 2 * NEAREST else ""
        self.hint = f"Say which, by its key or address, or with --corpus: {some}{more}."


async def forget_one(app: App, address: str, corpus: str = "") -> Forgotten:
    """Forget the document that an address, a key or a title names: it is found and cited no more, and stays away.

    Raises:
        NoSuchDocument: Nothing is called so in the corpus, or in any where none is named.
        SeveralDocuments: More than one is.
        StorageError: It could not be removed.
    """
    found = chosen(await app.manifest.find(address), address, corpus)
    if not found:
        raise await _unknown(app, address, corpus)
    if len(found) > 1:
        raise SeveralDocuments(address, found)
    report = await forget(app.passages, found[0].corpus, [found[0].key])
    return Forgotten(found[0], report.passages_removed)


async def read_one(
    app: App, address: str, sources: Mapping[str, SourceSettings], around: Surroundings
) -> tuple[RefreshReport, ...]:
    """Read in the document that an address names, also one that was forgotten; return a report for each corpus of it.

    Of a document that is known, or was forgotten, only its own sources are asked, of another one all.

    Args:
        app: The home.
        address: Its address, key or title.
        sources: Where it may come from, by the corpus that reads it in.
        around: What they are opened with.

    Raises:
        NoSuchDocument: No source has it.
        SeveralDocuments: A title names several of one corpus.
        Exception: Why the only source that may have it cannot be asked.
    """
    named = (*await app.manifest.find_forgotten(address), *await app.manifest.find(address))
    called = {(one.corpus, one.key): one for one in named}
    known = [one for one in chosen(tuple(called.values()), address) if one.corpus in sources]
    if len(known) > len({one.corpus for one in known}):
        raise SeveralDocuments(address, known)
    names = {one.corpus: one.key for one in known} or dict.fromkeys(sources, address)
    reports, failures = list[RefreshReport](), list[Exception]()
    for corpus, name in names.items():
        try:
            there = await asyncio.to_thread(opened, sources[corpus], around)
            if report := await refresh_one(there, corpus, app.passages, name):
                reports.append(report)
        except Exception as error:
            if not isinstance(error, Mendable):
                raise
            failures.append(error)
    # What is read as a whole says so of any address: that tells something only of a document that is its own.
    unheard = [one for one in failures if known or not isinstance(one, ReadAsWhole)]
    if not reports and (unheard or len(failures) == len(names)):
        raise (*unheard, *failures)[0]
    if not reports:
        raise await _unknown(app, address, "", sources)
    return tuple(reports)


def chosen(found: Sequence[Listed], address: str, corpus: str = "") -> tuple[Listed, ...]:
    """Return the documents that are meant: those of the corpus; of these, those whose key it is. Pure."""
    there = tuple(one for one in found if not corpus or one.corpus == corpus)
    return tuple(one for one in there if one.key == address.strip()) or there


async def _unknown(
    app: App, address: str, corpus: str, sources: Mapping[str, SourceSettings] | None = None
) -> NoSuchDocument:
    """Return what is said of an address that names nothing: what was looked through, and what comes near."""
    names = [info.name for info in await app.manifest.catalogue() if corpus in {"", info.name}]
    if sources is None and chosen(await app.manifest.find_forgotten(address), address, corpus):
        again = f"`footnote ingest --only {shlex.quote(address.strip())}` brings it back."
        return NoSuchDocument(f"“{address}” was forgotten already.", hint=again)
    where = f"No source of {_listed(sources)} has" if sources is not None else f"No document of {_listed(names)} is"
    away = [f"{_named(one)}, which was forgotten" for one in alike(address, await app.manifest.all_forgotten(), names)]
    near = [*away, *map(_named, await _nearest(app, address, names))][:NEAREST]
    told = f"Near it: {'; '.join(near)}." if near else "Give its address, its key, or its exact title."
    return NoSuchDocument(f"{where} “{address}”.", hint=told)


def alike(address: str, forgotten: Sequence[Listed], corpora: Collection[str]) -> list[Listed]:
    """Return what was forgotten of these corpora and is called nearly so: no search finds it. Pure."""
    names: dict[str, Listed] = {}
    for one in forgotten:
        if one.corpus in corpora:
            names |= {name.casefold(): one for name in (one.url, one.key, one.title) if name}
    close = (names[name] for name in get_close_matches(address.strip().casefold(), names, NEAREST, _ALIKE))
    return list(dict.fromkeys(close))


async def _nearest(app: App, address: str, corpora: Sequence[str]) -> tuple[Listed, ...]:
    """Return the documents that a search for an address or a title comes upon, best first."""
    words = "".join(char if char.isalnum() else " " for char in address.rpartition("://")[2])[:_LONGEST]
    with suppress(StorageError):
        if words.strip():
            hits = await app.passages.search(words, corpora, 4 * NEAREST)
            rows = (hit.document for hit in hits)
            near = {(row.corpus, row.key): Listed(row.corpus, row.key, row.title, row.url) for row in rows}
            return tuple(near.values())[:NEAREST]
    return ()


def _listed(names: Sequence[str] | Mapping[str, SourceSettings] | None) -> str:
    return ", ".join(names or ()) or "any corpus"


def _named(one: Listed) -> str:
    where = one.url or one.key
    return f"{one.corpus}: {one.title} ({where})" if one.title != where else f"{one.corpus}: {where}"
