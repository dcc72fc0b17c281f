"""Commands of the command line, run in a services of a test."""

import json
from typing import Any

from typer.testing import CliRunner, Result

from bot.cli.command_context import CliState
from bot.cli.entry_point import app
from tests.bot.fake_services import FakeServices

SOURCES = """
[[corpus]]
name = "handbook"
readers = ["slack:T1/C1"]
source = { type = "folder", path = "docs", url_base = "https://example.com", include = ["*.md"], exclude = ["old"] }
[[corpus]]
name = "nothing"
[[corpus]]
name = "wikipedia"
source = { type = "wikipedia", dump = "wiki.xml.bz2" }
"""
NO_MODEL_USED = dict.fromkeys(("llm_calls", "llm_rounds", "prompt_tokens", "cached_tokens", "completion_tokens"), 0) | {
    "cost": None
}


def run(*arguments: str, services: FakeServices | None = None, typed: str = "") -> Result:
    invocation = CliState(services=(services or FakeServices()).doors())
    return CliRunner().invoke(app, arguments, obj=invocation, input=typed, prog_name="footnote")


def document(result: Result) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(result.stdout)
    assert read.pop("schema") == 1
    return read
