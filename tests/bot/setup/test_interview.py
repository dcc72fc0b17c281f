"""The questions of `footnote setup`: each answer is tried at once, and the question of a refused one is repeated."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from bot.cli.setup.interview import GivenAnswers, Interview, find_missing_answers
from bot.cli.setup.prompter import Prompter, find_choices
from bot.cli.setup.setup_choices import FolderCount, ModelChoice, SetupChoices
from bot.cli.setup.setup_tries import SetupTries
from bot.cli.terminal_output import CommandError
from bot.doctor.diagnosis import CheckResult
from bot.platforms.platform_setup import BotLocation, Workspace
from bot.settings.platform_registry import PlatformEntry, PlatformSettings
from bot.settings.tables.settings_tables import Settings
from tests.bot.setup.terminals import ScriptedTerminal

BOT, APP = "xoxb-1-2-right", "xapp-1-right"
DISCORD = "MTE4ODAwMDAwMDAwMDAwMDAw.GabcdE.abcdefghijklmnopqrstuvwxyz0123456789AB"
FILES = FolderCount(((".md", 3), (".pdf", 1)), (("pictures", 2),))
FOLDER = ["handbook", "", "", ""]  # its path, its name, no address, and no more folders
NO_MODEL = [""]
SERVERS = (Workspace("301", "Skarholm"), Workspace("302", "Elsewhere"))
CHANNELS = {"general": "C1", "hr": "C2"}


def count(path: Path) -> FolderCount:
    if path.name == "empty":
        return FolderCount((), (("pictures", 2),))
    if path.name == "missing":
        raise OSError(2, "No such file or directory", str(path))
    return FILES


def try_answer(entry: PlatformEntry, table: PlatformSettings, key: str) -> Sequence[CheckResult]:
    refused = "wrong" in getattr(table, key).get_secret_value()
    line = f"{entry.title}: {key} is {'refused' if refused else 'taken'}."
    return (CheckResult("fail" if refused else "ok", line, "Copy it anew."),)


class FakeLocations:
    """The servers the bot is in: none until they were looked up `after` times."""

    def __init__(self, workspaces: Sequence[Workspace] = SERVERS, *, after: int = 0) -> None:
        self.workspaces, self.left = tuple(workspaces), after

    def locate(self, entry: PlatformEntry, table: PlatformSettings) -> BotLocation:
        del table
        self.left -= 1
        if entry.name == "slack":
            return BotLocation("@footnote", (Workspace("T1", "Acme"),))
        found = () if self.left >= 0 else self.workspaces
        return BotLocation("@Footnote", found, "Invite it.", {"message_content": True})


def channels(*_: Any) -> Mapping[str, str]:
    return CHANNELS


def run(
    *answers: str,
    settings: dict[str, Any] | None = None,
    places: FakeLocations | None = None,
    judged: str = "ok",
    **given: Any,
) -> tuple[SetupChoices, ScriptedTerminal]:
    terminal = ScriptedTerminal(answers)
    tries = SetupTries(
        count,
        lambda choice: (CheckResult(judged if "bad" in choice.name else "ok", "Model: told."),),  # type: ignore[arg-type]
        try_answer,
        (places or FakeLocations()).locate,
        channels,
    )
    options = GivenAnswers(**given)
    prompter = Prompter(terminal, quiet=options.defaults)
    chosen = Interview(prompter, tries, Settings.model_validate(settings or {}), options).run(timezone="UTC")
    assert len(terminal.asked) == len(answers)
    return chosen, terminal


def test_refused_folders_names_and_addresses_are_asked_again() -> None:
    folder = ["", "missing", "empty", "handbook", "bad name", "", "ftp://x", "https://x.example/", "handbook", ""]
    chosen, terminal = run(*folder, "4", *NO_MODEL)

    (handbook,) = chosen.folders
    assert (handbook.corpus, handbook.path) == ("handbook", Path("handbook").absolute())
    assert handbook.url_base == "https://x.example/"
    assert "4 files to read: 3 .md, 1 .pdf. Left out: pictures (2)." in terminal.screen
    refused = "empty can be read. Left out: pictures (2) — Name"
    for message in ("No such file", refused, "1 to 60 letters", "already the corpus"):
        assert message in terminal.screen
    assert (chosen.platforms, chosen.visible_to, chosen.model) == ((), {}, None)


def test_misplaced_and_refused_tokens_are_asked_again() -> None:
    tokens = ["", APP, "xoxb-wrong", "", BOT, BOT, "0123456789abcdef" * 2, APP]
    chosen, terminal = run(*FOLDER, "1", *tokens, "1", *NO_MODEL)

    (slack,) = chosen.platforms
    assert slack.answers == {"bot_token": BOT, "app_token": APP}
    assert chosen.visible_to == {"handbook": ("*",)}
    for message in ("required here", "This is an app token", "bot_token is refused", "This is a signing secret"):
        assert message in terminal.screen
    assert not any(secret in terminal.screen for secret in (BOT, APP, "0123456789abcdef"))


def test_refused_token_is_stored_if_the_user_continues() -> None:
    chosen, _ = run(*FOLDER, "1", "xoxb-wrong", "go on", APP, "3", *NO_MODEL)

    assert chosen.platforms[0].answers["bot_token"] == "xoxb-wrong"
    assert chosen.visible_to == {"handbook": ()}


@pytest.mark.parametrize(("typed", "readers"), [
    (["#hr, general"], ("slack:T1/C2", "slack:T1/C1")),
    (["C1"], ("slack:T1/C1",)),
    (["#nowhere", "slack:T1/U9"], ("slack:T1/U9",)),
    ([""], ()),
])  # fmt: skip
def test_readers_are_given_by_channel_names_or_ids(typed: list[str], readers: tuple[str, ...]) -> None:
    chosen, terminal = run(*FOLDER, "1", BOT, APP, "2", *typed, *NO_MODEL)

    assert chosen.visible_to == {"handbook": readers}
    assert ("cannot see a channel #nowhere" in terminal.screen) == (len(typed) > 1)


@pytest.mark.parametrize(("places", "typed", "servers"), [
    (FakeLocations(), ["2"], ("302",)),
    (FakeLocations(SERVERS[:1]), [], ("301",)),
    (FakeLocations(SERVERS[:1], after=2), ["", ""], ("301",)),
    (FakeLocations((), after=1), ["later"], ()),
])  # fmt: skip
def test_discord_servers_are_chosen_from_those_the_bot_is_in(
    places: FakeLocations, typed: list[str], servers: tuple[str, ...]
) -> None:
    chosen, _ = run(*FOLDER, "3", DISCORD, *typed, "1", *NO_MODEL, places=places)

    changes = {"message_content": True} | ({"servers": servers} if servers else {})
    assert chosen.platforms[0].changes == changes


TOKEN = {"discord": {"token": DISCORD}}


@pytest.mark.parametrize(("places", "given", "message"), [
    (FakeLocations(), {"workspaces": ("999",)}, "The bot is not in a server of Discord with the id 999."),
    (FakeLocations(SERVERS[:1]), {"workspaces": ("999",)}, "The bot is not in a server of Discord with the id 999."),
    (FakeLocations(), {}, "Missing answer: which server of Discord is your own."),
])  # fmt: skip
def test_error_about_an_unknown_workspace_lists_those_of_the_bot(
    places: FakeLocations, given: dict[str, Any], message: str
) -> None:
    with pytest.raises(CommandError) as caught:
        run(settings=TOKEN, defaults=True, documents=(Path("handbook"),), places=places, **given)

    assert str(caught.value) == message
    assert "Skarholm (301)" in caught.value.hint
    assert ("Elsewhere (302)" in caught.value.hint) == (len(places.workspaces) > 1)


def test_configured_server_that_the_bot_left_is_asked_again() -> None:
    settings = {"discord": {"token": DISCORD, "servers": ["999"]}}
    chosen, _ = run(*FOLDER, "", "", "2", "1", *NO_MODEL, settings=settings)

    assert chosen.platforms[0].changes["servers"] == ("302",)


def test_options_are_numbered_from_one() -> None:
    _, terminal = run(*FOLDER, "4", *NO_MODEL)

    assert {"1) Slack", "4) none yet, only this terminal", "1) none"} <= set(terminal.lines)


@pytest.mark.parametrize(("answer", "places"), [
    ("slack", [0]),
    ("Discord, 1", [1, 0]),
    ("slack discord", [0, 1]),
    ("my own", [2]),
    ("s", []),
    ("irc", []),
    ("9", []),
    (",", []),
])  # fmt: skip
def test_options_are_chosen_by_numbers_or_names(answer: str, places: list[int]) -> None:
    assert find_choices(answer, ["Slack", "Discord", "My own, of old", "Street"]) == places


def test_refused_model_is_asked_again() -> None:
    url = "http://localhost:8000/v1"
    chosen, _ = run(*FOLDER, "4", "3", "localhost", url, "", "bad", "", url, "key", "", "good", judged="fail")

    assert chosen.model == ModelChoice("good", url, "key")


CURRENT = {
    "slack": {"bot_token": BOT, "app_token": APP},
    "corpus": [{"name": "handbook", "visible_to": ["*"], "source": {"type": "folder", "path": "handbook"}}],
}


def test_second_run_shows_current_choices_and_keeps_them_by_enter() -> None:
    chosen, terminal = run("", "", "", "", "", "", settings=CURRENT)

    assert (chosen.folders, chosen.platforms[0].answers, chosen.visible_to) == ((), {}, {"handbook": ("*",)})
    assert "bot_token is taken" in terminal.screen
    assert "read by everybody (*)" in terminal.screen


def test_deselected_settings_stay_with_a_note() -> None:
    model = {"model": {"name": "good", "base_url": "http://127.0.0.1:1/v1"}}
    chosen, terminal = run("", "4", "1", settings=CURRENT | model)

    assert (chosen.platforms, chosen.model) == ((), None)
    assert "Slack stays until you remove SLACK_BOT_TOKEN and SLACK_APP_TOKEN" in terminal.screen
    assert "The current model stays until you remove [model]" in terminal.screen


def test_options_and_defaults_are_used_without_questions() -> None:
    slack = {"slack": CURRENT["slack"]}
    documents = (Path("handbook"),)
    chosen, _ = run(settings=slack, defaults=True, documents=documents, visible_to=("slack:T1/C1",), model="none")

    assert [folder.corpus for folder in chosen.folders] == ["handbook"]
    assert chosen.visible_to == {"handbook": ("slack:T1/C1",)}


@pytest.mark.parametrize(("given", "kind"), [
    ({"documents": (Path("empty"),)}, "nothing_to_read"),
    ({"documents": (Path("missing"),)}, "system"),
    ({"documents": (Path("handbook"),), "platforms": ("irc",)}, "unknown_platform"),
    ({"documents": (Path("handbook"),), "model": "bad"}, "setup_refused"),
])  # fmt: skip
def test_invalid_options_without_questions_are_an_error(given: dict[str, Any], kind: str) -> None:
    with pytest.raises(CommandError) as caught:
        run(defaults=True, judged="fail", **given)

    assert caught.value.kind == kind


def test_all_missing_answers_are_reported_at_once() -> None:
    slack = find_missing_answers(GivenAnswers(platforms=("slack",), defaults=True), Settings())
    documents = (Path("handbook"),)
    discord = find_missing_answers(GivenAnswers(documents=documents, platforms=("discord",)), Settings())

    assert [fault.hint.split()[1] for fault in slack] == ["--documents", "the", "the"]
    assert "SLACK_APP_TOKEN" in slack[2].hint
    assert [fault.message for fault in discord] == [
        "Missing answer: Discord's Bot token.",
        "Missing answer: who may read the documents.",
    ]
