"""Ask the questions of `footnote setup`, and test each answer immediately.

Answers given as options are not asked for. This module returns the choices and writes nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.cli.setup.platform_interview import NONE, PlatformInterview, select_platforms
from bot.cli.setup.prompter import Prompter, make_missing_fault
from bot.cli.setup.setup_choices import (
    FolderChoice,
    ModelChoice,
    PlatformChoice,
    SetupChoices,
    describe_readers,
    name_corpus,
)
from bot.cli.setup.setup_tries import SetupTries
from bot.settings.platform_registry import EVERYONE
from bot.settings.tables.field_types import expand_home, validate_web_address
from bot.settings.tables.settings_tables import CorpusSettings, Settings, validate_corpus_name
from bot.settings.tables.source_settings import FolderSettings
from bot.views.error_messages import Fault, explain_error


@dataclass(frozen=True, slots=True)
class GivenAnswers:
    """The answers given as options; None if not given."""

    documents: tuple[Path, ...] | None = None
    corpus: str = ""
    platforms: tuple[str, ...] | None = None
    visible_to: tuple[str, ...] | None = None
    workspaces: tuple[str, ...] = ()
    model: str | None = None  # its name, or "none"
    model_url: str = ""
    defaults: bool = False  # whether to ask nothing


class Interview:
    """Asks all questions of one run of setup."""

    def __init__(self, prompter: Prompter, tries: SetupTries, settings: Settings, given: GivenAnswers) -> None:
        self._prompter = prompter
        self._tries = tries
        self._settings = settings
        self._given = given
        self._platforms = PlatformInterview(prompter, tries, settings, given.workspaces)

    def run(self, *, timezone: str) -> SetupChoices:
        """Ask all questions. If nothing may be asked, raises `CommandError` for a missing or refused answer."""
        folders = self._ask_folders()
        platforms = self._ask_platforms()
        corpora = [*(corpus.name for corpus in self._settings.corpus), *(folder.corpus for folder in folders)]
        visible_to = self._ask_readers(corpora, platforms) if platforms and corpora else {}
        channels = self._platforms.channels
        return SetupChoices(tuple(folders), tuple(platforms), visible_to, channels, self._ask_model(), timezone)

    def _ask_folders(self) -> list[FolderChoice]:
        self._prompter.head("1. Documents")
        folders = list[FolderChoice]()
        for corpus in self._settings.corpus:
            self._prompter.show(
                f"{corpus.name}: {_describe_source(corpus)}, read by {describe_readers(corpus.visible_to)}"
            )
        if self._given.documents is not None or self._prompter.quiet:
            for path in self._given.documents or ():
                self._add_folder(path, folders, self._given.corpus)
            return folders
        while True:
            first = not folders and not self._settings.corpus
            answer = self._prompter.ask("Which folder has your documents?" if first else "Another folder? (Enter: no)")
            if not first and not answer:
                return folders
            if answer == NONE:
                self._prompter.show("docs/sources.md explains how to name other sources in footnote.toml.")
                return folders
            if answer:
                self._add_folder(Path(answer), folders, "")
            else:
                self._prompter.show(
                    "Type its path, such as ~/handbook, or none if your documents are in git, a wiki or Confluence."
                )

    def _add_folder(self, given: Path, folders: list[FolderChoice], name: str) -> None:
        """Add a folder to `folders`, or show why not: it is not new, or cannot be read."""
        path = expand_home(given).absolute()
        taken: dict[str, Path | None] = {folder.corpus: folder.path for folder in folders}
        taken |= {corpus.name: getattr(corpus.source, "path", None) for corpus in self._settings.corpus}
        if same := next((corpus for corpus, known in taken.items() if known == path), ""):
            self._prompter.show(f"That folder is already the corpus {same}.")
            return
        try:
            count = self._tries.count_folder(path)
        except Exception as error:  # noqa: BLE001 - any error is shown, and another folder asked for
            self._prompter.refuse(explain_error(error))
            return
        if not count.total:
            hint = "Name a folder of Markdown, text, HTML, PDF or Office files."
            self._prompter.refuse(
                Fault("nothing_to_read", f"Nothing in {path} can be read. {count.describe()}".strip(), hint)
            )
            return
        self._prompter.show(count.describe(), "ok")
        corpus = name or self._ask_corpus_name(name_corpus(path, taken), list(taken))
        address = self._ask_address("Web address of its pages, for links in footnotes? (Enter: none)")
        folders.append(FolderChoice(corpus, path, address))

    def _ask_address(self, prompt: str) -> str:
        return self._prompter.ask_until_valid(prompt, validate_web_address)

    def _ask_corpus_name(self, plain: str, taken: Sequence[str]) -> str:
        def parse(answer: str) -> str:
            name = validate_corpus_name(answer or plain)
            if name in taken:
                raise ValueError("is already the name of another corpus")
            return name

        return self._prompter.ask_until_valid(f"What should the corpus be called? (Enter: {plain})", parse)

    def _ask_platforms(self) -> list[PlatformChoice]:
        self._prompter.head("2. Where people ask")
        if self._given.platforms is not None or self._prompter.quiet:
            entries = select_platforms(self._settings, self._given.platforms)
        else:
            entries = self._platforms.choose()
        if not entries:
            self._prompter.show("This terminal answers; you can add platforms later.")
        return [self._platforms.ask(entry) for entry in entries]

    def _ask_readers(self, corpora: Sequence[str], platforms: Sequence[PlatformChoice]) -> dict[str, tuple[str, ...]]:
        self._prompter.head("Who may read what")
        chosen = dict[str, tuple[str, ...]]()
        for corpus in corpora:
            now = self._settings.visible_to.get(corpus, ())
            if self._given.visible_to is not None:
                chosen[corpus] = now or self._given.visible_to
            else:
                chosen[corpus] = now if self._prompter.quiet else self._ask_who(corpus, now, platforms)
            text = f"{corpus}: read by {describe_readers(chosen[corpus])}."
            self._prompter.show(text, "ok" if chosen[corpus] else "note")
        return chosen

    def _ask_who(self, corpus: str, now: tuple[str, ...], platforms: Sequence[PlatformChoice]) -> tuple[str, ...]:
        where = (
            " and ".join(workspace.title for choice in platforms for workspace in choice.workspaces)
            or "your own workspace"
        )
        self._prompter.show(f"Who may read {corpus}, that is: who gets answers from it?")
        everybody = f"everybody: all members of {where}, in all your own channels"
        titles = [everybody, "only members of some channels", "only this terminal for now"]
        chosen = self._prompter.choose(titles, keep=bool(now))
        if not chosen:
            return now
        if chosen == [0]:
            return (EVERYONE,)
        return (
            tuple(reader for choice in platforms for reader in self._platforms.ask_channels(choice))
            if chosen == [1]
            else ()
        )

    def _ask_model(self) -> ModelChoice | None:
        self._prompter.head("3. A language model")
        given, now = self._given, self._settings.model
        if given.model == NONE or (given.model is None and self._prompter.quiet):
            self._prompter.show(f"Unchanged: {now.names or 'none; answers are quoted from the documents'}.")
            return None
        if given.model is not None:
            choice = ModelChoice(given.model, given.model_url)
            return choice if self._prompter.report(self._tries.try_model(choice)) else self._ask_model_details(own=True)
        self._prompter.show(
            "You need none: without one, answers are sentences of your documents, word for word, and nothing leaves "
            "this machine."
        )
        if now.configured:
            self._prompter.show(f"Currently it is {now.names}{now.base_url and f' at {now.base_url}'}.")
        titles = ["none", "a model of OpenAI, with a key", "a model on another server with OpenAI's protocol"]
        chosen = self._prompter.choose(titles, default="" if now.configured else "1", keep=now.configured)
        if chosen == [0] and now.configured:
            self._prompter.show("The current model stays until you remove [model] and its variables.", "note")
        return self._ask_model_details(own=chosen == [2]) if chosen not in ([], [0]) else None

    def _ask_model_details(self, *, own: bool) -> ModelChoice:
        while True:
            address, name = "", ""
            while own and not address:
                address = self._ask_address("The server's address, such as http://localhost:8000/v1:")
            key = self._prompter.ask(f"The key{' (Enter: none is needed)' if own else ''}:", secret=True)
            while own and not name:
                name = self._prompter.ask("The model's name on that server:")
            choice = ModelChoice(name or self._prompter.ask("Which model? (Enter: the default)"), address, key)
            if self._prompter.report(self._tries.try_model(choice)):
                return choice


def find_missing_answers(given: GivenAnswers, settings: Settings) -> list[Fault]:
    """Return a fault for each required answer that no option, setting or variable gives. Raises `CommandError`."""
    missing = []
    if not given.documents and not settings.corpus:
        missing.append(make_missing_fault("which documents to read", "--documents FOLDER"))
    chosen = select_platforms(settings, given.platforms)
    for entry in chosen:
        table = entry.read(settings)
        for question in entry.setup.list_questions(table):
            if not (getattr(table, question.key) or question.default):
                variable = entry.settings.SECRETS.get(question.key) or f"FOOTNOTE_{entry.name}__{question.key}".upper()
                missing.append(make_missing_fault(f"{entry.title}'s {question.prompt}", f"the variable {variable}"))
    unread = [corpus.name for corpus in settings.corpus if not corpus.visible_to]
    if chosen and given.visible_to is None and (given.documents or unread):
        how = "--visible-to '*' (all your own channels), or --visible-to with a channel's id"
        missing.append(make_missing_fault("who may read the documents", how))
    return missing


def _describe_source(corpus: CorpusSettings) -> str:
    match corpus.source:
        case None:
            return "documents without a source in the settings"
        case FolderSettings(path=path):
            return str(path)
    return corpus.source.type.replace("_", " ")
