"""The Events API over HTTP: signed requests to the app's request URL, with Slack's retry headers."""

import asyncio
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any
from urllib.parse import urlencode

import aiohttp

from tests.platforms.clock import Clock
from tests.platforms.slack import limits
from tests.platforms.slack.delivery import Delivery, first

_REASONS = {"timeout": "http_timeout", "connection_closed": "connection_failed"}
_FORM = "application/x-www-form-urlencoded"


@dataclass
class RequestUrl:
    """Delivers to the app over HTTP. Implements `delivery.Transport`."""

    clock: Clock
    session: aiohttp.ClientSession
    secret: str
    notify: Callable[[], None]
    ack_seconds: float = limits.ACK_SECONDS
    url: str = ""
    """Where the app listens, such as http://127.0.0.1:3000/slack/events."""

    async def send(self, delivery: Delivery) -> str:
        kind, body = encoded(delivery)
        headers = signed(self.secret, body) | {"Content-Type": kind}
        if delivery.attempt:
            headers["X-Slack-Retry-Num"] = str(delivery.attempt)
            headers["X-Slack-Retry-Reason"] = _REASONS.get(delivery.reason, delivery.reason)
        delivery.sent.append(time.monotonic())
        self.notify()
        posting = asyncio.ensure_future(self.post(body, headers))
        try:
            await first(posting, self.clock.sleep(self.ack_seconds))
            if not posting.done():
                return "timeout"
            status, answer = posting.result()
        except aiohttp.ClientError:
            return "connection_failed"
        finally:
            posting.cancel()
        if status == 200:
            delivery.acknowledge(answer)
        return "" if status == 200 else "http_error"

    async def post(self, body: str, headers: dict[str, str]) -> tuple[int, Any]:
        """Send anything to the app, and return what it answers. Raises `aiohttp.ClientError`."""
        async with self.session.post(self.url or "http://127.0.0.1:1/", data=body.encode(), headers=headers) as answer:
            text = await answer.text()
            found = json.loads(text) if text and answer.content_type == "application/json" else text
            return answer.status, found


def encoded(delivery: Delivery) -> tuple[str, str]:
    """Return the content type and the body: events are JSON, interactions a form with JSON in it, commands a form."""
    if delivery.kind == "events_api":
        return "application/json", json.dumps(delivery.payload)
    if delivery.kind == "interactive":
        return _FORM, urlencode({"payload": json.dumps(delivery.payload)})
    return _FORM, urlencode(delivery.payload)


Headers = dict[str, str]


def signed(secret: str, body: str, at: float | None = None) -> Headers:
    """Return the headers of a request. `at`: by the real clock, which a verifier uses; now if it is None."""
    moment = str(int(time.time() if at is None else at))
    digest = hmac.new(secret.encode(), f"v0:{moment}:{body}".encode(), hashlib.sha256).hexdigest()
    return {"X-Slack-Request-Timestamp": moment, "X-Slack-Signature": f"v0={digest}"}


def _tampered(secret: str, body: str) -> Headers:
    headers = signed(secret, body)
    last = headers["X-Slack-Signature"][-1]
    return headers | {"X-Slack-Signature": headers["X-Slack-Signature"][:-1] + ("0" if last != "0" else "1")}


FORGERIES: Mapping[str, Callable[[str, str], Headers]] = MappingProxyType(
    {
        "none": lambda _secret, _body: {},
        "no timestamp": lambda secret, body: {"X-Slack-Signature": signed(secret, body)["X-Slack-Signature"]},
        "another secret": lambda _secret, body: signed("another", body),
        "another body": lambda secret, body: signed(secret, body + " "),
        "one digit": _tampered,
        "replayed after five minutes": lambda secret, body: signed(secret, body, time.time() - 301),
        "from the future": lambda secret, body: signed(secret, body, time.time() + 301),
        "not a number": lambda secret, body: signed(secret, body) | {"X-Slack-Request-Timestamp": "now"},
        "another version": lambda secret, body: {
            name: value.replace("v0=", "v1=") for name, value in signed(secret, body).items()
        },
    }
)
"""Builders of forged headers by their fault; they receive the secret and the body."""
