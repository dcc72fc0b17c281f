"""Commands, shortcuts and pressed buttons of Slack, parsed."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.access import Asker
from bot.desk.channel_command import parse_setting
from bot.platforms.slack.actions import ButtonPress, parse_press
from bot.platforms.slack.events import SlackBotIdentity
from bot.platforms.slack.intake import build_invocation_question, parse_invocation
from bot.platforms.slack.messages import render_messages
from bot.views.catalog import render_left_out, translate
from bot.views.sanitize import WORD_JOINER
from tests.bot.views.moments import FINAL

US = SlackBotIdentity("T1", "U0BOT", "B0BOT")
ASKER = Asker("slack", "channel", "T1", "C1", "U1")
NOW = datetime(2026, 5, 5, tzinfo=UTC)
COMMAND = {
    "command": "/ask",
    "text": "Does <@U2|ben> know?",
    "user_id": "U1",
    "channel_id": "C1",
    "trigger_id": "1.SECRET",
    "response_url": "https://hooks.slack.com/commands/SECRET",
}
SHORTCUT = {
    "type": "message_action",
    "callback_id": "footnote_check",
    "message": {"ts": "17.1", "thread_ts": "16.1", "text": "The pier is &gt; 3 m."},
    "user": {"id": "U1"},
    "channel": {"id": "C1"},
    "trigger_id": "2.SECRET",
    "response_url": "https://hooks.slack.com/actions/SECRET",
}


def make_question(body):
    found = parse_invocation(body, US)
    assert found
    return build_invocation_question(found, US, ASKER, NOW)


def test_question_of_a_command_is_answered_privately():
    question = make_question(COMMAND)

    assert (question.task, question.text, question.only_asker, question.message) == ("ask", "Does @ben know?", True, "")
    assert question.handle == COMMAND["response_url"]
    assert question.key == question.conversation
    assert question.key.startswith("slack:T1/command/")
    assert "SECRET" not in question.key
    assert make_question({**COMMAND, "command": "/check"}).task == "check"
    assert make_question({**COMMAND, "trigger_id": "3"}).key != question.key


def test_shortcut_checks_its_message_in_its_thread():
    question = make_question(SHORTCUT)
    alone = make_question({**SHORTCUT, "message": {"ts": "17.1", "text": "The pier is &gt; 3 m."}})

    assert (question.task, question.text, question.only_asker) == ("check", "The pier is > 3 m.", True)
    assert (question.place.channel, question.place.thread) == ("C1", "16.1")
    assert (alone.place.channel, alone.place.thread) == ("C1", "")


@pytest.mark.parametrize(
    "body", [{}, {**COMMAND, "command": "/footnote"}, {**SHORTCUT, "callback_id": "other"}, {"type": "view_submission"}]
)
def test_invocations_without_a_question_are_not_parsed_as_one(body):
    assert parse_invocation(body, US) is None


def test_button_press_is_parsed():
    body = {
        "actions": [{"action_id": "footnote:stop", "value": "7"}],
        "user": {"id": "U1"},
        "channel": {"id": "C1"},
        "container": {"type": "message", "thread_ts": "16.1", "channel_id": "C1"},
        "trigger_id": "t",
        "response_url": "u",
    }

    assert parse_press(body) == ButtonPress("footnote:stop", "7", "U1", "C1", "t", "u", "16.1")
    modal = parse_press({**body, "channel": None, "container": {"type": "view"}, "view": {"id": "V1"}})
    assert modal
    assert (modal.view, modal.channel) == ("V1", "")


@pytest.mark.parametrize("body", [{}, {"actions": []}, {"actions": ["odd"]}, {"actions": [{"action_id": "x"}]}])
def test_unknown_button_press_is_ignored(body):
    assert parse_press(body) is None


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("", ("", "")),
        ("settings", ("settings", "")),
        ("answer mention", ("answer", "mention")),
        ("set answer mention", ("answer", "mention")),
        ("SET  Answer   every", ("answer", "every")),
        ("corpora handbook, wiki law", ("corpora", "handbook, wiki law")),
        ("set corpora handbook, wiki law", ("corpora", "handbook, wiki law")),
        ("set", ("", "")),
    ],
)
def test_setting_is_parsed_with_or_without_the_word_set(written, expected):
    assert parse_setting(written) == expected


@given(st.dictionaries(st.sampled_from([*COMMAND, *SHORTCUT]), st.text(max_size=9) | st.none() | st.integers()))
def test_any_invocation_is_parsed_without_an_error(odd):
    for body in ({**COMMAND, **odd}, {**SHORTCUT, **odd}):
        if found := parse_invocation(body, US):
            build_invocation_question(found, US, ASKER, NOW)
        parse_press(body)


@pytest.mark.parametrize(
    "written",
    [
        "*The pier* is _made_ of `oak`.",
        "&gt; The pier is ~made~ of *oak*.",
        "• The pier is made of oak.",
        "```The pier is made of oak.```",
    ],
)
def test_formatting_is_removed_from_checked_text(written):
    question = make_question({**SHORTCUT, "message": {"ts": "17.1", "text": written}})
    assert question.text == "The pier is made of oak."
    assert make_question({**COMMAND, "command": "/check", "text": written}).text == question.text


def test_signs_without_formatting_effect_stay():
    text = "snake_case_name, 2*3*4, ~5 and a * b"
    assert make_question({**COMMAND, "command": "/check", "text": text}).text == text
    assert make_question({**COMMAND, "text": "Is *this* bold?"}).text == "Is *this* bold?"


def test_footnotes_of_our_own_answer_are_not_checked():
    for language in ("en", "de"):
        counts = {"left_out": render_left_out(1, 5, language)}
        counts["collapsed"] = translate("statements", language, checked=2, confirmed=1)
        answer = {"ts": "17.1", "user": US.user, "text": render_messages(replace(FINAL, **counts))[0].text}
        assert WORD_JOINER in answer["text"]
        said = make_question({**SHORTCUT, "message": answer}).text
        assert " ".join(said.split()) == " ".join(sentence.text for sentence in FINAL.sentences)
