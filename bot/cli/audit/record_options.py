"""The options by which turns on record are chosen, shared by the commands of `footnote audit`."""

from __future__ import annotations

import functools
import inspect
import re
from datetime import datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from bot.views.sanitize import replace_unencodable

if TYPE_CHECKING:
    from collections.abc import Callable

    from storage.record.record_search import RecordFilter

C = TypeVar("C", bound="Callable[..., None]")

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
    "platform": Annotated[str, typer.Option(help="Asked there, such as slack, terminal or mcp.")],
    "channel": Annotated[str, typer.Option(help="Asked in this channel: slack:T1/C1, C1, or its name.")],
    "person": Annotated[str, typer.Option(help="Asked by this person: slack:T1/U1, U1, or their name.")],
    "since": Annotated[str, typer.Option(help=f"From then on: {_MOMENT_HELP}.")],
    "until": Annotated[str, typer.Option(help="Until then; a day or month is included whole.")],
    "status": Annotated[
        str, typer.Option(callback=_one_of("status", STATUSES), help=f"How it ended: {', '.join(STATUSES)}.")
    ],
    "verdict": Annotated[
        str,
        typer.Option(callback=_one_of("verdict", tuple(VERDICTS)), help=f"Of any claim: {', '.join(VERDICTS)}."),
    ],
    "corpus": Annotated[str, typer.Option(help="Cites this corpus, or came nearest to a page of it.")],
    "document": Annotated[str, typer.Option(help="The same of one document: its key or its title.")],
    "rating": Annotated[
        str, typer.Option(callback=_one_of("rating", RATINGS), help="What people thought: up, down or any.")
    ],
    "words": Annotated[
        str, typer.Option(help='In question or answer, in any form; "as a phrase", begin* by a beginning.')
    ],
}


def choose_turns(*names: str) -> Callable[[C], C]:
    """Give a command these options, or all of them; it takes them as `chosen`, by name."""

    def decorate(command: C) -> C:
        @functools.wraps(command)
        def run(*args: Any, **kwargs: Any) -> None:
            chosen = {name: kwargs.pop(name) for name in names or OPTIONS}
            command(*args, chosen=chosen, **kwargs)

        own = inspect.signature(command, eval_str=True)
        added = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default="", annotation=OPTIONS[name])
            for name in names or OPTIONS
        ]
        kept = [one for one in own.parameters.values() if one.name != "chosen"]
        positional = [one for one in kept if one.kind is not inspect.Parameter.KEYWORD_ONLY]
        rest = [one for one in kept if one.kind is inspect.Parameter.KEYWORD_ONLY]
        signature = own.replace(parameters=[*positional, *added, *rest])
        run.__signature__ = signature  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in signature.parameters.values()}
        return run  # type: ignore[return-value]

    return decorate


def build_filter(
    chosen: dict[str, str], zone: tzinfo, now: datetime, *, before: int | None = None, limit: int = 50
) -> RecordFilter:
    """Build a filter from options. Raises `typer.BadParameter` for what is no moment."""
    from storage.record.record_search import RecordFilter

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
    """Read a moment as people write it, in a time zone; with `end`, a day or month ends when the next one begins.

    Raises:
        typer.BadParameter: It is none.
    """
    if not typed:
        return None
    if ago := _AGO.fullmatch(typed):
        return _ago(now, ago, typed)
    try:
        if re.fullmatch(r"\d{4}-\d\d", typed):
            begin = datetime.fromisoformat(f"{typed}-01").replace(tzinfo=zone)
            return (begin + timedelta(days=32)).replace(day=1) if end else begin
        moment = datetime.fromisoformat(typed)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=zone)
        return moment + timedelta(days=1) if end and re.fullmatch(r"\d{4}-\d\d-\d\d", typed) else moment
    except (ValueError, OverflowError):
        raise _no_moment(typed) from None


def _ago(now: datetime, ago: re.Match[str], typed: str) -> datetime:
    try:
        return now - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
    except OverflowError:
        raise _no_moment(typed) from None


def _no_moment(typed: str) -> typer.BadParameter:
    return typer.BadParameter(f"{typed!r} is no moment: give {_MOMENT_HELP}.")
