"""Sample small mutations of the code and count how many the tests catch.

    python -m tools.mutate --seed 1 --count 150 [--repo DIR] [--jobs 2] [--scratch DIR]

All sampled mutations are written into one copy of the checkout, each behind a switch that is off. One run of the whole
suite records which tests reach which switch; then each mutation is switched on alone and the most specific tests that
reach it are run, within a time limit. The record of a sample is kept in the scratch folder and used again.
"""

import argparse
import ast
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

ROOMS = ("bot", "pipeline", "ingest", "storage", "evaluation")
MOST_TESTS = 40
SWITCH = '''"""Switches of the sampled mutations, and the record of which test reached which."""
import os

ACTIVE = int(os.environ.get("MUTATE_ACTIVE", "-1"))
REACH = os.environ.get("MUTATE_REACH", "")
_seen = set()


def on(number):
    if REACH and number not in _seen:
        _seen.add(number)
        test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0]
        line = f"{number}\\t{test}\\n".encode()
        target = os.open(REACH, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(target, line)
        os.close(target)
    return number == ACTIVE


def forget():
    _seen.clear()
'''
PLUGIN = '''"""Record how long each test took, and part the reach of one test from that of the next."""
import json
import os
import signal

import mutation_switch
import pytest


def _stop(number, frame):
    raise TimeoutError("a test took too long")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logstart(nodeid, location):
    mutation_switch.forget()
    signal.signal(signal.SIGALRM, _stop)
    signal.alarm(150)


def pytest_runtest_logreport(report):
    target = os.environ.get("MUTATE_TIMES", "")
    if target and not hasattr(report, "node"):  # with xdist the worker has said it already
        with open(target, "a") as file:
            file.write(json.dumps([report.nodeid, report.when, report.outcome, report.duration]) + "\\n")
'''


@dataclass(frozen=True, slots=True)
class Mutation:
    """One change of an expression: where it stands, and both texts."""

    path: str
    line: int
    start: int
    end: int
    before: str
    after: str


def main() -> None:
    """Sample, record the reach, run each mutation, print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=150)
    parser.add_argument("--repo", type=Path, default=Path.cwd())
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=12.0, help="Time limit of one mutation.")
    parser.add_argument("--scratch", type=Path, help="Folder of the copy and its record; a temporary one by default.")
    options = parser.parse_args()
    scratch = options.scratch or Path(tempfile.mkdtemp(prefix="mutate-"))
    mutations = sample(options.repo.resolve(), options.seed, options.count)
    copy = scratch / "copy"
    if not (scratch / "reach.json").exists():
        write_copy(options.repo.resolve(), copy, mutations)
        reach = measure_reach(scratch, copy, options.jobs)
        (scratch / "reach.json").write_text(json.dumps(reach))
    reach = {int(key): value for key, value in json.loads((scratch / "reach.json").read_text()).items()}
    with ThreadPoolExecutor(options.jobs) as pool:
        tasks = [
            pool.submit(run_mutation, copy, scratch, number, reach.get(number, []), options.seconds)
            for number in range(len(mutations))
        ]
        outcomes = [task.result() for task in tasks]
    (scratch / "outcomes.json").write_text(
        json.dumps([{**asdict(one), "outcome": outcome} for one, outcome in zip(mutations, outcomes, strict=True)])
    )
    print_report(mutations, outcomes)


def sample(repo: Path, seed: int, count: int) -> list[Mutation]:
    """Choose mutations that do not overlap, each expression of the five rooms as likely as any other."""
    found = [
        one for room in ROOMS for path in sorted((repo / room).rglob("*.py")) for one in find_mutations(repo, path)
    ]
    random.Random(seed).shuffle(found)
    chosen: list[Mutation] = []
    taken: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for one in found:
        if len(chosen) == count:
            break
        if all(one.end <= start or end <= one.start for start, end in taken[one.path]):
            taken[one.path].append((one.start, one.end))
            chosen.append(one)
    return sorted(chosen, key=lambda one: (one.path, one.start))


def find_mutations(repo: Path, path: Path) -> Iterator[Mutation]:
    """Yield every mutation of a file: only of what runs inside functions."""
    source = path.read_bytes()
    lines = [0]
    for line in source.splitlines(keepends=True):
        lines.append(lines[-1] + len(line))
    for function in _outer_functions(ast.parse(source)):
        for statement in function.body:
            for node in _walk(statement):
                mutated = _mutate(node)
                part = node.value if isinstance(node, ast.Return) else node
                if mutated is None or not isinstance(part, ast.expr):
                    continue
                start = lines[part.lineno - 1] + part.col_offset
                end = lines[(part.end_lineno or 1) - 1] + (part.end_col_offset or 0)
                text = source[start:end].decode()
                yield Mutation(str(path.relative_to(repo)), part.lineno, start, end, text, ast.unparse(mutated))


def _outer_functions(node: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield child
        elif isinstance(child, ast.ClassDef | ast.If | ast.Try):
            yield from _outer_functions(child)


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and what is in it, but no annotations, patterns, decorators, defaults or formatted strings."""
    if isinstance(node, ast.JoinedStr | ast.pattern | ast.arguments | ast.ClassDef):
        return
    yield node
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "decorator_list"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _walk(child)


_FLIPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip


def _mutate(node: ast.AST) -> ast.expr | None:
    changed: ast.expr | None = None
    match node:
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            changed = ast.Compare(left, [_FLIPPED[type(operator)]()], [right])
        case ast.BoolOp(op=operator, values=values):
            changed = ast.BoolOp(ast.Or() if isinstance(operator, ast.And) else ast.And(), values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            changed = operand
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as operator, right=right):
            changed = ast.BinOp(left, ast.Sub() if isinstance(operator, ast.Add) else ast.Add(), right)
        case ast.Constant(value=bool(value)):
            changed = ast.Constant(not value)
        case ast.Constant(value=int(value) | float(value)):
            changed = ast.Constant(value + 1)
        case ast.Return(value=ast.expr() as value) if not _is_none(value):
            changed = ast.Constant(None)
    return changed


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def write_copy(repo: Path, copy: Path, mutations: Sequence[Mutation]) -> None:
    """Copy a checkout and write every mutation into it, switched off."""
    if copy.exists():
        shutil.rmtree(copy)
    shutil.copytree(
        repo, copy, ignore=shutil.ignore_patterns(".git", ".venv*", ".*_cache", "__pycache__", ".hypothesis")
    )
    by_path: dict[str, list[tuple[int, Mutation]]] = defaultdict(list)
    for number, one in enumerate(mutations):
        by_path[one.path].append((number, one))
    for path, listed in by_path.items():
        source = (copy / path).read_bytes()
        for number, one in sorted(listed, key=lambda pair: -pair[1].start):
            switch = f'__import__("mutation_switch").on({number})'
            text = f"(({one.after}) if {switch} else ({one.before}))"
            source = source[: one.start] + text.encode() + source[one.end :]
        compile(source, path, "exec")
        (copy / path).write_bytes(source)
    (copy / "mutation_switch.py").write_text(SWITCH)
    (copy / "mutation_plugin.py").write_text(PLUGIN)


def _command(*arguments: str) -> list[str]:
    quiet = ("-q", "-p", "no:cacheprovider", "-p", "mutation_plugin")
    return [sys.executable, "-m", "pytest", *quiet, *arguments]


def _environment(copy: Path, **more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "", "CI": "1", **more}


def measure_reach(scratch: Path, copy: Path, jobs: int) -> dict[int, list[tuple[str, float]]]:
    """Run the whole suite once; return for each mutation the tests that reach it, the most specific first."""
    reached, times = scratch / "reached.tsv", scratch / "times.jsonl"
    for file in (reached, times):
        file.unlink(missing_ok=True)
    many = ("-n", str(jobs)) if jobs > 1 else ()
    environment = _environment(copy, MUTATE_REACH=str(reached), MUTATE_TIMES=str(times))
    with (scratch / "suite.log").open("w") as log:
        subprocess.run(_command(*many, "tests"), cwd=copy, env=environment, stdout=log, stderr=log, check=False)
    seconds: Counter[str] = Counter()
    failed: set[str] = set()
    for line in times.read_text().splitlines():
        test, _, outcome, took = json.loads(line)
        seconds[test] += took
        if outcome == "failed":
            failed.add(test)
    tests: dict[int, set[str]] = defaultdict(set)
    sites: Counter[str] = Counter()
    for line in reached.read_text().splitlines():
        number, _, test = line.partition("\t")
        if test and test in seconds and test not in failed and test not in tests[int(number)]:
            tests[int(number)].add(test)
            sites[test] += 1
    return {
        number: [(test, seconds[test]) for test in sorted(found, key=lambda test: (sites[test], seconds[test], test))]
        for number, found in tests.items()
    }


def run_mutation(copy: Path, scratch: Path, number: int, tests: Sequence[tuple[str, float]], limit: float) -> str:
    """Run the most specific tests that reach a mutation: caught, survived, timeout or unreached."""
    if not tests:
        return "unreached"
    chosen: list[str] = []
    left = limit / 2
    for test, seconds in tests:
        if chosen and (seconds > left or len(chosen) == MOST_TESTS):
            continue
        chosen.append(test)
        left -= seconds
    started = time.monotonic()
    process = subprocess.Popen(
        _command("-x", "-p", "no:xdist", *chosen),
        cwd=copy,
        env=_environment(copy, MUTATE_ACTIVE=str(number)),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        text=True,
    )
    try:
        output, _ = process.communicate(timeout=3 * limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return "timeout"
    with (scratch / "runs.log").open("a") as log:
        log.write(f"{number} {process.returncode} {time.monotonic() - started:.1f} s {chosen[:2]}\n{output[-600:]}\n")
    return {0: "survived", 1: "caught"}.get(process.returncode, "caught")


def print_report(mutations: Sequence[Mutation], outcomes: Sequence[str]) -> None:
    """Print a table by room, and what survived."""
    kinds = ("caught", "survived", "timeout", "unreached")
    counts = Counter((one.path.split("/")[0], outcome) for one, outcome in zip(mutations, outcomes, strict=True))
    print(f"{'room':<12}" + "".join(f"{kind:>11}" for kind in kinds))
    for room in ROOMS:
        print(f"{room:<12}" + "".join(f"{counts[room, kind]:>11}" for kind in kinds))
    print(f"{'together':<12}" + "".join(f"{sum(counts[room, kind] for room in ROOMS):>11}" for kind in kinds))
    for one, outcome in zip(mutations, outcomes, strict=True):
        if outcome != "caught":
            print(f"{outcome}: {one.path}:{one.line}: {_short(one.before)}  ->  {_short(one.after)}")


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 70 else line[:67] + "..."


if __name__ == "__main__":
    main()
