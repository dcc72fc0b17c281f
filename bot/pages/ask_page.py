"""Ask a question: the page is sent piece by piece while the turn runs, so that it needs no script."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from starlette.responses import Response, StreamingResponse

from bot.access import list_corpora
from bot.desk.supervisor import cancel_tasks
from bot.pages.page_rendering import SPLIT, render_macro
from bot.pages.page_router import Visit
from bot.types import TurnRequest, TurnResult
from bot.views.error_messages import ReportableError, explain_error
from bot.views.turn_view import View
from bot.views.view_reducer import apply_event, start_view
from pipeline.types import Event, SentencePassed
from storage.manifest import Manifest

MAX_QUESTION = 4_000  # characters


class AskedService(Protocol):
    """The methods of a service that the pages use."""

    async def answer(self, request: TurnRequest, observe: Callable[[Event], None], /) -> TurnResult: ...

    async def check(self, request: TurnRequest, observe: Callable[[Event], None], /) -> TurnResult: ...

    async def forget(self, address: str, corpus: str, /) -> object: ...


OpenService: TypeAlias = Callable[[], AbstractAsyncContextManager[AskedService]]


@dataclass(frozen=True)
class AskPages:
    manifest: Manifest
    open_service: OpenService

    async def show_form(self, visit: Visit) -> Response:
        return visit.page("ask.html", corpora=await self._list_corpora(visit), asked="", chosen="", task="ask")

    async def answer(self, visit: Visit) -> Response:
        question, task = visit.form.get("question", "").strip()[:MAX_QUESTION], visit.form.get("task", "ask")
        chosen, corpora = visit.form.get("corpus", ""), await self._list_corpora(visit)
        if not question:
            return visit.page("ask.html", corpora=corpora, asked="", chosen=chosen, task=task, status=400)
        page = visit.render("answer_stream.html", corpora=corpora, asked=question, chosen=chosen, task=task)
        request = TurnRequest(question, visit.visitor.asker, corpora=(chosen,) if chosen else ())
        head, _, tail = page.partition(SPLIT)
        return StreamingResponse(self._stream(visit, request, task, head, tail), media_type="text/html")

    async def _list_corpora(self, visit: Visit) -> list[str]:
        return [corpus.name for corpus in await list_corpora(visit.settings, self.manifest)]

    async def _stream(self, visit: Visit, request: TurnRequest, task: str, head: str, tail: str) -> AsyncIterator[str]:
        """Yield the page: its head, the progress, the answer, its end. Leaving the page stops the turn."""
        yield head
        events: asyncio.Queue[Event | None] = asyncio.Queue()
        work = asyncio.create_task(self._run(request, task, events), name="question from the pages")
        try:
            view, zone = start_view(0, ""), visit.settings.zone
            while (event := await events.get()) is not None:
                before, view = view, apply_event(view, event)
                if part := _choose_part(before, view, event):
                    yield render_macro("parts.html", part[0], zone, part[1])
            yield await self._finish(visit, request.text, work)
            yield tail
        finally:
            await cancel_tasks([work])

    async def _run(self, request: TurnRequest, task: str, events: "asyncio.Queue[Event | None]") -> TurnResult:
        try:
            async with self.open_service() as service:
                do = service.check if task == "check" else service.answer
                return await do(request, events.put_nowait)
        finally:
            events.put_nowait(None)

    async def _finish(self, visit: Visit, question: str, work: Awaitable[TurnResult]) -> str:
        zone = visit.settings.zone
        try:
            result = await work
        except Exception as error:
            if not isinstance(error, ReportableError):
                raise
            fault = explain_error(error)
            return render_macro("parts.html", "trouble", zone, fault.message, fault.hint)
        return render_macro("parts.html", "answered", zone, result, question)


def _choose_part(before: View, view: View, event: Event) -> tuple[str, object] | None:
    """Return the name of the page's part to send for an event, and its value; None if the event changes nothing."""
    if isinstance(event, SentencePassed):
        return "sentence", event.sentence
    return ("progress", view.status) if view.status and view.status != before.status else None
