"""Measure how long commands take to start: `python tools/startup.py [--config FILE] [--runs N]`.

Prints the fastest wall-clock time and the processor time of `--help`, and, with a settings file whose home is
indexed, of `ask`; and how many modules and regular expressions each loads.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time

COUNT = """
import atexit, json, re._compiler, sys
compiled, plain = [0], re._compiler.compile
def counting(*arguments, **options):
    compiled[0] += 1
    return plain(*arguments, **options)
re._compiler.compile = counting
atexit.register(lambda: print(json.dumps([len(sys.modules), compiled[0]]), file=sys.stderr))
sys.argv = ["footnote", *sys.argv[1:]]
from bot.__main__ import main
main()
"""


def measure(arguments: list[str], runs: int) -> str:
    """Run a command several times, and say what the fastest run took."""
    found = []
    for _ in range(runs):
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        subprocess.run([sys.executable, "-m", "bot", *arguments], check=True, stdout=subprocess.DEVNULL)
        wall, after = time.monotonic() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append((wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))
    command, quiet = [sys.executable, "-c", COUNT, *arguments], subprocess.DEVNULL
    counted = subprocess.run(command, check=True, stdout=quiet, stderr=subprocess.PIPE, text=True)
    modules, patterns = json.loads(counted.stderr.splitlines()[-1])
    wall, processor = min(wall for wall, _ in found), min(spent for _, spent in found)
    return f"{wall:.2f} s of wall, {processor:.2f} s of processor, {modules:,} modules, {patterns:,} patterns"


def main() -> None:
    """Print the times of both commands."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--config", help="the settings of a home in which something is indexed")
    parser.add_argument("--question", default="How many days of leave do I get?")
    parser.add_argument("--runs", type=int, default=3)
    asked = parser.parse_args()
    os.environ.pop("FOOTNOTE_CONFIG", None)
    print("footnote --help:", measure(["--help"], asked.runs))
    if asked.config:
        print("footnote ask:", measure(["--config", asked.config, "ask", asked.question], asked.runs))


if __name__ == "__main__":
    main()
