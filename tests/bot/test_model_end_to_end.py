"""The commands with a model behind a strict HTTP server that quotes its prompts; nothing else is faked."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from bot.cli.entry_point import app
from evaluation.simulated_model.chat_protocol import answer_error
from evaluation.simulated_model.model_server import ModelServer
from tests.bot.model_app import KEY, script_model
from tests.fake_model_server import serve

PAGES = {
    "light.md": "# Skarholm lighthouse\n\nSkarholm lighthouse was built in 1887. A keeper lives beside it.\n",
    "wacht.md": "# Die Wache\n\nDie Wache von Skarholm beginnt um sechs Uhr und endet um zehn Uhr am Abend.\n",
}
CLAIMS = {
    "generate": "It was built in 1890.",
    "split": "- Skarholm lighthouse was built in 1890. | none",
    "verify": "Reasoning: Sentence 1 says 1887.\nSentences: 1\nVerdict: REFUTES",
}


@contextmanager
def served(script: dict[str, Any]) -> Iterator[ModelServer]:
    loop, server = asyncio.new_event_loop(), serve(script_model(script))
    thread = threading.Thread(target=loop.run_forever, name="model server")
    thread.start()
    try:
        yield asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result()
    finally:
        asyncio.run_coroutine_threadsafe(server.__aexit__(None, None, None), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def run(*arguments: str, typed: str = "") -> Result:
    return CliRunner().invoke(app, arguments, input=typed, prog_name="footnote")


def printed(*arguments: str, status: int = 0, typed: str = "") -> dict[str, Any]:
    result = run(*arguments, "--json", typed=typed)
    assert result.exit_code == status, result.output
    document: dict[str, Any] = json.loads(result.stdout)
    return document


@pytest.fixture(autouse=True)
def _pages_and_model(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ingest two pages and set the model with OpenAI's own variables."""
    for name, text in PAGES.items():
        path = here / "pages" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    printed("ingest", "folder", "pages", "--corpus", "pages")
    settings = '[model]\nstructured = "text"\nretries = 0\nprices = { small-model = { prompt = 1, completion = 2 } }\n'
    (here / "footnote.toml").write_text(settings, encoding="utf-8")
    monkeypatch.setenv("OPENAI_MODEL", "small-model")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def test_ask_answers_with_the_model_and_prints_its_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    with served(CLAIMS) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        document = printed("ask", "When was Skarholm lighthouse built?")
        calls = len(server.requests)

    assert (document["status"], document["system"], document["model"]) == ("answered", "wikichat-fast", "small-model")
    assert "Skarholm lighthouse was built in 1887. [1]" in document["text"]
    assert "1890" not in document["text"]
    assert {
        "text": "Skarholm lighthouse was built in 1890.",
        "origin": "model",
        "verdict": "REFUTES",
    }.items() <= document["claims"][0].items()
    assert document["claims"][0]["evidence"]
    assert (document["usage"]["llm_calls"], document["withheld"]) == (calls, 0)
    assert document["usage"]["cost"] > 0
    foreign = [sentence["note"] for sentence in document["sentences"] if "Wache" in sentence["text"]]
    assert foreign == ["Die Wache, Deutsch"]
    assert "(Die Wache, Deutsch) Die Wache von Skarholm" in document["text"]
    story = run("audit", "show", document["answer_id"]).stdout
    assert "draft (answer) · small-model" in story
    assert "REFUTES (model) Skarholm lighthouse was built in 1890." in story
    assert printed("audit", "verify")["findings"] == []


def test_check_calls_the_model_unless_disabled(monkeypatch: pytest.MonkeyPatch) -> None:
    claim = "Skarholm lighthouse was built in 1890."
    with served(CLAIMS) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        asked = printed("check", claim)
        sent = len(server.requests)
        extractive = printed("check", claim, "--system", "extractive")
        assert (sent, len(server.requests)) == (1, 1)

    assert (asked["verdict"], asked["model"]) == ("REFUTES", "small-model")
    assert asked["reasoning"] == "The documents say otherwise: “Skarholm lighthouse was built in 1887.”"
    assert (extractive["verdict"], extractive["model"], extractive["usage"]["llm_calls"]) == ("REFUTES", None, 0)
    assert extractive["evidence"][0]["quote"] == "Skarholm lighthouse was built in 1887."


def test_chat_continues_after_a_model_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    with served({"draft": answer_error(401, f"Incorrect API key provided: {KEY}.")}) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        result = run("chat", typed="When was Skarholm lighthouse built?\nhello\n")

    assert result.exit_code == 0
    assert "The language model cannot be reached: the model server at 127.0.0.1" in result.stderr
    assert "check api_key of the model, or OPENAI_API_KEY" in result.stderr
    assert KEY not in result.output
    assert "Ask me something" in result.stdout


def test_unnamed_model_is_one_line_with_a_quotation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_MODEL")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    result = run("ask", "When was Skarholm lighthouse built?")

    line = "The language model cannot be reached: no name is set for the model — set name of the model, or OPENAI_MODEL"
    assert (result.exit_code, result.stderr.strip()) == (0, line)
    assert "Skarholm lighthouse was built in 1887. [1]" in result.stdout
    assert "The language model cannot be reached. I only looked for sentences to quote." in result.stdout
    assert printed("ask", "When was Skarholm lighthouse built?")["quoted_because"]["kind"] == "model_unavailable"
    assert printed("ask", "When was Skarholm lighthouse built?", "--system", "extractive")["status"] == "answered"
    assert printed("search", "lighthouse")["hits"]
