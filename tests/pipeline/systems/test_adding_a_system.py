"""A system written by the guide `docs/adding-a-system.md` works."""

import re
from collections.abc import Iterator
from importlib import invalidate_caches
from pathlib import Path

import pytest

import pipeline.systems
from pipeline.errors import UnknownSystem
from pipeline.stages import findings, passage_retrieval, turn_context
from pipeline.stages.draft import answer_draft
from pipeline.systems import SYSTEMS, find_check, find_system, find_text_check
from pipeline.types import Status
from storage.types import Verdict
from tests.pipeline.systems import test_system_contract as contract
from tests.pipeline.world import question, run

GUIDE = (Path(__file__).parents[3] / "docs" / "adding-a-system.md").read_text(encoding="utf-8")
(CODE,) = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
(PACKAGE,) = re.findall(r"```toml\n(.*?)```", GUIDE, re.DOTALL)
NAME = "first-sentence"
CONTRACT = (
    contract.test_every_sentence_is_quoted_and_cited,
    contract.test_only_answered_turns_have_sentences,
    contract.test_interim_quote_is_from_a_found_passage,
)


@pytest.fixture
def in_the_folder(tmp_path: Path) -> Iterator[None]:
    """Copy the guide's file into a second folder of the systems package."""
    (tmp_path / "first_sentence.py").write_text(CODE, encoding="utf-8")
    pipeline.systems.__path__.append(str(tmp_path))
    invalidate_caches()
    yield
    pipeline.systems.__path__.remove(str(tmp_path))
    vars(pipeline.systems).pop("first_sentence", None)


@pytest.mark.usefixtures("in_the_folder")
@pytest.mark.parametrize("text", contract.QUESTIONS)
async def test_guides_file_is_a_system_that_keeps_the_contract(text: str) -> None:
    assert NAME in SYSTEMS
    assert find_system(NAME).name == NAME
    for kept in CONTRACT:
        await kept(NAME, text)
    await contract.test_every_search_is_a_step_and_an_event(NAME)


@pytest.mark.usefixtures("in_the_folder")
async def test_system_without_its_own_claim_check_uses_the_rules() -> None:
    for check in (find_check(find_system(NAME)), find_text_check(find_system(NAME))):
        outcome = await run(check, question("The office opens at nine."), contract.SHELF)

        assert outcome.answer.status is Status.ANSWERED
        assert outcome.recorder.claims[0].verdict is Verdict.SUPPORTS


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_system_is_named_like_its_file(name: str) -> None:
    entry = SYSTEMS[name]
    assert entry.name == name
    assert entry.summary.endswith(".")
    assert find_check(entry)
    assert find_text_check(entry)


def test_installed_package_provides_a_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package, installed = tmp_path / "some_package", tmp_path / "some_package-1.0.dist-info"
    for folder in (package, installed):
        folder.mkdir()
    (package / "__init__.py").touch()
    (package / "first_sentence.py").write_text(CODE, encoding="utf-8")
    group, line = re.findall(r'"(.*?)"\]\n(.*)\n', PACKAGE)[0]
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: some-package\nVersion: 1.0\n", encoding="utf-8")
    written = f"[{group}]\n{line}\n".replace('"', "")
    (installed / "entry_points.txt").write_text(written, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)

    assert NAME in SYSTEMS
    assert find_system(NAME).answer.__module__ == "some_package.first_sentence"


def test_broken_package_is_named_in_the_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = tmp_path / "broken-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n", encoding="utf-8")
    (installed / "entry_points.txt").write_text("[footnote.systems]\nbroken = no_such_package:ENTRY\n", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UnknownSystem, match="no_such_package:ENTRY"):
        find_system("broken")
    assert find_system("extractive")


def test_unknown_system_error_lists_the_systems() -> None:
    with pytest.raises(UnknownSystem) as raised:
        find_system("oracle")
    assert raised.value.hint == f"There are: {', '.join(sorted(SYSTEMS))}."


def test_guide_names_existing_functions() -> None:
    used = (turn_context, passage_retrieval, findings, answer_draft)
    modules = {module.__name__.rpartition(".")[2]: module for module in used}
    named = re.findall(r"^\| `(?:draft\.)?(\w+)\.(\w+)\(", GUIDE, re.MULTILINE)
    stages = [(module, function) for module, function in named if module in modules]
    assert len(stages) > len(modules)
    assert all(callable(getattr(modules[module], function)) for module, function in stages)
