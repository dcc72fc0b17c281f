"""Reloaded settings apply entirely or not at all; names keep their channels."""

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


class FakeServer:
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
        return [tuple(entry.body[key] for key in ("key", "was", "now")) for entry in await self.audit.turn(SCOPE_ID)]


async def test_channel_names_are_replaced_by_ids_once_the_platform_is_connected(database: Database) -> None:
    settings = named(
        "slack:#HR", "slack:#hr", "slack:T9/#hr", "slack:T1/C9", schedule={"admin_channel": "slack:#eng"},
        channel=[{"id": "slack:T1/#eng", "corpora": ["salaries"]}],
    )  # fmt: skip
    server = FakeServer(database, settings, HR, ENG)
    await server.reloading.begin()
    assert server.readers == ["slack:#HR", "slack:#hr", "slack:T9/#hr", "slack:T1/C9"]
    server.faults = [PlatformUnavailable("Slack is away.")] * 3
    await server.reloading.meet("slack", server.channels_of)

    assert server.readers == ["slack:T1/C1", "slack:T9/#hr", "slack:T1/C9"]
    assert server.live.current.schedule.admin_channel == server.live.current.channel[0].id == "slack:T1/C2"


async def test_name_keeps_its_first_channel_until_the_settings_drop_the_name(database: Database) -> None:
    server = FakeServer(database, named("slack:#hr"), HR)
    await server.open()
    server.channels = [NamedChannel(HR.id, "people"), NamedChannel("slack:T1/C7", "hr")]
    report = await server.reloading.reload()
    (note,) = report.notes
    assert (server.readers, report.faults) == (["slack:T1/C1"], ())
    assert "slack:#hr still means slack:T1/C1, which is called #people now; the name now belongs to slack:T1/C7" in note

    server.start()
    await server.open()
    assert server.readers == ["slack:T1/C1"]
    server.written = named("*")
    await server.reloading.reload()
    server.written = named("slack:#hr")
    await server.reloading.reload()
    assert server.readers == ["slack:T1/C7"]
    assert await server.recorded() == [
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
async def test_invalid_settings_are_refused_and_the_current_ones_stay(
    database: Database, written: Settings, channels: tuple[NamedChannel, ...], fault: str
) -> None:
    server = FakeServer(database, named("slack:T1/C9"), *channels)
    await server.open()
    before = server.live.current, await server.recorded()
    server.written = written
    report = await server.reloading.reload()

    assert fault in "; ".join(report.faults)
    assert (server.live.current, await server.recorded()) == before


def unreadable() -> Settings:
    raise SettingsError("line 1: it is wrong.", others=[SettingsError("line 2: so is this.")])


async def test_all_errors_of_a_file_are_reported(database: Database) -> None:
    server = FakeServer(database, named("*"))
    reload = SettingsReload(server.live, unreadable, ScopeRecord(server.audit))
    assert (await reload.reload()).faults == ("line 1: it is wrong.", "line 2: so is this.")


async def test_unknown_reader_name_gives_no_access_and_unknown_channel_table_is_refused(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    server = FakeServer(database, named("slack:#hr"), ENG)
    await server.open()
    assert server.readers == ["slack:#hr"]
    assert "a channel's name grants no access: slack:#hr" in caplog.text
    server.written = named("*", channel=[{"id": "slack:#hr", "corpora": []}])
    server.start()
    with pytest.raises(SettingsError, match=r"\[\[channel\]\] slack:#hr: Slack has no channel of that name"):
        await server.open()


@pytest.mark.parametrize("fault", [PlatformUnavailable("Slack is away."), CannotPost("missing_scope")])
async def test_unreachable_platform_keeps_known_names_and_refuses_new_ones(
    database: Database, fault: PlatformError
) -> None:
    server = FakeServer(database, named("slack:#hr"), HR, ENG)
    await server.open()
    server.faults, server.written = [fault], named("slack:#hr", system="extractive")
    assert (await server.reloading.reload()).changed == ("system",)
    server.faults, server.written = [fault], named("slack:#hr", "slack:#eng")
    assert str(fault) in (await server.reloading.reload()).faults[0]
    assert server.readers == ["slack:T1/C1"]
    await server.reloading.reload()
    assert server.readers == ["slack:T1/C1", "slack:T1/C2"]


@pytest.mark.parametrize("token", ["", "xoxb-1-2-abc"])
async def test_names_of_an_unconnected_platform_give_no_access_yet(database: Database, token: str) -> None:
    slack = {"bot_token": token, "app_token": token.replace("xoxb", "xapp")}
    server = FakeServer(database, named("*", slack=slack))
    await server.reloading.begin()
    server.written = named("slack:#hr", slack=slack)
    assert (await server.reloading.reload()).notes == ("slack:#hr: grants no access yet: slack is not connected",)
    server.written = named("*", slack=slack, channel=[{"id": "slack:#hr"}])
    assert bool((await server.reloading.reload()).faults) == bool(token)


async def test_unrecorded_change_does_not_take_effect(database: Database) -> None:
    server = FakeServer(database, named("*"))
    await server.open()

    class Full(AuditLog):
        async def append(self, *added: Any) -> tuple[int, ...]:
            raise OSError(f"no room for {len(added)}")

    reload: Callable[[], Any] = SettingsReload(server.live, named, ScopeRecord(Full(database))).reload
    with pytest.raises(OSError, match="no room for 1"):
        await reload()
    assert server.readers == ["*"]
