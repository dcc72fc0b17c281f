"""Tests of finding one document by address, key or title, to forget it or ingest it without affecting others."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.app import App
from bot.server.refresh.document_lookup import NoSuchDocument, SeveralDocuments, select_documents
from bot.server.service import LocalService
from bot.settings.errors import SettingsError
from bot.settings.tables.settings_tables import Settings
from bot.settings.tables.source_settings import WikipediaSettings
from bot.views.error_messages import ReportableError
from ingest.sources.folder import FolderError
from ingest.types import RefreshRefused, SingleReadUnsupported
from storage.errors import UnknownCorpus
from storage.types import DocumentRef, RunState
from tests.storage.stores import kept, opened

NIGHT = datetime(2026, 3, 1, 3, tzinfo=UTC)
BASE = "https://docs.example.com"
PAGES = {
    "own/quay.md": "# The quay\n\nThe quay opens at seven.\n",
    "own/rules.md": "# Old rules\n\nNobody swims at night.\n",
    "more/rules.md": "# Old rules\n\nNobody fishes at noon.\n",
}


@pytest.fixture
def home(tmp_path: Path) -> Iterator[LocalService]:
    for name, text in PAGES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    own = {"type": "folder", "path": tmp_path / "own", "url_base": BASE}
    more = {"type": "folder", "path": tmp_path / "more"}
    corpora = [{"name": name, "source": source} for name, source in (("own", own), ("more", more))]
    settings = Settings.model_validate({"home": tmp_path / "home", "corpus": corpora})
    with opened(tmp_path / "home") as store:
        yield LocalService(App(settings, store, **kept(store)))


@pytest.fixture
async def filled(home: LocalService) -> LocalService:
    for name, source in home.app.settings.sources.items():
        await home.refresh(name, source, lambda _: None)
    return home


async def _titles(home: LocalService, corpus: str = "own") -> list[str]:
    return sorted({hit.document.title for hit in await home.search("quay rules", [corpus], 9)})


@pytest.mark.parametrize("address", [f"{BASE}/rules.md", f"{BASE}/rules.md/#swimming", "rules.md", " Old rules "])
async def test_forgotten_document_is_not_found_or_refreshed(filled: LocalService, address: str) -> None:
    done = await filled.forget(address, "own")

    assert (done.document.key, done.document.title, done.passages) == ("rules.md", "Old rules", 1)
    assert await _titles(filled) == ["The quay"]
    report = await filled.refresh("own", filled.app.settings.sources["own"], lambda _: None)
    assert (report.added, report.changed, report.removed) == (0, 0, 0)
    assert await _titles(filled) == ["The quay"]
    assert await _titles(filled, "more") == ["Old rules"]
    with pytest.raises(NoSuchDocument):
        await filled.forget(address, "own")


async def test_forgotten_document_returns_when_ingested_by_name(filled: LocalService) -> None:
    await filled.forget("rules.md", "own")
    with pytest.raises(NoSuchDocument, match="was forgotten already") as caught:
        await filled.forget("rules.md", "own")
    (report,) = await filled.read_one(f"{BASE}/rules.md", filled.app.settings.sources)

    assert f"footnote ingest --only {BASE}/rules.md`" in caught.value.hint
    assert (report.corpus, report.added) == ("own", 1)
    await filled.refresh("own", filled.app.settings.sources["own"], lambda _: None)
    assert await _titles(filled) == ["Old rules", "The quay"]


@pytest.mark.parametrize("address", ["Old rules", "rules.md", f"{BASE}/rules.md/#swimming"])
async def test_forgotten_document_returns_by_each_of_its_names(filled: LocalService, address: str) -> None:
    await filled.forget("rules.md", "own")
    reports = await filled.read_one(address, filled.app.settings.sources)

    assert {report.corpus: report.added for report in reports}["own"] == 1
    assert await _titles(filled) == ["Old rules", "The quay"]
    assert await filled.app.manifest.all_forgotten() == ()


async def test_similarly_named_forgotten_document_is_reported(filled: LocalService) -> None:
    await filled.forget("rules.md", "own")
    with pytest.raises(NoSuchDocument) as caught:
        await filled.read_one("The old rules", filled.app.settings.sources)
    with pytest.raises(NoSuchDocument, match="was forgotten already"):
        await filled.forget("Old rules", "own")

    assert caught.value.hint.startswith(f"Similar: own: Old rules ({BASE}/rules.md), which was forgotten; ")


async def test_dump_error_does_not_hide_that_no_source_has_the_name(filled: LocalService, tmp_path: Path) -> None:
    """A dump reports an error for every name that it cannot read; this counts only if it is the only source."""
    dump = WikipediaSettings(type="wikipedia", dump=tmp_path / "dump.xml")
    (tmp_path / "dump.xml").write_text("<mediawiki></mediawiki>", encoding="utf-8")
    with pytest.raises(NoSuchDocument) as unknown:
        await filled.read_one("The quai", {**filled.app.settings.sources, "wiki": dump})
    with pytest.raises(SingleReadUnsupported):
        await filled.read_one("The quai", {"wiki": dump})

    assert str(unknown.value) == "No source of own, more, wiki has “The quai”."


async def test_document_both_forgotten_and_listed_is_found_once(filled: LocalService) -> None:
    await filled.app.manifest.forget("own", ["rules.md"])
    (report,) = await filled.read_one(f"{BASE}/rules.md", filled.app.settings.sources)

    assert (report.corpus, report.unchanged) == ("own", 1)


async def test_only_the_named_document_is_ingested_in_its_current_state(filled: LocalService, tmp_path: Path) -> None:
    for name in PAGES:
        (tmp_path / name).write_text("# New words\n\nThe gate is shut.\n", encoding="utf-8")
    (tmp_path / "own/gate.md").write_text("# The gate\n\nThe gate has rules.\n", encoding="utf-8")
    sources = filled.app.settings.sources

    (changed,) = await filled.read_one("The quay", sources)
    (added,) = await filled.read_one(f"{BASE}/gate.md", sources)
    (tmp_path / "own/rules.md").unlink()
    (gone,) = await filled.read_one(f"{BASE}/rules.md", sources)
    assert (gone.corpus, gone.removed) == ("own", 1)
    assert (changed.corpus, changed.changed, changed.passages_added) == ("own", 1, 1)
    assert (added.corpus, added.added) == ("own", 1)
    assert await _titles(filled) == ["New words", "The gate"]


async def test_ambiguous_name_is_ingested_in_each_corpus_and_forgotten_in_none(filled: LocalService) -> None:
    with pytest.raises(SeveralDocuments, match="names 2 documents") as caught:
        await filled.forget("Old rules", "")

    assert f"own: Old rules ({BASE}/rules.md)" in caught.value.hint
    assert "more: Old rules (rules.md)" in caught.value.hint
    reports = await filled.read_one("Old rules", filled.app.settings.sources)
    assert [(report.corpus, report.unchanged) for report in reports] == [("more", 1), ("own", 1)]


async def test_unknown_name_is_reported_with_similar_names(filled: LocalService) -> None:
    with pytest.raises(NoSuchDocument) as forgetting:
        await filled.forget(f"{BASE}/quay-rules.html", "")
    with pytest.raises(NoSuchDocument) as reading:
        await filled.read_one(f"{BASE}/quay-rules.html", filled.app.settings.sources)

    assert str(forgetting.value) == f"No document of more, own is “{BASE}/quay-rules.html”."
    assert str(reading.value) == f"No source of own, more has “{BASE}/quay-rules.html”."
    assert f"own: The quay ({BASE}/quay.md)" in forgetting.value.hint


async def test_unreachable_source_is_reported_if_no_other_has_the_document(home: LocalService, tmp_path: Path) -> None:
    (tmp_path / "more/rules.md").unlink()
    (tmp_path / "more").rmdir()
    sources = home.app.settings.sources

    (report,) = await home.read_one("quay.md", sources)
    assert report.added == 1
    with pytest.raises(Exception, match="more") as caught:
        await home.read_one("nowhere.md", sources)
    assert isinstance(caught.value, ReportableError)


async def test_unopenable_source_is_recorded_as_a_failed_run(home: LocalService) -> None:
    source = {"type": "git", "url": "https://git.example.com/docs.git", "token_env": "NO_SUCH_TOKEN"}
    source_settings = Settings.model_validate({"corpus": [{"name": "code", "source": source}]}).sources["code"]
    with pytest.raises(SettingsError, match="NO_SUCH_TOKEN"):
        await home.refresh("code", source_settings, lambda _: None, night=NIGHT)
    (run,) = await home.app.passages.runs.recent()

    assert (run.corpus, run.state, run.night) == ("code", RunState.FAILED, NIGHT)
    assert run.fault == "NO_SUCH_TOKEN, which a source names, is not set. Set NO_SUCH_TOKEN, or NO_SUCH_TOKEN_FILE."


def test_key_takes_precedence_over_an_equal_title() -> None:
    by_key, by_title = DocumentRef("own", "a.md", "Quay", ""), DocumentRef("own", "b.md", "a.md", "")

    assert select_documents((by_key, by_title), "a.md") == (by_key,)
    assert select_documents((by_key, by_title), "a.md", "other") == ()
    assert select_documents((by_title,), "a.md") == (by_title,)


async def test_forgotten_document_returns_on_request(filled: LocalService) -> None:
    await filled.forget("rules.md", "own")
    source = filled.app.settings.sources["own"]
    elsewhere = source.model_copy(update={"path": filled.app.settings.home / "nowhere"})

    with pytest.raises(FolderError):
        await filled.refresh("own", elsewhere, lambda _: None, restore=True)
    assert (await filled.refresh("own", source, lambda _: None)).forgotten == 1
    report = await filled.refresh("own", source, lambda _: None, restore=True)

    assert (report.added, report.forgotten) == (1, 0)
    assert await _titles(filled) == ["Old rules", "The quay"]


async def test_removing_a_corpus_removes_its_documents_and_forgotten_list(filled: LocalService) -> None:
    await filled.forget("rules.md", "own")
    report = await filled.remove("own")

    assert (report.removed, report.passages_removed) == (1, 1)
    assert [info.name for info in await filled.corpora()] == ["more"]
    assert await _titles(filled) == []
    assert await _titles(filled, "more") == ["Old rules"]
    with pytest.raises(UnknownCorpus, match="no corpus “own”"):
        await filled.remove("own")
    assert (await filled.refresh("own", filled.app.settings.sources["own"], lambda _: None)).added == 2


async def test_mistyped_path_creates_no_corpus(home: LocalService) -> None:
    source = home.app.settings.sources["own"]
    for path in (home.app.settings.home / "nowhere", home.app.settings.home):
        mistyped = source.model_copy(update={"path": path, "include": ("*.nothing",)})
        with pytest.raises((FolderError, RefreshRefused)):
            await home.refresh("typo", mistyped, lambda _: None)

    assert await home.corpora() == ()
    assert await home.app.manifest.catalogue() == ()
