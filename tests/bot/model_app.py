"""An app with two pages and a language model behind a strict server; tests script the reply of each stage."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from bot.access import Asker
from bot.app import App
from bot.settings.tables.model_values import ModelValues
from bot.settings.tables.settings_tables import LimitSettings, Settings
from bot.types import TurnRequest
from evaluation.simulated_model.chat_protocol import ChatRequest, Ending, Fault, Reply, encode_reply
from evaluation.simulated_model.model_replies import detect_kind
from evaluation.simulated_model.model_server import ModelServer, Script
from ingest.refresh.corpus_refresh import refresh_corpus
from pipeline.llm.model import ChatMessage, ModelCall
from pipeline.llm.model_client import LazyModel
from pipeline.prompts.prompt_templates import TEMPLATE_FOLDER, PromptMode, render_prefix
from tests.fake_model_rules import OPENAI
from tests.fake_model_server import serve
from tests.fakes import PageSource
from tests.pipeline.scripted import quoting
from tests.pipeline.world import reads_alike
from tests.storage.stores import kept, opened

KEY = OPENAI.key
PAGES = {
    "light": {"title": "Skarholm lighthouse", "": "Skarholm lighthouse was built in 1887. A keeper lives beside it."},
    "pier": {"title": "Pier", "": "The pier of Skarholm is made of oak. In the storm of 1953 it was lost."},
}
_TEMPLATES = tuple(sorted(file.stem for file in TEMPLATE_FOLDER.glob("[!_]*.j2")))


@dataclass(frozen=True)
class CutReply:
    """A streamed reply whose connection closes after these words."""

    text: str


@dataclass(frozen=True)
class StalledReply:
    """A streamed reply that stalls after these pieces."""

    reply: Reply


def find_stage(request: ChatRequest) -> str:
    """Return the template a request was made from, by its instruction."""
    said = request.body["messages"][0]["content"]
    return next(template for template in _TEMPLATES if any(map(said.startswith, _instructions(template))))


def _instructions(template: str) -> tuple[str, ...]:
    flags = product((False, True), repeat=3)
    modes = (PromptMode(structured=structured, student=student, brief=brief) for structured, student, brief in flags)
    return tuple(render_prefix(template, mode)[0].text for mode in modes)


def script_model(script: Mapping[str, Any]):
    """Return the script of a server whose model replies with these lines, by template; the default lines quote.

    A template without its own line uses the line of its kind of reply: `answer` that of `draft`.
    """
    usual = quoting()
    lines = {**usual, "feedback": usual["refine"], **script}
    lines.setdefault("claims", lines["split"] if isinstance(script.get("generate", ""), str) else lines["generate"])
    lines.setdefault("verdicts", _of_one_claim(lines["verify"]) if callable(lines["verify"]) else lines["verify"])

    def answer(request: ChatRequest) -> Reply | Fault:
        template, kind = find_stage(request), detect_kind(request.body)
        line = lines[template] if template in lines else lines[kind] if kind in lines else usual[kind]
        if isinstance(line, CutReply):
            return Fault((*encode_reply(request, Reply(line.text))[:-2], Ending.CLOSE))
        if isinstance(line, StalledReply):
            return Fault((*encode_reply(request, line.reply)[:-4], Ending.HANG))
        said = line(_call(request)) if callable(line) else line
        return Reply(said) if isinstance(said, str) else said

    return answer


def _of_one_claim(line: Callable[[ModelCall], Any]) -> Callable[[ModelCall], Any]:
    def said(call: ModelCall) -> Any:
        turn = call.messages[-1].text.replace("\nClaim 1: ", "\nClaim: ")
        return line(replace(call, messages=(*call.messages[:-1], ChatMessage("user", turn))))

    return said


def _call(request: ChatRequest) -> ModelCall:
    return ModelCall("", tuple(ChatMessage(one["role"], one["content"]) for one in request.body["messages"]))


@asynccontextmanager
async def open_model_app(
    home: Path, script: Mapping[str, Any] | Script | None = None, *, limits: LimitSettings | None = None, **changes: Any
) -> AsyncIterator[tuple[App, ModelServer]]:
    async with serve(script if callable(script) else script_model(script or {})) as server, AsyncExitStack() as stack:
        with opened(home) as store:
            await refresh_corpus(PageSource(PAGES), "handbook", store, progress=lambda _: None)
            given = {"name": "small-model", "base_url": server.url, "api_key": KEY, "structured": "text", "retries": 0}
            model = ModelValues(**given | changes)
            settings = Settings(home=home, model=model, limits=limits or LimitSettings())
            llm = LazyModel(model.plain(), stack)
            app = App(settings, store, **kept(store), llm=llm)
            yield replace(app, supports=reads_alike, examines=reads_alike), server


def make_request(text: str = "When was Skarholm lighthouse built?", **more: Any) -> TurnRequest:
    return TurnRequest(text, Asker(platform="terminal", kind="terminal"), **more)
