"""Export lessons from the record as chat messages for training: `footnote distil export`.

Only turns for which the settings give consent are exported. Turns of the same conversation, or that cite the same
document, have the same topic, and all lessons of a topic are in the same split. If documents join nearly all
conversations, each conversation is a topic.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from random import Random
from typing import Annotated, Any

import typer

from bot.app import Records
from bot.cli.command_context import JsonOption, format_examples, open_command
from bot.cli.terminal_output import build_document
from bot.settings.tables.record_settings import DistillationSettings
from evaluation import EvaluationError
from evaluation.distillation.deidentification import (
    build_name_pattern,
    find_identities,
    find_own_names,
    remove_identities,
)
from evaluation.distillation.recorded_calls import RecordedTurn, read_turn
from evaluation.distillation.student_lessons import LeftOut, Lesson, make_lessons, read_lesson
from evaluation.reports.printing import render_table
from pipeline.errors import UnreadableReply
from storage.record.record_search import EVERY_TURN

SPLITS = {"train": 0.8, "validation": 0.1, "test": 0.1}
HELD_OUT = 0.05  # the least share of conversations that are not for training, as in WikiChat's paper
BY_PAGE = "conversation and cited page"
BY_TALK = "conversation alone, as pages join nearly all: held-out lessons may cite pages of training"
MANIFEST = "manifest.json"
PAGE = 200


@dataclass(frozen=True, slots=True)
class Export:
    """Lessons by their split, and the reasons why others were left out."""

    lessons: Mapping[str, tuple[Lesson, ...]]
    left_out: Counter[str]
    turns: int  # the number of turns that lessons were made from
    splits: str  # how they were joined into topics


def find_refusal(turn: RecordedTurn, consent: DistillationSettings) -> str:
    """Return the reason why no lessons may be made from a turn; empty if they may."""
    summary = turn.summary
    place = "terminal" if summary.platform == "terminal" else (summary.asker if turn.direct else summary.channel)
    if place not in consent.places:
        return "its place gave no consent"
    if not {corpus for corpus, _ in turn.found.values()} <= {*consent.corpora}:
        return "it saw a corpus without consent"
    if summary.retracted or summary.down:
        return "its answer was rated wrong or retracted"
    if summary.status not in {"answered", "abstained", "chatted"}:
        return f"it {summary.status or 'was never closed'}"
    return ""


def split_by_topic(turns: Sequence[RecordedTurn], seed: int) -> tuple[Mapping[str, str], str]:
    """Return the split of each turn by its id, and what joined turns into topics.

    The shares are as near to `SPLITS` as whole topics allow. Raises `EvaluationError` if nothing can be held out.
    """
    talks = {turn.summary.turn_id: (*turn.earlier, turn.question)[0] for turn in turns}
    pages = {turn.summary.turn_id: turn.cited for turn in turns}
    for joined in (BY_PAGE, BY_TALK):
        topics = list[tuple[set[object], list[str]]]()  # the conversations and pages of each, and its turns
        for turn_id in sorted(talks):
            keys: set[object] = {talks[turn_id], *(pages[turn_id] if joined == BY_PAGE else ())}
            members = [turn_id]
            for topic in [topic for topic in topics if not keys.isdisjoint(topic[0])]:
                topics.remove(topic)
                keys, members = keys | topic[0], members + topic[1]
            topics.append((keys, members))
        groups = [members for _, members in topics]
        placed = _place_groups(groups, len if joined == BY_PAGE else lambda _: 1, Random(seed))
        held_out = {talks[turn_id] for turn_id, split in placed.items() if split != "train"}
        if len(held_out) >= HELD_OUT * len({*talks.values()}):
            return placed, joined
    raise EvaluationError(
        f"The {len(turns)} turns with lessons are one conversation, so none can be held out from training.",
        hint="Export again when another conversation has lessons.",
    )


def _place_groups(groups: list[list[str]], weigh: Callable[[list[str]], int], random: Random) -> dict[str, str]:
    """Return the split of each member. If there are several groups, one at least is held out."""
    random.shuffle(groups)
    groups.sort(key=weigh, reverse=True)  # large groups first, while there is room for them
    left, placed = {name: share * sum(map(weigh, groups)) for name, share in SPLITS.items()}, dict[str, str]()
    for group in groups:
        must_hold = group is groups[-1] and {*placed.values()} == {"train"}
        split = "test" if must_hold else max(left, key=left.__getitem__)
        left[split] -= weigh(group)
        placed.update(dict.fromkeys(group, split))
    return placed


async def collect_export(records: Records, consent: DistillationSettings, seed: int) -> Export:
    """Make lessons from all turns that may be used. Raises `StorageError`."""
    chosen, left_out = list[RecordedTurn](), Counter[str]()
    query = replace(EVERY_TURN, limit=PAGE)
    while page := await records.search.find(query):
        for summary in page:
            turn = read_turn(summary, await records.audit.turn(summary.turn_id))
            if refusal := find_refusal(turn, consent) if turn else "it was erased, or never closed":
                left_out[f"turns: {refusal}"] += 1
            elif turn:
                chosen.append(turn)
        query = replace(query, before=page[-1].seq)
    lessons = list[Lesson]()
    for turn in sorted(chosen, key=lambda turn: turn.summary.seq):
        passages = await records.manifest.recall({*turn.found}, {*turn.found.values()})
        for made in make_lessons(turn, passages, seed):
            if isinstance(made, LeftOut):
                left_out[f"calls of {made.template}: {made.reason}"] += 1
            else:
                lessons.append(made)
    kept, unclean = _remove_identities(lessons, chosen)
    taught = {lesson.turn_id for lesson in kept}
    splits, joined = split_by_topic([turn for turn in chosen if turn.summary.turn_id in taught], seed)
    parts = {name: tuple(lesson for lesson in kept if splits[lesson.turn_id] == name) for name in SPLITS}
    return Export(parts, left_out + unclean, len(chosen), joined)


def _remove_identities(
    lessons: Iterable[Lesson], turns: Sequence[RecordedTurn]
) -> tuple[Sequence[Lesson], Counter[str]]:
    named = build_name_pattern(
        {name for turn in turns for name in (turn.summary.asker_name, turn.summary.channel_name)}
        | find_own_names(text for turn in turns for text in (turn.question, *turn.earlier)),
        {part for turn in turns for name in (turn.summary.asker, turn.summary.channel) for part in _split_id(name)},
    )
    left_out, clean = Counter[str](), list[Lesson]()
    for lesson in lessons:
        anonymous = remove_identities(lesson, named)
        try:
            read_lesson(anonymous)
        except UnreadableReply:
            left_out[f"calls of {lesson.template}: it cannot be read without names"] += 1
            continue
        if any(find_identities(f"{anonymous.input}\n{anonymous.output}", named)):
            left_out[f"calls of {lesson.template}: it still identifies the asker"] += 1
            continue
        clean.append(anonymous)
    return clean, left_out


def _split_id(name: str) -> tuple[str, ...]:
    """Return the parts of an id such as `slack:T1/U1` that identify someone: workspace, and channel or person."""
    return tuple(part for part in name.partition(":")[2].split("/") if part)


def write_export(export: Export, folder: Path, about: Mapping[str, Any]) -> dict[str, Any]:
    """Write a file for each split, with a line for each lesson, then the manifest; return that. Raises `OSError`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MANIFEST).unlink(missing_ok=True)
    numbers, files = dict[str, int](), dict[str, Any]()
    for split, lessons in export.lessons.items():
        lines = "".join(f"{_encode_lesson(lesson, numbers)}\n" for lesson in lessons)
        (folder / f"{split}.jsonl").write_text(lines, encoding="utf-8")
        stages = dict(sorted(Counter(lesson.template for lesson in lessons).items()))
        digest = hashlib.sha256(lines.encode()).hexdigest()
        files[split] = {"lessons": len(lessons), "templates": stages, "sha256": digest}
    quoted = Counter(corpus for part in export.lessons.values() for lesson in part for corpus, _ in lesson.quoted)
    manifest = {
        **about,
        "turns": export.turns,
        "splits": export.splits,
        "files": files,
        "quoted": dict(sorted(quoted.items())),
        "left_out": dict(sorted(export.left_out.items())),
        "licence": "Inputs quote the corpora in `quoted`; a model that is trained on them must follow their licences.",
    }
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return manifest


def _encode_lesson(lesson: Lesson, numbers: dict[str, int]) -> str:
    """Encode a lesson as chat messages for training. Its turn is named by an anonymous number."""
    messages = (("system", lesson.instruction), ("user", lesson.input), ("assistant", lesson.output))
    return json.dumps(
        {
            "messages": [{"role": role, "content": text} for role, text in messages],
            "template": lesson.template,
            "stage": lesson.stage,
            "turn": numbers.setdefault(lesson.turn_id, len(numbers) + 1),
            "counts": dict(lesson.counts),
        },
        ensure_ascii=False,
    )


def read_lessons(path: Path) -> tuple[Lesson, ...]:
    """Read the lessons of a split. Raises `EvaluationError` if the file does not contain any."""
    try:
        return tuple(_decode_lesson(json.loads(line)) for line in path.read_text("utf-8").splitlines())
    except FileNotFoundError as error:
        raise EvaluationError(f"There is no {path}.", hint="Write it with `footnote distil export FOLDER`.") from error
    except (ValueError, KeyError, TypeError) as error:
        raise EvaluationError(f"{path} is not a file of lessons.", hint="Export it again.") from error


def _decode_lesson(row: Mapping[str, Any]) -> Lesson:
    system, user, reply = (message["content"] for message in row["messages"])
    return Lesson(str(row["turn"]), row["template"], row["stage"], system, user, reply, row["counts"], frozenset())


def export(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(help="The folder to write the files to.")],
    seed: Annotated[int, typer.Option(help="Seed of the splits and of the delimiters in prompts.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Write lessons for a student from the record: the prompt of each stage, and the reply to learn.

    Only the places and corpora in the table "distillation" of footnote.toml are used.
    """
    with open_command(context, as_json=as_json) as ctx:
        consent = ctx.settings.distillation
        if not (consent.places and consent.corpora):
            raise EvaluationError(
                "No place or person has consented to lessons from their questions.",
                hint="Ask the people first, then name places and corpora under [distillation] in footnote.toml.",
            )
        made = ctx.call_records(lambda records: collect_export(records, consent, seed))
        if not any(made.lessons.values()):
            why = "; ".join(f"{count} {reason}" for reason, count in made.left_out.most_common()) or "none is recorded"
            hint = "Ask more questions, of a system that calls a model, or see [distillation] in footnote.toml."
            raise EvaluationError(f"The {made.turns} turns that may be used have no lessons ({why}).", hint=hint)
        about = {"schema": 1, "version": version("footnote"), "seed": seed, "consent": consent.model_dump(mode="json")}
        manifest = write_export(made, folder, about)
        ctx.output.give(
            build_document(**{key: manifest[key] for key in manifest if key != "schema"}), _render(manifest)
        )


def _render(manifest: Mapping[str, Any]) -> str:
    templates = sorted({name for file in manifest["files"].values() for name in file["templates"]})
    rows = [(name, *(file["templates"].get(name, 0) for file in manifest["files"].values())) for name in templates]
    table = render_table(("lessons", *manifest["files"]), rows)
    left = "\n".join(f"{count} {reason}" for reason, count in manifest["left_out"].items())
    return f"{table}\n\nFrom {manifest['turns']} turns, split by {manifest['splits']}. Left out:\n{left or 'nothing'}"


EPILOG = format_examples("footnote distil export lessons/")
