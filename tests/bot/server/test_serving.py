"""Tests of `footnote serve` as a process: other commands work meanwhile, and its end loses nothing."""

import json
import signal
import socket
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.bot.server.server import process, run, run_json, serving

PAGES = {
    "light.md": "# Skarholm lighthouse\n\nSkarholm lighthouse was built in 1887. A keeper lives beside it.\n",
    "quay.md": "# The quay\n\nThe quay of Skarholm opens at seven. It closes at nine in the evening.\n",
}
TOKEN = "sk-proj-abcdefghijklmnop"
QUESTION = "When was Skarholm lighthouse built?"


@pytest.fixture
def model(here: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """Write two pages and settings, and run a model server that accepts calls and never responds."""
    for name, text in PAGES.items():
        (here / "docs" / name).parent.mkdir(exist_ok=True)
        (here / "docs" / name).write_text(text)
    (here / "footnote.toml").write_text('system = "extractive"\n[http]\nport = 0\n')
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{silent.getsockname()[1]}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", TOKEN)
        monkeypatch.setenv("FOOTNOTE_MODEL__NAME", "silent")
        silent.settimeout(60)
        yield silent


def without(document: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """Return a document without its varying parts."""
    return {key: value for key, value in document.items() if key not in keys}


@contextmanager
def hearing(path: str) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as states:
        states.bind(path)
        states.settimeout(60)
        yield states


def last_turn() -> Mapping[str, Any]:
    turn: Mapping[str, Any] = run_json("audit", "list", "-n", "1")["turns"][0]
    return turn


def test_commands_give_the_same_output_with_a_server_running(model: socket.socket) -> None:
    del model
    pages = {"FOOTNOTE_PAGES__ENABLED": "true", "FOOTNOTE_PAGES__PORT": "0"}
    with hearing("notify") as states, serving(NOTIFY_SOCKET="notify", **pages) as server:
        assert run_json("ingest", "folder", "docs", "--corpus", "docs")["documents"]["added"] == 2
        beside = run_json("ask", QUESTION), run_json("search", "quay")
        assert run_json("check", "The quay opens at nine.")["verdict"] == "REFUTES"
        lines = run("ask", QUESTION).stdout, run("chat", typed=f"{QUESTION}\nAnd the quay?\n").stdout
        wrong = run("ask", "🎉", "--json"), run("ask", QUESTION, "--corpus", "nothing")
        assert run_json("corpora")["corpora"][0]["documents"] == 2
        assert run_json("audit", "show", beside[0]["answer_id"])["answer_id"] == beside[0]["answer_id"]
        pages = server.lines[-1]["event"].partition("pages at ")[2].partition(";")[0]
        assert QUESTION in httpx.get(f"{pages}/answers/{beside[0]['answer_id']}").text
        assert run_json("audit", "verify")["findings"] == []

        answers = [httpx.get(server.address + path) for path in ("/healthz", "/readyz")]
        assert [(answer.status_code, answer.json()["status"]) for answer in answers] == [(200, "alive"), (200, "ready")]

        families = text_string_to_metric_families(httpx.get(f"{server.address}/metrics").text)
        samples = [sample for family in families for sample in family.samples]
        ended = [sample for sample in samples if sample.name == "footnote_answers_total"]
        counted = {(sample.labels["task"], sample.labels["status"]): int(sample.value) for sample in ended}
        assert counted == Counter(
            (turn["task"], turn["status"]) for turn in run_json("audit", "list", "-n", "100")["turns"]
        )
        assert ("footnote_corpus_documents", 2.0) in {(sample.name, sample.value) for sample in samples}

        for command in (["serve"], ["reindex"]):
            refused = run(*command)
            assert (refused.exit_code, refused.stderr.count("\n")) == (1, 1)
            assert f"in use by another Footnote (process {server.process.pid}, `" in refused.stderr

        assert server.stop(signal.SIGINT) == 0
        assert [states.recv(100) for _ in range(2)] == [b"READY=1", b"STOPPING=1"]

    assert [line["event"] for line in server.lines[-2:]] == ["stopping", "stopped"]
    # On a busy machine the loop may be blocked, which is logged.
    assert not [
        line for line in server.lines if line["level"] != "info" and line["logger"] != "bot.server.monitoring.health"
    ]
    assert TOKEN not in json.dumps(server.lines)
    assert [*Path(".footnote/control").iterdir()] == []

    once = "answer_id", "seconds"
    alone = run_json("ask", QUESTION), run_json("search", "quay")
    assert [without(document, *once) for document in beside] == [without(document, *once) for document in alone]
    assert lines == (run("ask", QUESTION).stdout, run("chat", typed=f"{QUESTION}\nAnd the quay?\n").stdout)
    for before, after in zip(
        wrong, (run("ask", "🎉", "--json"), run("ask", QUESTION, "--corpus", "nothing")), strict=True
    ):
        assert (before.exit_code, before.stdout, before.stderr) == (1, after.stdout, after.stderr)


def test_ctrl_c_stops_the_turn_and_a_killed_server_is_reported(model: socket.socket) -> None:
    with serving() as server:
        run_json("ingest", "folder", "docs", "--corpus", "docs")
        with process("ask", QUESTION, "--system", "wikichat") as asking:
            call, _ = model.accept()
            asking.send_signal(signal.SIGINT)
            out, err = asking.communicate(timeout=30)
            assert (asking.returncode, out, err.count("\n")) == (130, "", 1)
            while call.recv(100_000):  # until the server hangs up on the model
                pass
            call.close()

        with process("ask", QUESTION, "--system", "wikichat") as asking:
            calls = ExitStack()
            while last_turn()["status"] != "unfinished":
                calls.enter_context(model.accept()[0])
            server.process.kill()
            out, err = asking.communicate(timeout=30)
            calls.close()

    assert (asking.returncode, out) == (1, "")
    assert err == (
        "footnote: The server stopped before the command was done — "
        "Start `footnote serve` again, or run the command again without it.\n"
    )
    statuses = [turn["status"] for turn in run_json("audit", "list")["turns"]]
    assert statuses[1] == "cancelled"
    assert run_json("ask", QUESTION)["status"] == "answered"


def test_startup_fault_is_one_plain_line(model: socket.socket) -> None:
    port = model.getsockname()[1]
    Path("footnote.toml").write_text(f"[http]\nport = {port}\n")
    refused = run("serve")

    assert (refused.exit_code, refused.stdout) == (1, "")
    assert refused.stderr.startswith(f"footnote: Another program listens at 127.0.0.1:{port} — ")
    assert refused.stderr.count("\n") == 1
    assert not Path(".footnote/lock.owner").exists()
