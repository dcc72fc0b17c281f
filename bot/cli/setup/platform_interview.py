"""Ask which platforms to use, then for their secrets, workspaces and channels. Each secret is tested immediately."""

from collections.abc import Mapping, Sequence
from typing import Any

from bot.cli.setup.prompter import Prompter
from bot.cli.setup.setup_choices import PlatformChoice, parse_readers
from bot.cli.setup.setup_tries import SetupTries
from bot.cli.terminal_output import CommandError
from bot.platforms.platform_setup import BotLocation, SetupQuestion, Workspace
from bot.settings.platform_registry import PlatformEntry, PlatformSettings, load_platforms
from bot.settings.secret_shapes import find_misplaced_secret
from bot.settings.tables.settings_tables import Settings
from bot.views.error_messages import Fault, explain_error

NONE = "none"
_LATER = "later"


def list_offered() -> list[PlatformEntry]:
    """Return the platforms that have a guide for setup."""
    return [entry for entry in load_platforms().values() if entry.guide]


def select_platforms(settings: Settings, names: Sequence[str] | None) -> list[PlatformEntry]:
    """Return the platforms with these names; for None, the configured ones. Raises `CommandError`."""
    offered = {entry.name: entry for entry in list_offered()}
    if names is None:
        return [entry for entry in offered.values() if entry.read(settings).configured]
    for name in names:
        if name not in {*offered, NONE}:
            known = ", ".join([*offered, NONE])
            raise CommandError(Fault("unknown_platform", f"There is no platform {name!r}.", f"There are: {known}."))
    return [offered[name] for name in names if name != NONE]


class PlatformInterview:
    """Asks about platforms; `own` are the ids of workspaces given as options."""

    def __init__(self, prompter: Prompter, tries: SetupTries, settings: Settings, own: Sequence[str]) -> None:
        self._prompter = prompter
        self._tries = tries
        self._settings = settings
        self._own = own
        self.channels = dict[str, str]()  # names of all listed channels, by their ids

    def choose(self) -> list[PlatformEntry]:
        """Ask which platforms to use, and return them."""
        offered = list_offered()
        configured = select_platforms(self._settings, None)
        plain = ",".join(str(offered.index(entry) + 1) for entry in configured)
        titles = [*(entry.title for entry in offered), "none yet, only this terminal"]
        numbers = self._prompter.choose(titles, several=True, default=plain)
        chosen = [offered[number] for number in sorted(set(numbers)) if number < len(offered)]
        for entry in configured:
            if entry not in chosen:
                secrets = " and ".join(entry.settings.SECRETS.values())
                self._prompter.show(f"{entry.title} stays until you remove {secrets}.", "note")
        return chosen

    def ask(self, entry: PlatformEntry) -> PlatformChoice:
        """Ask for all that a platform needs, and return the answers."""
        setup, table = entry.setup, entry.read(self._settings)
        if not table.configured:
            self._prompter.show(f"In {entry.title}, once:")
            for number, step in enumerate(setup.steps, start=1):
                self._prompter.show(step, f"{number}.")
        answers = dict[str, str]()
        for question in setup.list_questions(table):
            table = self._ask_question(entry, table, question, answers)
        location = self._locate(entry, table) or BotLocation(f"@{entry.name}")
        changes, workspaces = dict(location.changes), location.workspaces
        if setup.workspaces_key:
            workspaces = self._choose_workspaces(entry, table, location)
            current = getattr(table, setup.workspaces_key)
            if self._own or not any({workspace.id, workspace.title} & set(current) for workspace in workspaces):
                changes[setup.workspaces_key] = tuple(workspace.id for workspace in workspaces)
        changes = {key: value for key, value in changes.items() if getattr(table, key) != value}
        return PlatformChoice(entry, table, answers, changes, location.mention, workspaces)

    def _ask_question(
        self, entry: PlatformEntry, table: PlatformSettings, question: SetupQuestion, answers: dict[str, str]
    ) -> PlatformSettings:
        """Ask until an answer is accepted, and return the table with this answer in it."""
        current = _reveal(getattr(table, question.key))
        if not current:
            self._prompter.show(question.where)
        while True:
            keep = " (Enter: as it is)" if current else question.default and f" (Enter: {question.default})"
            answer = (
                self._prompter.ask(f"{entry.title}: {question.prompt}{keep}:", secret=question.secret)
                or current
                or question.default
            )
            if not answer:
                variable = entry.settings.SECRETS.get(question.key, question.key)
                self._prompter.require(f"{entry.title}'s {question.prompt}", f"the variable {variable}")
                continue
            tried = self._validate(entry, table, question, answer)
            if tried and self._prompter.report(self._tries.try_answer(entry, tried, question.key)):
                if answer != current:
                    answers[question.key] = answer
                return tried
            current = ""

    def _validate(
        self, entry: PlatformEntry, table: PlatformSettings, question: SetupQuestion, answer: str
    ) -> PlatformSettings | None:
        """Return the table with the answer in it; if the answer is invalid, show why and return None."""
        wrong = (
            find_misplaced_secret(load_platforms().values(), entry, question.key, answer) if question.secret else None
        )
        if wrong:
            self._prompter.refuse(Fault("misplaced_secret", f"This is {wrong.found}.", wrong.hint))
            return None
        try:
            return type(table).model_validate({**dict(table), question.key: answer})
        except ValueError:
            self._prompter.refuse(Fault("settings", f"This is not valid: {question.prompt}.", question.where))
            return None

    def _locate(self, entry: PlatformEntry, table: PlatformSettings) -> BotLocation | None:
        """Return the bot's name and workspaces; if the platform call fails, show why and return None."""
        try:
            return self._tries.locate_bot(entry, table)
        except Exception as error:  # noqa: BLE001 - the answers are kept although they could not be tried
            self._prompter.show(
                f"{entry.title} did not list the bot's workspaces: {explain_error(error).message}", "note"
            )
            return None

    def _choose_workspaces(
        self, entry: PlatformEntry, table: PlatformSettings, location: BotLocation
    ) -> tuple[Workspace, ...]:
        """Ask which workspaces are the team's own; the bot does not answer in others."""
        kind = entry.workspace.lower()
        known = tuple(self._own or getattr(table, entry.setup.workspaces_key))
        while not location.workspaces:
            advice = location.invitation or f"Name yours later: [{entry.name}] {entry.setup.workspaces_key}."
            self._prompter.show(f"The bot is not in a {kind} yet. {advice}", "note")
            can_retry = location.invitation and not self._prompter.quiet
            if not can_retry or self._prompter.ask(f"Enter checks again; `{_LATER}` skips it:").lower() == _LATER:
                return tuple(Workspace(name, name) for name in known)
            location = self._locate(entry, table) or location
        own = tuple(place for place in location.workspaces if {place.id, place.title} & set(known))
        if own:
            return own
        titles = [f"{place.title} ({place.id})" for place in location.workspaces]
        which = " or ".join(titles)
        if known:
            message = f"The bot is not in a {kind} of {entry.title} with the id {' or '.join(known)}."
            hint = f"It is in {which}: give --workspace with its id." if self._prompter.quiet else ""
            self._prompter.refuse(Fault("unknown_workspace", message, hint))
        elif len(location.workspaces) == 1:
            self._prompter.show(f"The bot answers only in {location.workspaces[0].title}.")
            return location.workspaces
        if self._prompter.quiet:
            self._prompter.require(f"which {kind} of {entry.title} is your own", f"--workspace with its id: {which}")
        self._prompter.show(f"Which {kind}s are your own? The bot does not answer in others.")
        numbers = self._prompter.choose(titles, several=True)
        return tuple(location.workspaces[number] for number in sorted(set(numbers)))

    def ask_channels(self, choice: PlatformChoice) -> tuple[str, ...]:
        """Ask which channels of a platform may read a corpus."""
        readers = list[str]()
        for workspace in choice.workspaces:
            try:
                channels = self._tries.list_channels(choice.entry, choice.table, workspace.id)
            except Exception as error:  # noqa: BLE001 - the user can type ids
                self._prompter.show(f"Cannot list its channels: {explain_error(error).message}", "note")
                channels = {}
            prefix = f"{choice.entry.name}:{workspace.id}"
            self.channels |= {f"{prefix}/{number}": f"#{name}" for name, number in channels.items()}
            readers += self._ask_channels_of(choice.entry.name, workspace, channels)
        return tuple(readers)

    def _ask_channels_of(self, platform: str, workspace: Workspace, channels: Mapping[str, str]) -> Sequence[str]:
        hint = f"A channel's details show its id. You can also write {platform}:{workspace.id}/ID."
        return self._prompter.ask_until_valid(
            f"Which channels of {workspace.title}? Names or ids, with commas (Enter: none):",
            lambda answer: parse_readers(answer, platform, workspace.id, channels),
            f"The bot cannot see a channel {{}}. {hint}",
        )


def _reveal(value: Any) -> str:
    return str(value.get_secret_value() if hasattr(value, "get_secret_value") else value or "")
