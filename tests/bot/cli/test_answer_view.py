"""Answers as text: links, control characters, widths and days; `test_golden` has whole answers."""

import io
from dataclasses import replace
from datetime import UTC, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console, RenderableType

from bot.cli.rendering.answer_view import format_date, render_answer, render_hits, render_sources
from pipeline.types import Answer, AnsweredSentence, Status
from tests.bot.fake_services import DAY, answered, citation, hit


def _plain(view: RenderableType, width: int = 60) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None, force_terminal=False)
    console.print(view)
    return console.file.getvalue()


def _coloured(view: RenderableType) -> str:
    console = Console(file=io.StringIO(), width=60, color_system="truecolor", force_terminal=True, _environ={})
    console.print(view)
    return console.file.getvalue()


def test_source_without_address_shows_its_file() -> None:
    view = render_sources([citation(url="", date=None, section="")], zone=UTC)

    assert [line.rstrip() for line in _plain(view).splitlines()[:2]] == ["[1] Harbour", "    handbook: harbour.md"]


def test_links_are_only_for_terminals() -> None:
    view = render_answer(answered(), language="en", zone=UTC)

    assert "\x1b]8;" in _coloured(view)
    assert ";https://example.com/harbour.md" in _coloured(view)
    assert "\x1b" not in _plain(view)


def test_control_characters_of_documents_are_removed() -> None:
    evil = "\x1b[2Jx\x1b]0;owned\x07\x9b31m\r"
    cited = citation(title=evil, section=evil, url="https://e.example/\x1b[2J", quote=evil, passage_text=evil)
    reply = Answer(Status.ANSWERED, (AnsweredSentence(evil, (1,), note=evil),), (cited,))
    views = [
        render_answer(answered(answer=reply, text=evil + "[1]"), language="en", zone=UTC),
        render_sources([cited], zone=UTC),
        render_hits([replace(hit(title=evil, url=evil))]),
    ]

    for view in views:
        assert not set(_plain(view)) & {"\x1b", "\x07", "\x9b", "\r"}
        assert "owned" not in _coloured(view)
        assert "\x1b[2J" not in _coloured(view)


def test_markup_of_rich_in_a_document_is_shown_as_text() -> None:
    shown = _plain(render_answer(answered(text="[bold]x[/bold] :smile: [/nothing]"), language="en", zone=UTC))

    assert shown.startswith("[bold]x[/bold] :smile: [/nothing]")


@given(st.text(alphabet="港の開く時間は七時です。 the quay", max_size=300), st.integers(20, 120))
def test_no_line_is_wider_than_the_terminal(text: str, width: int) -> None:
    reply = Answer(Status.ANSWERED, (AnsweredSentence(text, (1,)),), (citation(quote=text, title=text),))
    shown = _plain(render_answer(answered(answer=reply, text=text), language="", zone=UTC), width)

    assert max(cell_len(line) for line in shown.splitlines()) <= width


def test_days_are_shown_in_the_configured_time_zone() -> None:
    assert format_date(DAY, UTC) == "2026-03-01"
    assert format_date(DAY, timezone(timedelta(hours=13))) == "2026-03-02"
    assert format_date(None, UTC) == ""
