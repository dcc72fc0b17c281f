"""An answer that its asker alone was shown is posted to its channel, because they want it there; once.

What may be read in the channel is decided again. The post has a key of its own by which the platform finds it, so that
whoever presses again after a crash completes it and does not repeat it.
"""

from collections.abc import Sequence
from dataclasses import replace

from bot.access import Asker
from bot.app import App
from bot.desk import acts
from bot.desk.permitted import may_see_evidence, same_channel, same_person
from bot.desk.reading_here import settings_of
from bot.desk.recording import plain
from bot.desk.seen import Seen
from bot.desk.types import Posted, Question
from bot.platform import Platform, PlatformError, PlatformUnavailable
from bot.showing.folding import begun, checked, ended
from bot.showing.view import View
from bot.words import say
from pipeline.types import Status
from storage.types import LogEntry


async def share(app: App, platform: Platform, seen: Seen) -> str:
    """Post an answer for everybody in its channel, and return what its asker is told.

    Raises:
        Denied: It is not theirs to share, was shared before or perhaps so, or the platform refuses.
        StorageError: It could not be put on record; if that was before it was posted, it was not.
    """
    _held_to_rules(seen)
    question, asks = shared(seen.question, seen.by), await settings_of(app, seen.question.place.channel_id)
    posted = await _posted_before(platform, seen, question)
    view = shared_view(seen, ask=bool(asks.ask))
    await app.audit.append(acts.act(seen.turn.turn_id, "share", seen.by, state=acts.BEGUN))
    try:
        posted = await platform.show(question, view, posted)
    except PlatformError as error:
        if not _perhaps_posted(error):
            failed = acts.act(seen.turn.turn_id, "share", seen.by, state=acts.FAILED, reason=str(error))
            await app.audit.append(failed)
        raise seen.denied("share_failed") from error
    facts = {"state": acts.DONE, "messages": posted.messages, "text": plain(view)}
    await app.audit.append(acts.act(seen.turn.turn_id, "share", seen.by, **facts))
    return say("share_done", seen.language)


async def unshare(platform: Platform, question: Question, entries: Sequence[LogEntry]) -> tuple[str, ...]:
    """Remove what sharing a question's answer posted, and return the messages' ids; for who takes the answer back.

    Raises:
        PlatformError: The platform refuses, or is away.
    """
    posts, post = acts.last(entries, "share"), shared(question, question.asker)
    messages = tuple(map(str, posts.get("messages", ())))
    if posts and not messages and platform.ways(post).reads_back:
        messages = (await platform.find(post)).messages
    if messages:
        await platform.remove(post, Posted(messages))
    return messages


def shared(question: Question, by: Asker) -> Question:
    """Return the question as it stands in the channel when its answer is shared: whoever is there may see that."""
    return replace(question, key=f"{question.key}#shared", asker=by, only_asker=False, unasked=False, handle="")


def shared_view(seen: Seen, *, ask: bool) -> View:
    """Return what everybody is shown. What it counts is left out where not all that was counted is readable now."""
    start = begun(seen.row.ticket, seen.turn.language)
    whole = checked if seen.turn.task == "check" else ended
    view = whole(start, seen.answered, ask=ask)
    return view if may_see_evidence(seen.turn, seen.here) else replace(view, collapsed="", left_out="")


def _held_to_rules(seen: Seen) -> None:
    if not (seen.question.only_asker and same_person(seen.question.asker, seen.by)):
        raise seen.denied("share_public")
    # Only to whom stands in the channel itself is it known what may be read there now.
    if not same_channel(seen.question.asker, seen.by):
        raise seen.nothing
    if seen.answered.answer.status is not Status.ANSWERED:
        raise seen.denied("share_empty")


async def _posted_before(platform: Platform, seen: Seen, question: Question) -> Posted:
    """Return what an earlier attempt left. Raises `Denied` where it was shared, or nobody can tell."""
    before = acts.last(seen.entries, "share")
    if before.get("state") == acts.DONE:
        raise seen.denied("share_already")
    if before and not platform.ways(question).reads_back:
        raise seen.denied("share_uncertain")
    if not (acts.tried(seen.entries, "share") and platform.ways(question).reads_back):
        return Posted()
    try:
        return await platform.find(question)
    except PlatformError as error:
        raise seen.denied("share_failed") from error


def _perhaps_posted(error: PlatformError) -> bool:
    """Return whether it may stand there all the same: nobody answered. Who asks us to wait has posted nothing."""
    return isinstance(error, PlatformUnavailable) and error.seconds is None
