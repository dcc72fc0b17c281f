"""Messages of Slack as plain text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.platforms.slack.events import decode_mrkdwn
from bot.platforms.slack.messages import escape_mrkdwn
from tests.platforms import markup


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<@U2|ann> and <@U3>", "@ann and @U3"),
        ("in <#C1|general> or <#C2>", "in #general or #C2"),
        ("<!here> <!subteam^S1|@crew> <!date^1^x|May>", "@here @crew May"),
        (
            "<https://e.org/a|page> <https://e.org> <mailto:a@e.org|a@e.org>",
            "page (https://e.org/a) https://e.org mailto:a@e.org",
        ),
        ("a &lt; b &amp;&amp; c &gt; d &amp;lt;", "a < b && c > d &lt;"),
        ("<b>", "b"),
    ],
)
def test_references_and_entities_become_words(text: str, expected: str) -> None:
    assert decode_mrkdwn(text) == expected


@given(st.text(alphabet="abc <>&;@#!|*", max_size=30))
def test_escaped_text_is_decoded_to_the_same_words(text: str) -> None:
    assert markup.UNSEEN.sub("", decode_mrkdwn(escape_mrkdwn(text))) == text
