"""`footnote ingest` and `forget`: their options; `test_golden` has their output."""

from pathlib import Path

import pytest

from ingest.types import RefreshReport
from storage.types import CorpusInfo
from tests.bot.cli.commands import SOURCES, document, run
from tests.bot.fake_services import FakeServices
from tests.ingest.sources.dumps import dump, page


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_estimate_shows_the_cost_of_a_dump(options: list[str], tmp_path: Path) -> None:
    path = tmp_path / "wiki.xml"
    path.write_bytes(dump(page(1, "Quay", "The quay was built in 1901."), page(2, "Pier", "The pier is long.")))
    result = run("ingest", "wikipedia", "--dump", str(path), "--estimate", *options)

    assert result.exit_code == 0, result.stderr
    if options:
        estimate = document(result)["estimate"]
        assert (estimate["articles"], estimate["passages"]) == (2, 2)
        assert estimate["lazy"]["memory"] < estimate["eager"]["memory"]
    else:
        assert "2 articles, 2 passages" in " ".join(result.stdout.split())


def test_ingest_folder_passes_its_options_on() -> None:
    services = FakeServices()
    patterns = ["--url-base", "https://example.com", "--include", "*.md", "--include", "*.txt", "--exclude", "old"]
    patterns += ["--ignore", "*.lock", "--ignore", "", "--site", "mkdocs"]
    run("ingest", "folder", "docs", "--corpus", "handbook", *patterns, services=services)

    assert services.sources == [
        {
            "path": Path("docs").absolute(),
            "url_base": "https://example.com",
            "site": "mkdocs",
            "include": ("*.md", "*.txt"),
            "exclude": ("old",),
            "ignore": ("*.lock",),
            "newest_days": None,
        }
    ]


@pytest.mark.parametrize("arguments", [
    ["ingest", "folder", "", "--corpus", "x"], ["ingest", "wikipedia", "--dump", "", "--corpus", "x"],
    ["setup", "--documents", "", "--yes"], ["backup", ""], ["restore", ""], ["restore", "a.tar", "--home", ""],
    ["audit", "verify", "--against", ""], ["--config", "", "corpora"],
])  # fmt: skip
def test_empty_path_is_refused(arguments: list[str]) -> None:
    services = FakeServices()
    result = run(*arguments, services=services)

    assert (result.exit_code, services.sources, list(Path().iterdir())) == (2, [], [])
    assert "It is empty: name a path" in " ".join(result.stderr.replace("│", " ").split())


@pytest.mark.parametrize("command", [["folder", "docs", "--corpus", "docs"], ["all"]])
@pytest.mark.parametrize(("indexed", "status"), [((), 1), ((CorpusInfo("docs", 1, 1, None),), 0)])
def test_ingest_fails_if_all_documents_fail_and_none_are_indexed(
    command: list[str], indexed: tuple[CorpusInfo, ...], status: int
) -> None:
    Path("footnote.toml").write_text(
        '[[corpus]]\nname = "docs"\nsource = { type = "folder", path = "docs" }\n', encoding="utf-8"
    )
    report = RefreshReport("docs", failures=(("a.pdf", "holds no text"),))
    result = run("ingest", *command, services=FakeServices(report=report, corpora=indexed))

    assert result.exit_code == status
    assert ("Nothing of docs could be read" in result.stderr) == bool(status)
    assert "a.pdf" in result.stdout


def test_ingest_wikipedia_passes_the_dump_or_wiki_on() -> None:
    services = FakeServices()
    run("ingest", "wikipedia", "--dump", "wiki.xml.bz2", "--corpus", "wikipedia", services=services)
    run("ingest", "wikipedia", "--wiki", "simple", "--contact", "a@example.com", "--corpus", "wiki", services=services)

    assert services.sources[0]["dump"] == Path("wiki.xml.bz2").absolute()
    assert (services.sources[1]["wiki"], services.sources[1]["contact"]) == ("simplewiki", "a@example.com")


def test_dry_run_lists_files_and_reasons(tmp_path: Path) -> None:
    for name in ("a.md", "b.png", "package-lock.json", ".git/c.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("Text.", encoding="utf-8")
    (tmp_path / "d.md").symlink_to(tmp_path / "nowhere.md")
    services = FakeServices()

    shown = run("ingest", "folder", str(tmp_path), "--dry-run", services=services).stdout
    listed = document(run("ingest", "folder", str(tmp_path), "--dry-run", "--json", services=services))

    assert listed["read"] == ["a.md"]
    assert {row["path"] for row in listed["left_out"]} == {"b.png", "d.md", "package-lock.json", ".git"}
    assert shown.index("d.md: is a broken link") < shown.index("b.png: pictures are not read")
    assert "package-lock.json: lock files and lists of packages" in shown
    assert not services.sources


def test_ingest_all_refreshes_each_corpus_with_a_source() -> None:
    Path("footnote.toml").write_text(SOURCES, encoding="utf-8")
    services = FakeServices()
    result = run("ingest", "all", "--json", services=services)

    assert len(document(result)["corpora"]) == 2
    assert services.sources[0]["path"] == Path("docs").absolute()
    assert services.sources[0]["exclude"] == ("old",)
    assert services.sources[1]["dump"] == Path("wiki.xml.bz2").absolute()
    assert services.confirmed == [False, False]
    assert services.opened == [False]


def test_engine_option_chooses_the_engine() -> None:
    Path("footnote.toml").write_text(SOURCES, encoding="utf-8")
    services = FakeServices()
    run("ingest", "all", "--engine", "ray", services=services)
    run("ingest", "folder", "docs", "--corpus", "docs", "--engine", "local", services=services)
    run("ingest", "wikipedia", "--dump", "a.xml", "--corpus", "wiki", services=services)

    assert services.engines == ["ray", "ray", "local", None]
    assert run("ingest", "all", "--engine", "spark", services=services).exit_code == 2


def test_removals_are_confirmed_only_for_the_named_corpora() -> None:
    Path("footnote.toml").write_text(SOURCES, encoding="utf-8")
    notice = "Kept: `footnote ingest all --confirm-removal handbook` removes them."
    services = FakeServices(report=RefreshReport("handbook", unchanged=9, held_back=31, fault=notice))
    shown = run("ingest", "all", "--confirm-removal", "wikipedia", services=services).stdout

    assert services.confirmed == [False, True]
    assert f"handbook: {notice}" in " ".join(shown.split())
    run("ingest", "folder", "docs", "--corpus", "docs", "--confirm-removal", "docs", services=services)
    assert services.confirmed[2:] == [True]
    wrong = run("ingest", "all", "--confirm-removal", "handbok", "--json", services=services)
    assert document(wrong)["error"]["hint"] == "There are: handbook, wikipedia."


def test_ingest_only_reads_one_document_from_the_sources_of_the_settings() -> None:
    Path("footnote.toml").write_text(SOURCES, encoding="utf-8")
    services = FakeServices()
    result = run("ingest", "--only", "https://example.com/quay.md", "--json", services=services)
    run("ingest", "--only", "quay.md", "--corpus", "handbook", services=services)

    assert document(result)["corpora"][0]["documents"]["added"] == 2
    requests = [(address, list(sources)) for address, sources in services.named]  # type: ignore[call-overload]
    assert requests == [("https://example.com/quay.md", ["handbook", "wikipedia"]), ("quay.md", ["handbook"])]
    assert (
        "There are: handbook, wikipedia."
        in run("ingest", "--only", "x", "--corpus", "nothing", services=services).stderr
    )


def test_remove_asks_for_confirmation() -> None:
    services = FakeServices()
    for answer in ("", "n\n"):
        refused = run("ingest", "remove", "handbook", services=services, typed=answer)
        assert (refused.exit_code, services.removed) == (1, [])
        assert "Nothing was changed — `--yes` does it without asking." in refused.stderr
    run("ingest", "remove", "handbook", "--yes", services=services)
    assert services.removed == ["handbook"]


def test_restore_option_ingests_forgotten_documents() -> None:
    services = FakeServices()
    run("ingest", "folder", "docs", "--corpus", "docs", "--restore", services=services)
    run("ingest", "folder", "docs", "--corpus", "docs", services=services)

    assert services.restored == [True, False]


def test_forget_passes_address_and_corpus_on() -> None:
    services = FakeServices()
    run("forget", "Old rules", services=services)
    run("forget", "old.md", "--corpus", "handbook", services=services)

    assert services.named == [("Old rules", ""), ("old.md", "handbook")]
