"""The choices of `footnote setup`, and the resulting text of the settings and of the variables. Pure."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bot.cli.setup.settings_edit import add_entry, set_value
from bot.platforms.platform_setup import Workspace
from bot.settings.platform_registry import EVERYONE, PlatformEntry, PlatformSettings
from bot.settings.tables.settings_tables import Settings

NIGHTLY = "03:00"
HEAD = """\
# Settings of Footnote, written by `footnote setup`: run it again to change them, or edit them here.
# Settings that are not here have their defaults; `footnote --config all.toml init` writes every setting, explained, to
# copy from. Tokens and keys are not here: they are in footnote.env next to it, which only its owner can read.
"""
VARIABLES_HEAD = """\
# The secrets of Footnote, as variables: Footnote, systemd (EnvironmentFile=) and docker compose (env_file:) read them
# here. The environment takes precedence. Keep this file to yourself, and out of every repository.
"""
_COMMENTS: Mapping[str, str] = {
    "timezone": "The time zone of dates and of the nightly refresh.",
    "schedule": "When all documents are refreshed; empty for never.",
    "model": "A language model that writes answers from passages. Its key is OPENAI_API_KEY in footnote.env.",
    "corpus": 'Documents. This terminal reads all; visible_to lists who else may: "*" is all own channels, [] no one.',
}


@dataclass(frozen=True, slots=True)
class FolderChoice:
    corpus: str
    path: Path
    url_base: str = ""


@dataclass(frozen=True, slots=True)
class PlatformChoice:
    """A platform, the answers for its table, and the bot's workspaces there."""

    entry: PlatformEntry
    table: PlatformSettings  # with all answers
    answers: Mapping[str, str]  # new ones, by key
    changes: Mapping[str, Any]  # further ones of its table
    mention: str = ""
    workspaces: tuple[Workspace, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model; one without an address is OpenAI's."""

    name: str = ""
    base_url: str = ""
    api_key: str = ""


@dataclass(frozen=True, slots=True)
class SetupChoices:
    """All choices; other settings stay unchanged."""

    folders: tuple[FolderChoice, ...] = ()
    platforms: tuple[PlatformChoice, ...] = ()
    visible_to: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by corpus, if asked
    channels: Mapping[str, str] = field(default_factory=dict)  # the names of the channels among them, by id
    model: ModelChoice | None = None
    timezone: str = ""  # of this machine, for a new file


def edit_settings(text: str, choices: SetupChoices, settings: Settings) -> str:
    """Return the text of the settings with the choices in it. Raises `SettingsError` as `set_value` does."""
    changed = text
    if not text.strip():
        changed = set_value(HEAD, ("timezone",), choices.timezone or "UTC", _COMMENTS["timezone"])
        changed = set_value(changed, ("schedule", "nightly"), NIGHTLY, _COMMENTS["schedule"])
    if choices.model:
        for key in ("name", "base_url"):
            if value := getattr(choices.model, key):
                changed = set_value(changed, ("model", key), value, _COMMENTS["model"])
    for platform in choices.platforms:
        plain = {key: value for key, value in platform.answers.items() if key not in platform.entry.settings.SECRETS}
        for key, value in {**plain, **platform.changes}.items():
            changed = set_value(changed, (platform.entry.name, key), value, f"{platform.entry.title}.")
    names = [corpus.name for corpus in settings.corpus]
    for place, name in enumerate(names):
        if name in choices.visible_to and choices.visible_to[name] != settings.visible_to[name]:
            changed = set_value(changed, ("corpus", place, "visible_to"), choices.visible_to[name])
    for folder in choices.folders:
        source = {"type": "folder", "path": str(folder.path), "url_base": folder.url_base}
        values = {"name": folder.corpus, "visible_to": choices.visible_to.get(folder.corpus, ()), "source": source}
        changed = add_entry(changed, "corpus", values, _COMMENTS["corpus"] if not names else "")
        names.append(folder.corpus)
    return changed


def list_variables(choices: SetupChoices) -> dict[str, str]:
    """Return the given secrets, by their variables."""
    secrets = {
        platform.entry.settings.SECRETS[key]: value
        for platform in choices.platforms
        for key, value in platform.answers.items()
        if key in platform.entry.settings.SECRETS
    }
    key = choices.model.api_key if choices.model else ""
    return secrets | ({"OPENAI_API_KEY": key} if key else {})


def edit_variables(text: str, variables: Mapping[str, str]) -> str:
    """Return the text of a file of variables with these `variables` set, one per line."""
    lines = text.splitlines() or VARIABLES_HEAD.splitlines()
    others = [line for line in lines if line.partition("=")[0].removeprefix("export ").strip() not in variables]
    return "\n".join([*others, *(f"{name}={_quote(value)}" for name, value in variables.items())]) + "\n"


def _quote(value: str) -> str:
    if re.fullmatch(r"[\w.,:/+=@%~-]*", value, re.ASCII):
        return value
    return f"'{value}'" if "'" not in value else '"' + value.replace('"', '\\"') + '"'


def name_corpus(path: Path, taken: Iterable[str]) -> str:
    """Return an unused corpus name for a folder."""
    plain = re.sub(r"[^a-z0-9._-]+", "-", path.name.lower()).strip("._-")[:50] or "documents"
    names = [plain, *(f"{plain}-{number}" for number in range(2, 100))]
    return next(name for name in names if name not in set(taken))


@dataclass(frozen=True, slots=True)
class FolderCount:
    """The files of a folder: counts of those to read, by kind, and of those left out, by reason."""

    kinds: tuple[tuple[str, int], ...]
    left_out: tuple[tuple[str, int], ...]

    @property
    def total(self) -> int:
        return sum(count for _, count in self.kinds)

    def describe(self) -> str:
        """Describe the counts in a sentence or two; files of a readable kind may still fail."""
        kinds = _name_most([(f"{count:,} {kind}", count) for kind, count in self.kinds], "{:,} of other kinds")
        count = f"{self.total:,} {'file' if self.total == 1 else 'files'} to read: {kinds}." if self.total else ""
        rest = _name_most([(f"{reason} ({count:,})", count) for reason, count in self.left_out], "others ({:,})")
        return f"{count} Left out: {rest}.".strip() if rest else count


_MOST = 6  # named kinds and reasons


def _name_most(counted: Sequence[tuple[str, int]], others: str) -> str:
    named = [name for name, _ in counted]
    if len(named) > _MOST + 1:  # one more name is as short as its summary
        named[_MOST:] = [others.format(sum(count for _, count in counted[_MOST:]))]
    return ", ".join(named)


def count_files(preview: Iterable[tuple[str, str]]) -> FolderCount:
    """Count what a preview of a folder lists."""
    kinds, left_out = Counter[str](), Counter[str]()
    for name, reason in preview:
        if reason:
            left_out[reason.removesuffix(" are not read")] += 1
        else:
            kinds[Path(name).suffix.lower() or "without an ending"] += 1
    return FolderCount(tuple(kinds.most_common()), tuple(left_out.most_common()))


def parse_readers(answer: str, platform: str, workspace: str, channels: Mapping[str, str]) -> tuple[str, ...]:
    """Return the readers that an answer names: channels by name or id, or whole ids.

    Raises `ValueError` with an unknown name.
    """
    readers = list[str]()
    by_name = {name.lower(): id_ for name, id_ in channels.items()}
    for typed in filter(None, re.split(r"[,\s]+", answer)):
        name = typed.removeprefix("#").lower()
        if typed == EVERYONE or typed.startswith(f"{platform}:"):
            readers.append(typed)
        elif name in by_name:
            readers.append(f"{platform}:{workspace}/{by_name[name]}")
        elif typed in channels.values():
            readers.append(f"{platform}:{workspace}/{typed}")
        else:
            raise ValueError(typed)
    return tuple(dict.fromkeys(readers))


def describe_readers(readers: Sequence[str]) -> str:
    if not readers:
        return "this terminal only"
    return "everybody (*)" if EVERYONE in readers else ", ".join(readers)
