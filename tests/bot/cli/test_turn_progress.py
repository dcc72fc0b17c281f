"""The progress that a terminal shows during a turn, and an answer that is streamed."""

import io
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console, Group

from bot.cli.rendering.answer_view import WIDTH, StreamedAnswer, style_sentences
from bot.cli.rendering.turn_progress import render_claim_line, render_event_line, render_quote_line, watch_turn
from bot.cli.terminal_output import Output
from bot.views.catalog import render_sentence
from pipeline.types import (
    AnsweredSentence,
    ClaimChecked,
    ClaimExplained,
    DraftStarted,
    Event,
    PageQuoted,
    PassagesFound,
    SearchStarted,
    SentencePassed,
)
from storage.types import CheckedClaim, Claim, Evidence, Verdict
from tests.bot.fake_services import hit

MADE_UP = "The keeper of Skarholm\x1b[2J was born on the moon."


def checked(verdict: Verdict, origin: str = "model") -> ClaimChecked:
    return ClaimChecked(CheckedClaim(Claim(MADE_UP, origin), verdict))


def console(width: int = 60, *, terminal: bool = True) -> Console:
    return Console(file=io.StringIO(), width=width, color_system=None, force_terminal=terminal, _environ={})


def sentence(text: str, *, paragraph: bool = False, note: str = "") -> AnsweredSentence:
    return AnsweredSentence(text, (1,), note, paragraph=paragraph)


def watched(*events: Event, terminal: bool = True, as_json: bool = False, say=None) -> str:
    err = console(terminal=terminal)
    with watch_turn(Output(console(), err, as_json=as_json), say) as observe:
        for event in events:
            observe(event)
    return err.file.getvalue()


@pytest.mark.parametrize(("event", "line"), [
    (SearchStarted("a\nb"), "Searching “a b” …"),
    (PassagesFound("a", (hit(),)), "Passages found: 1. Reading …"),
    (checked(Verdict.REFUTES), "Checking statements …"),
    (DraftStarted(3), "Findings: 3. Drafting …"),
    (SentencePassed(sentence("x")), "Writing …"),
])  # fmt: skip
def test_event_is_shown_in_a_line(event: Event, line: str) -> None:
    assert render_event_line(event) == line


def test_only_supported_claims_show_their_text() -> None:
    shown = watched(checked(Verdict.SUPPORTS), checked(Verdict.REFUTES), checked(Verdict.NOT_ENOUGH_INFO))

    assert shown.count("The keeper of Skarholm was born on the moon.") == 1
    assert shown.count("a claim could not be confirmed") == 2
    line = render_claim_line(checked(Verdict.SUPPORTS).checked)
    assert line == "confirmed: The keeper of Skarholm was born on the moon."


def test_quotation_is_marked_as_not_an_answer() -> None:
    quoted = PageQuoted(Evidence("The quay\x1b[2J opens at seven.", hit().passage, hit().document, (0, 8)))
    shown = watched(SearchStarted("a"), quoted, ClaimExplained(checked(Verdict.REFUTES).checked))

    assert "not an answer yet): “The quay opens at seven.”" in " ".join(shown.split())
    assert "\x1b[2J" not in shown
    assert "moon" not in shown


def test_quotation_shows_its_page_and_date() -> None:
    document = replace(hit().document, title="Fares", date=datetime(2024, 2, 5, tzinfo=UTC))

    line = render_quote_line(Evidence("It costs 12 crowns.", hit().passage, document, (0, 19)))
    assert line.endswith("“It costs 12 crowns.” (Fares, 2024-02-05)")


def test_verdict_on_the_user_s_claim_is_not_shown_as_progress() -> None:
    assert "confirmed" not in watched(checked(Verdict.SUPPORTS, origin="user"))


def test_progress_is_hidden_in_a_pipe_and_with_json() -> None:
    assert watched(SearchStarted("a"), terminal=False) == ""
    assert watched(SearchStarted("a"), as_json=True) == ""


@pytest.mark.parametrize("terminal", [True, False])
def test_each_passed_sentence_is_reported(*, terminal: bool) -> None:
    heard: list[AnsweredSentence] = []
    passed = [SentencePassed(sentence("One.")), SentencePassed(sentence("Two."))]
    watched(SearchStarted("a"), *passed, terminal=terminal, say=heard.append)

    assert [sentence.text for sentence in heard] == ["One.", "Two."]


WORDS = st.lists(st.sampled_from(["quay", "the", "opens", "港が七時に開く", "Überraschungsmoment", "a"]), min_size=1)
SENTENCES = st.lists(
    st.builds(lambda words, par: sentence(" ".join(words), paragraph=par), WORDS, st.booleans()), min_size=1
)


@given(SENTENCES, st.integers(20, 130))
def test_streamed_answer_equals_the_answer_printed_at_once(sentences: list[AnsweredSentence], width: int) -> None:
    flowing, whole = console(width), console(width)
    flow = StreamedAnswer(flowing)
    for each in sentences:
        flow.say(each)
    flow.close()
    text = style_sentences("".join(map(render_sentence, sentences)).strip(), sentences)
    whole.print(Group(text), width=min(width, WIDTH))

    lines = [line.rstrip() for line in whole.file.getvalue().splitlines()]
    assert [line.rstrip() for line in flowing.file.getvalue().splitlines()] == lines


@pytest.mark.parametrize(("sentences", "printed"), [
    ([], ""),
    ([sentence("\x1b[2JOne.\x07", note="\x1b[1mPage")], "(Page) One. [1]\n"),
])  # fmt: skip
def test_streamed_answer_has_no_control_characters(sentences: list[AnsweredSentence], printed: str) -> None:
    flow = StreamedAnswer(out := console())
    for each in sentences:
        flow.say(each)
    flow.close()

    assert (flow.started, out.file.getvalue()) == (bool(sentences), printed)
