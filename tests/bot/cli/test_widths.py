"""Tables, paragraphs and addresses at every width, in a terminal and in a pipe."""

import fcntl
import io
import os
import pty
import struct
import termios
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from typer.testing import CliRunner

from bot.cli.command_context import CliState
from bot.cli.entry_point import app, find_platform_fault, replace_unsupported
from bot.cli.rendering.corpus_view import render_forgotten
from bot.cli.rendering.ingest_view import render_preview
from bot.cli.terminal_output import Output, open_console, open_output
from bot.views.text_formats import build_table
from bot.views.text_layout import UNWRAPPED, Hanging, Text
from storage.types import CorpusInfo, DocumentRef, EntryKind, LogEntry
from tests.bot.fake_services import DAY, FakeServices, answered, citation, document, hit, logged

PATH = "teams/操作/a very long name of a folder that nobody would type/the handbook of the quay.md"
URL = f"https://wiki.example.com/{'handbook/' * 9}annual-leave#the-notice-depends-on-how-long"
NAME = "the-handbook-of-the-quay"
COMMANDS = (
    ["ask", "When?"], ["check", "It opens."], ["search", "quay"], ["corpora"], ["corpora", "--forgotten"],
    ["ingest", "folder", "/srv", "--corpus", NAME], ["ingest", "status"], ["audit", "list"],
    ["audit", "show", "abc123"], ["audit", "show", "abc123", "--full"], ["audit", "stats"],
    ["audit", "feedback"], ["audit", "unanswered"], ["audit", "verify"], ["forget", URL], ["reindex"],
)  # fmt: skip


def make_services() -> FakeServices:
    cited = citation(url=URL, title="港の開く時間は七時です。" * 4)
    reply = replace(answered().answer, citations=(cited,))
    opened, step, closed = logged()
    closed = replace(closed, body={**closed.body, "citations": [{**closed.body["citations"][0], "url": URL}]})
    rated = LogEntry("abc123", EntryKind.FEEDBACK, {"what": "down", "by": "slack:T1/U1", "comment": URL}, 4, DAY)
    return FakeServices(
        corpora=(CorpusInfo(NAME, 1_234_567, 12_345_678, DAY, 1),),
        hits=(hit(), replace(hit(2), document=document(url=URL))),
        answer=answered(answer=reply),
        away=(DocumentRef(NAME, "old.md", "The old rules of the quay, as they were kept", URL),),
        record=(opened, step, closed, rated),
        report=replace(FakeServices().report, failures=((PATH, "holds no text"), (URL, "is not there"))),
    )


@dataclass(frozen=True)
class StoredOutput(Output):
    """An output that stores its views."""

    views: list[RenderableType] = field(default_factory=list)

    def view(self, *views: RenderableType) -> None:
        self.views.extend(views)


def show(views: Sequence[RenderableType], width: int) -> str:
    shown = io.StringIO()
    screen = Console(file=shown, width=width, color_system=None, force_terminal=True, _environ={})
    Output(screen, screen).view(*views)
    return shown.getvalue()


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_lines_fit_and_addresses_stay_whole(arguments: Sequence[str]) -> None:
    output = StoredOutput(Console(file=io.StringIO()), Console(file=io.StringIO()))
    state = CliState(make_services().build(), lambda **_: output)
    result = CliRunner().invoke(app, arguments, obj=state, prog_name="footnote")
    named = [address for address in (URL, PATH) if address in show(output.views, UNWRAPPED)]

    assert (result.exit_code, bool(output.views)) == (0, True)
    for width in (40, 60, 80, 200):
        lines = show(output.views, width).splitlines()

        assert all(any(address in line for line in lines) for address in named)
        long = [line for line in lines if cell_len(line) > width]
        assert all(any(address in line for address in named) for line in long)


@pytest.mark.parametrize("width", [40, 60, 80])
def test_table_that_is_too_wide_lists_its_rows_as_records(width: int) -> None:
    table = build_table("Corpus", "Documents", "Passages", "Last refresh", "Readers", numbers=(1, 2))
    table.add_row("handbook", "27", "1,150", "2026-11-23 07:32", "the terminal only")
    shown = io.StringIO()
    Console(file=shown, width=width, color_system=None).print(table, crop=False)
    lines = shown.getvalue().splitlines()

    assert max(map(cell_len, lines)) <= width
    assert (lines[0] == "handbook") == (width == 40)
    assert ("  Documents     27" in lines) == (width == 40)
    assert "港" not in shown.getvalue()


@given(st.text(alphabet="港の開く、🚢 the quay\n", max_size=200), st.integers(10, 60))
def test_wrapped_text_is_complete_and_fits_the_width(text: str, width: int) -> None:
    shown = io.StringIO()
    Console(file=shown, width=width, color_system=None).print(Group(Hanging(Text("1. "), Text(text))), crop=False)

    assert all(cell_len(line) <= width for line in shown.getvalue().splitlines())
    assert "".join(shown.getvalue().split()) == "".join(f"1.{text}".split())


def test_long_lists_are_shortened_with_a_hint() -> None:
    shown = io.StringIO()
    files = [(f"team{number % 3}/{number}.md", "") for number in range(500)]
    away = [DocumentRef("handbook", f"{number}.md", "Old", "") for number in range(500)]
    Console(file=shown, width=80).print(render_preview(files), render_forgotten(away))

    assert "team0/ (167)" in shown.getvalue()
    assert "And 400 more: `--json` lists all of them." in shown.getvalue()
    assert len(shown.getvalue().splitlines()) < 120


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "cp932"])
def test_unsupported_characters_are_replaced(encoding: str) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    replace_unsupported(stream)
    table = build_table("Corpus", "Readers")
    table.add_row("港", "“*” → ✓ −0")
    Output(Console(file=stream, width=80), Console(file=stream)).view(table, Text("“ask” › 港"))
    stream.flush()

    assert b"Corpus" in stream.buffer.getvalue()


def test_output_to_a_pipe_is_neither_wrapped_nor_coloured() -> None:
    assert open_output(as_json=False, debug=False).out.width == UNWRAPPED
    assert open_output(as_json=False, debug=False).out.color_system is None


def test_windows_is_refused_with_a_hint() -> None:
    fault = find_platform_fault("win32")

    assert fault
    assert "WSL" in fault.hint
    assert find_platform_fault("linux") is find_platform_fault("darwin") is None


def test_dumb_terminal_output_has_the_terminals_width_and_no_colours() -> None:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 40, 0, 0))
    with os.fdopen(theirs, "w", encoding="utf-8") as stream, os.fdopen(ours, "rb"):
        console = open_console(stream, {"TERM": "dumb"})

        assert (console.width, console.color_system) == (40, None)
