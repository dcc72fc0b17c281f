"""Tests that `/footnote digest` lists the unanswered public questions of the admin's channel, and nothing else."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from bot.access import Asker
from bot.app import App
from bot.desk.channel_command import DIGEST_DAYS, MAX_LISTED, ChannelCommand, render_digest, write_digest
from bot.desk.jobs.job import encode_question
from bot.settings.tables.settings_tables import Settings
from bot.views.catalog import list_languages, translate
from pipeline.types import Status
from storage.record.question_groups import QuestionGroup
from storage.record.record_search import RecordFilter, RecordSearch
from tests.bot.desk.fake_record import ASKED, CORPORA, RecordedTurn, in_channel, in_dm
from tests.storage.stores import kept, opened

UNANSWERED = RecordedTurn(cited=(), found=("alpha",), status=Status.ABSTAINED)
ADMIN, NONE = in_channel(user="U9"), translate("digest_none", "en", days=DIGEST_DAYS)


@pytest.fixture
async def app(tmp_path):
    """Return an app whose corpus alpha has an owner, and whose corpus gamma cannot be read in C1."""
    with opened(tmp_path) as store:
        for name in CORPORA:
            await store.manifest.finish(name, datetime.now(UTC))
        corpus = [{"name": "alpha", "visible_to": ["*"], "owner": "slack:T1/U5"}, {"name": "beta", "visible_to": ["*"]}]
        yield App(Settings(home=tmp_path, corpus=corpus), store, **kept(store))


async def ask(app: App, turn: RecordedTurn, number: int = 1, **question: bool) -> int:
    row, _ = await app.queue.put(encode_question(replace(turn.question(number), **question)))
    await app.queue.note(row.ticket, turn_id=f"turn{row.ticket}")
    await app.audit.append(*turn.entries(row.ticket))
    return row.ticket


async def digest(app: App, by: Asker = ADMIN, days: int = 0) -> str:
    return await write_digest(app, by, datetime.now(UTC) + timedelta(days=days), "en")


async def test_digest_groups_questions_by_nearest_corpus_and_owner(app) -> None:
    for number, listed in enumerate([("alpha",), ("alpha",), ("beta",), ()], 1):
        await ask(app, replace(UNANSWERED, found=listed), number)

    lines = (await digest(app)).splitlines()

    assert lines == ["Unanswered questions here in the last 7 days: 4", "alpha · slack:T1/U5:", f"• “{ASKED}” ×4"]
    assert await digest(app, days=DIGEST_DAYS + 1) == NONE


@pytest.mark.parametrize(
    ("turn", "question"),
    [
        (replace(UNANSWERED, found=("gamma",)), {}),
        (replace(UNANSWERED, asker=in_channel("C2")), {}),
        (replace(UNANSWERED, asker=in_dm()), {}),
        (replace(UNANSWERED, only_asker=True), {}),
        (UNANSWERED, {"unasked": True}),
        (replace(UNANSWERED, task="check"), {}),
        (RecordedTurn(), {}),
    ],
    ids=["corpus", "channel", "dm", "asker alone", "overheard", "check", "answered"],
)
async def test_digest_omits_questions_that_are_not_public(app, turn, question) -> None:
    await ask(app, turn, **question)

    assert await digest(app) == NONE


async def test_digest_omits_retracted_questions(app) -> None:
    ticket = await ask(app, UNANSWERED)
    assert ASKED in await digest(app)
    await app.queue.retract(ticket, by="slack:T1/U1", why="deleted")

    assert await digest(app) == NONE


async def test_digest_needs_an_admin(app) -> None:
    await ask(app, UNANSWERED)
    reply = [await ChannelCommand(app, lambda _, let=let: let).answer("digest", ADMIN, "en") for let in (True, False)]

    assert ASKED in reply[0]
    assert reply[1] == translate("channel_admins", "en")


@pytest.mark.parametrize("language", list_languages())
async def test_long_digest_fits_into_one_message(app, language) -> None:
    await ask(app, UNANSWERED)
    (one,) = await RecordSearch(app.audit.database).find(RecordFilter())
    long = [QuestionGroup((replace(one, question=f"{number} " * 500),)) for number in range(MAX_LISTED + 3)]

    digest = render_digest(long, {}, {}, language)

    assert (len(digest) < 1_900, digest.endswith(translate("digest_more", language, count=3))) == (True, True)
