"""Measure the size of the project, and compare it with the ceilings in `tools/budget.toml`.

    python -m tools.budget [--no-traces]

Prints each figure next to its ceiling, and exits with 1 if a figure is above it. `make test` runs this. How fast a
command starts is measured by the modules that it imports, because seconds vary with the load of the machine.
"""

import argparse
import ast
import json
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tools.structure import ROOMS, count_lines, list_entries, run_traces, sources

BUDGET = Path(__file__).with_name("budget.toml")
OTHERS = "others"  # the ceiling of each folder without its own
CODE = (*ROOMS, "tools", "examples")
LOADED = """
import atexit, json, sys
atexit.register(lambda: print(json.dumps(len(sys.modules)), file=sys.stderr))
sys.argv = ["footnote", *sys.argv[1:]]
from bot.__main__ import main
main()
"""


def main() -> None:
    """Print the table; exit with 1 if a figure is above its ceiling."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--no-traces", action="store_true", help="Skip the figures that need a command to run.")
    options = parser.parse_args()
    repo = Path(__file__).parents[1]
    budget = tomllib.loads(BUDGET.read_text(encoding="utf-8"))
    figures = measure_tree(repo)
    if not options.no_traces:
        entered = {name: len(modules) for name, modules in run_traces(repo).items()}
        figures |= {"modules entered": entered, "modules imported": measure_imports(repo)}
    exceeded = list(compare_figures(figures, budget))
    if exceeded:
        print("\nAbove the budget: " + "; ".join(exceeded))
        print("Remove what the change makes needless, or raise the ceiling in tools/budget.toml with the reason.")
        raise SystemExit(1)


def measure_tree(repo: Path) -> dict[str, dict[str, int]]:
    """Return the figures that are measured without running a command, in the tables of `budget.toml`."""
    lines = {room: sum(map(count_lines, sources(repo, room))) for room in (*CODE, "tests")}
    imports = {path: list(list_imports(path, repo)) for room in ROOMS for path in sources(repo, room)}
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in imports]
    return {
        "lines": lines | {"rooms and tools": sum(lines[room] for room in (*ROOMS, "tools"))},
        "entries": {
            str(folder.relative_to(repo)): len(list(list_entries(folder)))
            for room in ROOMS
            for folder in (repo / room, *(path for path in (repo / room).rglob("*") if path.is_dir()))
        },
        "words": {"documentation": count_words(repo)},
        "imports": {
            "modules in circles": sum(len(circle) for circle in find_circles(build_graph(imports, repo))),
            "blocks for type checking": sum(map(count_type_checking, trees)),
            "inside functions": sum(map(count_late_imports, trees)),
        },
    }


def compare_figures(figures: Mapping[str, Mapping[str, int]], budget: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    """Print each figure next to its ceiling, and yield the names of those above it."""
    print(f"{'figure':<75}{'now':>9}{'budget':>9}")
    for table, ceilings in budget.items():
        if table not in figures:
            continue
        for name, ceiling in ceilings.items():
            now = figures[table][name] if name != OTHERS else find_largest(figures[table], ceilings)
            mark = "  ABOVE" if now > ceiling else ""
            print(f"{table + ': ' + name:<75}{now:>9,}{ceiling:>9,}{mark}")
            if mark:
                yield f"{table}: {name} is {now:,}, and {ceiling:,} is allowed"


def find_largest(figures: Mapping[str, int], ceilings: Mapping[str, int]) -> int:
    """Return the largest of the figures that have no ceiling."""
    return max(figure for name, figure in figures.items() if name not in ceilings)


def count_words(repo: Path) -> int:
    """Return the number of words in the Markdown files of the root and of docs."""
    files = [*repo.glob("*.md"), *repo.glob("docs/**/*.md")]
    return sum(len(path.read_text(encoding="utf-8").split()) for path in files)


def list_imports(path: Path, repo: Path) -> Iterator[str]:
    """Yield the dotted names of the modules that a file imports outside of functions."""
    for node in iterate_top_level(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                module = f"{node.module}.{alias.name}".replace(".", "/")
                is_module = (repo / f"{module}.py").exists() or (repo / module).is_dir()
                yield f"{node.module}.{alias.name}" if is_module else node.module


def iterate_top_level(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes outside of functions, including those that are only for type checking."""
    for node in ast.iter_child_nodes(tree):
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from iterate_top_level(node)


def build_graph(imports: Mapping[Path, Sequence[str]], repo: Path) -> dict[str, set[str]]:
    """Return, for each of the modules in `imports`, which others of them it imports."""
    names = {path: ".".join(path.relative_to(repo).with_suffix("").parts).removesuffix(".__init__") for path in imports}
    known = set(names.values())
    return {names[path]: {module for module in modules if module in known} for path, modules in imports.items()}


def find_circles(graph: Mapping[str, set[str]]) -> list[set[str]]:
    """Return the groups of modules that import each other, directly or through others."""
    reached = {module: _reach(graph, module) for module in graph}
    circles: list[set[str]] = []
    for module in graph:
        circle = {other for other in reached[module] if module in reached[other]}
        if len(circle) > 1 and circle not in circles:
            circles.append(circle)
    return circles


def _reach(graph: Mapping[str, set[str]], start: str) -> set[str]:
    seen, waiting = set[str](), [start]
    while waiting:
        for module in graph[waiting.pop()] - seen:
            seen.add(module)
            waiting.append(module)
    return seen


def count_type_checking(tree: ast.AST) -> int:
    """Return the number of `if TYPE_CHECKING:` blocks."""
    return sum(
        isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for node in ast.walk(tree)
    )


def count_late_imports(tree: ast.AST) -> int:
    """Return the number of import statements inside functions."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    nodes = {id(node): node for function in functions for node in ast.walk(function)}
    return sum(isinstance(node, ast.Import | ast.ImportFrom) for node in nodes.values())


def measure_imports(repo: Path) -> dict[str, int]:
    """Return how many modules `footnote --help` and `footnote ask` import."""
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        (scratch / "footnote.toml").write_text('home = "home"\n')
        (scratch / "pages").mkdir()
        (scratch / "pages" / "leave.md").write_text("# Leave\n\nEverybody has 27 days of paid leave a year.\n")
        _count_loaded(repo, scratch, "ingest", "folder", "pages", "--corpus", "handbook")
        ask = _count_loaded(repo, scratch, "ask", "How many days of leave do I get?")
        return {"footnote --help": _count_loaded(repo, scratch, "--help"), "footnote ask": ask}


def _count_loaded(repo: Path, folder: Path, *arguments: str) -> int:
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(repo)!r}){LOADED}", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    loaded: int = json.loads(done.stderr.splitlines()[-1])
    return loaded


if __name__ == "__main__":
    main()
