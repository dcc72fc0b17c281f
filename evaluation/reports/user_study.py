"""Report a study from the record (`footnote evaluate study`): how people rated two systems that answered them blindly.

For WikiChat's Table 3, each person rated one system. Here each person is answered by both, so their ratings are paired.
Resampling draws people, because the ratings of one person are not independent.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from statistics import fmean, median
from typing import Annotated, Any

import typer

from bot.cli.audit.record_options import parse_moment
from bot.cli.command_context import JsonOption, open_command
from bot.cli.terminal_output import build_document
from bot.views.sanitize import sanitize_line
from bot.views.text_formats import format_count
from evaluation import EvaluationError
from evaluation.reports.printing import format_figure, render_table
from evaluation.reports.significance import Interval, PairedTest, compare_paired, estimate_share
from pipeline.types import Status
from storage.record.comparisons import ComparedAnswer, Comparisons, Rating

LEAST_PEOPLE = 10  # who rated both systems: with fewer, no p-value is printed
SCALE = (1, 2, 3, 4, 5)
_HINT = 'Set `study` of a [[channel]] to two systems; then a channel admin agrees: "/footnote study on".'


@dataclass(frozen=True, slots=True)
class SystemFigures:
    """How a system did. `answers` are all that it gave, without small talk and retracted ones."""

    system: str
    answers: int
    rated: int
    rating: Interval | None
    counts: tuple[int, ...]  # of the ratings 1 to 5
    abstained: Interval | None
    failed: int
    quoted: int  # without the model, which failed
    seconds: float | None  # the median
    comments: tuple[tuple[int, str], ...]  # each with its rating


@dataclass(frozen=True, slots=True)
class StudyFigures:
    """A comparison of two systems. The difference is the first one's lead, over people who rated both."""

    systems: tuple[str, ...]
    channels: tuple[str, ...]
    since: datetime
    until: datetime
    askers: int
    raters: int
    figures: tuple[SystemFigures, ...]
    difference: Interval | None
    test: PairedTest | None  # None for fewer than `LEAST_PEOPLE`


def select_ratings(ratings: Iterable[Rating]) -> tuple[list[Rating], set[str]]:
    """Return each person's last rating of each answer, and the people who left; their ratings are left out. Pure."""
    last, acts = dict[tuple[int, str], Rating](), dict[str, Rating]()
    for rating in ratings:
        acts[rating.person] = rating
        if rating.rating:
            last[rating.turn, rating.person] = rating
    left = {person for person, act in acts.items() if not act.rating}
    return [rating for rating in last.values() if rating.person not in left], left


def measure_studies(answers: Iterable[ComparedAnswer], ratings: Iterable[Rating]) -> list[StudyFigures]:
    """Return the figures of each pair of systems that were compared. Pure."""
    given, left = select_ratings(ratings)
    studies = defaultdict[frozenset[str], list[ComparedAnswer]](list)
    for answer in answers:
        if answer.asker not in left and not answer.retracted and answer.status != Status.CHATTED:
            studies[frozenset(answer.systems)].append(answer)
    return [_measure_study(chosen[0].systems, chosen, given) for chosen in studies.values()]


def _measure_study(
    systems: tuple[str, ...], answers: Sequence[ComparedAnswer], given: Sequence[Rating]
) -> StudyFigures:
    system_of = {answer.turn: answer.system for answer in answers}
    ratings = {system: [rating for rating in given if system_of.get(rating.turn) == system] for system in systems}
    first, second = (_average(ratings[system]) for system in systems)
    both = sorted(first.keys() & second.keys())
    paired = [[scores[person] for person in both] for scores in (first, second)]
    leads = [mine - other for mine, other in zip(*paired, strict=True)]
    return StudyFigures(
        systems,
        tuple(sorted({answer.channel for answer in answers})),
        min(answer.at for answer in answers),
        max(answer.at for answer in answers),
        len({answer.asker for answer in answers}),
        len(first.keys() | second.keys()),
        tuple(_measure_system(system, answers, ratings[system]) for system in systems),
        estimate_share(leads, [1] * len(leads)),
        compare_paired(paired[0], paired[1]) if len(both) >= LEAST_PEOPLE else None,
    )


def _average(ratings: Iterable[Rating]) -> Mapping[str, float]:
    by_person = defaultdict[str, list[int]](list)
    for rating in ratings:
        by_person[rating.person].append(rating.rating)
    return {person: fmean(scores) for person, scores in by_person.items()}


def _measure_system(system: str, answers: Iterable[ComparedAnswer], ratings: Sequence[Rating]) -> SystemFigures:
    own = [answer for answer in answers if answer.system == system]
    ended = [answer for answer in own if answer.status in {Status.ANSWERED, Status.ABSTAINED}]
    by_asker = Counter(answer.asker for answer in own)
    abstained = Counter(answer.asker for answer in own if answer.status == Status.ABSTAINED)
    sums, counts = Counter[str](), Counter(rating.person for rating in ratings)
    for rating in ratings:
        sums[rating.person] += rating.rating
    return SystemFigures(
        system,
        len(own),
        len({rating.turn for rating in ratings}),
        estimate_share([sums[person] for person in counts], [*counts.values()]),
        tuple(sum(rating.rating == score for rating in ratings) for score in SCALE),
        estimate_share([abstained[person] for person in by_asker], [*by_asker.values()], proportion=True),
        len(own) - len(ended),
        sum(answer.quoted for answer in own),
        median(answer.seconds for answer in ended) if ended else None,
        tuple((rating.rating, rating.comment) for rating in ratings if rating.comment),
    )


def study(
    context: typer.Context,
    channel: Annotated[str, typer.Option(help="Only this channel, such as slack:T1/C1.")] = "",
    since: Annotated[str, typer.Option(help="Asked at this time or later, such as 2026-10 or 7d.")] = "",
    *,
    as_json: JsonOption = False,
) -> None:
    """Compare two systems that answered a channel by turns, by the ratings of people who did not know which answered.

    Example: footnote evaluate study --channel slack:T1/C1
    """
    with open_command(context, as_json=as_json) as ctx:
        start = parse_moment(since, ctx.settings.zone, datetime.now(UTC))

        async def measure(records: Any) -> list[StudyFigures]:
            record = Comparisons(records.audit.database)
            return measure_studies(await record.answers(channel, start), await record.ratings())

        studies = ctx.call_records(measure)
        if not studies:
            raise EvaluationError(f"No answers were compared{channel and f' in {channel}'}.", hint=_HINT)
        document = build_document(studies=[_build_study(figures) for figures in studies])
        ctx.output.give(document, "\n\n\n".join(map(render_study, studies)))


def _build_study(figures: StudyFigures) -> dict[str, Any]:
    return asdict(figures) | {"since": figures.since.isoformat(), "until": figures.until.isoformat()}


def render_study(study: StudyFigures) -> str:
    """Return the report of a comparison as text."""
    names, channels = " and ".join(study.systems), ", ".join(study.channels)
    people = f"asked by {format_count(study.askers, 'person', 'people')}, rated by {study.raters}"
    rows = [
        (
            figures.system,
            figures.answers,
            figures.rated,
            format_figure(figures.rating, ".2f"),
            " ".join(map(str, figures.counts)),
            format_figure(figures.abstained, ".2f"),
            figures.failed,
            figures.quoted,
            format_figure(figures.seconds, ".1f"),
            len(figures.comments),
        )
        for figures in study.figures
    ]
    head = (
        "system", "answers", "rated", "rating", "1 2 3 4 5", "abstained", "failed", "no model", "seconds", "comments",
    )  # fmt: skip
    comments = [
        f"- {figures.system}, {rating}: “{sanitize_line(comment)}”"
        for figures in study.figures
        for rating, comment in figures.comments
    ]
    return "\n".join([
        f"{names} in {channels}, {study.since:%Y-%m-%d} to {study.until:%Y-%m-%d}: {people}",
        "",
        render_table(head, rows),
        "",
        *_render_difference(study),
        *(["", *comments] if comments else []),
    ])  # fmt: skip


def _render_difference(study: StudyFigures) -> list[str]:
    both = format_count(study.difference.count if study.difference else 0, "person", "people")
    lead = f"{' minus '.join(study.systems)}: {format_figure(study.difference, '+.2f')}; {both} rated both"
    if not study.test:
        few = f"Too little data: at least {LEAST_PEOPLE} people must rate both systems. These figures may be chance."
        return [lead, few]
    t_test, flips = (format_figure(value) for value in (study.test.t_test, study.test.randomised))
    return [lead, f"p = {t_test} (paired t-test), {flips} (sign flips)"]
