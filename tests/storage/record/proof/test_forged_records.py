"""Tests that a record rewritten without the signing key never fits a checkpoint that was stored elsewhere."""

import random
import shutil
from pathlib import Path

import pytest

from storage.database.engine import Database, open_database
from storage.record.audit_log import AuditLog
from storage.record.proof.checkpoints import Checkpoints, LeafTree, TreeHead
from storage.record.proof.key_chain import KeyChain
from storage.record.proof.record_check import verify_record
from storage.record.proof.signed_notes import SigningKey, create_key, endorse_key, load_key, make_signing_key, sign_note
from storage.record.proof.verification import AuditFinding
from storage.types import RECORD, EntryKind, LogEntry
from tests.storage.record.forging import RECIPES, SECOND, STEPS, Kept, forge, make_restored_record
from tests.storage.record.tampering import KEY, make_record, make_turn
from tests.thorough import THOROUGH


@pytest.fixture
async def kept(tmp_path: Path) -> Kept:
    return await make_restored_record(tmp_path / "home")


async def list_missed(home: Path, kept: Kept, recipe: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return the stored checkpoints, with or without a pinned key, that a forged record seems to fit."""
    copied = Path(shutil.copytree(home, home.parent / "forged", dirs_exist_ok=True))
    forge(copied, kept, recipe)
    with open_database("", home=copied) as database:
        return [
            (name, "pinned" if pinned else "")
            for name in ("first", "second", "lost", "whole")
            for pinned in ((), (KEY.public,))
            if not any(map(_is_of_kept, (await verify_record(database, [getattr(kept, name)], pinned)).findings))
        ]


def _is_of_kept(finding: AuditFinding) -> bool:
    return "kept elsewhere" in finding.what


async def test_genuine_record_has_no_findings(tmp_path: Path, kept: Kept) -> None:
    with open_database("", home=tmp_path / "home") as database:
        heads = [kept.first, kept.second, kept.lost, kept.whole]
        checks = [await verify_record(database, heads, pinned) for pinned in ((), (KEY.public,))]

    assert [checked.findings for checked in checks] == [(), ()]
    events = [event.what.partition(",")[0] for event in checks[0].events]
    assert events == ["entry 6", "entry 11", "entry 16"]


@pytest.mark.parametrize("recipe", RECIPES, ids=", ".join)
async def test_forgery_is_found(tmp_path: Path, kept: Kept, recipe: tuple[str, ...]) -> None:
    assert await list_missed(tmp_path / "home", kept, recipe) == []


async def test_random_forgeries_are_found(tmp_path: Path, kept: Kept) -> None:
    chosen = random.Random(39)
    recipes = [tuple(chosen.choices([*STEPS], k=chosen.randint(1, 7))) for _ in range(2000 if THOROUGH else 40)]
    missed = [recipe for recipe in recipes if await list_missed(tmp_path / "home", kept, recipe)]

    assert missed == []


async def test_unendorsed_key_counts_only_if_pinned(database: Database) -> None:
    await make_record(database)
    other = make_signing_key(KEY.name)
    head = await Checkpoints(database).make(other)
    alone, first, both = [
        await verify_record(database, [head], [key.public for key in pinned]) for pinned in ((), (KEY,), (KEY, other))
    ]

    for checked in (alone, first):
        assert [finding.what.partition(":")[0] for finding in checked.findings] == [
            "entry 11", "checkpoint 11", "the checkpoint that was kept elsewhere"
        ]  # fmt: skip
        assert "give `--key` for each noted key" in checked.findings[0].what
    assert both.findings == ()


async def test_restore_by_an_earlier_version_counts_once_a_checkpoint_covers_it(tmp_path: Path) -> None:
    kept = await make_restored_record(tmp_path / "home")
    with open_database("", home=tmp_path / "home" / "lost") as database:
        note = sign_note(f"{SECOND.name}\nrestored\n11\n99\n", SECOND)
        body = {"common": 11, "before": 99, "why": "", "by": "terminal", "note": note}
        await AuditLog(database).append(LogEntry(RECORD, EntryKind.RESTORED, body), *make_turn("e"))
        uncovered = await verify_record(database, [kept.whole])
        later = await Checkpoints(database).make(SECOND)
        covered = await verify_record(database, [kept.whole, later])
    forge(tmp_path / "home" / "lost", kept, ("forget", "postpone"))
    with open_database("", home=tmp_path / "home" / "lost") as database:
        postponed = await verify_record(database, [later])

    assert ([finding.what[:12] for finding in uncovered.findings], covered.findings) == (["the checkpoi"], ())
    assert any(map(_is_of_kept, postponed.findings))


@pytest.mark.parametrize(("recipe", "entry"), [(("forget",), 16), (("replay",), 21), (("replay of fewer",), 21)])
async def test_restore_of_other_entries_is_found_without_checkpoints(
    tmp_path: Path, kept: Kept, recipe: tuple[str, ...], entry: int
) -> None:
    forge(tmp_path / "home", kept, recipe)
    with open_database("", home=tmp_path / "home") as database:
        findings = [finding.what for finding in (await verify_record(database)).findings]

    assert f"entry {entry}: it does not count: its note is about another restore" in findings


async def test_backup_from_before_two_new_keys_gets_both(tmp_path: Path, database: Database) -> None:
    file = tmp_path / "keys" / "record.key"
    keys = [create_key(file)]
    await AuditLog(database).append(*make_turn("a"))
    head = await Checkpoints(database).make(keys[0])
    keys.append(create_key(file, keys[0]))
    keys.append(create_key(file, keys[1]))
    loaded = load_key(file)
    last = await Checkpoints(database).make(loaded)
    checked = await verify_record(database, [head, last], [keys[0].public])

    assert (loaded, loaded.endorsements) == (keys[2], keys[2].endorsements)
    assert (checked.findings, [event.what[:8] for event in checked.events]) == (
        (),
        ["entry 5,", "entry 6,", "entry 7,"],
    )


async def test_replaced_key_endorses_no_further_key(database: Database) -> None:
    await make_record(database)
    await Checkpoints(database).make(SECOND)
    await Checkpoints(database).make(endorse_key(KEY, make_signing_key(KEY.name)))

    assert "entry 12: it does not count" in (await verify_record(database)).findings[0].what


DAYS = [f"2026-01-0{day}T00:00:00.000000Z" for day in (1, 2, 3)]


@pytest.mark.parametrize(
    ("restored_by", "covered_by", "size", "at", "excused"),
    [
        (SECOND, SECOND, 9, DAYS[0], True),
        (KEY, SECOND, 9, DAYS[0], False),
        (SECOND, KEY, 9, DAYS[0], False),
        (SECOND, SECOND, 2, DAYS[0], False),  # the backup had these entries
        (SECOND, SECOND, 10, DAYS[0], False),
        (SECOND, SECOND, 9, DAYS[2], False),  # signed after the restore
    ],
)
def test_restore_excuses_only_earlier_checkpoints_by_keys_up_to_its_own(
    restored_by: SigningKey, covered_by: SigningKey, size: int, at: str, *, excused: bool
) -> None:
    tree, chain = LeafTree([bytes(32)] * 4), KeyChain(recorded=[KEY.public, SECOND.public])
    note = sign_note(f"{KEY.name}\nrestored\n2\n9\n", restored_by)
    chain.add_restore({"common": 2, "before": 9, "note": note}, DAYS[1], tree)

    assert chain.compare(sign_note(TreeHead(KEY.name, 4, tree.root(4), DAYS[1]).format(), covered_by), tree) == ""
    assert chain.excuses(sign_note(TreeHead(KEY.name, size, bytes(32), at).format(), SECOND)) == excused
