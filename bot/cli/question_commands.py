"""Run `footnote search`, `ask` and `check`: one lookup, one answer, one verdict."""

import asyncio
import getpass
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from bot.access import Asker
from bot.cli.command_context import CommandContext, JsonOption, open_command
from bot.cli.rendering import answer_view, json_documents
from bot.cli.rendering.turn_progress import watch_turn
from bot.cli.terminal_output import CommandError
from bot.views.error_messages import Fault, explain_failure
from bot.views.sanitize import replace_unencodable
from pipeline.systems import SYSTEMS
from pipeline.types import Status

if TYPE_CHECKING:
    from bot.desk.types import TurnRequest, TurnResult
    from bot.server.service import BotService
    from storage.types import Hit


CorpusOption = Annotated[
    list[str] | None, typer.Option("--corpus", help="Look in this corpus alone; may be given several times.")
]
SystemOption = Annotated[str, typer.Option("--system", help=f"Who answers: {', '.join(SYSTEMS)}; else as set.")]

NOTHING_INGESTED = Fault(
    "unknown_corpus", "Nothing is ingested yet.", "`footnote ingest folder PATH --corpus NAME` reads a folder in."
)


def search(
    context: typer.Context,
    query: Annotated[str, typer.Argument(help="What to look for; - reads it from stdin.")],
    count: Annotated[int, typer.Option("-k", "--count", min=1, max=1000, help="How many passages at most.")] = 10,
    corpora: CorpusOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Show the passages that fit a query best."""
    with open_command(context, as_json=as_json) as frame:
        hits = asyncio.run(_search(frame, _validate_query(read_argument(query)), corpora or [], count))
        frame.output.give(json_documents.build_search_document(hits), answer_view.render_hits(hits))


def ask(
    context: typer.Context,
    question: Annotated[str, typer.Argument(help="The question; - reads it from stdin.")],
    corpora: CorpusOption = None,
    system: SystemOption = "",
    *,
    as_json: JsonOption = False,
) -> None:
    """Answer one question, with a footnote to every sentence."""
    with open_command(context, as_json=as_json) as frame:
        from bot.desk.types import TurnRequest

        asked = TurnRequest(
            read_argument(question), identify_terminal_user(), corpora=tuple(corpora or ()), system=system
        )
        done = asyncio.run(_ask(frame, asked))
        if done.failure:
            raise CommandError(explain_failure(done.failure))
        view = answer_view.render_answer(done, language=detect_question_language(asked.text), zone=frame.settings.zone)
        frame.output.give(json_documents.build_answer_document(done), view)


def identify_terminal_user() -> Asker:
    """Return who asks here: the machine's owner, who reads all."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = ""  # a container's user may have no name
    return Asker(platform="terminal", kind="terminal", user=user, shared_with_other_organisations=False)


def detect_question_language(text: str) -> str:
    """Return the language of a question, so that our own words can be in it."""
    from storage.language.detection import detect_language

    return detect_language(text[:2_000])


def _validate_query(text: str) -> str:
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


def read_argument(text: str) -> str:
    """Return what was typed, or what stdin holds where that is `-`."""
    return replace_unencodable(sys.stdin.read() if text == "-" else text).strip()


async def _ask(frame: CommandContext, asked: "TurnRequest") -> "TurnResult":
    async with frame.doors.open_home(frame.settings) as home:
        with watch_turn(frame.output) as tell:
            done = await home.answer(asked, tell)
        if done.answer.status is Status.ABSTAINED and not await home.corpora():
            frame.output.note(NOTHING_INGESTED.line())
        return done


async def _search(frame: CommandContext, query: str, corpora: Sequence[str], count: int) -> "tuple[Hit, ...]":
    async with frame.doors.open_home(frame.settings) as home:
        return await home.search(query, await _choose_corpora(home, corpora), count)


async def _choose_corpora(home: "BotService", wanted: Sequence[str]) -> tuple[str, ...]:
    """Return the corpora to look in. Raises `UnknownCorpus` where there is none of that name, or none at all."""
    from storage.errors import UnknownCorpus

    there = [corpus.name for corpus in await home.corpora()]
    if not there:
        raise UnknownCorpus(NOTHING_INGESTED.message, hint=NOTHING_INGESTED.hint)
    for name in wanted:
        if name not in there:
            raise UnknownCorpus(f"There is no corpus “{name}”.", hint=f"There are: {', '.join(there)}.")
    return tuple(wanted or there)


def check(
    context: typer.Context,
    claim: Annotated[str, typer.Argument(help="One statement, in one sentence; - reads it from stdin.")],
    corpora: CorpusOption = None,
    system: Annotated[
        str, typer.Option("--system", help="Whose check: extractive goes by rules alone, others by a model and rules.")
    ] = "",
    *,
    as_json: JsonOption = False,
) -> None:
    """Check one statement: do the documents support it, refute it, or say too little?"""
    with open_command(context, as_json=as_json) as frame:
        from bot.desk.types import TurnRequest

        asked = TurnRequest(read_argument(claim), identify_terminal_user(), corpora=tuple(corpora or ()), system=system)
        done = asyncio.run(_check(frame, asked))
        if done.failure:
            raise CommandError(explain_failure(done.failure))
        frame.output.give(
            json_documents.build_verdict_document(done, asked.text),
            answer_view.render_verdict(done, frame.settings.zone),
        )


async def _check(frame: CommandContext, asked: "TurnRequest") -> "TurnResult":
    async with frame.doors.open_home(frame.settings) as home:
        with watch_turn(frame.output) as tell:
            done = await home.check(asked, tell)
        if not done.failure and not done.answer.citations and not await home.corpora():
            frame.output.note(NOTHING_INGESTED.line())
        return done
