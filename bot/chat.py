"""A conversation in a terminal: a line in, an answer out, until there are no more lines.

The lines, the answers and the showing of them are arguments, so that the loop can be read, and tested, by itself.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.console import Mendable, fault_in, fault_of
from pipeline.types import Turn

if TYPE_CHECKING:
    from collections.abc import Callable

    from bot.turns import Answered

REMEMBERED = 20
"""How many turns a conversation keeps."""
GOODBYES = {"/quit", "quit", "exit", ":q"}
HELP = "/sources shows the last answer's sources in full, /new forgets what was said, /quit ends, as Ctrl-D does."


@dataclass(frozen=True, slots=True)
class Ways:
    """How a conversation hears and speaks."""

    read: Callable[[], str | None]
    """The next line; None when there are no more."""
    ask: Callable[[str, tuple[Turn, ...]], Answered]
    """Answers a question after what was said before it. Ctrl-C raises `KeyboardInterrupt` out of it."""
    show: Callable[[str, Answered], None]
    show_sources: Callable[[Answered], None]
    note: Callable[[str], None]


def converse(ways: Ways) -> tuple[Answered, ...]:
    """Hold a conversation to its end, and return its answers."""
    said: tuple[Turn, ...] = ()
    answers: list[Answered] = []
    while (line := ways.read()) is not None and (text := line.strip()).lower() not in GOODBYES:
        if text == "/new":
            said = ()
            ways.note("Forgotten.")
        elif text == "/sources":
            _show_sources(ways, answers)
        elif text.startswith("/"):
            ways.note(HELP)
        elif text and (done := _answered(ways, text, said)):
            answers.append(done)
            said = remembered(said, text, done)
            ways.show(text, done)
    return tuple(answers)


def remembered(said: tuple[Turn, ...], question: str, done: Answered) -> tuple[Turn, ...]:
    """Return the conversation with a question and its answer added, at most the last `REMEMBERED` turns."""
    return (*said, Turn("user", question), Turn("bot", done.text, titles=cited_titles(done)))[-REMEMBERED:]


def cited_titles(done: Answered) -> tuple[str, ...]:
    """Return the titles of the pages that an answer cites, most cited first."""
    titles = {citation.number: citation.title for citation in done.answer.citations}
    counted = Counter(titles[number] for sentence in done.answer.sentences for number in sentence.citations)
    return tuple(title for title, _ in counted.most_common())


def _answered(ways: Ways, text: str, said: tuple[Turn, ...]) -> Answered | None:
    """Answer a question; None when it was stopped or failed, which is told and ends nothing but the turn."""
    try:
        done = ways.ask(text, said)
    except KeyboardInterrupt:
        ways.note("Stopped.")
        return None
    except Exception as error:
        if not isinstance(error, Mendable):
            raise
        ways.note(fault_of(error).line())
        return None
    if done.failure:
        ways.note(fault_in(done.failure).line())
        return None
    return done


def _show_sources(ways: Ways, answers: list[Answered]) -> None:
    if answers and answers[-1].answer.citations:
        ways.show_sources(answers[-1])
    else:
        ways.note("The last answer has no sources.")
