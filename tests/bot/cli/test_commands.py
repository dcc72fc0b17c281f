"""The command line: what each command asks of the house, what it prints, and how it fails."""

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from bot.cli.command_context import CliState
from bot.cli.entry_point import app, move_options_first
from bot.server.refresh.document_lookup import NoSuchDocument
from ingest.types import RefreshRefused, RefreshReport
from pipeline.types import Status, Turn
from storage.errors import HomeLocked
from storage.types import CorpusInfo, DocumentRef, EntryKind, LogEntry, NightRecord, RefreshRun, RunState
from tests.bot.house import DAY, House, abstained, answered, hit, logged, refused
from tests.ingest.sources.dumps import dump, page

COMMANDS = [
    ["init"],
    ["doctor"],
    ["ingest", "folder"],
    ["ingest", "wikipedia"],
    ["ingest", "all"],
    ["ingest", "status"],
    ["forget"],
    ["corpora"],
    ["reindex"],
    ["backup"],
    ["restore"],
    ["search"],
    ["ask"],
    ["check"],
    ["chat"],
    ["audit", "list"],
    ["audit", "show"],
    ["audit", "verify"],
    ["audit", "checkpoint"],
    ["audit", "key"],
    ["audit", "receipt"],
    ["audit", "restored"],
    ["audit", "hold"],
    ["erase"],
    ["audit", "export"],
    ["audit", "stats"],
    ["audit", "unanswered"],
    ["audit", "feedback"],
    ["audit", "reindex"],
    ["examples", "add"],
    ["examples", "list"],
    ["examples", "drop"],
    ["examples", "pin"],
]
SOURCES = """
[[corpus]]
name = "handbook"
readers = ["slack:T1/C1"]
source = { type = "folder", path = "docs", url_base = "https://example.com", include = ["*.md"], exclude = ["old"] }
[[corpus]]
name = "nothing"
[[corpus]]
name = "wikipedia"
source = { type = "wikipedia", dump = "wiki.xml.bz2" }
"""


def run(*arguments: str, house: House | None = None, typed: str = "") -> Result:
    """Run a command in a house."""
    invocation = CliState(services=(house or House()).doors())
    return CliRunner().invoke(app, arguments, obj=invocation, input=typed, prog_name="footnote")


def document(result: Result) -> dict[str, Any]:
    """Return what a command printed, which must be one JSON document of the contract."""
    read: dict[str, Any] = json.loads(result.stdout)
    assert read.pop("schema") == 1
    return read


@pytest.mark.parametrize("command", [[], ["ingest"], ["audit"], ["examples"], ["serve"], *COMMANDS])
def test_every_command_has_help_with_an_example(command: list[str]) -> None:
    """One that can be typed as it stands."""
    result = run(*command, "--help")

    assert result.exit_code == 0
    assert "Example" in result.stdout
    assert f"footnote {' '.join(command)}".strip() in result.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_can_answer_in_json(command: list[str]) -> None:
    """The option is there."""
    assert "--json" in run(*command, "--help").stdout


def test_the_version_is_told() -> None:
    """Of what is installed."""
    assert run("--version").stdout.startswith("footnote ")


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["ask"],
        ["search", "x", "-k", "0"],
        ["ingest", "folder", "docs"],
        ["ingest", "folder", "docs", "--corpus", "no spaces"],
        ["ingest", "wikipedia", "--corpus", "wikipedia"],
        ["ingest", "wikipedia", "--dump", "wiki.xml"],
        ["ingest", "wikipedia", "--wiki", "simple", "--contact", "a@example.com", "--estimate"],
        ["ingest", "wikipedia", "--corpus", "wiki", "--dump", "wiki.xml", "--wiki", "simple"],
        ["ingest", "wikipedia", "--corpus", "wiki", "--wiki", "simple"],
        ["ingest", "wikipedia", "--corpus", "wiki", "--wiki", "simple", "--contact", "nobody"],
        ["ingest", "--only", "x", "all"],
        ["ingest", "--corpus", "handbook"],
        ["forget"],
        ["ingest", "folder", "docs", "--corpus", "docs", "--url-base", "docs.example.com"],
        ["ingest", "folder", "docs", "--corpus", "docs", "--site", "hugo"],
        ["ingest", "folder", "docs", "--corpus", "docs", "--url-base", "https://docs.example.com", "--site", "word"],
    ],
)
def test_wrong_usage_exits_with_2_and_nothing_on_stdout(arguments: list[str]) -> None:
    """With or without `--json`."""
    result = run(*arguments)

    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_what_a_dump_would_take_is_told_before_it_is_ingested(options: list[str], tmp_path: Path) -> None:
    """Lazily and eagerly; no corpus is needed."""
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


def test_ask_prints_an_answer() -> None:
    """With its sources."""
    house = House()
    result = run("ask", " When does it open? ", "--corpus", "handbook", "--effort", "quick", house=house)

    assert result.exit_code == 0
    assert result.stdout.startswith("The quay opens at seven. [1]\n")
    assert "“The quay opens at seven.”" in result.stdout
    (asked,) = house.asked
    assert (asked.text, asked.corpora, asked.effort) == ("When does it open?", ("handbook",), "quick")
    assert (asked.asker.platform, asked.asker.kind) == ("terminal", "terminal")
    assert not asked.asker.shared_with_other_organisations


def test_ask_as_json_is_the_document_of_the_contract() -> None:
    """All keys, and no others."""
    assert document(run("ask", "When?", "--json", house=House(answer=answered(effort="quick")))) == {
        "answer_id": "abc123",
        "status": "answered",
        "text": "The quay opens at seven. [1]",
        "sentences": [{"text": "The quay opens at seven.", "citations": [1], "note": ""}],
        "citations": [
            {
                "number": 1,
                "corpus": "handbook",
                "title": "Harbour",
                "section": "Hours",
                "url": "https://example.com/harbour.md",
                "revision": "r1",
                "date": "2026-03-01T12:00:00+00:00",
                "quote": "The quay opens at seven.",
                "passage_id": "p1",
            }
        ],
        "claims": [],
        "nearest": [],
        "withheld": 0,
        "system": "extractive",
        "effort": "quick",
        "model": None,
        "usage": {"llm_calls": 0, "llm_rounds": 0, "prompt_tokens": 0, "completion_tokens": 0, "cost": None},
        "seconds": 0.25,
    }


def test_an_abstention_is_no_failure() -> None:
    """It exits 0, and names the nearest pages."""
    result = run("ask", "Why?", "--json", house=House(answer=abstained()))

    assert result.exit_code == 0
    assert document(result)["nearest"] == [
        {"title": "Harbour", "url": "https://example.com/harbour.md", "passage_id": "p1"}
    ]


def test_a_question_can_come_from_stdin() -> None:
    """Where it is too long for an argument, or secret."""
    house = House()
    run("ask", "-", house=house, typed="When does it open?\n")

    assert house.asked[0].text == "When does it open?"


def test_a_refusal_is_one_plain_line() -> None:
    """What is wrong, and what to do; nothing on stdout."""
    result = run("ask", "🎉", house=House(answer=refused()))

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "footnote: The question has no words — Ask in words.\n"


def test_a_failure_as_json_is_a_document_too() -> None:
    """The plain line stays on stderr."""
    locked = HomeLocked("The home is in use.", hint="Wait until it is done.")
    result = run("ask", "Why?", "--json", house=House(answer=locked))

    assert result.exit_code == 1
    assert document(result) == {
        "error": {"kind": "home_locked", "message": "The home is in use.", "hint": "Wait until it is done."}
    }
    assert result.stderr == "footnote: The home is in use — Wait until it is done.\n"


def test_a_fault_of_the_code_is_a_plain_line_and_with_debug_its_place() -> None:
    """Nobody is shown a traceback who did not ask for it."""
    house = House(answer=ZeroDivisionError("on purpose"))
    plain, debugged = run("ask", "Why?", house=house), run("ask", "Why?", "--debug", house=house)

    assert (plain.exit_code, plain.stderr.count("\n")) == (1, 1)
    assert "ZeroDivisionError: on purpose" in plain.stderr
    assert "Traceback" not in plain.stderr
    assert "Traceback" in debugged.stderr


def test_an_interrupted_command_says_that_nothing_is_lost() -> None:
    """And exits as interrupted commands do."""
    result = run("ask", "Why?", house=House(answer=KeyboardInterrupt()))

    assert result.exit_code == 130
    assert "what was done so far is kept" in result.stderr


def test_wrong_settings_stop_every_command() -> None:
    """Before anything is opened."""
    Path("footnote.toml").write_text("timezon = 'UTC'", encoding="utf-8")
    house = House()
    result = run("ask", "Why?", "--json", house=house)

    assert document(result)["error"]["kind"] == "settings"
    assert result.exit_code == 1
    assert house.opened == []


@pytest.mark.parametrize("arguments", [["--config", "a.toml", "corpora"], ["corpora", "--config=a.toml"]])
def test_the_settings_file_can_be_named_before_and_behind_the_command(arguments: list[str]) -> None:
    """People type it in both places."""
    Path("a.toml").write_text("nonsense = 1", encoding="utf-8")

    assert "a.toml, line 1" in run(*arguments).stderr


def test_what_follows_two_dashes_is_no_option() -> None:
    """A question may be about `--debug`."""
    assert move_options_first(["ask", "--debug", "--", "--debug"]) == ["--debug", "ask", "--", "--debug"]
    assert move_options_first(["ask", "x", "--config"]) == ["--config", "ask", "x"]


def test_search_prints_the_hits_of_the_contract() -> None:
    """In all corpora, if none is named."""
    house = House(hits=(hit(),), corpora=(CorpusInfo("a-b", 1, 1, None), CorpusInfo("c-d", 1, 1, None)))
    result = run("search", "quay", "--json", house=house)

    assert document(result) == {
        "hits": [
            {
                "passage_id": "p1",
                "corpus": "handbook",
                "title": "Harbour",
                "section": "Hours",
                "url": "https://example.com/harbour.md",
                "text": "The quay opens at seven. It closes at nine.",
                "score": 1.25,
            }
        ]
    }
    assert house.searched == [("quay", ("a-b", "c-d"), 10)]
    run("search", "quay", "-k", "3", "--corpus", "c-d", house=house)
    assert house.searched[1] == ("quay", ("c-d",), 3)


@pytest.mark.parametrize(
    ("arguments", "corpora", "kind", "expected"),
    [
        (["search", "x", "--corpus", "nope"], House().corpora, "unknown_corpus", "There are: handbook."),
        (["search", "x"], (), "unknown_corpus", "Nothing is ingested yet"),
        (["search", " "], House().corpora, "question_without_words", "no words in the query"),
        (["search", "🎉"], House().corpora, "question_without_words", "no words in the query"),
        (["search", "x" * 100_000], House().corpora, "question_too_long", "100,000 characters"),
    ],
)
def test_a_search_that_cannot_find_anything_says_why(
    arguments: list[str], corpora: tuple[CorpusInfo, ...], kind: str, expected: str
) -> None:
    """No such corpus, nothing ingested, nothing asked."""
    house = House(corpora=corpora)

    assert expected in run(*arguments, house=house).stderr
    assert document(run(*arguments, "--json", house=house))["error"]["kind"] == kind


@pytest.mark.parametrize("command", [["search", "x"], ["ask", "x"], ["corpora"]])
@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("", "`footnote setup` begins"),
        ("[[corpus]]\nname = 'docs'\nsource = { type = 'folder', path = 'docs' }\n", "`footnote ingest all` reads"),
    ],
)
def test_where_nothing_is_ingested_the_settings_decide_how_to_begin(
    command: list[str], settings: str, said: str
) -> None:
    Path("footnote.toml").write_text(settings, encoding="utf-8")

    assert said in run(*command, house=House(answer=abstained(), corpora=())).output


def test_ingest_folder_reads_a_folder_as_told() -> None:
    """And reports in the document of the contract; a failed document is no failed command."""
    house = House()
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
    """As of a script whose variable is not set."""
    house = House()
    result = run(*arguments, house=house)

    assert (result.exit_code, house.sources, list(Path().iterdir())) == (2, [], [])
    assert "It is empty: name a path" in " ".join(result.stderr.replace("│", " ").split())


@pytest.mark.parametrize("command", [["folder", "docs", "--corpus", "docs"], ["all"]])
@pytest.mark.parametrize(("there", "status"), [((), 1), ((CorpusInfo("docs", 1, 1, None),), 0)])
def test_an_ingest_fails_where_every_document_did_and_none_stands_from_before(
    command: list[str], there: tuple[CorpusInfo, ...], status: int
) -> None:
    """In one line; the report is given all the same."""
    Path("footnote.toml").write_text(
        '[[corpus]]\nname = "docs"\nsource = { type = "folder", path = "docs" }\n', encoding="utf-8"
    )
    report = RefreshReport("docs", failures=(("a.pdf", "holds no text"),))
    result = run("ingest", *command, house=House(report=report, corpora=there))

    assert result.exit_code == status
    assert ("Nothing of docs could be read" in result.stderr) == bool(status)
    assert "a.pdf" in result.stdout


def test_ingest_wikipedia_reads_a_dump_as_told() -> None:
    """Its report is that of any other ingest."""
    house = House()
    result = run("ingest", "wikipedia", "--dump", "wiki.xml.bz2", "--corpus", "wikipedia", "--json", house=house)

    assert result.exit_code == 0
    assert document(result)["failures"] == [{"document": "scan.pdf", "reason": "holds no text"}]
    assert house.sources[0]["dump"] == Path("wiki.xml.bz2").absolute()


def test_ingest_lists_what_could_not_be_read_and_why() -> None:
    """Below the table."""
    result = run("ingest", "folder", "docs", "--corpus", "handbook")

    assert "scan.pdf: holds no text" in result.stdout
    assert "+9" in result.stdout


def test_a_dry_run_lists_what_would_be_read_and_why_not(tmp_path: Path) -> None:
    """Nothing is read; real problems come before kinds of files that are never read."""
    for name in ("a.md", "b.png", "package-lock.json", ".git/c.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("Text.", encoding="utf-8")
    (tmp_path / "d.md").symlink_to(tmp_path / "nowhere.md")
    house = House()

    shown = run("ingest", "folder", str(tmp_path), "--dry-run", house=house).stdout
    listed = document(run("ingest", "folder", str(tmp_path), "--dry-run", "--json", house=house))

    assert listed["read"] == ["a.md"]
    assert {one["path"] for one in listed["left_out"]} == {"b.png", "d.md", "package-lock.json", ".git"}
    assert shown.index("d.md: is a link to nothing") < shown.index("b.png: pictures are not read")
    assert "package-lock.json: lock files and lists of packages" in shown
    assert not house.sources


def test_what_could_not_be_read_is_told_in_groups() -> None:
    """With counts, and three names of kinds that are never read; what is no document is counted."""
    pictures = tuple((f"{number}.png", "pictures are not read") for number in range(9))
    report = RefreshReport("docs", failures=(*pictures, ("a.md", "is empty")), left_out=(("configuration", 4),))

    shown = run("ingest", "folder", "docs", "--corpus", "docs", house=House(report=report)).stdout

    assert shown.index("a.md: is empty") < shown.index("0.png, 1.png, 2.png and 6 more: pictures are not read (9)")
    assert "Left out of docs: configuration (4)." in shown


def test_ingest_all_reads_each_corpus_that_has_a_source() -> None:
    """As the settings say."""
    Path("footnote.toml").write_text(SOURCES, encoding="utf-8")
    house = House()
    result = run("ingest", "all", "--json", house=house)

    assert len(document(result)["corpora"]) == 2
    assert house.sources[0]["path"] == Path("docs").absolute()
    assert house.sources[0]["exclude"] == ("old",)
    assert house.sources[1]["dump"] == Path("wiki.xml.bz2").absolute()
    assert house.confirmed == [False, False]
    assert house.opened == [False]


def test_ingest_all_tells_which_corpus_failed() -> None:
    """The others are ingested all the same; the command fails."""
    Path("footnote.toml").write_text(SOURCES, encoding="utf-8")
    house = House(report=RefreshRefused("The folder is empty.", hint="Check its path."))
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
    """It says where one belongs."""
    assert "[[corpus]]" in run("ingest", "all").stderr
    assert "[[corpus]]" in run("ingest", "--only", "quay.md").stderr


def test_ingest_wikipedia_can_fetch_the_latest_dump() -> None:
    """Of the wiki that is named, for whoever can be reached."""
    house = House()
    run("ingest", "wikipedia", "--wiki", "simple", "--contact", "ada@example.com", "--corpus", "wiki", house=house)

    assert (house.sources[0]["wiki"], house.sources[0]["contact"]) == ("simplewiki", "ada@example.com")


def test_what_reads_and_embeds_is_said_by_an_option() -> None:
    """Of the commands that read a whole source; else the settings say it."""
    Path("footnote.toml").write_text(SOURCES, encoding="utf-8")
    house = House()
    run("ingest", "all", "--engine", "ray", house=house)
    run("ingest", "folder", "docs", "--corpus", "docs", "--engine", "local", house=house)
    run("ingest", "wikipedia", "--dump", "a.xml", "--corpus", "wiki", house=house)

    assert house.engines == ["ray", "ray", "local", None]
    assert run("ingest", "all", "--engine", "spark", house=house).exit_code == 2


def test_removals_are_confirmed_for_the_corpora_that_are_named() -> None:
    """Until then the ingest says that they were held back, and how to have them removed."""
    Path("footnote.toml").write_text(SOURCES, encoding="utf-8")
    told = "Kept: `footnote ingest all --confirm-removal handbook` removes them."
    house = House(report=RefreshReport("handbook", unchanged=9, held_back=31, fault=told))
    shown = run("ingest", "all", "--confirm-removal", "wikipedia", house=house).stdout

    assert house.confirmed == [False, True]
    assert f"handbook: {told}" in " ".join(shown.split())
    run("ingest", "folder", "docs", "--corpus", "docs", "--confirm-removal", "docs", house=house)
    assert house.confirmed[2:] == [True]
    wrong = run("ingest", "all", "--confirm-removal", "handbok", "--json", house=house)
    assert document(wrong)["error"]["hint"] == "There are: handbook, wikipedia."


def test_ingest_only_reads_one_document_from_the_sources_of_the_settings() -> None:
    """From all of them, or from that of the corpus that is named."""
    Path("footnote.toml").write_text(SOURCES, encoding="utf-8")
    house = House()
    result = run("ingest", "--only", "https://example.com/quay.md", "--json", house=house)
    run("ingest", "--only", "quay.md", "--corpus", "handbook", house=house)

    assert document(result)["corpora"][0]["documents"]["added"] == 2
    asked = [(address, list(sources)) for address, sources in house.named]  # type: ignore[call-overload]
    assert asked == [("https://example.com/quay.md", ["handbook", "wikipedia"]), ("quay.md", ["handbook"])]
    assert "There are: handbook, wikipedia." in run("ingest", "--only", "x", "--corpus", "nothing", house=house).stderr


def test_forget_names_the_source_of_the_settings() -> None:
    """Where they have one."""
    Path("footnote.toml").write_text(SOURCES, encoding="utf-8")
    said = run("forget", "Old rules").stdout

    assert "`footnote ingest --only https://example.com/old.md` brings it back." in " ".join(said.split())


def test_remove_asks_and_says_what_is_gone() -> None:
    """A no leaves all as it was; with a source in the settings it would come back."""
    house = House(report=RefreshReport("handbook", removed=2, passages_removed=9))
    for answer in ("", "n\n"):
        asked = run("ingest", "remove", "handbook", house=house, typed=answer)
        assert (asked.exit_code, house.removed) == (1, [])
        assert "Nothing was changed — `--yes` does it without asking." in asked.stderr
    said = run("ingest", "remove", "handbook", "--yes", house=house).stdout
    assert "Removed: handbook (2 documents, 9 passages)." in said
    Path("footnote.toml").write_text(SOURCES, encoding="utf-8")
    again = run("ingest", "remove", "handbook", "--yes", house=house).stdout
    assert "the next refresh reads it in anew" in " ".join(again.split())
    assert house.removed == ["handbook", "handbook"]


def test_what_was_forgotten_is_restored_where_it_is_asked_for() -> None:
    """Not by any other refresh."""
    house = House()
    run("ingest", "folder", "docs", "--corpus", "docs", "--restore", house=house)
    run("ingest", "folder", "docs", "--corpus", "docs", house=house)

    assert house.restored == [True, False]


def test_forget_says_what_is_gone_and_how_it_comes_back() -> None:
    """In a line: one command where the settings give its corpus a source, another where they do not."""
    house = House()
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
    """By `corpora` and by whatever reads sources in; `--forgotten` tells each, by what brings it back."""
    one = DocumentRef("handbook", "old.md", "Old rules", "https://example.com/old.md")
    known = replace(House().corpora[0], forgotten=1)
    house = House(corpora=(known,), away=(one,), report=RefreshReport("handbook", unchanged=9, forgotten=1))
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
    """The reasons stand on stderr."""
    Path("footnote.toml").write_text(SOURCES, encoding="utf-8")
    result = run("ingest", "all", house=House(report=RefreshRefused("The lake is away.", hint="Wait.")))

    assert (result.exit_code, result.stdout.strip()) == (1, "")
    assert "footnote: handbook: The lake is away — Wait." in result.stderr


def test_forget_tells_what_it_cannot_find() -> None:
    """With what comes near."""
    error = NoSuchDocument("No document of handbook is “Od rules”.", hint="Near it: handbook: Old rules (old.md).")
    result = run("forget", "Od rules", house=House(forgotten=error))

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == f"footnote: No document of handbook is “Od rules” — {error.hint}\n"


def test_ingest_status_of_a_home_without_history_says_what_is_to_come() -> None:
    """In the words of whoever has to do it, and as JSON."""
    assert "Running now: nothing." in run("ingest", "status").stdout
    assert document(run("ingest", "status", "--json")) == {"running": [], "next_night": None, "nights": [], "runs": []}


def test_corpora_lists_what_is_indexed_and_who_reads_it() -> None:
    """A corpus that settings do not name is the terminal's alone."""
    other = CorpusInfo("other", 1, 2, None)
    Path("footnote.toml").write_text(SOURCES, encoding="utf-8")
    house = House(corpora=(*House().corpora, other))

    assert document(run("corpora", "--json", house=house)) == {
        "missing": ["wikipedia"],
        "corpora": [
            {
                "name": "handbook",
                "documents": 3,
                "passages": 12,
                "dense": "eager",
                "refreshed": "2026-03-01T12:00:00+00:00",
                "failures": 1,
                "edition": "",
                "forgotten": 0,
                "last_run": None,
                "readers": ["slack:T1/C1"],
            },
            {
                "name": "other",
                "documents": 1,
                "passages": 2,
                "dense": "eager",
                "refreshed": None,
                "failures": 0,
                "edition": "",
                "forgotten": 0,
                "last_run": None,
                "readers": [],
            },
        ],
    }
    shown = run("corpora", house=house).stdout
    assert "slack:T1/C1" in shown
    assert "2026-03-01 12:00" in shown
    assert "Not ingested yet: wikipedia." in shown


RUN = RefreshRun(
    RunState.RUNNING, id=7, corpus="handbook", begun=DAY, seen=DAY + timedelta(minutes=2), ended=None, done=250,
    total=1_000, passages=2_100, doing="", owner="box:4711:ab", night=DAY,
)  # fmt: skip


def test_corpora_and_status_tell_the_last_run_and_why_it_failed() -> None:
    """With the edition of the source; what runs now has its rate, the time left and its process."""
    failed = replace(
        RUN, id=6, ended=RUN.seen, state=RunState.FAILED, fault="The mirror is away.", edition="2026-02-20"
    )
    known = replace(House().corpora[0], edition="2026-02-20", last_run=failed)
    night = NightRecord(DAY, DAY, RUN.seen, "box:4711:ab", "failed", ("handbook: not brought up to date.",))
    house = House(corpora=(known,), runs=(RUN, failed), nights=(night,))

    told = document(run("corpora", "--json", house=house))["corpora"][0]
    assert (told["edition"], told["last_run"]["state"], told["last_run"]["fault"]) == (
        "2026-02-20",
        "failed",
        "The mirror is away.",
    )
    assert "handbook, 2026-03-01 12:00: The mirror is away." in run("corpora", house=house).stdout
    shown = " ".join(run("ingest", "status", house=house).stdout.split())
    for words in ("Running now: handbook: 250 of 1,000 documents, 2,100 passages", "process 4711 on box", "2026-02-20"):
        assert words in shown
    status = document(run("ingest", "status", "--json", house=house))
    running, ended = status["running"][0], status["runs"][0]
    assert (running["done"], running["total"], running["silent"], running["night"]) == (
        250,
        1000,
        True,
        DAY.isoformat(),
    )
    assert running["seconds_left"] > 0
    assert (ended["state"], ended["edition"], status["nights"][0]["outcome"]) == ("failed", "2026-02-20", "failed")


def test_corpora_of_an_empty_home_says_how_to_begin() -> None:
    """And is no failure."""
    result = run("corpora", house=House(corpora=()))

    assert result.exit_code == 0
    assert "footnote ingest folder" in result.stdout


def test_reindex_opens_indexes_that_do_not_serve() -> None:
    """And tells how many passages it indexed."""
    house = House()
    told = document(run("reindex", "--json", house=house))

    assert (told["passages"], set(told)) == (12, {"passages", "seconds"})
    assert house.opened == [True]
    assert "Indexed again: 12 passages" in run("reindex", house=house).stdout


def test_init_writes_the_settings_file_once() -> None:
    """And says what to do next."""
    first, second = run("init"), run("init", "--json")

    assert "footnote ingest folder PATH" in first.stdout
    assert Path("footnote.toml").exists()
    assert (second.exit_code, document(second)["error"]["kind"]) == (1, "settings")
    key = run("audit", "key").stdout.strip()
    assert document(run("init", "--json", "--config", "b.toml")) == {"path": "b.toml", "key": key}
    assert key in "".join(first.stdout.split())


def test_chat_answers_line_by_line_through_a_pipe() -> None:
    """The second question comes with the first and its answer."""
    house = House()
    result = run("chat", house=house, typed="When does it open?\n\n/sources\nAnd close?\n")

    assert result.exit_code == 0
    assert [asked.text for asked in house.asked] == ["When does it open?", "And close?"]
    assert house.asked[1].earlier[0] == Turn("user", "When does it open?")
    assert house.asked[0].thread == house.asked[1].thread != ""
    assert result.stdout.count("The quay opens at seven. [1]") == 2
    assert "It closes at nine." in result.stdout


def test_chat_as_json_is_one_document() -> None:
    """Of all its answers."""
    told = document(run("chat", "--json", typed="a\nb\n"))

    assert [answer["answer_id"] for answer in told["answers"]] == ["abc123", "abc123"]


def test_ctrl_c_stops_the_turn_and_not_the_chat() -> None:
    """The next question is answered."""
    house = House(interrupted=1)
    result = run("chat", house=house, typed="a\nb\n")

    assert result.exit_code == 0
    assert result.stderr == "Stopped.\n"
    assert [asked.text for asked in house.asked] == ["a", "b"]
    assert result.stdout.count("The quay opens at seven. [1]") == 1


def test_audit_show_shows_a_turn_by_the_beginning_of_its_id() -> None:
    """The question, each search, the text, and each source as it was."""
    shown = run("audit", "show", "abc").stdout

    for expected in (
        "When does the quay open?",
        "search · 3 ms\n  “quay”: 1 passage\n    1.25 Harbour › Hours (https://example.com/harbour.md)\n",
        "[1] Harbour › Hours",
        "closes at nine.",
    ):
        assert expected in shown
    told = document(run("audit", "show", "abc123", "--json"))
    assert [entry["kind"] for entry in told["entries"]] == ["turn_opened", "step", "turn_closed"]


def test_audit_show_shows_what_was_set_for_a_channel_though_another_s_name_begins_alike() -> None:
    """It is no turn, and is listed as none."""
    body = {"key": "paused", "was": False, "now": True, "by": "slack:T1/U1"}
    record = tuple(LogEntry(f"slack:T1/C1{more}", EntryKind.SETTING, body, 9, logged()[0].at) for more in ("", "2"))
    house = House(record=(*logged(), *record))

    assert "paused: no → yes, by slack:T1/U1" in run("audit", "show", "slack:T1/C1", house=house).stdout
    assert document(run("audit", "show", "slack:T1/C1", "--json", house=house))["channel"] == "slack:T1/C1"
    assert [turn["answer_id"] for turn in document(run("audit", "list", "--json", house=house))["turns"]] == ["abc123"]


@pytest.mark.parametrize(("typed", "expected"), [("zzz", "There is no answer “zzz”"), ("ab", "Several answers begin")])
def test_audit_show_needs_one_answer(typed: str, expected: str) -> None:
    """Not none, and not two."""
    record = tuple(replace(entry, turn_id=name) for name in ("abc123", "abd456") for entry in logged())

    assert expected in run("audit", "show", typed, house=House(record=record)).stderr


def test_documents_cannot_command_a_terminal_through_json_either() -> None:
    """C1 controls are escaped, other scripts are not."""
    result = run("ask", "x", "--json", house=House(answer=answered(text="\x9b2J\x1b[2J 港")))

    assert not set(result.stdout) & {"\x9b", "\x1b"}
    assert "港" in result.stdout
    assert document(result)["text"] == "\x9b2J\x1b[2J 港"


def test_a_greeting_is_answered_without_sources() -> None:
    """Shortly."""
    done = answered(answer=replace(answered().answer, status=Status.CHATTED, sentences=(), citations=()), text="Hello!")

    assert run("ask", "hi", house=House(answer=done)).stdout == "Hello!\n"


def test_pages_are_not_shown_to_whoever_comes(here: Path) -> None:
    """Beyond this machine they want somebody to sign in."""
    (here / "footnote.toml").write_text('[pages]\nhost = "0.0.0.0"\n', encoding="utf-8")
    refused = run("pages", house=House())
    assert refused.exit_code == 1
    assert "beyond this machine — Give tokens" in refused.stderr
