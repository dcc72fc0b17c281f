"""An app with real documents, embedder, indexes, local check and record; only the model is scripted."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bot.access import Asker
from bot.answering.question_answering import answer
from bot.app import App
from bot.settings.tables.settings_tables import Settings
from bot.types import TurnRequest, TurnResult
from ingest.refresh.corpus_refresh import refresh_corpus
from ingest.types import DocumentSource
from pipeline.support.support_check import SupportChecker
from pipeline.types import ClaimChecked, Event, Status, Turn
from storage.indexes.embedding import LazyFunction, load_cross_encoder, load_token_states, open_embedder
from storage.record.proof.verification import verify_turn
from storage.types import CheckedClaim, EntryKind, LogEntry, Verdict
from tests.pipeline.scripted import Following, Script, ScriptedLLM
from tests.storage.stores import kept, opened


@dataclass(frozen=True)
class AnsweredTurn:
    """A turn with its result, the calls of its model, and its log entries."""

    done: TurnResult
    llm: ScriptedLLM
    entries: tuple[LogEntry, ...]

    @property
    def pages(self) -> list[list[str]]:
        titles = {citation.number: citation.title for citation in self.done.answer.citations}
        return [[titles[number] for number in sentence.citations] for sentence in self.done.answer.sentences]

    @property
    def said(self) -> list[str]:
        assert self.done.answer.status is Status.ANSWERED
        return [sentence.text for sentence in self.done.answer.sentences]

    @property
    def cited(self) -> list[tuple[str, str]]:
        return [(citation.title, citation.quote) for citation in self.done.answer.citations]

    @property
    def claims(self) -> dict[str, Verdict]:
        return {claim.claim.text: claim.verdict for claim in self.done.answer.claims if claim.claim.origin == "model"}

    def steps(self, stage: str) -> list[Mapping[str, Any]]:
        bodies = [entry.body for entry in self.entries if entry.kind is EntryKind.STEP]
        return [body for body in bodies if body["stage"] == stage]

    @property
    def closed(self) -> Mapping[str, Any]:
        return self.entries[-1].body


@dataclass(frozen=True)
class DocumentApp:
    app: App
    system: str = "wikichat"

    async def ask(
        self, text: str, script: Script, *earlier: Turn, tell: Callable[[Event], None] | None = None
    ) -> AnsweredTurn:
        llm, checked = ScriptedLLM(adapt_script(script, self.system)), list[CheckedClaim]()

        def listen(event: Event) -> None:
            if isinstance(event, ClaimChecked):
                checked.append(event.checked)
            if tell:
                tell(event)

        asked = TurnRequest(text, Asker(platform="terminal", kind="terminal"), earlier=earlier, system=self.system)
        done = await answer(replace(self.app, llm=llm), asked, listen)
        entries = tuple(await self.app.audit.turn(done.answer_id))
        answered = AnsweredTurn(done, llm, entries)
        assert verify_turn(entries) == ()
        assert [entry.kind for entry in (entries[0], entries[-1])] == [EntryKind.TURN_OPENED, EntryKind.TURN_CLOSED]
        assert (entries[0].body["question"], answered.closed["status"]) == (text, done.answer.status)
        assert len([step for entry in entries if "template" in (step := entry.body)]) == len(llm.calls)
        assert [claim.claim.text for claim in checked] == list(answered.claims)
        assert [claim["claim"]["text"] for claim in answered.closed["claims"]] == [
            claim.claim.text for claim in done.answer.claims
        ]
        return answered


def adapt_script(script: Script, system: str) -> Script:
    """Return a script in the format of a system: some split claims from a reply, others have them in it."""
    return Following({**script, "generate": script["split"]} if system == "wikichat-fast" and script else script)


@contextmanager
def open_document_app(home: Path, source: DocumentSource, corpus: str) -> Iterator[DocumentApp]:
    with opened(home, open_embedder("minilm", {})) as store:
        asyncio.run(refresh_corpus(source, corpus, store, progress=lambda _: None))
        checker = SupportChecker(LazyFunction(load_token_states, store.threads.states))
        rerank = LazyFunction(load_cross_encoder, store.threads.rerank)
        yield DocumentApp(App(Settings(home=home), store, **kept(store), supports=checker, rerank=rerank))
