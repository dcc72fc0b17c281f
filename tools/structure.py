"""Print figures of the code's structure: lines, modules, names, and how many modules are entered for a task.

    python -m tools.structure [--repo DIR] [--no-traces]

A trace runs a command of the checkout, or one test of its platform contract, under `sys.setprofile`. It counts the
modules of the five rooms (top-level packages) in which a function is called.
"""

import argparse
import ast
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

ROOMS = ("bot", "pipeline", "ingest", "storage", "evaluation")
CROWDED = 10
VARIANTS = frozenset({"systems", "sources", "readers", "checks", "prompts", "versions"})  # one entry each, however many
MENTION = "test_question_is_answered_in_place_with_footnotes"
DOCUMENT = "# Leave\n\nEverybody has 27 days of paid leave a year. Leave is asked for two weeks ahead.\n"
CLAIM = "Everybody has 27 days of paid leave in each year."
"""Not verbatim, so that the rules and the scorer are used."""
NOT_GERUNDS = frozenset({"string", "setting", "heading", "king", "ring", "thing", "spelling", "embedding", "ping"})

TRACER = """
import json, os, sys, threading
from pathlib import Path

ROOT, OUT = Path(os.environ["TRACE_ROOT"]), os.environ["TRACE_OUT"]
ROOMS = ("bot", "pipeline", "ingest", "storage", "evaluation")
COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")  # not functions of their own
entered = {"all": set(), "check": set()}
state = {"on": not os.environ.get("TRACE_GATED"), "check": 0}
kept = {}


def place(code):
    if code.co_filename not in kept:
        try:
            parts = Path(code.co_filename).resolve().relative_to(ROOT).parts
        except ValueError:
            parts = ("",)
        kept[code.co_filename] = parts
    return kept[code.co_filename]


def profile(frame, event, value):
    if event not in ("call", "return"):
        return
    code = frame.f_code
    parts = place(code)
    if event == "return" and type(value).__name__ == "Support":
        state["check"] = 0
    if parts[0] == "tests":
        if event == "call" and code.co_name == "ask":
            state["on"] = True
        if event == "return" and code.co_name == "answered" and frame.f_lasti >= len(code.co_code) - 8:
            state["on"] = False
        return
    if event == "return":
        return
    if parts[0] not in ROOMS or not state["on"] or not code.co_flags & 1 or code.co_name in COMPREHENSIONS:
        return
    name = "/".join(parts)
    entered["all"].add(name)
    if code.co_name == "__call__" and name.startswith("pipeline/support"):
        state["check"] = 1
    if state["check"] and parts[0] in ("pipeline", "storage"):
        entered["check"].add(name)


def start():
    threading.setprofile(profile)
    sys.setprofile(profile)


def stop():
    sys.setprofile(None)
    threading.setprofile(None)
    Path(OUT).write_text(json.dumps({key: sorted(names) for key, names in entered.items()}))
"""
COMMAND = """
import importlib, sys
sys.path.insert(0, {scratch!r})
sys.argv = ["footnote", *{arguments!r}]
import trace_modules
module, function = {script!r}.split(":")
run = getattr(importlib.import_module(module), function)
trace_modules.start()
try:
    run()
except SystemExit as stopped:
    status = stopped.code
finally:
    trace_modules.stop()
"""
PLUGIN = """
import pytest, trace_modules


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    trace_modules.start()
    yield
    trace_modules.stop()
"""


def main() -> None:
    """Print all tables of a checkout."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--repo", type=Path, default=Path.cwd())
    parser.add_argument("--no-traces", action="store_true", help="Only count; run nothing.")
    parser.add_argument("--modules", action="store_true", help="Name the modules that each trace enters.")
    options = parser.parse_args()
    repo = options.repo.resolve()
    print_rooms(repo)
    print_folders(repo)
    print_names(repo)
    if not options.no_traces:
        print_traces(repo, named=options.modules)


def print_rooms(repo: Path) -> None:
    """Print the lines and modules of each room. An `__init__.py` counts only if it has more than a docstring."""
    print(f"{'room':<12}{'lines':>8}{'modules':>9}{'median':>8}{'largest':>9}")
    paths = {room: sources(repo, room) for room in ROOMS}
    for room, files in (*paths.items(), ("five rooms", [*chain.from_iterable(paths.values())])):
        sizes = [count_lines(path) for path in files if is_module(path)]
        lines = sum(map(count_lines, files))
        print(f"{room:<12}{lines:>8,}{len(sizes):>9}{statistics.median(sizes):>8.0f}{max(sizes):>9}")
    for folder in ("tests", "tools", "docs", "examples"):
        files = sources(repo, folder)
        print(f"{folder:<12}{sum(map(count_lines, files)):>8,}{len(files):>9}")


def print_folders(repo: Path) -> None:
    """Print how many entries the rooms and the crowded folders have."""
    print("\nentries a folder (code, without __init__.py)")
    counts = {
        folder: len(entries)
        for room in ROOMS
        for folder in [repo / room, *(repo / room).rglob("*")]
        if folder.is_dir() and (entries := list(list_entries(folder)))
    }
    crowded = {folder: count for folder, count in counts.items() if count > CROWDED or folder.parent == repo}
    for folder, count in sorted(crowded.items()):
        remark = "" if count <= CROWDED else "  variants" if folder.name in VARIANTS else "  crowded"
        print(f"  {folder.relative_to(repo)!s:<38}{count:>4}{remark}")


def list_entries(folder: Path) -> Iterator[Path]:
    """Yield the modules and packages of a folder."""
    for path in folder.iterdir():
        if path.name.startswith(("__", ".")):
            continue
        if path.suffix == ".py" or (path.is_dir() and any(path.rglob("*.py"))):
            yield path


def print_names(repo: Path) -> None:
    """Print the names of modules that are gerunds, and names that several modules or public classes share."""
    modules = [path for room in ROOMS for path in sources(repo, room)]
    names = [path.stem for path in modules if path.stem != "__init__"]
    gerunds = [name for name in names if re.search(r"ing(_|$)", name) and name not in NOT_GERUNDS]
    print(f"\nmodule names that are gerunds: {len(gerunds)}")
    print("  " + ", ".join(sorted(set(gerunds))[:40]))
    print(f"module names used more than once: {describe_repeated(names)}")
    classes = [
        node.name
        for path in modules
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    print(f"public class names used more than once: {describe_repeated(classes)}")


def describe_repeated(names: Sequence[str]) -> str:
    """Describe how many names occur more than once, and the most frequent of them."""
    repeated = [(name, count) for name, count in Counter(names).most_common() if count > 1]
    return f"{len(repeated)}  " + ", ".join(f"{name} {count}" for name, count in repeated[:30])


def print_traces(repo: Path, *, named: bool) -> None:
    """Print how many modules each trace enters in each room; if `named`, also print the modules."""
    print("\nmodules entered")
    for name, modules in run_traces(repo).items():
        rooms = Counter(module.split("/")[0] for module in modules)
        print(f"  {name:<58}{len(modules):>4}  " + " ".join(f"{room} {rooms[room]}" for room in ROOMS if rooms[room]))
        if named:
            print("    " + " ".join(modules))


def run_traces(repo: Path) -> dict[str, list[str]]:
    """Return the modules that each trace enters: for a mention, a document, a claim, and the claim's local check."""
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        (scratch / "trace_modules.py").write_text(TRACER)
        (scratch / "trace_plugin.py").write_text(PLUGIN)
        (scratch / "pages").mkdir()
        (scratch / "footnote.toml").write_text('home = "home"\n')
        run_command(repo, scratch, "ingest", "folder", "pages", "--corpus", "handbook")
        (scratch / "pages" / "leave.md").write_text(DOCUMENT)
        ingest = run_command(repo, scratch, "ingest", "folder", "pages", "--corpus", "handbook")
        check = run_command(repo, scratch, "check", CLAIM)
        mention = run_mention(repo, scratch)
    return {
        "a Slack mention, extractive": mention["all"],
        "a Markdown file, `ingest folder`: in ingest and storage": in_rooms(ingest["all"], "ingest", "storage"),
        "the same, in all rooms": ingest["all"],
        "a claim, `check TEXT`": check["all"],
        "the local check of that claim": check["check"],
    }


def in_rooms(modules: Sequence[str], *rooms: str) -> list[str]:
    return [module for module in modules if module.split("/")[0] in rooms]


def run_command(repo: Path, scratch: Path, *arguments: str) -> dict[str, list[str]]:
    """Run a command of the checkout under the tracer. Return the modules that it and its local check enter."""
    project = (repo / "pyproject.toml").read_text(encoding="utf-8")
    script = re.search(r'^footnote = "([\w.]+:\w+)"', project, re.MULTILINE)
    if script is None:
        raise SystemExit("pyproject.toml names no script `footnote`")
    code = COMMAND.format(scratch=str(scratch), arguments=list(arguments), script=script[1])
    return _traced([sys.executable, "-c", code], scratch, repo, scratch)


def run_mention(repo: Path, scratch: Path) -> dict[str, list[str]]:
    """Run the contract test of a mention on Slack under the tracer. Return the modules entered before the answer."""
    files = [path for path in (repo / "tests").rglob("test_*.py") if f"def {MENTION}(" in path.read_text()]
    if not files:
        raise SystemExit(f"no test is named {MENTION}")
    pytest = [sys.executable, "-m", "pytest", "-q", "-p", "trace_plugin", "-p", "no:cacheprovider"]
    tests = [f"{files[0]}::{MENTION}[slack]"]
    return _traced([*pytest, *tests], repo, repo, scratch, TRACE_GATED="1")


def _traced(command: Sequence[str], folder: Path, repo: Path, scratch: Path, **more: str) -> dict[str, list[str]]:
    out = scratch / "trace.json"
    out.unlink(missing_ok=True)
    paths = {"PYTHONPATH": f"{repo}:{scratch}", "TRACE_ROOT": str(repo), "TRACE_OUT": str(out)}
    environment = {**os.environ, **paths, **more}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if not out.exists():
        raise SystemExit(f"{' '.join(command)[-300:]}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    traced: dict[str, list[str]] = json.loads(out.read_text())
    if not traced["all"]:
        print(done.stdout[-1500:], done.stderr[-1500:])
    return traced


def sources(repo: Path, folder: str) -> list[Path]:
    """Return the Python files of a folder, sorted."""
    return sorted((repo / folder).rglob("*.py"))


def count_lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def is_module(path: Path) -> bool:
    """Return whether a file has code; an `__init__.py` with only a docstring has none."""
    if path.name != "__init__.py":
        return True
    return any(not isinstance(node, ast.Expr) for node in ast.parse(path.read_text(encoding="utf-8")).body)


if __name__ == "__main__":
    main()
