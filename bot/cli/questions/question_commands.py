"""Run `footnote search`, `ask` and `check`: one lookup, one answer, one verdict."""

import getpass
import sys
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace
from typing import Annotated

import typer

from bot.access import Asker
from bot.cli.command_context import CommandContext, JsonOption, open_command
from bot.cli.rendering import answer_view
from bot.cli.rendering.turn_progress import watch_turn
from bot.cli.terminal_output import CommandError
from bot.types import TurnRequest, TurnResult
from bot.views.error_messages import explain_failure, explain_nothing_ingested
from bot.views.sanitize import replace_unencodable
from pipeline.kit import Effort
from pipeline.systems import SYSTEMS
from pipeline.types import Event, Status
from storage.errors import UnknownCorpus
from storage.language.detection import detect_language
from storage.types import CorpusInfo, Hit

CorpusOption = Annotated[list[str] | None, typer.Option("--corpus", help="Search only this corpus; repeatable.")]
SystemOption = Annotated[
    str, typer.Option("--system", help=f"The system that answers: {', '.join(SYSTEMS)}; default from settings.")
]
JudgeOption = Annotated[
    str,
    typer.Option("--system", help="The system that checks: extractive uses only rules, the others a model and rules."),
]
EffortOption = Annotated[
    Effort | None, typer.Option("--effort", help="Search and verification effort; default from settings.")
]
TakeTurn = Callable[[TurnRequest, Callable[[Event], None]], Awaitable[TurnResult]]
ListCorpora = Callable[[], Awaitable[Sequence[CorpusInfo]]]


def search(
    context: typer.Context,
    query: Annotated[str, typer.Argument(help="What to search for; - reads it from stdin.")],
    count: Annotated[int, typer.Option("-k", "--count", min=1, max=1000, help="How many passages at most.")] = 10,
    corpora: CorpusOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    from bot.answering.turn_kit import validate_query  # the search itself, which a server may do instead

    with open_command(context, as_json=as_json) as ctx:
        text = validate_query(read_argument(query))
        hits = ctx.call_service(
            lambda service: _search(service.corpora, service.search, text, corpora or (), count, ctx.settings.sources)
        )
        ctx.output.give(answer_view.build_search_document(hits), answer_view.render_hits(hits))


def ask(
    context: typer.Context,
    question: Annotated[str, typer.Argument(help="The question; - reads it from stdin.")],
    corpora: CorpusOption = None,
    system: SystemOption = "",
    effort: EffortOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    with open_command(context, as_json=as_json) as ctx:
        request = replace(build_request(question, corpora, system), effort=effort)
        done = ctx.call_service(lambda service: _run_turn(ctx, request, service.answer, service.corpora))
        language = detect_question_language(request.text)
        view = answer_view.render_answer(done, language=language, zone=ctx.settings.zone)
        ctx.output.give(answer_view.build_answer_document(done), view)


def check(
    context: typer.Context,
    claim: Annotated[str, typer.Argument(help="One statement, in one sentence; - reads it from stdin.")],
    corpora: CorpusOption = None,
    system: JudgeOption = "",
    *,
    as_json: JsonOption = False,
) -> None:
    with open_command(context, as_json=as_json) as ctx:
        request = build_request(claim, corpora, system)
        done = ctx.call_service(lambda service: _run_turn(ctx, request, service.check, service.corpora))
        view = answer_view.render_verdict(done, ctx.settings.zone)
        ctx.output.give(answer_view.build_verdict_document(done, request.text), view)


def build_request(text: str, corpora: Sequence[str] | None, system: str) -> TurnRequest:
    """Build the request for a question or a claim typed in this terminal."""
    return TurnRequest(read_argument(text), identify_terminal_user(), corpora=tuple(corpora or ()), system=system)


def identify_terminal_user() -> Asker:
    """Return the asker at this terminal: the machine's owner, who may read everything."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = ""  # a container's user may have no name
    return Asker(platform="terminal", kind="terminal", user=user, shared_with_other_organisations=False)


def detect_question_language(text: str) -> str:
    return detect_language(text[:2_000])


def read_argument(text: str) -> str:
    """Return an argument, or stdin if it is `-`."""
    return replace_unencodable(sys.stdin.read() if text == "-" else text).strip()


async def _run_turn(
    ctx: CommandContext, request: TurnRequest, take_turn: TakeTurn, list_corpora: ListCorpora
) -> TurnResult:
    """Take a turn. If nothing was found because nothing is ingested, print that; if it fails, raise `CommandError`."""
    with watch_turn(ctx.output) as observe:
        done = await take_turn(request, observe)
    if done.failure:
        raise CommandError(explain_failure(done.failure))
    for fault in filter(None, (done.quoted_because, done.web_fault)):
        ctx.output.note(explain_failure(fault).line())
    is_empty = not done.answer.citations and done.answer.status is not Status.CHATTED
    if is_empty and not ctx.settings.search_engine.corpus and not await list_corpora():
        ctx.output.note(explain_nothing_ingested(ctx.settings.sources).line())
    return done


async def _search(
    list_corpora: ListCorpora,
    search_passages: Callable[[str, Sequence[str], int], Awaitable[tuple[Hit, ...]]],
    query: str,
    names: Sequence[str],
    count: int,
    sources: Collection[str],
) -> tuple[Hit, ...]:
    """Search the named corpora, or all if none is named.

    Raises `UnknownCorpus` if a named corpus does not exist, or if no corpus exists at all.
    """
    known = [info.name for info in await list_corpora()]
    if not known:
        fault = explain_nothing_ingested(sources)
        raise UnknownCorpus(fault.message, hint=fault.hint)
    for name in names:
        if name not in known:
            raise UnknownCorpus(f"There is no corpus “{name}”.", hint=f"There are: {', '.join(known)}.")
    return await search_passages(query, tuple(names or known), count)
