"""The commands that read documents in, and that forget them."""

from dataclasses import replace
from pathlib import Path

import pytest

from bot.server.refresh.document_lookup import NoSuchDocument
from ingest.types import RefreshRefused, RefreshReport
from storage.types import CorpusInfo, DocumentRef
from tests.bot.cli.commands import SOURCES, document, run
from tests.bot.fake_services import FakeServices
from tests.ingest.sources.dumps import dump, page


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_what_a_dump_would_take_is_told_before_it_is_ingested(options: list[str], tmp_path: Path) -> None:
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


def test_ingest_folder_reads_a_folder_as_told() -> None:
    house = FakeServices()
    patterns = ["--url-base", "https://example.com", "--include", "*.md", "--include", "*.txt", "--exclude", "old"]
    patterns += ["--ignore", "*.lock", "--ignore", "", "--site", "mkdocs"]
    result = run("ingest", "folder", "docs", "--corpus", "handbook", *patterns, "--json", house=house)

    assert result.exit_code == 0
    assert document(result) == {
        "corpus": "handbook",
        "documents": {
            "added": 2,
            "changed": 0,
            "unchanged": 1,
            "removed": 0,
            "failed": 1,
        },
        "passages": {"added": 9, "removed": 0},
        "held_back": 0,
        "forgotten": 0,
        "failures": [{"document": "scan.pdf", "reason": "holds no text"}],
        "left_out": {},
        "seconds": 1.5,
    }
    assert house.sources == [
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


@pytest.mark.parametrize(
    "arguments",
    [
        ["ingest", "folder", "", "--corpus", "x"],
        ["ingest", "wikipedia", "--dump", "", "--corpus", "x"],
        ["setup", "--documents", "", "--yes"],
        ["backup", ""],
        ["restore", ""],
        ["restore", "a.tar", "--home", ""],
        ["audit", "verify", "--against", ""],
        ["--config", "", "corpora"],
    ],
)
def test_an_empty_path_is_refused_rather_than_taken_for_this_folder(arguments: list[str]) -> None:
    house = FakeServices()
    result = run(*arguments, house=house)

    assert (result.exit_code, house.sources, list(Path().iterdir())) == (2, [], [])
    assert "It is empty: name a path" in " ".join(result.stderr.replace("│", " ").split())


@pytest.mark.parametrize("command", [["folder", "docs", "--corpus", "docs"], ["all"]])
@pytest.mark.parametrize(("there", "status"), [((), 1), ((CorpusInfo("docs", 1, 1, None),), 0)])
def test_an_ingest_fails_where_every_document_did_and_none_stands_from_before(
    command: list[str], there: tuple[CorpusInfo, ...], status: int
) -> None:
    Path("footnote.toml").write_text(
        '[[corpus]]\nname = "docs"\nsource = { type = "folder", path = "docs" }\n', encoding="utf-8"
    )
    report = RefreshReport("docs", failures=(("a.pdf", "holds no text"),))
    result = run("ingest", *command, house=FakeServices(report=report, corpora=there))

    assert result.exit_code == status
    assert ("Nothing of docs could be read" in result.stderr) == bool(status)
    assert "a.pdf" in result.stdout


def test_ingest_wikipedia_reads_a_dump_as_told() -> None:
    house = FakeServices()
    result = run("ingest", "wikipedia", "--dump", "wiki.xml.bz2", "--corpus", "wikipedia", "--json", house=house)

    assert result.exit_code == 0
    assert document(result)["failures"] == [{"document": "scan.pdf", "reason": "holds no text"}]
    assert house.sources[0]["dump"] == Path("wiki.xml.bz2").absolute()


def test_ingest_lists_what_could_not_be_read_and_why() -> None:
    result = run("ingest", "folder", "docs", "--corpus", "handbook")

    assert "scan.pdf: holds no text" in result.stdout
    assert "+9" in result.stdout


def test_a_dry_run_lists_what_would_be_read_and_why_not(tmp_path: Path) -> None:
    for name in ("a.md", "b.png", "package-lock.json", ".git/c.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("Text.", encoding="utf-8")
    (tmp_path / "d.md").symlink_to(tmp_path / "nowhere.md")
    house = FakeServices()

    shown = run("ingest", "folder", str(tmp_path), "--dry-run", house=house).stdout
    listed = document(run("ingest", "folder", str(tmp_path), "--dry-run", "--json", house=house))

    assert listed["read"] == ["a.md"]
    assert {one["path"] for one in listed["left_out"]} == {"b.png", "d.md", "package-lock.json", ".git"}
    assert shown.index("d.md: is a link to nothing") < shown.index("b.png: pictures are not read")
    assert "package-lock.json: lock files and lists of packages" in shown
    assert not house.sources


def test_what_could_not_be_read_is_told_in_groups() -> None:
    pictures = tuple((f"{number}.png", "pictures are not read") for number in range(9))
    report = RefreshReport("docs", failures=(*pictures, ("a.md", "is empty")), left_out=(("configuration", 4),))

    shown = run("ingest", "folder", "docs", "--corpus", "docs", house=FakeServices(report=report)).stdout

    assert shown.index("a.md: is empty") < shown.index("0.png, 1.png, 2.png and 6 more: pictures are not read (9)")
    assert "Left out of docs: configuration (4)." in shown


def test_ingest_all_reads_each_corpus_that_has_a_source() -> None:
    Path("footnote.toml").write_text(SOURCES, encoding="utf-8")
    house = FakeServices()
    result = run("ingest", "all", "--json", house=house)

    assert len(document(result)["corpora"]) == 2
    assert house.sources[0]["path"] == Path("docs").absolute()
    assert house.sources[0]["exclude"] == ("old",)
    assert house.sources[1]["dump"] == Path("wiki.xml.bz2").absolute()
    assert house.confirmed == [False, False]
    assert house.opened == [False]


def test_ingest_all_tells_which_corpus_failed() -> None:
    Path("footnote.toml").write_text(SOURCES, encoding="utf-8")
    house = FakeServices(report=RefreshRefused("The folder is empty.", hint="Check its path."))
    result = run("ingest", "all", "--json", house=house)

    assert result.exit_code == 1
    assert document(result) == {
        "corpora": [],
        "error": {
            "kind": "refresh_refused",
            "message": "handbook: The folder is empty.; wikipedia: The folder is empty.",
            "hint": "Check its path.",
        },
    }
    assert "footnote: handbook: The folder is empty — Check its path." in result.stderr


def test_ingest_all_needs_a_source() -> None:
    assert "[[corpus]]" in run("ingest", "all").stderr
    assert "[[corpus]]" in run("ingest", "--only", "quay.md").stderr


def test_ingest_wikipedia_can_fetch_the_latest_dump() -> None:
    house = FakeServices()
    run("ingest", "wikipedia", "--wiki", "simple", "--contact", "ada@example.com", "--corpus", "wiki", house=house)

    assert (house.sources[0]["wiki"], house.sources[0]["contact"]) == ("simplewiki", "ada@example.com")


def test_what_reads_and_embeds_is_said_by_an_option() -> None:
    Path("footnote.toml").write_text(SOURCES, encoding="utf-8")
    house = FakeServices()
    run("ingest", "all", "--engine", "ray", house=house)
    run("ingest", "folder", "docs", "--corpus", "docs", "--engine", "local", house=house)
    run("ingest", "wikipedia", "--dump", "a.xml", "--corpus", "wiki", house=house)

    assert house.engines == ["ray", "ray", "local", None]
    assert run("ingest", "all", "--engine", "spark", house=house).exit_code == 2


def test_removals_are_confirmed_for_the_corpora_that_are_named() -> None:
    Path("footnote.toml").write_text(SOURCES, encoding="utf-8")
    told = "Kept: `footnote ingest all --confirm-removal handbook` removes them."
    house = FakeServices(report=RefreshReport("handbook", unchanged=9, held_back=31, fault=told))
    shown = run("ingest", "all", "--confirm-removal", "wikipedia", house=house).stdout

    assert house.confirmed == [False, True]
    assert f"handbook: {told}" in " ".join(shown.split())
    run("ingest", "folder", "docs", "--corpus", "docs", "--confirm-removal", "docs", house=house)
    assert house.confirmed[2:] == [True]
    wrong = run("ingest", "all", "--confirm-removal", "handbok", "--json", house=house)
    assert document(wrong)["error"]["hint"] == "There are: handbook, wikipedia."


def test_ingest_only_reads_one_document_from_the_sources_of_the_settings() -> None:
    Path("footnote.toml").write_text(SOURCES, encoding="utf-8")
    house = FakeServices()
    result = run("ingest", "--only", "https://example.com/quay.md", "--json", house=house)
    run("ingest", "--only", "quay.md", "--corpus", "handbook", house=house)

    assert document(result)["corpora"][0]["documents"]["added"] == 2
    asked = [(address, list(sources)) for address, sources in house.named]  # type: ignore[call-overload]
    assert asked == [("https://example.com/quay.md", ["handbook", "wikipedia"]), ("quay.md", ["handbook"])]
    assert "There are: handbook, wikipedia." in run("ingest", "--only", "x", "--corpus", "nothing", house=house).stderr


def test_forget_names_the_source_of_the_settings() -> None:
    Path("footnote.toml").write_text(SOURCES, encoding="utf-8")
    said = run("forget", "Old rules").stdout

    assert "`footnote ingest --only https://example.com/old.md` brings it back." in " ".join(said.split())


def test_remove_asks_and_says_what_is_gone() -> None:
    house = FakeServices(report=RefreshReport("handbook", removed=2, passages_removed=9))
    for answer in ("", "n\n"):
        asked = run("ingest", "remove", "handbook", house=house, typed=answer)
        assert (asked.exit_code, house.removed) == (1, [])
        assert "Nothing was changed — `--yes` does it without asking." in asked.stderr
    said = run("ingest", "remove", "handbook", "--yes", house=house).stdout
    assert "Removed: handbook (2 documents, 9 passages)." in said
    Path("footnote.toml").write_text(SOURCES, encoding="utf-8")
    again = run("ingest", "remove", "handbook", "--yes", house=house).stdout
    assert "the next refresh ingests it again" in " ".join(again.split())
    assert house.removed == ["handbook", "handbook"]


def test_what_was_forgotten_is_restored_where_it_is_asked_for() -> None:
    house = FakeServices()
    run("ingest", "folder", "docs", "--corpus", "docs", "--restore", house=house)
    run("ingest", "folder", "docs", "--corpus", "docs", house=house)

    assert house.restored == [True, False]


def test_forget_says_what_is_gone_and_how_it_comes_back() -> None:
    house = FakeServices()
    result = run("forget", "Old rules", house=house)

    assert result.exit_code == 0
    assert " ".join(result.stdout.split()) == (
        "Forgotten: Old rules, of handbook (4 passages). It is no longer found or cited; "
        "`footnote ingest folder PATH --corpus handbook --restore` brings it back."
    )
    assert document(run("forget", "old.md", "--corpus", "handbook", "--json", house=house)) == {
        "corpus": "handbook",
        "document": "old.md",
        "title": "Old rules",
        "url": "https://example.com/old.md",
        "passages": 4,
    }
    assert house.named == [("Old rules", ""), ("old.md", "handbook")]


def test_what_is_forgotten_is_counted_and_listed() -> None:
    one = DocumentRef("handbook", "old.md", "Old rules", "https://example.com/old.md")
    known = replace(FakeServices().corpora[0], forgotten=1)
    house = FakeServices(corpora=(known,), away=(one,), report=RefreshReport("handbook", unchanged=9, forgotten=1))
    told = "Forgotten on purpose, and left out: 1 of handbook. `footnote corpora --forgotten` lists them."

    for command in (["corpora"], ["ingest", "folder", "docs", "--corpus", "handbook"]):
        assert told in " ".join(run(*command, house=house).stdout.split())
    listed = run("corpora", "--forgotten", house=house).stdout
    assert "https://example.com/old.md" in listed
    assert "`footnote ingest --only ADDRESS` brings one back." in listed
    assert document(run("corpora", "--forgotten", "--json", house=house)) == {
        "forgotten": [{"corpus": "handbook", "document": "old.md", "title": "Old rules", "url": one.url}]
    }
    assert run("corpora", "--forgotten").stdout == "Nothing is forgotten.\n"


def test_an_ingest_of_which_nothing_came_shows_no_table() -> None:
    Path("footnote.toml").write_text(SOURCES, encoding="utf-8")
    result = run("ingest", "all", house=FakeServices(report=RefreshRefused("The lake is away.", hint="Wait.")))

    assert (result.exit_code, result.stdout.strip()) == (1, "")
    assert "footnote: handbook: The lake is away — Wait." in result.stderr


def test_forget_tells_what_it_cannot_find() -> None:
    error = NoSuchDocument("No document of handbook is “Od rules”.", hint="Near it: handbook: Old rules (old.md).")
    result = run("forget", "Od rules", house=FakeServices(forgotten=error))

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == f"footnote: No document of handbook is “Od rules” — {error.hint}\n"


def test_ingest_status_of_a_home_without_history_says_what_is_to_come() -> None:
    assert "Running now: nothing." in run("ingest", "status").stdout
    assert document(run("ingest", "status", "--json")) == {"running": [], "next_night": None, "nights": [], "runs": []}
