"""Ask what `footnote setup` wants to know, and try each answer at once.

What options give is not asked. What was chosen is returned; nothing is written.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.cli.setup.platform_interview import PlatformInterview, PlatformTries, select_platforms
from bot.cli.setup.prompter import Prompter, name_missing
from bot.cli.setup.setup_choices import (
    FolderChoice,
    FolderCount,
    ModelChoice,
    PlatformChoice,
    SetupChoices,
    describe_readers,
    name_corpus,
)
from bot.doctor.diagnosis import CheckResult
from bot.settings.platform_registry import EVERYONE
from bot.settings.tables.field_types import expand_home
from bot.settings.tables.settings_tables import CORPUS_NAME_RULE, CorpusSettings, Settings
from bot.settings.tables.source_settings import FolderSettings
from bot.views.error_messages import Fault, explain_error

NONE = "none"
_WEB = ("http://", "https://")


@dataclass(frozen=True, slots=True)
class GivenAnswers:
    """What options answer; None where they do not."""

    documents: tuple[Path, ...] | None = None
    corpus: str = ""
    platforms: tuple[str, ...] | None = None
    visible_to: tuple[str, ...] | None = None
    workspaces: tuple[str, ...] = ()
    model: str | None = None  # its name, or "none"
    model_url: str = ""
    defaults: bool = False  # whether nothing is asked


@dataclass(frozen=True, slots=True)
class SetupTools:
    """How answers are tried. Each blocks."""

    count_folder: Callable[[Path], FolderCount]  # raises what the folder's source raises
    try_model: Callable[[ModelChoice], Sequence[CheckResult]]
    platforms: PlatformTries


class Interview:
    """One run of the questions."""

    def __init__(self, prompter: Prompter, tools: SetupTools, settings: Settings, given: GivenAnswers) -> None:
        self._prompter, self._tools, self._settings, self._given = prompter, tools, settings, given
        self._platforms = PlatformInterview(prompter, tools.platforms, settings, given.workspaces)

    def run(self, *, timezone: str) -> SetupChoices:
        """Ask everything. Raises `CommandError` where an answer is missing, or refused, and nobody can be asked."""
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
            self._prompter.tell(
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
                self._prompter.tell("docs/sources.md tells how to name other sources in footnote.toml.")
                return folders
            if answer:
                self._add_folder(Path(answer), folders, "")
            else:
                self._prompter.tell(
                    "Type its path, such as ~/handbook; or none, if they are in git, a wiki or Confluence."
                )

    def _add_folder(self, given: Path, folders: list[FolderChoice], name: str) -> None:
        """Add a folder, if it can be read and is not there yet."""
        path = expand_home(given).absolute()
        taken: dict[str, Path | None] = {folder.corpus: folder.path for folder in folders}
        taken |= {corpus.name: getattr(corpus.source, "path", None) for corpus in self._settings.corpus}
        if there := next((corpus for corpus, known in taken.items() if known == path), ""):
            self._prompter.tell(f"That folder is read already: it is {there}.")
            return
        try:
            count = self._tools.count_folder(path)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told, and another folder asked for
            self._prompter.refuse(explain_error(error))
            return
        if not count.total:
            hint = "Name a folder of Markdown, text, HTML, PDF or Office files."
            self._prompter.refuse(
                Fault("nothing_to_read", f"Nothing in {path} can be read. {count.describe()}".strip(), hint)
            )
            return
        self._prompter.tell(count.describe(), "ok")
        corpus = name or self._ask_corpus_name(name_corpus(path, taken), list(taken))
        address = self._prompter.ask("Footnotes can link to its pages on the web; their address? (Enter: none)")
        while address and not address.startswith(_WEB):
            address = self._prompter.ask("An address begins with https://; which one? (Enter: none)")
        folders.append(FolderChoice(corpus, path, address))

    def _ask_corpus_name(self, plain: str, taken: Sequence[str]) -> str:
        while True:
            name = self._prompter.ask(f"What is it to be called? (Enter: {plain})") or plain
            try:
                CorpusSettings.model_validate({"name": name})
            except ValueError:
                self._prompter.tell(f"A name is {CORPUS_NAME_RULE}.", "no")
                continue
            if name not in taken:
                return name
            self._prompter.tell(f"There is a {name} already.", "no")

    def _ask_platforms(self) -> list[PlatformChoice]:
        self._prompter.head("2. Where people ask")
        if self._given.platforms is not None or self._prompter.quiet:
            wanted = select_platforms(self._settings, self._given.platforms)
        else:
            wanted = self._platforms.choose()
        if not wanted:
            self._prompter.tell("This terminal answers, and others can follow whenever you like.")
        return [self._platforms.ask(entry) for entry in wanted]

    def _ask_readers(self, corpora: Sequence[str], platforms: Sequence[PlatformChoice]) -> dict[str, tuple[str, ...]]:
        """Ask who may read each corpus, where there is a platform on which somebody could."""
        self._prompter.head("Who may read what")
        chosen = dict[str, tuple[str, ...]]()
        for corpus in corpora:
            now = self._settings.visible_to.get(corpus, ())
            if self._given.visible_to is not None:
                chosen[corpus] = now or self._given.visible_to
            else:
                chosen[corpus] = now if self._prompter.quiet else self._ask_who(corpus, now, platforms)
            told = f"{corpus}: read by {describe_readers(chosen[corpus])}."
            self._prompter.tell(told, "ok" if chosen[corpus] else "note")
        return chosen

    def _ask_who(self, corpus: str, now: tuple[str, ...], platforms: Sequence[PlatformChoice]) -> tuple[str, ...]:
        where = " and ".join(one.title for choice in platforms for one in choice.workspaces) or "your own workspace"
        self._prompter.tell(f"Who may read {corpus}, that is: who gets answers from it?")
        everybody = f"everybody: all members of {where}, in all channels of your own"
        titles = [everybody, "only who is in some channels", "nobody yet, only this terminal"]
        chosen = self._prompter.choose(titles, keep=bool(now))
        if not chosen:
            return now
        if chosen == [0]:
            return (EVERYONE,)
        return (
            tuple(one for choice in platforms for one in self._platforms.ask_channels(choice)) if chosen == [1] else ()
        )

    def _ask_model(self) -> ModelChoice | None:
        self._prompter.head("3. A language model")
        given, now = self._given, self._settings.model
        if given.model == NONE or (given.model is None and self._prompter.quiet):
            self._prompter.tell(f"As it is: {now.names or 'none; answers are quoted from the documents'}.")
            return None
        if given.model is not None:
            choice = ModelChoice(given.model, given.model_url)
            return choice if self._prompter.report(self._tools.try_model(choice)) else self._ask_model_details(own=True)
        self._prompter.tell(
            "None is needed: without one, answers are sentences of your documents, word for word, and nothing leaves "
            "this machine."
        )
        if now.configured:
            self._prompter.tell(f"Now it is {now.names}{now.base_url and f' at {now.base_url}'}.")
        titles = ["none", "OpenAI's, with a key", "one behind another server that speaks OpenAI's protocol"]
        chosen = self._prompter.choose(titles, default="" if now.configured else "1", keep=now.configured)
        if chosen == [0] and now.configured:
            self._prompter.tell("It stays, until [model] and its variables are taken away.", "note")
        return self._ask_model_details(own=chosen == [2]) if chosen not in ([], [0]) else None

    def _ask_model_details(self, *, own: bool) -> ModelChoice:
        while True:
            address, name = "", ""
            while own and not address.startswith(_WEB):
                address = self._prompter.ask("Its address, such as http://localhost:8000/v1:")
            key = self._prompter.ask(f"Its key{' (Enter: it needs none)' if own else ''}:", secret=True)
            while own and not name:
                name = self._prompter.ask("The model's name there:")
            choice = ModelChoice(name or self._prompter.ask("Which model? (Enter: the usual one)"), address, key)
            if self._prompter.report(self._tools.try_model(choice)):
                return choice


def find_missing_answers(given: GivenAnswers, settings: Settings) -> list[Fault]:
    """Return all that nobody is asked and that options, settings and variables do not say. Raises `CommandError`."""
    found = []
    if not given.documents and not settings.corpus:
        found.append(name_missing("which documents to read", "--documents FOLDER"))
    chosen = select_platforms(settings, given.platforms)
    for entry in chosen:
        table = entry.read(settings)
        for question in entry.setup.list_questions(table):
            if not (getattr(table, question.key) or question.default):
                variable = entry.settings.SECRETS.get(question.key) or f"FOOTNOTE_{entry.name}__{question.key}".upper()
                found.append(name_missing(f"{entry.title}'s {question.prompt}", f"the variable {variable}"))
    unread = [corpus.name for corpus in settings.corpus if not corpus.visible_to]
    if chosen and given.visible_to is None and (given.documents or unread):
        how = "--visible-to '*' (everybody of your own), or --visible-to with a channel's id"
        found.append(name_missing("who may read the documents", how))
    return found


def _describe_source(corpus: CorpusSettings) -> str:
    if corpus.source is None:
        return "documents without a source in the settings"
    return (
        str(corpus.source.path) if isinstance(corpus.source, FolderSettings) else corpus.source.type.replace("_", " ")
    )
