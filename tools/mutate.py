"""Sample small mutations of the code, and count how many of them the tests catch.

    python -m tools.mutate --seed 1 --count 150 [--repo DIR] [--jobs 2] [--scratch DIR]
    python -m tools.mutate --same OUTCOMES    the places of an earlier run, even if they have moved

All mutations are written into one copy of the checkout, each behind a switch that is off. One run of the whole suite
records which tests reach which switch. Then each mutation is switched on alone, and the most specific tests that reach
it run within a time limit. The record is stored in the scratch folder; another run with the same folder uses it again.
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
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

ROOMS = ("bot", "pipeline", "ingest", "storage", "evaluation")
MOST_TESTS = 40
OUTCOMES = ("caught", "survived", "timeout", "unreached", "error")
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
PLUGIN = '''"""Record how long each test took, and which switches it reached."""
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
    if target and not hasattr(report, "node"):  # the worker of xdist has written it already
        with open(target, "a") as file:
            file.write(json.dumps([report.nodeid, report.when, report.outcome, report.duration]) + "\\n")
'''


@dataclass(frozen=True, slots=True)
class Mutation:
    """A change of one expression."""

    path: str
    line: int
    start: int  # in bytes
    end: int
    before: str
    after: str
    function: str  # the outermost function around it


def main() -> None:
    """Choose mutations, record which tests reach them, run each, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=150)
    parser.add_argument("--repo", type=Path, default=Path.cwd())
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=12.0, help="Time limit of one mutation.")
    parser.add_argument("--scratch", type=Path, help="Folder of the copy and its record; default: a temporary one.")
    parser.add_argument("--same", type=Path, help="Mutate the places of this outcomes.json, not a new sample.")
    options = parser.parse_args()
    scratch = options.scratch or Path(tempfile.mkdtemp(prefix="mutate-"))
    repo, before = options.repo.resolve(), list[str]()
    if options.same:
        mutations, before = find_same(repo, options.same)
    else:
        mutations = sample(repo, options.seed, options.count)
    copy = scratch / "copy"
    if not (scratch / "reach.json").exists():
        write_copy(repo, copy, mutations)
        (scratch / "reach.json").write_text(json.dumps(measure_reach(scratch, copy, options.jobs)))
    reach = {int(key): value for key, value in json.loads((scratch / "reach.json").read_text()).items()}
    with ThreadPoolExecutor(options.jobs) as pool:
        tasks = [
            pool.submit(run_mutation, copy, scratch, number, reach.get(number, []), options.seconds)
            for number in range(len(mutations))
        ]
        outcomes = [task.result() for task in tasks]
    document = [{**asdict(mutation), "outcome": outcome} for mutation, outcome in zip(mutations, outcomes, strict=True)]
    (scratch / "outcomes.json").write_text(json.dumps(document))
    print_report(mutations, outcomes, before)
    if "error" in outcomes:
        raise SystemExit(f"pytest itself failed for some mutations: see {scratch / 'runs.log'}.")


def sample(repo: Path, seed: int, count: int) -> list[Mutation]:
    """Draw `count` random mutations of the code in `ROOMS`; no two of them overlap."""
    possible = list_mutations(repo)
    random.Random(seed).shuffle(possible)
    return _choose_apart(possible, count)


def find_same(repo: Path, outcomes: Path) -> tuple[list[Mutation], list[str]]:
    """Return the mutations of an earlier run that this checkout still has, and their outcomes then; print the others.

    A place counts as the same if the same expression is in a function of the same name. A place in the same file is
    preferred, then one in the same room.
    """
    rows = json.loads(outcomes.read_text())
    earlier = [Mutation(**{name: value for name, value in row.items() if name != "outcome"}) for row in rows]
    here: dict[tuple[str, str, str], list[Mutation]] = defaultdict(list)
    for mutation in list_mutations(repo):
        here[_identify(mutation)].append(mutation)
    chosen: dict[tuple[str, int, int], tuple[Mutation, str]] = {}
    missing: list[Mutation] = []
    for mutation, row in zip(earlier, rows, strict=True):
        free = [
            possible
            for possible in here[_identify(mutation)]
            if (possible.path, possible.start, possible.end) not in chosen
        ]
        if free:
            near = min(free, key=lambda possible: (possible.path != mutation.path, _room(possible) != _room(mutation)))
            chosen[near.path, near.start, near.end] = near, row["outcome"]
        else:
            missing.append(mutation)
    apart = _choose_apart([mutation for mutation, _ in chosen.values()], len(chosen))
    print(f"{len(apart)} of {len(rows)} places found; {len(rows) - len(apart)} not found or inside of another")
    for mutation in missing:
        print(f"not found: {mutation.path}: {mutation.function}: {_short(mutation.before)}")
    return apart, [chosen[mutation.path, mutation.start, mutation.end][1] for mutation in apart]


def list_mutations(repo: Path) -> list[Mutation]:
    """Return every possible mutation of the code in `ROOMS`."""
    paths = [path for room in ROOMS for path in sorted((repo / room).rglob("*.py"))]
    return [mutation for path in paths for mutation in find_mutations(repo, path)]


def _identify(mutation: Mutation) -> tuple[str, str, str]:
    return mutation.function, " ".join(mutation.before.split()), mutation.after


def _room(mutation: Mutation) -> str:
    return mutation.path.partition("/")[0]


def _choose_apart(mutations: Sequence[Mutation], most: int) -> list[Mutation]:
    """Return the first `most` mutations that do not overlap an earlier one, sorted by place."""
    chosen: list[Mutation] = []
    taken: dict[str, list[Mutation]] = defaultdict(list)
    for mutation in mutations:
        if len(chosen) == most:
            break
        if all(mutation.end <= other.start or other.end <= mutation.start for other in taken[mutation.path]):
            taken[mutation.path].append(mutation)
            chosen.append(mutation)
    return sorted(chosen, key=lambda mutation: (mutation.path, mutation.start))


def find_mutations(repo: Path, path: Path) -> Iterator[Mutation]:
    """Yield every mutation of the code inside a file's functions."""
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
                text, place = source[start:end].decode(), str(path.relative_to(repo))
                yield Mutation(place, part.lineno, start, end, text, ast.unparse(mutated), function.name)


def _outer_functions(node: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield child
        elif isinstance(child, ast.ClassDef | ast.If | ast.Try):
            yield from _outer_functions(child)


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and its descendants, except annotations, patterns, decorators, defaults and formatted strings."""
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
    """Copy a checkout, and write every mutation into the copy, switched off."""
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(
        repo, copy, ignore=shutil.ignore_patterns(".git", ".venv*", ".*_cache", "__pycache__", ".hypothesis")
    )
    by_path: dict[str, list[tuple[int, Mutation]]] = defaultdict(list)
    for number, mutation in enumerate(mutations):
        by_path[mutation.path].append((number, mutation))
    for path, listed in by_path.items():
        source = (copy / path).read_bytes()
        for number, mutation in sorted(listed, key=lambda pair: -pair[1].start):
            switch = f'__import__("mutation_switch").on({number})'
            text = f"(({mutation.after}) if {switch} else ({mutation.before}))"
            source = source[: mutation.start] + text.encode() + source[mutation.end :]
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
    """Run the whole suite once.

    Return, for each mutation, the tests that reach it with their seconds, most specific first.
    """
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
        number: [(test, seconds[test]) for test in sorted(names, key=lambda test: (sites[test], seconds[test], test))]
        for number, names in tests.items()
    }


def run_mutation(copy: Path, scratch: Path, number: int, tests: Sequence[tuple[str, float]], limit: float) -> str:
    """Run the most specific tests that reach a mutation; return one of `OUTCOMES`."""
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
        _command("-x", "-n", "0", *chosen),
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
    # 2: a module cannot be imported with the mutation. Any other status is a failure of pytest itself.
    return {0: "survived", 1: "caught", 2: "caught"}.get(process.returncode, "error")


def print_report(mutations: Sequence[Mutation], outcomes: Sequence[str], before: Sequence[str] = ()) -> None:
    """Print a table by room, and each mutation that was not caught; `before` are the outcomes of an earlier run."""
    counts = Counter((_room(mutation), outcome) for mutation, outcome in zip(mutations, outcomes, strict=True))
    _print_row("room", dict(zip(OUTCOMES, OUTCOMES, strict=True)))
    for room in ROOMS:
        _print_row(room, {outcome: counts[room, outcome] for outcome in OUTCOMES})
    _print_row("together", Counter(outcomes))
    if before:
        _print_row("before", Counter(before))
    for place, (mutation, outcome) in enumerate(zip(mutations, outcomes, strict=True)):
        if outcome != "caught":
            change = f", {before[place]} before" if before and before[place] != outcome else ""
            where = f"{mutation.path}:{mutation.line}"
            print(f"{outcome}{change}: {where}: {_short(mutation.before)}  ->  {_short(mutation.after)}")


def _print_row(name: str, cells: Mapping[str, object]) -> None:
    print(f"{name:<12}" + "".join(f"{cells[outcome]:>11}" for outcome in OUTCOMES))


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 70 else line[:67] + "..."


if __name__ == "__main__":
    main()
