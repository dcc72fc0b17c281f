"""`footnote audit verify`, `checkpoint`, `key`, `receipt` and `restored`, and `footnote erase`, on a real record."""

import asyncio
import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from bot.cli.command_context import CliState
from bot.cli.entry_point import app
from storage.database.engine import open_database
from storage.database.queue import Queue
from storage.record.audit_log import AuditLog
from storage.types import NewQuestion
from tests.storage.record.tampering import make_turn
from tests.storage.stores import open_empty_database

Run = Callable[..., Result]


@pytest.fixture
def run(here: Path) -> Run:
    with open_empty_database(here / ".footnote") as database:
        asyncio.run(AuditLog(database).append(*make_turn("abc"), *make_turn("abd")))
    call = CliRunner()
    call.invoke(app, ["init"], obj=CliState())
    return lambda *arguments: call.invoke(app, arguments, obj=CliState(), prog_name="footnote")


def read_json(result: Result) -> Any:
    return json.loads(result.stdout)


def test_verify_counts_all_and_signed_entries(run: Run) -> None:
    before, _, after = run("audit", "verify"), run("audit", "checkpoint"), run("audit", "verify", "--json")

    assert (before.exit_code, after.exit_code) == (0, 0), before.output
    assert "8 entries, 2 answers, 2 sentences, 2 sources" in before.stdout
    assert "Every sentence cites a source" in before.stdout
    assert "No checkpoint was signed yet" in before.stdout
    printed = read_json(after)
    assert (printed["entries"], printed["covered"], printed["checkpoints"], printed["findings"]) == (9, 9, 1, [])


def test_verify_finds_deleted_entries_by_a_stored_checkpoint(run: Run, here: Path) -> None:
    (here / "kept.txt").write_text(run("audit", "checkpoint").stdout, encoding="utf-8")
    cut = "UPDATE sqlite_sequence SET seq = 4 WHERE name = 'entries'"
    tables = {"claims": "turn", "turn_documents": "seq", "turns": "seq", "checkpoints": "size"}  # they reveal the cut
    derived = (f"DELETE FROM {table} WHERE {key} > 4" for table, key in tables.items())
    change(here, "DELETE FROM entries WHERE seq > 4", *derived, cut)
    key = run("audit", "key").stdout.strip()
    alone = run("audit", "verify", "--json")
    against = run("audit", "verify", "--against", "kept.txt", "--key", key)

    assert alone.exit_code == 0
    assert (against.exit_code, "it covers 9 entries" in " ".join(against.stdout.split())) == (1, True)
    assert "The record has 1 fault" in against.stderr


def change(here: Path, *statements: str) -> None:
    with closing(sqlite3.connect(here / ".footnote" / "footnote.db")) as connection, connection:
        connection.execute("DROP TRIGGER entries_keep_delete")
        connection.execute("DROP TRIGGER entries_keep_update")
        for statement in statements:
            connection.execute(statement)


@pytest.mark.parametrize(("deleted", "missing"), [
    ("DELETE FROM entries", "entries 1 to 8 are missing"),
    ("DELETE FROM entries WHERE seq = 4", "record: entry 4 is missing"),
])  # fmt: skip
def test_verify_names_missing_entries(run: Run, here: Path, deleted: str, missing: str) -> None:
    change(here, deleted)
    result = run("audit", "verify")

    assert (result.exit_code, missing in result.stdout) == (1, True)


@pytest.mark.parametrize(("changed", "expected"), [
    ("body = '{not json' WHERE seq = 3", "its body cannot be read"),
    ("body = '[1, 2]' WHERE seq = 1", "its body cannot be read"),
    ("body = 'null' WHERE seq = 2", "its body cannot be read"),
    ("body = x'ff00' WHERE seq = 3", "its body cannot be read"),
    ("""body = '{"citations": 5, "sentences": "a"}' WHERE seq = 3""", "its body is not as any version wrote it"),
    ("kind = 'gossip' WHERE seq = 4", "its kind, 'gossip', is none that is known"),
    ("at = 'yesterday' WHERE seq = 3", "its moment cannot be read"),
    ("at = 'yesterday' WHERE seq = 1", "its moment cannot be read"),
])  # fmt: skip
def test_unreadable_entry_is_shown_as_damaged_with_all_others(
    run: Run, here: Path, changed: str, expected: str
) -> None:
    change(here, f"UPDATE entries SET {changed}")
    shown, again, exported = run("audit", "show", "abc"), run("audit", "reindex"), run("audit", "export")

    assert shown.exit_code == 0, shown.output
    assert f"damaged: {expected}" in " ".join(shown.stdout.split())
    assert [run("audit", "show", "abc", "--json").exit_code, again.exit_code, exported.exit_code] == [0, 0, 0]
    assert [json.loads(line)["answer_id"] for line in exported.stdout.splitlines()] == ["abd", "abc"]


def test_commands_named_by_the_missing_key_hint_succeed(run: Run, here: Path) -> None:
    (here / "footnote-record.key").unlink()
    result = run("audit", "checkpoint")

    assert "`footnote audit key --new` makes one; [record] key_path names" in result.stderr
    assert [run("audit", "key", "--new").exit_code, run("audit", "checkpoint").exit_code] == [0, 0]


def test_recorded_restore_explains_a_checkpoint_of_lost_entries(run: Run, here: Path) -> None:
    run("audit", "checkpoint")
    shutil.copytree(here / ".footnote", here / "backup")
    with open_database("", home=here / ".footnote") as database:
        asyncio.run(AuditLog(database).append(*make_turn("lost")))
    (here / "kept.txt").write_text(run("audit", "checkpoint").stdout, encoding="utf-8")
    shutil.rmtree(here / ".footnote")
    (here / "backup").rename(here / ".footnote")

    assert run("audit", "verify", "--against", "kept.txt").exit_code == 1
    assert run("audit", "restored", "kept.txt", "--why", "The disk was lost.").exit_code == 0
    assert run("audit", "verify", "--against", "kept.txt").exit_code == 0


def test_replaced_key_keeps_old_signatures_valid(run: Run, here: Path) -> None:
    (here / "kept.txt").write_text(run("audit", "checkpoint").stdout, encoding="utf-8")
    old = run("audit", "key").stdout
    new = run("audit", "key", "--new")

    assert (new.exit_code, new.stdout != old, run("audit", "key").stdout == new.stdout) == (0, True, True)
    assert run("audit", "verify", "--against", "kept.txt").exit_code == 0


def test_key_after_a_lost_one_counts_only_if_pinned(run: Run, here: Path) -> None:
    old = run("audit", "key").stdout.strip()
    (here / "kept.txt").write_text(run("audit", "checkpoint").stdout, encoding="utf-8")
    (here / "footnote-record.key").unlink()
    made = run("audit", "key", "--new")
    new = made.stdout.strip()
    results = [run("audit", "verify", "--against", "kept.txt", *keys) for keys in (
        (), ("--key", old), ("--key", new), ("--key", old, "--key", new)
    )]  # fmt: skip

    assert (made.exit_code, "it does not endorse the new one" in " ".join(made.stderr.split())) == (0, True)
    assert [result.exit_code for result in results] == [1, 1, 1, 0]
    assert "no key that counts endorsed it" in " ".join(results[0].stdout.split())


def test_verify_shows_new_keys_restores_erasures_and_holds(run: Run) -> None:
    run("audit", "hold", "abd", "--why", "case 12")
    run("erase", "--person", "slack:T1/U1", "--why", "asked", "--yes")
    run("audit", "checkpoint")
    shown, printed = run("audit", "verify"), read_json(run("audit", "verify", "--json"))

    assert "You should know each of them" in " ".join(shown.stdout.split())
    kinds = [event["what"].partition("Z: ")[2].partition(" ")[0] for event in printed["events"]]
    assert (kinds, printed["findings"]) == (["signing_key", "erasure", "hold"], [])
    assert "entry 9, " in printed["events"][2]["what"]


def test_receipt_is_printed_for_one_answer(run: Run) -> None:
    assert read_json(run("audit", "receipt", "abc"))["answer"] == "abc"
    assert "Several answers begin" in run("audit", "receipt", "ab").stderr


@pytest.mark.parametrize("alone", [["--words", "hall"], ["--format", "csv"], ["--json"]])
def test_export_with_proofs_refuses_filters(run: Run, alone: list[str]) -> None:
    refused = run("audit", "export", "--proofs", *alone)
    lines = [json.loads(line) for line in run("audit", "export", "--proofs").stdout.splitlines()]

    assert refused.exit_code == 2
    assert "footnote audit receipt ID" in " ".join(refused.output.replace("│", " ").split())
    assert [row["kind"] for row in lines[-3:-1]] == ["delivered", "signing_key"]
    assert lines[-1]["checkpoint"].splitlines()[1] == str(len(lines) - 1)


@pytest.mark.parametrize(("arguments", "expected"), [
    (["checkpoint"], "There is no signing key"),
    (["receipt", "abc"], "There is no signing key"),
    (["export", "--proofs"], "There is no signing key"),
    (["verify", "--against", "none.txt"], "none.txt cannot be read"),
    (["verify", "--against", "footnote.toml"], "is not a checkpoint"),
    (["verify", "--key", "x", "--against", "none.txt"], "The key or checkpoint cannot be used"),
])  # fmt: skip
def test_missing_keys_and_checkpoints_are_reported(run: Run, here: Path, arguments: list[str], expected: str) -> None:
    (here / "footnote-record.key").unlink()
    result = run("audit", *arguments)

    assert (result.exit_code, expected in result.stderr) == (1, True), result.output


def test_erase_previews_and_erases_with_yes(run: Run) -> None:
    who = ("erase", "--person", "slack:T1/U1")
    run("audit", "hold", "abd", "--why", "case 12")
    planned, done = run(*who), read_json(run(*who, "--why", "asked", "--yes", "--json"))

    assert "would erase 1 turn with 4 entries" in " ".join(planned.stdout.split())
    assert "1 turn on hold would stay" in " ".join(planned.stdout.split())
    assert (done["erased"], done["turns"], done["entries"], done["compacted"]) == (True, 1, 4, True)
    assert "The words of 4 entries were erased" in " ".join(run("audit", "verify").stdout.split())
    assert read_json(run("audit", "hold", "--json"))["held"] == ["abd"]
    assert read_json(run("audit", "hold", "abd", "--off", "--json"))["held"] == []
    assert "nothing to erase" in run("erase", "--older-than", "1d").stdout


def test_erase_counts_the_messages_to_be_removed(run: Run, here: Path) -> None:
    async def ask() -> None:
        with open_database("", home=here / ".footnote") as database:
            queue = Queue(database)
            new = NewQuestion("k", "slack:T1/C1", "slack:T1/C1/1", "slack:T1/U1", "m", {"text": "?"}, "")
            row, _ = await queue.put(new)
            await queue.note(row.ticket, turn_id="abc", posted=["p1", "p2"])
            await queue.finish(row.ticket, "delivered")

    asyncio.run(ask())
    who = ("erase", "--person", "slack:T1/U1")
    without, planned = run(*who), run(*who, "--messages")
    done = run(*who, "--messages", "--yes")

    assert "message" not in without.stdout
    assert "It would remove 2 messages" in " ".join(planned.stdout.split())
    assert "`footnote serve` removes 2 messages" in " ".join(done.stdout.split())


WRONG = [[], ["--person", "U1"], ["--older-than", "1y"], ["--person", "a:b/c", "--conversation", "x"]]


@pytest.mark.parametrize("arguments", WRONG)
def test_erase_requires_exactly_one_valid_target(run: Run, arguments: list[str]) -> None:
    assert run("erase", *arguments).exit_code == 2
