"""Compare what two checkouts show: help, outputs, settings, sentences, and payloads to Slack, Discord and Mattermost.

    python -m tools.surface DIR_BEFORE DIR_AFTER [--without-flows] [--save DIR]

In each checkout, this runs the commands over the example handbook, and the flow tests, whose fake servers record the
payloads. Times, ids and digests are replaced first, and the remaining differences are printed. Payloads are compared by
their content, so renamed tests make no difference.
"""

import argparse
import difflib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

QUESTIONS = ("What is the meal allowance on business trips?", "How many days of leave do I get?", "Who owns the moon?")
CLAIMS = (
    "The meal allowance on business trips is 45 euros a day.",
    "The meal allowance on business trips is 95 euros a day.",
)
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("corpora",), ("ingest", "all"), ("ingest", "all", "--json"), ("corpora",), ("corpora", "--json"),
    ("ingest", "status"), ("ingest", "status", "--json"),
    *(("search", question) for question in QUESTIONS[:1]),
    *(("search", question, "--json") for question in QUESTIONS[:1]),
    *(("ask", "--system", "extractive", question) for question in QUESTIONS),
    *(("ask", "--system", "extractive", question, "--json") for question in QUESTIONS),
    *(("check", claim) for claim in CLAIMS),
    *(("check", claim, "--json") for claim in CLAIMS),
    ("ask", "--system", "wikichat", QUESTIONS[0]), ("ask", "--system", "none", QUESTIONS[0]),
    ("search", "--nonsense"), ("audit", "list"), ("audit", "list", "--json"), ("audit", "verify"),
    ("audit", "verify", "--json"), ("audit", "show", "zzzz"), ("doctor",), ("doctor", "--json"), ("reindex",),
    ("reindex", "--json"), ("forget", "nothing.md"),
)  # fmt: skip
IGNORED = frozenset({"title", "description"})
"""Keys that a JSON schema takes from the names and docstrings of classes."""
ADDRESSES = frozenset(
    {"channel", "ts", "thread_ts", "message", "key", "id", "user", "users", "thread", "only", "nonce"}
)
FLOWS = ("test_flows.py", "test_contract.py")

RUNNER = """
import importlib, json, os, re, sys, tempfile
from pathlib import Path
repo, out = Path(os.environ["SURFACE_REPO"]), Path(os.environ["SURFACE_OUT"])
script = re.search(r'^footnote = "([\\w.]+:\\w+)"', (repo / "pyproject.toml").read_text(), re.MULTILINE)[1]
entry_module, entry_name = script.split(":")


def call(*arguments):
    with tempfile.TemporaryFile("w+b") as file:
        kept = os.dup(1), os.dup(2)
        sys.stdout.flush(), sys.stderr.flush()
        os.dup2(file.fileno(), 1), os.dup2(file.fileno(), 2)
        status = 0
        try:
            sys.argv = ["footnote", *arguments]
            getattr(importlib.import_module(entry_module), entry_name)()
        except SystemExit as stopped:
            status = stopped.code
        except BaseException as error:
            print("RAISED", type(error).__name__, str(error).splitlines()[:1])
            status = "raised"
        finally:
            sys.stdout.flush(), sys.stderr.flush()
            os.dup2(kept[0], 1), os.dup2(kept[1], 2)
        file.seek(0)
        return f"[{status}]\\n" + file.read().decode()
"""
HELP = (
    RUNNER
    + """
found = {}


def walk(*path):
    text = call(*path, "--help")
    found[" ".join(path) or "footnote"] = text
    for title, panel in re.findall(r"╭─ ([^─]+) ─.*?\\n(.*?)╰", text, re.DOTALL):
        if title not in ("Options", "Arguments"):
            for name in re.findall(r"^│ ([a-z][a-z-]*)  ", panel, re.MULTILINE):
                walk(*path, name)


walk()

out.write_text(json.dumps(found))
"""
)
OUTPUTS = (
    RUNNER
    + """
found = {}
for arguments in json.loads(os.environ["SURFACE_COMMANDS"]):
    name = " ".join(arguments)
    while name in found:
        name += " (again)"
    found[name] = call(*arguments)
out.write_text(json.dumps(found))
"""
)
SETTINGS = (
    RUNNER
    + """
import pydantic
best = {}
for path in sorted((repo / "bot").rglob("*.py")):
    if "class Settings(" in path.read_text():
        parts = path.relative_to(repo).with_suffix("").parts
        settings = getattr(importlib.import_module(".".join(parts)), "Settings")
        if issubclass(settings, pydantic.BaseModel):
            best = settings.model_json_schema()
written = call("init")
toml = Path("footnote.toml")
out.write_text(json.dumps({"schema": best, "init": written, "file": toml.read_text() if toml.exists() else ""}))
"""
)
RECORDER = """
import json, os, re
import pytest
from aiohttp import web

OUT = os.environ["SURFACE_OUT"]
handle = web.Application._handle


async def recorded(self, request):
    if request.method != "GET" and request.can_read_body:
        body = await request.read()
        with open(OUT, "ab") as file:
            line = [request.method, request.path, request.content_type, body.decode("utf-8", "replace")]
            file.write(json.dumps(line).encode() + b"\\n")
    return await handle(self, request)


web.Application._handle = recorded
"""


def main() -> None:
    """Record what both checkouts show, and print the differences."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--without-flows", action="store_true", help="Skip the payloads to the platforms.")
    parser.add_argument("--save", type=Path, help="Store the recordings in this folder, and reuse existing ones.")
    options = parser.parse_args()
    recorded = [
        record(repo.resolve(), flows=not options.without_flows, save=options.save and options.save / side)
        for side, repo in (("before", options.before), ("after", options.after))
    ]
    for side in recorded:
        for part in [part for part in side if part.endswith("payload")]:
            side[part] = {piece: piece for text in side[part] for piece in split_payload(text)}
    differences = sum(compare(part, recorded[0].get(part, {}), recorded[1].get(part, {})) for part in recorded[0])
    print(f"\n{differences} differences")


def record(repo: Path, *, flows: bool, save: Path | None) -> dict[str, Any]:
    """Return everything that a checkout shows, by part and name. If it is stored in `save`, read it from there."""
    stored = save / "surface.json" if save else None
    if stored and stored.exists():
        loaded: dict[str, Any] = json.loads(stored.read_text())
        return loaded
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        commands = json.dumps(COMMANDS)
        shutil.copytree(repo / "examples" / "handbook", scratch / "demo" / "handbook")
        settings = (repo / "examples" / "demo.toml").read_text().replace("../.demo", "../home")
        (scratch / "demo" / "footnote.toml").write_text(settings)
        outputs = run(repo, scratch / "demo", OUTPUTS, SURFACE_COMMANDS=commands)
        (scratch / "empty").mkdir()
        schema = run(repo, scratch / "empty", SETTINGS)
        found = {
            "help": run(repo, scratch, HELP),
            "output": {name: normalize(text, scratch) for name, text in outputs.items()},
            "json shape": {name: shape for name, text in outputs.items() if (shape := describe_json(text))},
            "settings": {
                **dict(flatten(inline(schema["schema"], schema["schema"]))),
                "init": normalize(schema["init"], scratch),
            },
            "starter file": {line: line for line in schema["file"].splitlines() if line.strip()},
            "words": dict(read_words(repo)),
        }
        if flows:
            found |= record_flows(repo, scratch)
    if stored:
        stored.parent.mkdir(parents=True, exist_ok=True)
        stored.write_text(json.dumps(found, indent=1, ensure_ascii=False))
    return found


def run(repo: Path, folder: Path, code: str, **more: str) -> dict[str, Any]:
    """Run code with a checkout first on the path. Return the JSON that the code has written."""
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        paths = {"SURFACE_REPO": str(repo), "SURFACE_OUT": out.name, "PYTHONPATH": str(repo)}
        plain = {"COLUMNS": "120", "TERM": "dumb", "NO_COLOR": "1", "PYTHONHASHSEED": "0"}
        environment = {name: value for name, value in os.environ.items() if not name.startswith("FOOTNOTE_")}
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=folder, env={**environment, **paths, **plain, **more}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        written = Path(out.name).read_text()
        if not written:
            raise SystemExit(done.stdout[-1500:] + done.stderr[-3000:])
        loaded: dict[str, Any] = json.loads(written)
        return loaded


def record_flows(repo: Path, scratch: Path) -> dict[str, dict[str, str]]:
    """Run the flow and contract tests. Return the distinct payloads that the bot sent, by platform."""
    (scratch / "surface_recorder.py").write_text(RECORDER)
    files = [str(path) for path in sorted((repo / "tests").rglob("test_*.py")) if path.name in FLOWS]
    out = scratch / "flows.jsonl"
    environment = {**os.environ, "PYTHONPATH": f"{repo}:{scratch}", "SURFACE_OUT": str(out), "CI": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "surface_recorder", "-p", "no:cacheprovider", *files]
    done = subprocess.run(command, cwd=repo, env=environment, capture_output=True, text=True, check=False)
    print(f"{repo.name}: {done.stdout.strip().splitlines()[-1]}")
    found: dict[str, dict[str, str]] = {"Slack payload": {}, "Discord payload": {}, "other payload": {}}
    for line in out.read_text().splitlines():
        method, path, _, body = json.loads(line)
        platform = next((name for name, pattern in _PLATFORM_PATHS.items() if pattern.search(path)), "other payload")
        text = f"{method} {normalize_ids(path)} {normalize_ids(parse_body(body))}"
        found[platform][text] = text
    return found


_PLATFORM_PATHS = {
    "Discord payload": re.compile(r"/(?:channels|interactions|webhooks)/"),
    "Slack payload": re.compile(
        r"^/(?:slack|api)?/?(?:chat|views|auth|users|conversations|apps|reactions)|^/api/[a-z]+\."
    ),
}


def split_payload(text: str) -> Iterator[str]:
    """Yield the values of a payload with their paths; each sentence of a text is one value.

    Into how many messages an answer is divided depends on the speed of the machine, but its sentences do not.
    """
    method, path, body = text.split(" ", 2)
    try:
        value = json.loads(body)
    except ValueError:
        value = body
    where = f"{method} {re.sub(r'/[0-9A-Z]+(?=/|$)', '/*', path)}"
    for found, leaf in flatten(value):
        name = re.sub(r"\[\d+\]", "[]", found)
        if name.rpartition(".")[2] in ADDRESSES:
            yield f"{where} {name}"
            continue
        for sentence in re.split(r"(?<=[.…?!⁠]) +|\n+", re.sub(r"“[^”]*”|\d+", "N", leaf)):
            yield f"{where} {name} = {sentence}"


def parse_body(body: str) -> str:
    """Return the body of a request as JSON with sorted keys. Forms and nested JSON are parsed first."""
    from urllib.parse import parse_qsl

    part = re.search(r"payload_json.*?\r\n\r\n(.*?)\r\n--", body, re.DOTALL)
    text = part[1] if part else body
    try:
        value: Any = json.loads(text)
    except ValueError:
        pairs = dict(parse_qsl(text, keep_blank_values=True))
        value = pairs or text
    return json.dumps(_nested(value), sort_keys=True, ensure_ascii=False)


def _nested(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _nested(item) for key, item in value.items() if key != "token"}
    if isinstance(value, list):
        return [_nested(item) for item in value]
    if isinstance(value, str) and value[:1] in "{[":
        try:
            return _nested(json.loads(value))
        except ValueError:
            return value
    return value


def normalize_ids(text: str) -> str:
    """Replace ids, times, ports, measured figures and random tokens by placeholders."""
    text = re.sub(r"127\.0\.0\.1:\d+", "HOST", text)
    text = re.sub(r"\b\d{10}\.\d{3,6}\b", "TS", text)
    text = re.sub(r"\b\d+ (ms|s|seconds|minutes)\b|\b\d+\.\d+\b", "NUMBER", text)
    text = re.sub(r"\b\d+ (documents|passages)/s", r"NUMBER \1/s", text)
    text = re.sub(r"\b\d{15,20}\b", "ID", text)
    text = re.sub(r"\b[0-9a-f]{8}-[0-9a-f-]{27}\b|\b[0-9a-f]{12,64}\b", "HEX", text)
    text = re.sub(r"\b(?=[A-Za-z0-9_-]*\d)[A-Za-z0-9_-]{24,}\b", "TOKEN", text)
    return re.sub(r"\d{4}-\d\d-\d\d(T[\d:.+Z-]+)?", "DATE", text)


def normalize(text: str, scratch: Path) -> str:
    """Replace paths, times, ids and measured figures in an output by placeholders."""
    text = re.sub(re.escape(str(scratch)), "SCRATCH", text)
    text = re.sub(r'"owner": "[^"]*"', '"owner": "OWNER"', text)
    text = re.sub(r"\b\d{1,2}:\d\d(:\d\d)?\b", "CLOCK", normalize_ids(text))
    text = re.sub(
        r"\b[0-9a-f]{4,10}\b",
        lambda found: "HEX" if re.search(r"\d", found[0]) and re.search(r"[a-f]", found[0]) else found[0],
        text,
    )
    return re.sub(r"[ \t]+|─+", " ", text)


def describe_json(text: str) -> str:
    """Return the keys and types of an output that is a JSON document; empty for any other output."""
    try:
        value = json.loads(text.partition("\n")[2])
    except ValueError:
        return ""
    return "\n".join(sorted(set(_shape(value, "$"))))


def _shape(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _shape(item, f"{path}.{key if not re.search('[0-9/]', key) else '*'}")
    elif isinstance(value, list):
        for item in value:
            yield from _shape(item, f"{path}[]")
    else:
        yield f"{path}: {type(value).__name__}"


def inline(value: Any, schema: Mapping[str, Any]) -> Any:
    """Return a JSON schema in which each reference is replaced by its definition."""
    if isinstance(value, dict):
        if "$ref" in value:
            return inline(schema["$defs"][value["$ref"].rpartition("/")[2]], schema)
        return {
            key: inline(item, schema) for key, item in value.items() if key not in IGNORED or not isinstance(item, str)
        }
    return [inline(item, schema) for item in value] if isinstance(value, list) else value


def flatten(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield each leaf of a JSON value with its path."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key not in {"$defs", "discriminator"}:
                yield from flatten(item, f"{path}.{key}")
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from flatten(item, f"{path}[{number}]")
    else:
        yield path, str(value)


def read_words(repo: Path) -> Iterator[tuple[str, str]]:
    """Yield each sentence of the words files with its key. The file is not named: sentences may move."""
    for path in sorted((repo / "bot").rglob("words/*.json")):
        for key, sentence in flatten(json.loads(path.read_text(encoding="utf-8"))):
            yield f"{key}: {sentence}", sentence


def compare(part: str, before: Mapping[str, str], after: Mapping[str, str]) -> int:
    """Print the differences of a part, and return their number."""
    gone, new = before.keys() - after.keys(), after.keys() - before.keys()
    changed = [name for name in before if name in after and before[name] != after[name]]
    print(
        f"\n== {part}: {len(before)} before, {len(after)} after; "
        f"{len(gone)} gone, {len(new)} new, {len(changed)} changed"
    )
    for sign, names in (("-", gone), ("+", new)):
        for name in sorted(names):
            print(f"{sign} {name[:600]}")
    for name in changed:
        print(f"* {name}")
        print_lines(before[name].splitlines(), after[name].splitlines())
    return len(gone) + len(new) + len(changed)


def print_lines(before: Sequence[str], after: Sequence[str]) -> None:
    """Print the lines that were removed or added."""
    for line in difflib.unified_diff(before, after, lineterm="", n=0):
        if not line.startswith(("---", "+++", "@@")):
            print(f"    {line[:300]}")


if __name__ == "__main__":
    main()
