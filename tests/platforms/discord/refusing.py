"""Discord's refusals: an HTTP status, a code of its own, a sentence, and for bodies the objections."""

from collections.abc import Iterable
from typing import Any

from tests.platforms.shapes import wrong


class Refusal(Exception):
    """An error response. `str()` is its message."""

    def __init__(self, status: int, code: int, message: str, objections: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.status, self.code, self.objections = status, code, list(objections)

    def body(self) -> dict[str, Any]:
        return {"message": str(self), "code": self.code, "errors": self.objections}


def invalid(objections: Iterable[str]) -> Refusal:
    return Refusal(400, 50035, "Invalid Form Body", objections)


def invalid_at(path: str, what: str) -> Refusal:
    return invalid([wrong(f"/{path}", what)])


_KNOWN = {
    0: (401, "401: Unauthorized"),
    10003: (404, "Unknown Channel"),
    10004: (404, "Unknown Guild"),
    10007: (404, "Unknown Member"),
    10008: (404, "Unknown Message"),
    10013: (404, "Unknown User"),
    10015: (404, "Unknown Webhook"),
    10062: (404, "Unknown interaction"),
    20012: (403, "You are not authorized to perform this action on this application"),
    40060: (400, "Interaction has already been acknowledged."),
    40094: (400, "This interaction has reached the maximum number of follow-up messages"),
    50001: (403, "Missing Access"),
    50003: (403, "Cannot execute action on a DM channel"),
    50005: (403, "Cannot edit a message authored by another user"),
    50006: (400, "Cannot send an empty message"),
    50007: (403, "Cannot send messages to this user"),
    50008: (400, "Cannot send messages in a non-text channel"),
    50013: (403, "Missing Permissions"),
    50024: (400, "Cannot execute action on this channel type"),
    50027: (401, "Invalid Webhook Token"),
    50033: (400, "Invalid Recipient(s)"),
    50083: (400, "Thread is archived"),
    50109: (400, "The request body contains invalid JSON."),
    160002: (400, "Cannot reply without permission to read message history"),
    160004: (400, "A thread has already been created for this message"),
    160005: (400, "Thread is locked"),
}


def refusal(code: int) -> Refusal:
    status, message = _KNOWN[code]
    return Refusal(status, code, message)
