"""The desk with all that it works with in a running server: the one place where its collaborators are chosen."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from bot.access import Asker
from bot.answering import answer, check_text, close_interrupted, record_unanswered
from bot.app import App
from bot.budgets import Refusal, budgeted
from bot.desk.clock import Clock
from bot.desk.desk import Desk
from bot.desk.dispatching import Room
from bot.desk.floor import Pace
from bot.desk.knowing import Answering, Knowing, Plan
from bot.desk.permitted import may_see_evidence
from bot.desk.reading_here import readable_here, settings_of
from bot.desk.recalling import Recalled
from bot.desk.remembering import remembered
from bot.desk.types import Question
from bot.desk.unchecked import unchecked
from bot.platform import Platform
from bot.showing import folding
from bot.showing.offering import without_sharing
from bot.showing.view import View
from bot.turns import Answered, Asked, Failure
from bot.words import say
from pipeline.types import Turn
from storage.language.detect import detect
from storage.types import QueuedQuestion

_READ = 2_000


def open_desk(
    app: App,
    platforms: Mapping[str, Platform],
    *,
    answering: Answering | None = None,
    clock: Clock | None = None,
) -> Desk:
    """Return the desk of an opened app; it works within `desk.running()`.

    Args:
        app: What answers, remembers and keeps the record.
        platforms: By name; may be filled until the desk runs, since platforms are made with it.
        answering: What answers instead of the app, for benchmarks.
        clock: The time, where it is not the machine's.
    """
    time, settings = clock or Clock(), app.settings.desk
    rules = _Rules(app, time)
    knowing = Knowing(
        plan=rules.plan,
        answer=answering or (lambda asked, tell: answer(app, asked, tell)),
        check=answering or (lambda asked, tell: check_text(app, asked, tell)),
        ended=rules.ended,
        entries=app.audit.turn,
        append=app.audit.append,
        interrupt=lambda turn_id: close_interrupted(app, turn_id),
        unanswered=partial(record_unanswered, app),
        readable=rules.readable,
        governs=rules.governs,
    )
    pace = Pace(Room(settings.at_once, settings.per_channel), settings.patience_seconds, settings.grace_seconds)
    # SQLite lies in the home, which one process holds; PostgreSQL may be shared by several machines.
    return Desk(app.queue, platforms, knowing, pace, sole=not app.settings.database, clock=time)


@dataclass(frozen=True, slots=True)
class _Rules:
    """What holds for a question when its turn comes."""

    app: App
    clock: Clock

    async def plan(self, platform: Platform, question: Question, row: QueuedQuestion, turn_id: str) -> Plan:
        """Decide how it is answered."""
        language = detect(question.text[:_READ])
        channel = await settings_of(self.app, question.place.channel_id)
        allowed = await budgeted(self.app, row, now=self.clock.now(), language=language)
        asked = Asked(
            question.text,
            question.asker,
            thread=question.place.thread,
            id=turn_id,
            message=question.message,
            ticket=row.ticket,
            within=channel.corpora,
        )
        if channel.paused:
            return Plan(asked, refused=Failure("channel_paused", say("channel_paused", language), ""))
        if isinstance(allowed, Refusal):
            hint = f"The limit is set by [limits] {allowed.because}."
            return Plan(replace(asked, because=allowed.because), refused=Failure("over_budget", allowed.text, hint))
        earlier = await self._earlier(platform, question, row)
        system = allowed.system or channel.system
        return Plan(replace(asked, earlier=earlier, system=system, because=allowed.because), allowed.notice)

    async def ended(self, view: View, question: Question, answered: Answered) -> View:
        """Return what stays; of the nearest pages, those that can be read there now."""
        final = await self._final(view, question, answered)
        direct = question.asker.kind != "channel"
        return replace(final, buttons=without_sharing(final.buttons)) if direct else final

    async def _final(self, view: View, question: Question, answered: Answered) -> View:
        channel = await settings_of(self.app, question.place.channel_id)
        here = await readable_here(self.app, question.asker)
        nearest = tuple(hit for hit in answered.answer.nearest if hit.passage.corpus in here)
        shown = replace(answered, answer=replace(answered.answer, nearest=nearest))
        if question.task != "check":
            return folding.ended(view, shown, only_asker=question.only_asker, ask=bool(channel.ask))
        final = folding.checked(view, shown, only_asker=question.only_asker, ask=bool(channel.ask))
        left = unchecked(question.text, answered, view.language)
        return replace(final, left_out=left) if left else final

    async def readable(self, question: Question, turn: Recalled) -> bool:
        """Return whether an answer of the record may still be shown where it was asked for: what it counts, too."""
        return may_see_evidence(turn, await readable_here(self.app, question.asker))

    async def governs(self, question: Question, by: Asker) -> bool:
        """Return whether somebody may set the question's channel."""
        place, settings = question.place, self.app.settings
        same = (by.platform, by.workspace) == (place.platform, place.workspace)
        admins = {*settings.slack.admins, *settings.discord.admins}
        named = f"{by.platform}:{by.workspace}/{by.user}" in admins
        return same and (named or (by.moderates and by.channel == place.channel))

    async def _earlier(self, platform: Platform, question: Question, row: QueuedQuestion) -> tuple[Turn, ...]:
        """Return the conversation before a question. A claim, and what nobody asked us, is taken by itself.

        Among people "ok" would else be a question about whatever was answered last.
        """
        alone = question.task == "check" or question.unasked
        return () if alone else await remembered(self.app, platform, question, row)
