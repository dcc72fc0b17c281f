"""Show the sources of answers: corpora, nightly refreshes, documents and their citations; forget a document."""

from dataclasses import dataclass
from datetime import UTC, datetime

from starlette.responses import RedirectResponse, Response

from bot.app import Records
from bot.pages.ask_page import OpenService
from bot.pages.page_rendering import make_query
from bot.pages.page_router import NotFound, Visit
from bot.server.refresh.run_history import RefreshHistory, measure_seconds
from storage.types import RECORD, EntryKind, LogEntry

RUNS = 30
CITING = 50
CITED = 200


@dataclass(frozen=True)
class CorpusPages:
    records: Records
    history: RefreshHistory
    open_service: OpenService

    async def list_corpora(self, visit: Visit) -> Response:
        settings, now = visit.settings, datetime.now(UTC)
        summary = await self.history.summarize(settings, now, count=RUNS)
        corpora = await self.records.manifest.corpora()
        named = {corpus.name for corpus in corpora}
        missing = [name for name in settings.sources if name not in named]
        unread = {info.name: await self.records.manifest.failures(info.name) for info in corpora if info.failures}
        runs = [(run, measure_seconds(run, now)) for run in (*summary.running, *summary.ended)]
        readers = settings.visible_to
        return visit.page(
            "corpora.html", corpora=corpora, readers=readers, missing=missing, summary=summary, runs=runs, unread=unread
        )

    async def list_documents(self, visit: Visit) -> Response:
        """List the documents that answers cite, and find others by their names."""
        corpus, named = visit.asked("corpus"), visit.asked("named")
        cited = await self.records.search.cited_documents(corpus, limit=CITED)
        known = await self.records.manifest.find(named) if named else ()
        corpora = [entry.name for entry in await self.records.manifest.catalogue()]
        await self._record(visit, {"what": "documents", "corpus": corpus, "named": named})
        return visit.page("documents.html", cited=cited, known=known, corpora=corpora, corpus=corpus, named=named)

    async def show_document(self, visit: Visit) -> Response:
        """Show a document's state, its stored passages, and the answers that cite it. Raises `NotFound`."""
        corpus, key = visit.asked("corpus"), visit.asked("document")
        citing = await self.records.search.citing(corpus, key, limit=CITING)
        stored = (await self.records.manifest.stored(corpus, [key])).get(key)
        gone = next(
            (each for each in await self.records.manifest.all_forgotten() if (each.corpus, each.key) == (corpus, key)),
            None,
        )
        if not (citing or stored or gone):
            raise NotFound("There is no document of this name, and no answer cites one.")
        await self._record(visit, {"what": "document", "corpus": corpus, "document": key})
        return visit.page(
            "document.html",
            corpus=corpus,
            key=key,
            citing=citing,
            document=stored.document if stored else None,
            passages=stored.passages if stored else (),
            gone=gone,
            done=visit.asked("done"),
        )

    async def forget(self, visit: Visit) -> Response:
        """Forget a document permanently: it is no longer found or cited. Who did it is recorded first."""
        corpus, key = visit.form.get("corpus", ""), visit.form.get("document", "")
        if visit.form.get("sure") != "yes":
            raise NotFound("Nothing was forgotten, because you did not confirm it.")
        await self._record(visit, {"key": "forgotten", "now": f"{corpus}: {key}"}, EntryKind.SETTING)
        async with self.open_service() as service:
            await service.forget(key, corpus)
        query = make_query({"corpus": corpus, "document": key, "done": "forgotten"})
        return RedirectResponse(f"/documents/show?{query}", 303)

    async def _record(self, visit: Visit, facts: dict[str, str], kind: EntryKind = EntryKind.READ) -> None:
        stated = {name: value for name, value in facts.items() if value}
        await self.records.audit.append(LogEntry(RECORD, kind, {"by": visit.visitor.asker.user_id, **stated}))
