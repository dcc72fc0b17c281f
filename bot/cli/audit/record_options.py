"""The options that choose turns of the record, shared by the commands of `footnote audit`."""

import functools
import inspect
import re
from collections.abc import Callable
from datetime import datetime, timedelta, tzinfo
from typing import Annotated, Any

import typer

from bot.cli.generated_options import list_parameters, set_parameters
from bot.views.sanitize import replace_unencodable
from storage.record.record_search import RecordFilter

STATUSES = (
    "answered", "abstained", "chatted", "refused", "failed", "cancelled", "unfinished", "retracted", "erased"
)  # fmt: skip
VERDICTS = {"supported": "SUPPORTS", "refuted": "REFUTES", "unknown": "NOT ENOUGH INFO"}
RATINGS = ("up", "down", "any")
_AGO = re.compile(r"(\d+)([hdw])")
_UNITS = {"h": "hours", "d": "days", "w": "weeks"}
_MOMENT_HELP = "a day, a month (2026-10), a moment, or how long ago (7d, 12h)"


def _one_of(name: str, known: tuple[str, ...]) -> Callable[[str], str]:
    def check(typed: str) -> str:
        if typed and typed not in known:
            raise typer.BadParameter(f"There is no {name} {typed!r}; there are: {', '.join(known)}.")
        return typed

    return check


OPTIONS: dict[str, Any] = {
    "platform": Annotated[str, typer.Option(help="Asked on this platform: slack, terminal, mcp ...")],
    "channel": Annotated[str, typer.Option(help="Asked in this channel: slack:T1/C1, C1, or its name.")],
    "person": Annotated[str, typer.Option(help="Asked by this person: slack:T1/U1, U1, or their name.")],
    "since": Annotated[str, typer.Option(help=f"Asked at this time or later: {_MOMENT_HELP}.")],
    "until": Annotated[str, typer.Option(help="Asked up to this time; a day or month is included completely.")],
    "status": Annotated[
        str, typer.Option(callback=_one_of("status", STATUSES), help=f"How the turn ended: {', '.join(STATUSES)}.")
    ],
    "verdict": Annotated[
        str,
        typer.Option(
            callback=_one_of("verdict", tuple(VERDICTS)),
            help=f"At least one claim has this verdict: {', '.join(VERDICTS)}.",
        ),
    ],
    "corpus": Annotated[str, typer.Option(help="Cites this corpus, or its nearest pages are from it.")],
    "document": Annotated[str, typer.Option(help="Cites the document of this key or title, or names it as nearest.")],
    "rating": Annotated[
        str, typer.Option(callback=_one_of("rating", RATINGS), help="How people rated it: up, down or any.")
    ],
    "words": Annotated[
        str,
        typer.Option(help='Words in question or answer, inflected; "two words" as a phrase, begin* as a prefix.'),
    ],
}


def choose_turns(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds the options `names`, by default all. The command gets the values as `chosen`."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def run(context: typer.Context, **typed: Any) -> None:
            chosen = {name: typed.pop(name) for name in names or OPTIONS}
            command(context, chosen=chosen, **typed)

        context, *own = inspect.signature(command, eval_str=True).parameters.values()
        options = list_parameters({name: (OPTIONS[name], "") for name in names or OPTIONS})
        set_parameters(run, [context, *options, *(parameter for parameter in own if parameter.name != "chosen")])
        return run

    return decorate


def build_filter(
    chosen: dict[str, str], zone: tzinfo, now: datetime, *, before: int | None = None, limit: int = 50
) -> RecordFilter:
    """Build a filter from options. Raises `typer.BadParameter` for an unreadable moment."""
    chosen = {name: replace_unencodable(value) for name, value in chosen.items()}
    facts = {name: chosen.get(name, "") for name in ("platform", "channel", "status", "corpus", "document", "rating")}
    return RecordFilter(
        **facts,
        asker=chosen.get("person", ""),
        words=chosen.get("words", ""),
        verdict=VERDICTS.get(chosen.get("verdict", ""), ""),
        since=parse_moment(chosen.get("since", ""), zone, now),
        until=parse_moment(chosen.get("until", ""), zone, now, end=True),
        before=before,
        limit=limit,
    )


def parse_moment(typed: str, zone: tzinfo, now: datetime, *, end: bool = False) -> datetime | None:
    """Return the moment that a user typed; with `end`, a day or month means its end.

    Raises `typer.BadParameter` if it is not a day, a month, a moment or an age.
    """
    if not typed:
        return None
    try:
        if ago := _AGO.fullmatch(typed):
            return now - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        if re.fullmatch(r"\d{4}-\d\d", typed):
            begin = datetime.fromisoformat(f"{typed}-01").replace(tzinfo=zone)
            return (begin + timedelta(days=32)).replace(day=1) if end else begin
        moment = datetime.fromisoformat(typed)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=zone)
        return moment + timedelta(days=1) if end and re.fullmatch(r"\d{4}-\d\d-\d\d", typed) else moment
    except (ValueError, OverflowError):
        raise typer.BadParameter(f"{typed!r} is not a moment: give {_MOMENT_HELP}.") from None
