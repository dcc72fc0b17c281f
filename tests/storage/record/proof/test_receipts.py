"""Tests that receipts and exports are verified by the independent script."""

import base64
import importlib.util
import io
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType

import pytest

from storage.database.engine import Database
from storage.record.audit_log import AuditLog
from storage.record.erasure import ErasureTarget, RecordErasure
from storage.record.proof.checkpoints import RecordBroken
from storage.record.proof.receipts import RecordPosition, export_record, find_position, make_receipt
from storage.types import EntryKind, LogEntry
from tests.storage.record.tampering import KEY, make_record, make_turn
from tests.storage.stores import open_empty_database
from tests.thorough import THOROUGH

SCRIPT = Path(__file__).parents[4] / "docs" / "verify_receipt.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("verify_receipt", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def receipt(home: Path, turn: str = "b") -> str:
    with open_empty_database(home) as database:
        await make_record(database)
        await AuditLog(database).append(*make_turn("c"))
        return await make_receipt(database, turn, KEY)


async def export(home: Path, *, erasing: bool = False) -> str:
    lines: list[str] = []
    with open_empty_database(home) as database:
        await make_record(database)
        if erasing:
            await RecordErasure(database).erase(ErasureTarget(person="slack:T1/U1"), why="asked", by="terminal")
        await AuditLog(database).append(LogEntry("b", EntryKind.FEEDBACK, {"comment": "Früh\u2028!"}))
        await export_record(database, KEY, lines.append)
    return "".join(lines)


def is_proof(script: ModuleType, text: str, trusted: str = "") -> bool:
    try:
        is_receipt = text.startswith("{\n")
        return bool(
            script.verify_receipt(text, trusted) if is_receipt else script.verify_export(io.StringIO(text), trusted)
        )
    except (ValueError, LookupError, TypeError, AttributeError):
        return False


def run_script(file: Path, key: str) -> subprocess.CompletedProcess[str]:
    """Run the script in plain Python, isolated from this environment."""
    command = [sys.executable, "-I", "-S", str(SCRIPT), str(file), key]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("turn", ["a", "b", "c"])
async def test_receipt_is_verified_by_the_script(tmp_path: Path, turn: str) -> None:
    file = tmp_path / "receipt.json"
    file.write_text(await receipt(tmp_path / "home", turn), encoding="utf-8", newline="")

    trusted, stranger = run_script(file, str(KEY.public)), run_script(file, "another+key")

    assert (trusted.returncode, trusted.stdout.count("turn_closed")) == (0, 1), trusted.stderr
    assert f"4 entries of answer {turn} are in the record" in trusted.stdout
    assert (stranger.returncode, "another key than the one you trust" in stranger.stderr) == (1, True)


async def test_script_states_the_limits_of_a_receipt(tmp_path: Path) -> None:
    shortened = json.loads(await receipt(tmp_path / "home"))
    shortened["entries"].pop()
    file = tmp_path / "receipt.json"
    file.write_text(json.dumps(shortened, indent=1, sort_keys=True) + "\n", encoding="utf-8", newline="")
    done = run_script(file, str(KEY.public))

    assert done.returncode == 0
    assert "A receipt cannot show that the record has no more entries of this answer." in done.stdout


def test_too_deeply_nested_file_proves_nothing(tmp_path: Path) -> None:
    (tmp_path / "receipt.json").write_text("[" * 200_000, encoding="utf-8")
    done = run_script(tmp_path / "receipt.json", str(KEY.public))

    assert (done.returncode, "Traceback" in done.stderr, "proves nothing" in done.stderr) == (1, False, True)


@pytest.mark.parametrize(("make", "stride"), [(receipt, 29), (export, 61)])
async def test_note_with_a_flipped_bit_is_refused(
    tmp_path: Path, script: ModuleType, make: Callable[[Path], Awaitable[str]], stride: int
) -> None:
    text = await make(tmp_path)
    assert is_proof(script, text, str(KEY.public))
    data = text.encode()
    for place in range(0, len(data), 1 if THOROUGH else stride):
        for bit in range(8) if THOROUGH else [place % 7]:
            changed = bytearray(data)
            changed[place] ^= 1 << bit
            assert not is_proof(script, changed.decode("utf-8", "surrogateescape"), str(KEY.public)), (place, bit)


async def test_receipt_with_missing_repeated_or_foreign_entries_is_refused(tmp_path: Path, script: ModuleType) -> None:
    parsed = json.loads(await receipt(tmp_path))
    for changed in ([], parsed["entries"] * 2, parsed["entries"][::-1]):
        assert not is_proof(script, json.dumps({**parsed, "entries": changed}, indent=1, sort_keys=True) + "\n")
    assert not is_proof(script, json.dumps({**parsed, "answer": "a"}, indent=1, sort_keys=True) + "\n")


async def test_changed_lines_of_an_export_are_detected(tmp_path: Path, script: ModuleType) -> None:
    lines = (await export(tmp_path)).splitlines(keepends=True)
    last = len(lines) - 1
    for place, line in enumerate(lines):
        before, after = lines[:place], lines[place + 1 :]
        blank = json.dumps({**json.loads(line), "body": "", "salt": ""}, sort_keys=True) + "\n"
        moves = [[*before, *after], [*lines[: place + 1], line, *after], [*lines, line], [*before, blank, *after]]
        moves += [before, [*before, *after[:1], line, *after[1:]]] if place < last else []
        for moved in moves:
            assert not is_proof(script, "".join(moved)), place
    assert not is_proof(script, "".join(lines), "another+key")


@pytest.mark.parametrize("erasing", [False, True])
async def test_export_is_verified_by_the_script(tmp_path: Path, *, erasing: bool) -> None:
    text, file = await export(tmp_path / "home", erasing=erasing), tmp_path / "record.jsonl"
    file.write_text(text, encoding="utf-8", newline="")
    count = len(text.splitlines()) - 1
    done = run_script(file, str(KEY.public))

    assert done.returncode == 0, done.stderr
    assert f"These {count} entries, {8 if erasing else 0} of them erased, are the whole record" in done.stdout
    assert ("It burned down" in text) is not erasing
    assert text.isascii()


@pytest.mark.parametrize("changed", ["at = 'yesterday'", "body = x'00'", "body = '{}'"])
async def test_export_of_a_changed_record_proves_nothing(database: Database, script: ModuleType, changed: str) -> None:
    lines: list[str] = []
    await make_record(database)
    for statement in ("DROP TRIGGER entries_keep_update", f"UPDATE entries SET {changed} WHERE seq = 3"):
        await database.write(lambda connection, run=statement: connection.exec_driver_sql(run))
    with nullcontext() if "{}" in changed else pytest.raises(RecordBroken, match="after number 2"):
        await export_record(database, KEY, lines.append)

    assert not is_proof(script, "".join(lines))


# RFC 8032, 7.1: tests 1, 2 and 3.
VECTORS = [
    (
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        (
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
            "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"
        ),
    ),
    (
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        (
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
            "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
        ),
    ),
    (
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        (
            "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
            "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a"
        ),
    ),
]


@pytest.mark.parametrize(("public", "message", "signature"), VECTORS)
def test_the_script_verifies_the_published_signatures(
    script: ModuleType, public: str, message: str, signature: str
) -> None:
    key, said, signed = map(bytes.fromhex, (public, message, signature))
    order = int.from_bytes(signed[32:], "little") + script.L  # the same number in another representation

    assert script.is_signed(key, signed, said)
    assert not script.is_signed(key, signed, said + b"x")
    assert not script.is_signed(key, signed[:32] + order.to_bytes(32, "little"), said)


async def test_position_of_an_answer_has_the_first_checkpoint_that_covers_it(database: Database) -> None:
    await make_record(database)
    audit = AuditLog(database)
    await audit.append(*make_turn("c"))
    unsigned, unknown = await find_position(database, "c"), await find_position(database, "d")
    proved = json.loads(await make_receipt(database, "c", KEY))
    position = await find_position(database, "c")
    await audit.append(LogEntry("c", EntryKind.FEEDBACK, {"what": "up"}))
    later = await find_position(database, "c")

    assert (unsigned.size, unknown, later) == (0, None, position)
    closing = next(entry["seq"] for entry in proved["entries"] if entry["kind"] == "turn_closed")
    size, root = proved["checkpoint"].splitlines()[1:3]
    assert position == RecordPosition(closing, int(size), base64.b64decode(root).hex())
