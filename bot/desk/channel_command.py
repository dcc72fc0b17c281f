"""Run the admin commands of `/footnote`: show and change the channel's settings, or list unanswered questions.

This list, the digest, contains only questions that everyone in the channel can see, and only corpora that may be read
there.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from bot.access import Asker, may_view_turn
from bot.answering.turn_record import read_turn_record
from bot.app import App
from bot.desk.authorized_turn import decode_without_handle
from bot.desk.channel_settings import (
    ChangeRefused,
    change_channel,
    describe_channel,
    find_searchable_corpora,
    require_admin,
)
from bot.desk.jobs.job import read_retraction
from bot.types import DeliveryOutcome
from bot.views.catalog import translate
from bot.views.view_reducer import shorten_line
from pipeline.types import Status
from storage.errors import StorageError
from storage.record.question_groups import QuestionGroup, group_questions
from storage.record.record_search import RecordFilter, RecordSearch, TurnSummary

SHOW_WORDS = ("", "settings", "help")  # commands that show the settings; "set" before a key may be omitted
DIGEST = "digest"  # the command that lists unanswered questions
DIGEST_DAYS = 7
MAX_LISTED = 12  # questions in a digest, so that it fits one Discord message
_MAX_READ = 200  # the most questions read for a digest: the platform waits only three seconds
_MAX_QUESTION = 90

Nearest = Mapping[int, Sequence[str]]


class ChannelCommand:
    """Runs the admin commands of one workspace's channels."""

    def __init__(self, app: App, is_admin: Callable[[Asker], bool]) -> None:
        self._app, self._is_admin = app, is_admin

    async def answer(self, written: str, by: Asker, language: str) -> str:
        """Run a command, and return the reply to the admin, or the reason why it was refused."""
        key, value = parse_setting(written)
        try:
            if key == DIGEST:
                require_admin(by.channel_id, by, self._is_admin, language)
                return await write_digest(self._app, by, datetime.now(UTC), language)
            if key in SHOW_WORDS:
                return await describe_channel(self._app, by.channel_id, by, is_admin=self._is_admin, language=language)
            return await change_channel(
                self._app, by.channel_id, key, value, by, is_admin=self._is_admin, language=language
            )
        except ChangeRefused as refused:
            return str(refused)
        except (StorageError, ValueError):
            return translate("acting_unavailable" if key == DIGEST else "channel_unchangeable", language)


def parse_setting(written: str) -> tuple[str, str]:
    """Return the key and the value of a command, with or without "set" before them."""
    head, _, rest = " ".join(written.split()).partition(" ")
    if head.lower() == "set":
        head, _, rest = rest.partition(" ")
    return head.lower(), rest


async def write_digest(app: App, by: Asker, now: datetime, language: str) -> str:
    """Return the digest of the admin's channel. Raises `StorageError`."""
    search, here = RecordSearch(app.audit.database), await find_searchable_corpora(app, by)
    since = now - timedelta(days=DIGEST_DAYS)
    asked = await search.find(
        RecordFilter(channel=by.channel_id, since=since, until=now, status=Status.ABSTAINED, limit=_MAX_READ)
    )
    nearest = await search.nearest_corpora([turn.seq for turn in asked])
    shown = [turn for turn in asked if here >= set(nearest.get(turn.seq, ())) and await _is_open_to(app, turn, by)]
    owners = {corpus.name: corpus.owner for corpus in app.settings.corpus}
    return render_digest(group_questions(shown, lambda turn: turn.question), nearest, owners, language)


def render_digest(
    groups: Sequence[QuestionGroup[TurnSummary]], nearest: Nearest, owners: Mapping[str, str], language: str
) -> str:
    """Return the groups of questions as lines, each under the corpus nearest to most of its questions; pure."""
    if not groups:
        return translate("digest_none", language, days=DIGEST_DAYS)
    by_corpus = defaultdict[str, list[str]](list)
    for group in groups[:MAX_LISTED]:
        near = Counter(corpus for turn in group.members for corpus in nearest.get(turn.seq, ()))
        times = f" ×{len(group.members)}" if len(group.members) > 1 else ""
        line = f"• “{shorten_line(group.members[0].question, _MAX_QUESTION)}”{times}"
        by_corpus[near.most_common(1)[0][0] if near else ""].append(line)
    count = sum(len(group.members) for group in groups)
    lines = [translate("digest_heading", language, days=DIGEST_DAYS, count=count)]
    for corpus in sorted(by_corpus, key=lambda name: (not name, name)):
        owner = owners.get(corpus, "")
        named = f"{corpus} · {owner}" if owner else corpus
        lines += [f"{named or translate('digest_nowhere', language)}:", *by_corpus[corpus]]
    if len(groups) > MAX_LISTED:
        lines.append(translate("digest_more", language, count=len(groups) - MAX_LISTED))
    return "\n".join(lines)


async def _is_open_to(app: App, turn: TurnSummary, by: Asker) -> bool:
    """Return whether a question addressed the bot, publicly in this channel, and was not retracted."""
    record = None if turn.erased or turn.retracted else read_turn_record(await app.audit.turn(turn.turn_id))
    row = await app.queue.get(record.ticket) if record and record.task == "ask" else None
    if row is None or row.outcome == DeliveryOutcome.RETRACTED or read_retraction(row):
        return False
    question = decode_without_handle(row)
    return not question.unasked and may_view_turn(question.asker, by, alone=question.only_asker)
