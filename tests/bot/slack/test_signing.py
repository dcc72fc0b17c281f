"""Signatures of Slack's requests."""

import time

import pytest

from bot.platforms.slack.transport import is_signed_by_slack
from tests.platforms.slack.request_url import FORGERIES, signed

SECRET = "0123456789abcdef0123456789abcdef"
BODY = '{"type": "event_callback", "text": "Grüße ✓"}'


def lowered(headers):
    return {name.lower(): value for name, value in headers.items()}


def test_genuine_signature_is_accepted():
    assert is_signed_by_slack(SECRET, BODY.encode(), lowered(signed(SECRET, BODY)), time.time())


@pytest.mark.parametrize("forgery", FORGERIES)
def test_forged_or_replayed_request_is_refused(forgery):
    assert not is_signed_by_slack(SECRET, BODY.encode(), lowered(FORGERIES[forgery](SECRET, BODY)), time.time())


def test_empty_secret_accepts_nothing():
    assert not is_signed_by_slack("", BODY.encode(), lowered(signed("", BODY)), time.time())


@pytest.mark.parametrize("age", [-300, 300])
def test_signature_expires_after_five_minutes(age):
    now = 1_700_000_000.0
    headers = lowered(signed(SECRET, BODY, now - age))

    assert is_signed_by_slack(SECRET, BODY.encode(), headers, now)
    assert not is_signed_by_slack(SECRET, BODY.encode(), headers, now + (1 if age > 0 else -1))


@pytest.mark.parametrize("moment", ["", " 1", "1.0", "١٢٣", "9" * 400, "-1"])
def test_invalid_timestamp_is_refused(moment):
    headers = lowered(signed(SECRET, BODY)) | {"x-slack-request-timestamp": moment}

    assert not is_signed_by_slack(SECRET, BODY.encode(), headers, time.time())
