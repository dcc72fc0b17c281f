"""Settings: sources in their order of precedence, and errors."""

import tomllib
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import create_model

from bot.cli.setup.init_command import write_starter
from bot.settings.errors import SettingsError
from bot.settings.settings_errors import list_keys
from bot.settings.settings_lines import find_line
from bot.settings.settings_reader import SettingsFile, list_old_keys, load_settings
from bot.settings.tables.field_types import SettingsTable, load_time_zone
from bot.settings.tables.settings_tables import Settings
from bot.settings.tables.source_settings import FolderSettings, WikipediaSettings
from storage.indexes.chroma_connection import ChromaServer


def _file(text: str, path: str = "footnote.toml") -> Path:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text, encoding="utf-8")
    return Path(path)


def test_missing_file_gives_defaults(here: Path) -> None:
    settings = load_settings()

    assert settings == Settings()
    assert settings.home == here / ".footnote"
    assert (settings.zone, settings.embedding.function, settings.corpus) == (UTC, "", ())


def _list_tables(table: type[SettingsTable]) -> Iterator[type[SettingsTable]]:
    yield table
    for narrower in table.__subclasses__():
        yield from _list_tables(narrower)


@pytest.mark.parametrize("table", dict.fromkeys(_list_tables(SettingsTable)))
def test_defaults_are_valid(table: type[SettingsTable]) -> None:
    """Starting relies on it: defaults, except paths, are not validated there."""
    for name, field in table.model_fields.items():
        if field.is_required() or field.validate_default:
            continue
        default = field.get_default(call_default_factory=True)
        valid = create_model(name, value=(Annotated[field.annotation, name, *field.metadata], ...))(value=default)
        assert (repr(valid.value), type(valid.value)) == (repr(default), type(default)), name


def test_starter_file_equals_the_defaults(here: Path) -> None:
    write_starter(here / "footnote.toml")

    assert load_settings() == Settings()


def test_bits_of_earlier_releases_are_ignored() -> None:
    _file("[embedding]\nbits = 8\n")

    assert load_settings() == Settings()


def test_starter_file_has_every_key() -> None:
    text = write_starter(Path("footnote.toml")).read_text(encoding="utf-8")
    for key in list_keys():
        name = key.rsplit(".", maxsplit=1)[-1]
        assert f"{name} =" in text or f"[{name}]" in text, key


def test_corpus_in_the_starter_file_can_be_uncommented() -> None:
    lines = write_starter(Path("footnote.toml")).read_text(encoding="utf-8").splitlines()
    start = lines.index("# [[corpus]]")
    table = lines[start : lines.index("", start)]
    _file("\n".join([*lines[:start], *(line.removeprefix("# ") for line in table)]))

    (corpus,) = load_settings().corpus
    assert (corpus.name, corpus.visible_to) == ("handbook", ())
    assert isinstance(corpus.source, FolderSettings)
    assert corpus.source.include == ("**/*",)


def test_dump_in_the_starter_file_can_be_used() -> None:
    text = write_starter(Path("footnote.toml")).read_text(encoding="utf-8")
    source = next(line for line in text.splitlines() if 'type = "wikipedia"' in line).lstrip("# ")
    _file(f"[[corpus]]\nname = 'wikipedia'\n{source}\n", "etc/footnote.toml")

    (corpus,) = load_settings(Path("etc/footnote.toml")).corpus
    assert isinstance(corpus.source, WikipediaSettings)
    assert corpus.source.dump == Path("etc/enwiki-latest-pages-articles.xml.bz2").absolute()


def test_starter_never_overwrites_a_file() -> None:
    _file("timezone = 'UTC'")
    with pytest.raises(SettingsError, match="already exists"):
        write_starter(Path("footnote.toml"))

    assert Path("footnote.toml").read_text(encoding="utf-8") == "timezone = 'UTC'"


def test_variables_override_the_file_and_the_file_overrides_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    _file("[limits]\nseconds = 5\npassages = 7\n")
    monkeypatch.setenv("FOOTNOTE_LIMITS__SECONDS", "9.5")
    limits = load_settings().limits

    assert (limits.seconds, limits.passages, limits.sentences) == (9.5, 7, 3)


def test_empty_variables_set_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOOTNOTE_HOME", "")
    monkeypatch.setenv("FOOTNOTE_DATABASE_FILE", "")

    assert load_settings() == Settings()


def test_old_key_of_readers_is_accepted() -> None:
    path = _file("[[corpus]]\nname = 'old'\nreaders = ['*']\n[[corpus]]\nname = 'new'\nvisible_to = ['*']\n")

    assert load_settings().visible_to == {"old": ("*",), "new": ("*",)}
    assert list_old_keys(path) == ["corpus[1].readers"]


def test_secret_is_read_from_the_named_file(monkeypatch: pytest.MonkeyPatch) -> None:
    _file('database = "postgresql://file"')
    _file("postgresql://user:hush@host/db\n", "secret")
    monkeypatch.setenv("FOOTNOTE_DATABASE_FILE", "secret")
    settings = load_settings()

    assert settings.database == "postgresql://user:hush@host/db"
    assert "hush" not in repr(settings)


def test_relative_paths_are_relative_to_the_file(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = 'source = { type = "folder", path = "docs" }'
    config = _file(f'home = "data"\n[[corpus]]\nname = "docs"\n{source}\n', "etc/footnote.toml")
    settings = load_settings(config)
    corpus = settings.corpus[0].source

    assert settings.home == here / "etc" / "data"
    assert isinstance(corpus, FolderSettings)
    assert corpus.path == here / "etc" / "docs"
    assert load_settings(_file("", "etc/empty.toml")).home == here / "etc" / ".footnote"
    monkeypatch.setenv("FOOTNOTE_HOME", "elsewhere")
    assert load_settings(config).home == here / "elsewhere"


def test_settings_are_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Settings().timezone = "Europe/Berlin"  # type: ignore[misc] # that is the point


@pytest.mark.parametrize(("name", "value", "expected"), [
    ("FOOTNOTE_TIMEZON", "UTC", "FOOTNOTE_TIMEZON: there is no setting `timezon`. Did you mean `timezone`?"),
    ("FOOTNOTE_LIMITS__SECOND", "1", "FOOTNOTE_LIMITS__SECOND: there is no setting `limits.second`. Did you"),
    ("FOOTNOTE_LIMITS__SECONDS", "x", 'FOOTNOTE_LIMITS__SECONDS: limits.seconds must be a valid number, not "x".'),
    ("FOOTNOTE_CORPUS", "[{", "FOOTNOTE_CORPUS is not valid JSON."),
])  # fmt: skip
def test_error_names_the_wrong_variable(name: str, value: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError) as caught:
        load_settings()

    assert expected in f"{caught.value} {caught.value.hint}"


@pytest.mark.parametrize("name", ["FOOTNOTE_DEBUG", "FOOTNOTE_CONFIG", "FOOTNOTE_SERVICE_HOST", "FOOTNOTE_PORT_80_TCP"])
def test_variables_of_the_command_line_and_kubernetes_are_ignored(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "x")

    assert load_settings() == Settings()


def test_named_file_must_exist() -> None:
    with pytest.raises(SettingsError, match=r"no settings file other\.toml"):
        load_settings(Path("other.toml"))


@pytest.mark.parametrize(
    ("text", "fault"),
    [(None, "was deleted"), ("", "has no settings any more"), ("# gone\n[limits]", "has no settings any more")],
)
def test_reload_refuses_a_deleted_or_emptied_file(text: str | None, fault: str) -> None:
    file = SettingsFile(None)
    assert file.read() == Settings()
    for system in ("extractive", "direct"):
        path = _file(f"system = '{system}'")
        assert file.read().system == system
    path.unlink() if text is None else path.write_text(text)
    for asked in (file, file):
        with pytest.raises(SettingsError, match=fault):
            asked.read()


def test_settings_file_that_is_not_utf8_is_an_error() -> None:
    Path("footnote.toml").write_bytes(b"# caf\xe9\n")
    with pytest.raises(SettingsError, match="not UTF-8"):
        load_settings()


def test_settings_file_may_begin_with_a_byte_order_mark() -> None:
    Path("footnote.toml").write_bytes(b"\xef\xbb\xbftimezone = 'UTC'\n")

    assert load_settings() == Settings()


def test_all_errors_are_reported_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    _file(
        "timezon = 'UTC'\n[[corpus]]\nnam = 'a'\nowner = 'anna'\nvisible_to = [\n '*',\n 'slak:x',\n]\n"
        "[corpus.source]\ntype = 'folder'\npth = 'x'\n[limits]\npassages = 'ten'\n"
    )
    monkeypatch.setenv("FOOTNOTE_LIMIT__X", "1")
    monkeypatch.setenv("OPENAI_API_KEY_FILE", "missing")
    with pytest.raises(SettingsError) as caught:
        load_settings()

    lines = [
        str(error).partition(" must ")[0].removeprefix("footnote.toml, ")
        for error in (caught.value, *caught.value.others)
    ]
    assert lines == [
        "line 1: there is no setting `timezon`.",
        "line 3: there is no setting `corpus[1].nam`.",
        "line 4: corpus[1].owner",
        "line 5: corpus[1].visible_to[2]",
        "line 11: there is no setting `corpus[1].source.pth`.",
        "line 13: limits.passages",
        "FOOTNOTE_LIMIT__X: there is no setting `limit`.",
        "The file that OPENAI_API_KEY_FILE names cannot be read: No such file or directory.",
    ]


KEYS = st.sampled_from(["a", "b-1", "'c.d'", '"e f"'])
VALUES = st.sampled_from(["{}", "[\n  {},\n]", '"""\n[[x]]\na = {}\n"""', "{{ k = {} }}", "[[{}]]"])


@given(st.lists(st.tuples(st.sampled_from(["[{}]", "[[{}]]", "[[{}]]\n[{}.sub]"]), KEYS, KEYS, VALUES), max_size=8))
def test_find_line_returns_the_line_of_every_settings_key(tables: list[tuple[str, str, str, str]]) -> None:
    text, places, counts = "", {}, dict[str, int]()
    for place, (header, table, key, value) in enumerate(tables):
        name = f"{table[0]}{header.count('[')}{table[1:]}" if table[0] in "'\"" else f"{table}{header.count('[')}"
        path: tuple[str | int, ...] = (name.strip("'\""),)
        if header.startswith("[["):
            path = (*path, counts.setdefault(name, -1) + 1)
            counts[name] += 1
        elif name in counts:
            continue
        counts.setdefault(name, 0)
        text += header.replace("{}", name) + "\n"
        path = (*path, "sub") if "sub" in header else path
        places[(*path, key.strip("'\""))] = len(text.splitlines()) + 1
        text += f"{key} = {value.format(place)}\n"

    assert tomllib.loads(text) is not None
    assert {key: find_line(text, key) for key in places} == places


def test_time_zones_are_known_by_name() -> None:
    assert str(load_time_zone("Europe/Berlin")) == "Europe/Berlin"
    with pytest.raises(ValueError, match="not a time zone"):
        load_time_zone("../etc/passwd")


def test_chroma_server_has_tenant_database_and_token(monkeypatch: pytest.MonkeyPatch) -> None:
    _file("chroma = { url = 'https://api.trychroma.com', tenant = 'team', database = 'handbook' }")
    monkeypatch.setenv("FOOTNOTE_CHROMA__TOKEN", "ck-secret")

    settings = load_settings()

    assert settings.chroma_location == ChromaServer("https://api.trychroma.com", "team", "handbook", "ck-secret")
    assert "ck-secret" not in repr(settings)
    assert Settings(home=Path("here")).chroma_location == Path("here/chroma").absolute()


def test_api_address_of_slack_gets_a_slash_at_its_end() -> None:
    Path("footnote.toml").write_text("[slack]\napi_url = 'http://127.0.0.1:9/api'\n", encoding="utf-8")

    assert load_settings().slack.api_url == "http://127.0.0.1:9/api/"
