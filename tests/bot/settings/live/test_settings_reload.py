"""A server takes changed settings: all of them are right, or nothing changes; names mean what they meant."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from bot.desk.platform_port import CannotPost, PlatformError, PlatformUnavailable
from bot.server.settings_reload import SettingsReload
from bot.settings.errors import SettingsError
from bot.settings.live.channel_names import NamedChannel
from bot.settings.live.live_settings import LiveSettings
from bot.settings.live.scope_record import SCOPE_ID, ScopeRecord
from bot.settings.tables.settings_tables import Settings
from storage.database.engine import Database
from storage.record.audit_log import AuditLog
from tests.storage.stores import open_empty_database

HR, ENG = NamedChannel("slack:T1/C1", "hr"), NamedChannel("slack:T1/C2", "eng")


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with open_empty_database(tmp_path) as opened:
        yield opened


def named(*readers: str, **more: Any) -> Settings:
    return Settings.model_validate({"corpus": [{"name": "salaries", "visible_to": readers}], **more})


class House:
    """A server whose settings and channels may change."""

    def __init__(self, database: Database, settings: Settings, *channels: NamedChannel) -> None:
        self.audit, self.written = AuditLog(database), settings
        self.channels: Sequence[NamedChannel] = channels
        self.faults = list[PlatformError]()
        self.start()

    def start(self) -> None:
        self.live = LiveSettings(self.written)
        self.reloading = SettingsReload(
            self.live, lambda: self.written, ScopeRecord(self.audit), lambda _: asyncio.sleep(0)
        )

    async def channels_of(self, settings: Settings) -> Sequence[NamedChannel]:
        del settings
        if self.faults:
            raise self.faults.pop(0)
        return self.channels

    async def open(self) -> None:
        await self.reloading.begin()
        await self.reloading.meet("slack", self.channels_of)

    @property
    def readers(self) -> list[str]:
        return list(self.live.current.corpus[0].visible_to)

    async def recorded(self) -> list[tuple[Any, ...]]:
        return [tuple(one.body[key] for key in ("key", "was", "now")) for one in await self.audit.turn(SCOPE_ID)]


async def test_a_name_is_the_channel_that_is_called_so(database: Database) -> None:
    settings = named(
        "slack:#HR", "slack:#hr", "slack:T9/#hr", "slack:T1/C9", schedule={"admin_channel": "slack:#eng"},
        channel=[{"id": "slack:T1/#eng", "corpora": ["salaries"]}],
    )  # fmt: skip
    house = House(database, settings, HR, ENG)
    await house.reloading.begin()
    assert house.readers == ["slack:#HR", "slack:#hr", "slack:T9/#hr", "slack:T1/C9"]
    house.faults = [PlatformUnavailable("Slack is away.")] * 3
    await house.reloading.meet("slack", house.channels_of)

    assert house.readers == ["slack:T1/C1", "slack:T9/#hr", "slack:T1/C9"]
    assert house.live.current.schedule.admin_channel == house.live.current.channel[0].id == "slack:T1/C2"


async def test_a_name_keeps_its_channel_whatever_is_called_so_later(database: Database) -> None:
    house = House(database, named("slack:#hr"), HR)
    await house.open()
    house.channels = [NamedChannel(HR.id, "people"), NamedChannel("slack:T1/C7", "hr")]
    report = await house.reloading.reload()
    (note,) = report.notes
    assert (house.readers, report.faults) == (["slack:T1/C1"], ())
    assert "slack:T1/C1, which it stands for, is called #people now; the name now belongs to slack:T1/C7" in note

    house.start()
    await house.open()
    assert house.readers == ["slack:T1/C1"]
    house.written = named("*")
    await house.reloading.reload()
    house.written = named("slack:#hr")
    await house.reloading.reload()
    assert house.readers == ["slack:T1/C7"]
    assert await house.recorded() == [
        ("corpus.salaries.visible_to", None, ["slack:#hr"]),
        ("corpus.salaries.visible_to", ["slack:#hr"], ["slack:T1/C1"]),
        ("name.slack:#hr", None, "slack:T1/C1"),
        ("corpus.salaries.visible_to", ["slack:T1/C1"], ["*"]),
        ("name.slack:#hr", "slack:T1/C1", None),
        ("corpus.salaries.visible_to", ["*"], ["slack:T1/C7"]),
        ("name.slack:#hr", None, "slack:T1/C7"),
    ]


@pytest.mark.parametrize(
    ("written", "channels", "fault"),
    [
        (named("slack:#hr"), (ENG,), "slack:#hr: Slack has no channel of that name that the bot can see."),
        (named("slack:#hr"), (HR, NamedChannel("slack:T1/C3", "hr")), "2 channels of that name: slack:T1/C1"),
        (named("*", channel=[{"id": "slack:#hr"}, {"id": "slack:T1/C1"}]), (HR,), "two entries for slack:T1/C1"),
        (named("*", channel=[{"id": "slack:T1/C1", "system": "oracle"}]), (), "There is no system “oracle”"),
        (named("*", slack={"bot_token": "xoxb-1-2-abcdefghijkl"}), (), "SLACK_APP_TOKEN"),
        (named("*", pages={"enabled": True, "host": "0.0.0.0"}), (), "[pages] would show the record"),
    ],
)  # fmt: skip
async def test_wrong_settings_are_refused_and_the_old_go_on(
    database: Database, written: Settings, channels: tuple[NamedChannel, ...], fault: str
) -> None:
    house = House(database, named("slack:T1/C9"), *channels)
    await house.open()
    before = house.live.current, await house.recorded()
    house.written = written
    report = await house.reloading.reload()

    assert fault in "; ".join(report.faults)
    assert (house.live.current, await house.recorded()) == before


def unreadable() -> Settings:
    raise SettingsError("line 1: it is wrong.", others=[SettingsError("line 2: so is this.")])


async def test_all_faults_of_a_file_are_told(database: Database) -> None:
    house = House(database, named("*"))
    reload = SettingsReload(house.live, unreadable, ScopeRecord(house.audit))
    assert (await reload.reload()).faults == ("line 1: it is wrong.", "line 2: so is this.")


async def test_at_the_start_nobody_reads_by_an_unknown_name_but_what_would_narrow_nothing_is_refused(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    house = House(database, named("slack:#hr"), ENG)
    await house.open()
    assert house.readers == ["slack:#hr"]
    assert "a channel's name grants no access: slack:#hr" in caplog.text
    house.written = named("*", channel=[{"id": "slack:#hr", "corpora": []}])
    house.start()
    with pytest.raises(SettingsError, match=r"\[\[channel\]\] slack:#hr: Slack has no channel of that name"):
        await house.open()


@pytest.mark.parametrize("fault", [PlatformUnavailable("Slack is away."), CannotPost("missing_scope")])
async def test_while_a_platform_does_not_tell_known_names_stand_and_new_ones_are_refused(
    database: Database, fault: PlatformError
) -> None:
    house = House(database, named("slack:#hr"), HR, ENG)
    await house.open()
    house.faults, house.written = [fault], named("slack:#hr", system="extractive")
    assert (await house.reloading.reload()).changed == ("system",)
    house.faults, house.written = [fault], named("slack:#hr", "slack:#eng")
    assert str(fault) in (await house.reloading.reload()).faults[0]
    assert house.readers == ["slack:T1/C1"]
    await house.reloading.reload()
    assert house.readers == ["slack:T1/C1", "slack:T1/C2"]


@pytest.mark.parametrize("token", ["", "xoxb-1-2-abc"])
async def test_before_a_platform_is_there_a_table_by_name_is_refused_and_a_reader_waits(
    database: Database, token: str
) -> None:
    slack = {"bot_token": token, "app_token": token.replace("xoxb", "xapp")}
    house = House(database, named("*", slack=slack))
    await house.reloading.begin()
    house.written = named("slack:#hr", slack=slack)
    assert (await house.reloading.reload()).notes == ("slack:#hr: grants no access yet: slack is not connected",)
    house.written = named("*", slack=slack, channel=[{"id": "slack:#hr"}])
    assert bool((await house.reloading.reload()).faults) == bool(token)


async def test_what_cannot_be_put_on_record_does_not_take_effect(database: Database) -> None:
    house = House(database, named("*"))
    await house.open()

    class Full(AuditLog):
        async def append(self, *added: Any) -> tuple[int, ...]:
            raise OSError(f"no room for {len(added)}")

    reload: Callable[[], Any] = SettingsReload(house.live, named, ScopeRecord(Full(database))).reload
    with pytest.raises(OSError, match="no room for 1"):
        await reload()
    assert house.readers == ["*"]
