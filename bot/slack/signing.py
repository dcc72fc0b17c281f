"""Whether a request comes from Slack: its signature, compared in constant time, and its age; pure.

The SDK's verifier stumbles over a timestamp that is no number, and bolt logs the body of what it refuses.
"""

import hashlib
import hmac
import re
from collections.abc import Mapping

WINDOW_SECONDS = 300
"""So old, or so far ahead, a request may be: an older one may be one that somebody caught and sends again."""


def is_slacks(secret: str, body: bytes, headers: Mapping[str, str], now: float) -> bool:
    """Return whether a request is signed with our secret, and was signed just now.

    Args:
        secret: The signing secret; an empty one signs nothing.
        body: As it came.
        headers: By their names in lower case.
        now: Seconds since 1970.
    """
    moment, signature = headers.get("x-slack-request-timestamp", ""), headers.get("x-slack-signature", "")
    if not secret or not re.fullmatch(r"[0-9]{1,12}", moment) or abs(now - int(moment)) > WINDOW_SECONDS:
        return False
    digest = hmac.new(secret.encode(), b"v0:" + moment.encode() + b":" + body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(f"v0={digest}".encode(), signature.encode("utf-8", "replace"))
