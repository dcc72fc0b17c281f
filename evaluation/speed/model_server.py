"""A simulated model server: it speaks OpenAI's chat protocol, takes a fixed time for each reply, and counts.

`python -m evaluation.speed.model_server SECONDS` prints its address and serves until its input ends. It runs in a
process of its own, so that what a benchmark measures is the client alone. A request names its stage as its model.
`GET /counts` tells how many requests there were, and how many were being answered at once.
"""

import asyncio
import json
import re
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

_NUMBERED = re.compile(r"^(\d+): (.*)$", re.MULTILINE)
_NOTE = re.compile(r"^\[(\d+)\] (.*) \(from: .*\)$", re.MULTILINE)
_DRAFT = re.compile(r"^(.*\[\d+\]\.)$", re.MULTILINE)
_CRITERIA = ("Relevant", "Natural", "Non-repetitive", "Temporally correct")
_WORDS_A_PIECE = 4


@dataclass
class Counts:
    """What a server has counted so far."""

    requests: int = 0
    busy: int = 0
    """Requests being answered now."""
    busiest: int = 0
    left: int = 0
    """Requests whose client left before the answer."""


@dataclass
class ModelServer:
    """The server within this process."""

    seconds: float
    counts: Counts = field(default_factory=Counts)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = re.search(rb"(?i)^content-length: *(\d+)", head, re.MULTILINE)
                body = await reader.readexactly(int(length[1]) if length else 0)
                writer.write(_whole(asdict(self.counts)) if head.startswith(b"GET") else await self._answer(body))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()

    async def _answer(self, body: bytes) -> bytes:
        asked: Mapping[str, Any] = json.loads(body)
        self.counts.requests += 1
        self.counts.busy += 1
        self.counts.busiest = max(self.counts.busiest, self.counts.busy)
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.counts.busy -= 1
        text = LINES[asked["model"]](asked["messages"][-1]["content"])
        return _streamed(asked, text) if asked.get("stream") else _whole(_completion(asked, text))


@contextmanager
def running(seconds: float) -> Iterator[str]:
    """Run the server in a process of its own, and give its address."""
    command = [sys.executable, "-m", "evaluation.speed.model_server", str(seconds)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None  # noqa: S101 - it is a pipe
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def counted(url: str) -> Counts:
    """Ask a running server what it has counted. Blocks."""
    with urllib.request.urlopen(f"{url}/counts") as reply:  # noqa: S310 - our own server's
        return Counts(**json.load(reply))


def _query(turn: str) -> str:
    return f"Search: yes\nQuery: {re.findall(r'^User: (.*)$', turn, re.MULTILINE)[-1]}\nTime: none"


def _bullets(turn: str) -> str:
    return "\n".join(f"- {text} [{number}]" for number, text in _NUMBERED.findall(turn)[:2]) or "None"


def _drafted(turn: str) -> str:
    return " ".join(f"{text.rstrip('.')} [{number}]." for number, text in _NOTE.findall(turn)[:3]) or "NOTHING"


def _refined(turn: str) -> str:
    if "Feedback:" in turn:
        return "".join(_DRAFT.findall(turn)[-1:]) or "NOTHING"
    return "\n".join(f"{name}: Could be said more plainly. 40/100" for name in _CRITERIA)


LINES: Mapping[str, Callable[[str], str]] = {
    "query": _query,
    "summarise": _bullets,
    "generate": lambda _: "The office opens early. The company is old.",
    "split": lambda _: "- The office opens early in the morning. | none\n- The company is very old. | none",
    "verify": lambda _: "Reasoning: Sentence 1 says so.\nSentences: 1\nVerdict: SUPPORTS",
    "draft": _drafted,
    "refine": _refined,
}
"""What is replied at each stage, by the turn's part of the prompt."""


def _completion(asked: Mapping[str, Any], text: str) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return {**_frame(asked, "chat.completion"), "choices": [choice], "usage": _usage(asked, text)}


def _streamed(asked: Mapping[str, Any], text: str) -> bytes:
    words = re.findall(r"\S+\s*", text)
    pieces = ["".join(words[at : at + _WORDS_A_PIECE]) for at in range(0, len(words), _WORDS_A_PIECE)]
    frame = _frame(asked, "chat.completion.chunk")
    choices: list[dict[str, Any]] = [{"delta": {"content": piece}, "finish_reason": None} for piece in pieces]
    choices.append({"delta": {}, "finish_reason": "stop"})
    events = [{**frame, "choices": [{"index": 0, **choice}]} for choice in choices]
    events.append({**frame, "choices": [], "usage": _usage(asked, text)})
    lines = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
    return _http("text/event-stream", lines.encode())


def _frame(asked: Mapping[str, Any], kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": asked["model"]}


def _usage(asked: Mapping[str, Any], text: str) -> dict[str, int]:
    prompt = sum(len(message["content"]) for message in asked["messages"]) // 4
    return {"prompt_tokens": prompt, "completion_tokens": len(text) // 4, "total_tokens": prompt + len(text) // 4}


def _whole(body: Mapping[str, Any]) -> bytes:
    return _http("application/json", json.dumps(body).encode())


def _http(kind: str, body: bytes) -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def _main(seconds: float) -> None:
    served = await asyncio.start_server(ModelServer(seconds).serve, "127.0.0.1", 0, limit=1 << 20, backlog=1_000)
    print(f"http://127.0.0.1:{served.sockets[0].getsockname()[1]}", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    served.close()


if __name__ == "__main__":
    asyncio.run(_main(float(sys.argv[1])))
