"""Which requests are Slack's."""

import time

import pytest

from bot.platforms.slack.transport import is_signed_by_slack
from tests.platforms.slack.signing import FORGERIES, signed

SECRET = "0123456789abcdef0123456789abcdef"
BODY = '{"type": "event_callback", "text": "Grüße ✓"}'


def lowered(headers):
    return {name.lower(): value for name, value in headers.items()}


def test_what_slack_signed_is_slacks():
    """Whatever is in it."""
    assert is_signed_by_slack(SECRET, BODY.encode(), lowered(signed(SECRET, BODY)), time.time())


@pytest.mark.parametrize("forgery", FORGERIES)
def test_what_is_forged_tampered_with_or_sent_again_is_not(forgery):
    """By each of its headers."""
    assert not is_signed_by_slack(SECRET, BODY.encode(), lowered(FORGERIES[forgery](SECRET, BODY)), time.time())


def test_without_a_secret_nothing_is():
    """An empty one would sign everything."""
    assert not is_signed_by_slack("", BODY.encode(), lowered(signed("", BODY)), time.time())


@pytest.mark.parametrize("age", [-300, 300])
def test_five_minutes_old_is_just_young_enough(age):
    """A second more is not."""
    now = 1_700_000_000.0
    headers = lowered(signed(SECRET, BODY, now - age))

    assert is_signed_by_slack(SECRET, BODY.encode(), headers, now)
    assert not is_signed_by_slack(SECRET, BODY.encode(), headers, now + (1 if age > 0 else -1))


@pytest.mark.parametrize("moment", ["", " 1", "1.0", "١٢٣", "9" * 400, "-1"])
def test_a_moment_that_is_no_number_is_refused_and_raises_nothing(moment):
    """Anybody can send anything."""
    headers = lowered(signed(SECRET, BODY)) | {"x-slack-request-timestamp": moment}

    assert not is_signed_by_slack(SECRET, BODY.encode(), headers, time.time())
