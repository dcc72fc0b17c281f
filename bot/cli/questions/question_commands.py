"""Run `footnote search`, `ask` and `check`: one lookup, one answer, one verdict."""

import getpass
import sys
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from bot.access import Asker
from bot.cli import rendering
from bot.cli.command_context import CommandContext, JsonOption, open_command
from bot.cli.terminal_output import CommandError
from bot.views.error_messages import explain_failure, explain_nothing_ingested
from bot.views.sanitize import replace_unencodable
from pipeline.kit import Effort
from pipeline.systems import SYSTEMS

if TYPE_CHECKING:
    from bot.server.service import BotService
    from bot.types import TurnRequest, TurnResult
    from pipeline.types import Event
    from storage.types import Hit


CorpusOption = Annotated[
    list[str] | None, typer.Option("--corpus", help="Search only this corpus; may be given several times.")
]
SystemOption = Annotated[
    str, typer.Option("--system", help=f"The system that answers: {', '.join(SYSTEMS)}; else as set.")
]
JudgeOption = Annotated[
    str,
    typer.Option("--system", help="The system that checks: extractive by rules alone, others by a model and rules."),
]
EffortOption = Annotated[
    Effort | None, typer.Option("--effort", help="How much is looked up and verified; else as set.")
]


def search(
    context: typer.Context,
    query: Annotated[str, typer.Argument(help="What to search for; - reads it from stdin.")],
    count: Annotated[int, typer.Option("-k", "--count", min=1, max=1000, help="How many passages at most.")] = 10,
    corpora: CorpusOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Show the passages that match a query best, the best first; `--json` gives their scores, which only order them."""
    with open_command(context, as_json=as_json) as ctx:
        from bot.answering.turn_kit import validate_query

        text = validate_query(read_argument(query))
        hits = ctx.call_service(lambda service: _search(service, text, corpora or [], count, ctx.settings.sources))
        document = rendering.json_documents.build_search_document(hits)
        ctx.output.give(document, rendering.answer_view.render_hits(hits))


def ask(
    context: typer.Context,
    question: Annotated[str, typer.Argument(help="The question; - reads it from stdin.")],
    corpora: CorpusOption = None,
    system: SystemOption = "",
    effort: EffortOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Answer one question, with a footnote to every sentence."""
    with open_command(context, as_json=as_json) as ctx:
        from pipeline.types import Status

        asked = replace(build_request(question, corpora, system), effort=effort)
        done = _run_turn(
            ctx, lambda service, tell: service.answer(asked, tell), lambda done: done.answer.status is Status.ABSTAINED
        )
        view = rendering.answer_view.render_answer(
            done, language=detect_question_language(asked.text), zone=ctx.settings.zone
        )
        ctx.output.give(rendering.json_documents.build_answer_document(done), view)


def check(
    context: typer.Context,
    claim: Annotated[str, typer.Argument(help="One statement, in one sentence; - reads it from stdin.")],
    corpora: CorpusOption = None,
    system: JudgeOption = "",
    *,
    as_json: JsonOption = False,
) -> None:
    """Check one statement: do the documents support it, refute it, or say too little?"""
    with open_command(context, as_json=as_json) as ctx:
        asked = build_request(claim, corpora, system)
        done = _run_turn(
            ctx,
            lambda service, tell: service.check(asked, tell),
            lambda done: not (done.failure or done.answer.citations),
        )
        view = rendering.answer_view.render_verdict(done, ctx.settings.zone)
        ctx.output.give(rendering.json_documents.build_verdict_document(done, asked.text), view)


def build_request(text: str, corpora: Sequence[str] | None, system: str) -> "TurnRequest":
    """Build the request of a question or a claim that was typed here."""
    from bot.types import TurnRequest

    return TurnRequest(read_argument(text), identify_terminal_user(), corpora=tuple(corpora or ()), system=system)


def identify_terminal_user() -> Asker:
    """Return who asks here: the machine's owner, who may read everything."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = ""  # a container's user may have no name
    return Asker(platform="terminal", kind="terminal", user=user, shared_with_other_organisations=False)


def detect_question_language(text: str) -> str:
    from storage.language.detection import detect_language

    return detect_language(text[:2_000])


def read_argument(text: str) -> str:
    """Return an argument, or stdin where that is `-`."""
    return replace_unencodable(sys.stdin.read() if text == "-" else text).strip()


def _run_turn(
    ctx: CommandContext,
    take: "Callable[[BotService, Callable[[Event], None]], Awaitable[TurnResult]]",
    is_empty: "Callable[[TurnResult], bool]",
) -> "TurnResult":
    """Take a turn; where it `is_empty` as nothing is ingested, say so on stderr."""

    async def work(service: "BotService") -> "TurnResult":
        with rendering.turn_progress.watch_turn(ctx.output) as tell:
            done = await take(service, tell)
        if is_empty(done) and not ctx.settings.search_engine.corpus and not await service.corpora():
            ctx.output.note(explain_nothing_ingested(ctx.settings.sources).line())
        return done

    done = ctx.call_service(work)
    if done.failure:
        raise CommandError(explain_failure(done.failure))
    return done


async def _search(
    service: "BotService", query: str, wanted: Sequence[str], count: int, sources: Collection[str]
) -> "tuple[Hit, ...]":
    """Search these corpora, or all. Raises `UnknownCorpus` where there is none of that name, or none at all."""
    from storage.errors import UnknownCorpus

    there = [corpus.name for corpus in await service.corpora()]
    if not there:
        nothing = explain_nothing_ingested(sources)
        raise UnknownCorpus(nothing.message, hint=nothing.hint)
    for name in wanted:
        if name not in there:
            raise UnknownCorpus(f"There is no corpus “{name}”.", hint=f"There are: {', '.join(there)}.")
    return await service.search(query, tuple(wanted or there), count)
