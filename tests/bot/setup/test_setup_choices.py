"""The consequences of choices in `footnote setup`: names, variables, counts."""

import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.cli.setup.prompter import wrap_paragraph
from bot.cli.setup.setup_choices import count_files, edit_variables, name_corpus
from bot.settings.settings_reader import adopt_variables, read_variables

SECRETS = st.text(string.ascii_letters + string.digits + " #$'\"=.-_/+", min_size=1).map(str.strip).filter(bool)


@given(st.dictionaries(st.sampled_from(["SLACK_BOT_TOKEN", "DISCORD_TOKEN", "OPENAI_API_KEY"]), SECRETS), SECRETS)
def test_written_variables_can_be_read_back(variables: dict[str, str], changed: str) -> None:
    path = Path("footnote.env")
    path.write_text(edit_variables("# Ours.\nOTHER=1\n", variables), encoding="utf-8")
    path.write_text(edit_variables(path.read_text(encoding="utf-8"), {"DISCORD_TOKEN": changed}), encoding="utf-8")

    assert read_variables(path) == {"OTHER": "1", **variables, "DISCORD_TOKEN": changed}
    assert path.read_text(encoding="utf-8").startswith("# Ours.\n")


def test_environment_overrides_the_file_of_variables() -> None:
    Path("footnote.env").write_text("export A=1\nB=2\nC=3\nD=\n", encoding="utf-8")
    environment = {"A": "own", "B": ""}
    adopt_variables(Path("footnote.env"), environment)
    adopt_variables(Path("nowhere.env"), environment)

    assert environment == {"A": "own", "B": "2", "C": "3"}


@given(st.lists(st.text(string.ascii_letters + ":/-.", min_size=1, max_size=60)), st.integers(20, 120))
def test_paragraphs_fit_the_width_and_break_no_word(words: list[str], width: int) -> None:
    lines = wrap_paragraph(" ".join(words), width, indent=2, hang=3).splitlines()

    assert " ".join(lines).split() == words
    assert all(len(line) <= width or len(line.split()) == 1 for line in lines)


@pytest.mark.parametrize(("folder", "taken", "name"), [
    ("handbook", [], "handbook"),
    ("handbook", ["handbook", "handbook-2"], "handbook-3"),
    ("Our Docs (2026)", [], "our-docs-2026"),
    ("文書", [], "documents"),
    ("/", [], "documents"),
    ("x" * 90, [], "x" * 50),
])  # fmt: skip
def test_corpus_is_named_after_its_folder(folder: str, taken: list[str], name: str) -> None:
    assert name_corpus(Path(folder), taken) == name


def test_files_are_counted_by_kind_and_skipped_ones_by_reason() -> None:
    files = [("a.md", ""), ("b.MD", ""), ("NOTES", ""), ("c.png", "pictures are not read"), ("d.pdf", "")]
    counted = count_files(files)

    assert counted.describe() == "4 files to read: 2 .md, 1 without an ending, 1 .pdf. Left out: pictures (1)."
    assert count_files([]).describe() == ""


@pytest.mark.parametrize(("kinds", "last"), [(7, "1 .7"), (8, "2 of other kinds")])
def test_rare_kinds_of_files_are_summed_up(kinds: int, last: str) -> None:
    counted = count_files([(f"a.{number}", "") for number in range(1, kinds + 1)])
    assert counted.describe().endswith(f", 1 .6, {last}.")
