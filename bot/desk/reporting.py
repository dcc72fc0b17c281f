"""What the desk says in the server's log: one event, its facts, and its cause, without a secret."""

import logging
import traceback

from bot.desk.types import Question

log = logging.getLogger("footnote.desk")
"""The desk's own logger: what it says goes where the server's logs go."""


def report(
    level: int, event: str, question: Question | None = None, error: BaseException | None = None, **facts: object
) -> None:
    """Log an event with its facts as fields, and with its cause as text."""
    about = {"key": question.key, "channel": question.place.channel_id} if question else {}
    cause = {"cause": _cause(error, question.handle if question else "")} if error else {}
    log.log(level, event, extra={**about, **facts, **cause})


def _cause(error: BaseException, secret: str) -> str:
    """Return the error with its traceback, which names no values; the secret is hidden where its message has it."""
    text = "".join(traceback.format_exception(error)).strip()
    return text.replace(secret, "…") if secret else text
