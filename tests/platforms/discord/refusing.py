"""How Discord refuses: an HTTP status, a code of its own, a sentence, and for bodies a tree of problems."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Wrong:
    """One thing that is wrong with a body."""

    path: tuple[str, ...]
    code: str
    message: str


class Refusal(Exception):
    """An error response. `str()` is its message."""

    def __init__(self, status: int, code: int, message: str, wrongs: Iterable[Wrong] = ()) -> None:
        super().__init__(message)
        self.status, self.code, self.wrongs = status, code, tuple(wrongs)

    def body(self) -> dict[str, Any]:
        body: dict[str, Any] = {"message": str(self), "code": self.code}
        return body | ({"errors": _tree(self.wrongs)} if self.wrongs else {})


def _tree(wrongs: Iterable[Wrong]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for wrong in wrongs:
        at = tree
        for name in wrong.path:
            at = at.setdefault(name, {})
        at.setdefault("_errors", []).append({"code": wrong.code, "message": wrong.message})
    return tree


def invalid(wrongs: Iterable[Wrong]) -> Refusal:
    return Refusal(400, 50035, "Invalid Form Body", wrongs)


def invalid_at(path: str, code: str, message: str) -> Refusal:
    """Return the refusal of a body for one problem; the path's names are separated by dots."""
    return invalid([Wrong(tuple(filter(None, path.split("."))), code, message)])


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
