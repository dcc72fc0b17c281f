"""`footnote search` and `footnote ask`: one look-up, one answer. A conversation is in `chatting`."""

import asyncio
import getpass
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from bot.access import Asker
from bot.commands.frame import AsJson, Frame, command
from bot.console import Failed, Fault, fault_in
from bot.printing import documents, terminal
from bot.sanitizing import encodable
from bot.watching import watching
from pipeline.types import Status

if TYPE_CHECKING:
    from bot.home import Home
    from bot.turns import Answered, Asked
    from storage.types import Hit

Corpora = Annotated[
    list[str] | None, typer.Option("--corpus", help="Look in this corpus alone; may be given several times.")
]
System = Annotated[str, typer.Option("--system", help="Who answers: wikichat-fast, wikichat, extractive; else as set.")]

NOTHING = Fault(
    "unknown_corpus", "Nothing is ingested yet.", "`footnote ingest folder PATH --corpus NAME` reads a folder in."
)


def search(
    context: typer.Context,
    query: Annotated[str, typer.Argument(help="What to look for; - reads it from stdin.")],
    count: Annotated[int, typer.Option("-k", "--count", min=1, max=1000, help="How many passages at most.")] = 10,
    corpora: Corpora = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Show the passages that fit a query best."""
    with command(context, as_json=as_json) as frame:
        hits = asyncio.run(_search(frame, _query(given(query)), corpora or [], count))
        frame.output.give(documents.found(hits), terminal.hits_view(hits))


def ask(
    context: typer.Context,
    question: Annotated[str, typer.Argument(help="The question; - reads it from stdin.")],
    corpora: Corpora = None,
    system: System = "",
    *,
    as_json: AsJson = False,
) -> None:
    """Answer one question, with a footnote to every sentence."""
    with command(context, as_json=as_json) as frame:
        from bot.turns import Asked

        asked = Asked(given(question), at_terminal(), corpora=tuple(corpora or ()), system=system)
        done = asyncio.run(_ask(frame, asked))
        if done.failure:
            raise Failed(fault_in(done.failure))
        view = terminal.answer_view(done, language=language_of(asked.text), zone=frame.settings.zone)
        frame.output.give(documents.answered(done), view)


def at_terminal() -> Asker:
    """Return who asks here: the machine's owner, who reads all."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = ""  # a container's user may have no name
    return Asker(platform="terminal", kind="terminal", user=user, shared_with_other_organisations=False)


def language_of(text: str) -> str:
    """Return the language of a question, so that our own words can be in it."""
    from storage.language.detect import detect

    return detect(text[:2_000])


def _query(text: str) -> str:
    """Return what to look for. Raises `PipelineError`, as asking does, where there is nothing to."""
    from pipeline.errors import QuestionTooLong, QuestionWithoutWords
    from pipeline.kit import Limits
    from storage.language.words import words

    if len(text) > (most := Limits().question_characters):
        message = f"The query has {len(text):,} characters; at most {most:,} are read."
        raise QuestionTooLong(message, hint="Search for a few words.")
    if not words(text):
        raise QuestionWithoutWords("There are no words in the query.", hint="Search for a few words.")
    return text


def given(text: str) -> str:
    """Return what was typed, or what stdin holds where that is `-`."""
    return encodable(sys.stdin.read() if text == "-" else text).strip()


async def _ask(frame: Frame, asked: "Asked") -> "Answered":
    async with frame.doors.open_home(frame.settings) as home:
        with watching(frame.output) as tell:
            done = await home.answer(asked, tell)
        if done.answer.status is Status.ABSTAINED and not await home.corpora():
            frame.output.note(NOTHING.line())
        return done


async def _search(frame: Frame, query: str, corpora: Sequence[str], count: int) -> "tuple[Hit, ...]":
    async with frame.doors.open_home(frame.settings) as home:
        return await home.search(query, await _chosen(home, corpora), count)


async def _chosen(home: "Home", wanted: Sequence[str]) -> tuple[str, ...]:
    """Return the corpora to look in. Raises `UnknownCorpus` where there is none of that name, or none at all."""
    from storage.errors import UnknownCorpus

    there = [corpus.name for corpus in await home.corpora()]
    if not there:
        raise UnknownCorpus(NOTHING.message, hint=NOTHING.hint)
    for name in wanted:
        if name not in there:
            raise UnknownCorpus(f"There is no corpus “{name}”.", hint=f"There are: {', '.join(there)}.")
    return tuple(wanted or there)
