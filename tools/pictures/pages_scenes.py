"""The web pages to photograph: a question's answer, an answer's history, unanswered questions, and figures."""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import httpx

from bot.access import Asker
from bot.app import App
from bot.pages.page_rendering import STYLE
from bot.pages.pages_server import build_app, share_service
from bot.server.refresh.run_history import build_history
from bot.server.service import LocalService
from bot.types import TurnRequest
from bot.wiring import build_records
from storage.record.audit_log import AuditLog
from storage.types import EntryKind, LogEntry

Visit = Callable[[httpx.AsyncClient, LocalService, datetime], Awaitable[httpx.Response]]
_STYLE = re.compile(r'<link rel="stylesheet"[^>]*>')
_FORM_TOKEN = re.compile(r'name="form_token" value="(\w+)"')
_ANA = Asker("slack", "channel", "T1", "C1", "U1", shared_with_other_organisations=False)


async def ask(client: httpx.AsyncClient, _: LocalService, __: datetime) -> httpx.Response:
    """Ask a question on the pages."""
    token = _FORM_TOKEN.search((await client.get("/")).text)
    question = "What is the meal allowance on business trips?"
    return await client.post("/ask", data={"form_token": token[1] if token else "", "question": question})


async def story(client: httpx.AsyncClient, service: LocalService, _: datetime) -> httpx.Response:
    """Open the history of the answer to a question by Ana."""
    request = TurnRequest("How many parking places are there in Cobh?", _ANA)
    done = await service.answer(request, lambda _: None)
    return await client.get(f"/answers/{done.answer_id}")


async def unanswered(client: httpx.AsyncClient, service: LocalService, at: datetime) -> httpx.Response:
    """Open the questions without an answer."""
    for question in (
        "Is there a gym in the Cobh office?",
        "Does the Cobh office have a gym?",
        "Can I bring a parrot to the office?",
    ):
        await service.answer(TurnRequest(question, _ANA), lambda _: None)
    return await client.get("/unanswered", params={"since": f"{at:%Y-%m-%d}", "until": f"{at:%Y-%m-%d}"})


async def figures(client: httpx.AsyncClient, service: LocalService, at: datetime) -> httpx.Response:
    """Open the figures of two months, in which a team asks more every week."""
    random, log = Random(7), service.app.audit
    for day in range(60):
        for _ in range(random.randint(2, 6) + day // 5):
            await _invent(log, random, at - timedelta(days=90 - day, minutes=random.randint(1, 400)))
    since, until = (f"{at - timedelta(days=days):%Y-%m-%d}" for days in (90, 32))
    return await client.get("/figures", params={"since": since, "until": until, "step": "day"})


async def _invent(log: AuditLog, random: Random, at: datetime) -> None:
    turn_id, claims = f"{random.getrandbits(48):012x}", random.randint(1, 5)
    verdicts = ["SUPPORTS" if random.random() < 0.9 else "REFUTES" for _ in range(claims)]
    usage = {"prompt_tokens": random.randint(1_500, 6_000), "completion_tokens": 300, "cost": random.random() / 100}
    closed: dict[str, Any] = {
        "status": random.choices(["answered", "abstained", "failed"], [80, 17, 3])[0],
        "usage": usage,
    }
    closed |= {"seconds": random.uniform(1, 9), "claims": [{"verdict": verdict} for verdict in verdicts]}
    rated = {"what": random.choice(["up", "up", "up", "down"]), "by": f"slack:T1/U{random.randint(1, 40)}"}
    opened = {"question": "", "asker": {"platform": "slack", "workspace": "T1", "user": f"U{random.randint(1, 40)}"}}
    kinds = ((EntryKind.TURN_OPENED, opened), (EntryKind.TURN_CLOSED, closed), (EntryKind.FEEDBACK, rated))
    entries = [LogEntry(turn_id, kind, body, at=at) for kind, body in kinds]
    await log.append(*entries[: 3 if random.random() < 0.3 else 2])


SCENES: Mapping[str, Visit] = {
    "pages-ask": ask,
    "pages-story": story,
    "pages-unanswered": unanswered,
    "pages-figures": figures,
}


async def render_scene(app: App, name: str) -> str:
    """Return the page of a scene, with its style sheet inside. Each scene is at another minute."""
    at = datetime(2026, 3, 3, 10, 30 + list(SCENES).index(name), tzinfo=UTC)
    service = LocalService(replace(app, audit=replace(app.audit, clock=lambda: at)))
    records = replace(build_records(app.manifest.database), audit=service.app.audit)
    pages = build_app(app.settings, records, build_history(app.manifest.database), share_service(service))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(pages), base_url="http://127.0.0.1") as client:
        page = await SCENES[name](client, service, at)
    style = STYLE.read_text(encoding="utf-8")
    return _STYLE.sub(lambda _: f"<style>{style}</style>", page.raise_for_status().text)
