"""How Slack signs what it sends over HTTP, and how others would."""

import hashlib
import hmac
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType

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
"""Headers that must not be believed, by what is wrong with them, given the secret and the body."""
