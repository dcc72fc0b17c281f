"""Measure how many altered sentences a verifier catches, and how many harmless variants it keeps."""

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np
import typer

from evaluation import EvaluationError
from evaluation.answers.question_sets import TrueSentence, find_true_sentences
from evaluation.claims.claim_metrics import ScoredClaims, find_threshold_losing
from evaluation.claims.labelled_claims import LabelledClaim
from evaluation.claims.verifiers import VERIFIERS, JudgedClaim, find_verifier, judge_claims
from ingest.sources.dumps.wikipedia_dump import WikipediaDump
from ingest.sources.folder import FolderSource
from storage.language.words import count_words, words
from storage.types import Verdict
from tools.alterations import sentence_changes, word_changes
from tools.alterations.sentence_changes import Change, ChangeProposer, has_value
from tools.alterations.word_changes import NEIGHBOURS

TRUE = "unchanged"
HARMLESS: Mapping[str, ChangeProposer] = MappingProxyType({
    "number respelled": sentence_changes.respell_number,
    "unit respelled": sentence_changes.respell_unit,
    "date reordered": sentence_changes.reorder_date,
    "opening dropped": word_changes.drop_opening,
    "article dropped": word_changes.drop_article,
    "contracted": word_changes.toggle_contraction,
    "retyped": word_changes.retype_marks,
})  # fmt: skip
"""Changes that keep the meaning of a sentence."""

_FEWEST_WORDS, _MOST_WORDS = 6, 45


@dataclass(frozen=True, slots=True)
class AlteredSentence:
    """A changed sentence, the kind of change, and whether its passage still supports it."""

    kind: str
    change: Change
    origin: TrueSentence
    true: bool


def is_usable(sentence: TrueSentence) -> bool:
    """Return whether a text is a complete sentence on one line, neither too short nor too long."""
    text = sentence.text
    whole = text[:1].isupper() and text.endswith(".") and "\n" not in text
    return whole and _FEWEST_WORDS <= count_words(text) <= _MOST_WORDS


def build_changers(pool: Sequence[TrueSentence]) -> Mapping[str, ChangeProposer]:
    """Return every kind of alteration; names are replaced by names from the sentences of `pool`.

    A word that also occurs in lower case, such as "teacher", is not used as a name.
    """
    common = {word for sentence in pool for word in words(sentence.text) if word.islower()}
    named = (name for sentence in pool for name in word_changes.find_names(sentence.text))
    return {
        "number": sentence_changes.change_number,
        "name": word_changes.build_name_swapper([name for name in named if name.text.lower() not in common]),
        "negation added": word_changes.add_negation,
        "negation removed": word_changes.remove_negation,
        "year": sentence_changes.move_year,
        "month": sentence_changes.move_month,
        "day": sentence_changes.move_day,
        "unit": sentence_changes.change_unit,
        "comparison": word_changes.reverse_comparison,
        "roles": word_changes.swap_roles,
    }


def choose_sentences(sentences: Sequence[TrueSentence], count: int, rng: Random) -> list[TrueSentence]:
    """Return `count` random sentences, or fewer if there are not enough, so that every kind of alteration has some.

    Kinds take turns in choosing a sentence that they can alter; alterable sentences of any kind fill the rest.
    """
    usables = list(dict.fromkeys(filter(is_usable, sentences)))
    candidates = rng.sample(usables, len(usables))
    queues = [_find_alterable(candidates, change, rng) for change in build_changers(candidates).values()]
    found: dict[TrueSentence, None] = {}
    while queues and len(found) < count:
        for queue in list(queues):
            fresh = next((sentence for sentence in queue if sentence not in found), None)
            if fresh is None:
                queues.remove(queue)
            elif len(found) < count:
                found[fresh] = None
    return list(found)


def alter_sentences(sentences: Sequence[TrueSentence], rng: Random) -> Iterator[AlteredSentence]:
    """Yield each sentence unchanged, then one alteration and one harmless variant of each possible kind.

    Alterations with values from elsewhere in the passage come last, with their own random generator, so that the others
    do not depend on them.
    """
    kinds = build_changers(sentences)
    for sentence in sentences:
        yield AlteredSentence(TRUE, Change(sentence.text, "", ""), sentence, true=True)
        for true, several in ((True, HARMLESS), (False, kinds)):
            for kind, change in several.items():
                found = _first_change(sentence, change, rng)
                if found:
                    yield AlteredSentence(kind, found, sentence, true=true)
    own = Random(rng.random())
    for sentence in sentences:
        for kind, taking in NEIGHBOURS.items():
            proposed = taking(sentence.text, sentence.passage, own)
            found = next((change for change in proposed if is_false_by_passage(change, sentence.passage)), None)
            if found:
                yield AlteredSentence(kind, found, sentence, true=False)


def is_false_by_passage(change: Change, passage: str) -> bool:
    """Return whether neither the changed sentence nor its new value occurs in the passage."""
    return change.text not in passage and not any(has_value(value, passage) for value in change.absent)


def _find_alterable(sentences: Sequence[TrueSentence], change: ChangeProposer, rng: Random) -> Iterator[TrueSentence]:
    return (sentence for sentence in sentences if _first_change(sentence, change, rng))


def _first_change(sentence: TrueSentence, change: ChangeProposer, rng: Random) -> Change | None:
    return next((found for found in change(sentence.text, rng) if is_false_by_passage(found, sentence.passage)), None)


LOST_SHARE = 0.02


@dataclass(frozen=True, slots=True)
class JudgedAlteration:
    """A changed sentence, and whether the verifier accepted it."""

    altered: AlteredSentence
    outcome: JudgedClaim
    accepted: bool

    @property
    def right(self) -> bool:
        """Whether a true sentence was kept, or a false one caught."""
        return self.accepted == self.altered.true


def alterations(
    dump: Annotated[Path, typer.Option(help="Source of true sentences: a wiki dump, or a folder.")],
    count: Annotated[int, typer.Option(min=1, help="How many true sentences.")] = 500,
    seed: Annotated[int, typer.Option(help="Seed for sentences and changes.")] = 7,
    verifier: Annotated[str, typer.Option(help=f"The verifier: {', '.join(VERIFIERS)}.")] = "local",
    examples: Annotated[int, typer.Option(min=0, help="Show so many mistakes of each kind.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Measure how many altered sentences are caught, by kind, and how many true and harmless ones are kept.

    Each sentence is compared with its own passage. An altered one is certainly unsupported, because the new number,
    name, date or unit does not occur in the passage. Rows "of the same passage" are harder: there the new
    value occurs in another sentence of the passage, about something else.

    Example: python -m tools.alterations.alteration_check --dump enwiki-2016-shortened.xml.bz2 --examples 3
    """
    open_verifier = find_verifier(verifier)
    rng = Random(seed)
    sentences = choose_sentences(
        list(find_true_sentences(FolderSource(dump) if dump.is_dir() else WikipediaDump(dump))), count, rng
    )
    if not sentences:
        raise EvaluationError(f"{dump} holds no sentence that could be altered.", hint="Name a dump with articles.")
    made = list(alter_sentences(sentences, rng))
    claims = [build_claim(each, number) for number, each in enumerate(made)]
    outcomes = asyncio.run(judge_claims(claims, open_verifier(claims)))
    tried = decide_acceptance(made, outcomes)
    if as_json:
        print(
            json.dumps(
                {
                    "schema": 1,
                    "verifier": verifier,
                    **report_alterations(tried),
                    "mistakes": list_mistakes(tried, examples),
                }
            )
        )
        return
    print(render_alterations(verifier, report_alterations(tried)), *_lines(list_mistakes(tried, examples)), sep="\n")


def build_claim(each: AlteredSentence, number: int) -> LabelledClaim:
    """Return a changed sentence as a claim with its passage as evidence."""
    label = Verdict.SUPPORTS if each.true else Verdict.NOT_ENOUGH_INFO
    return LabelledClaim(str(number), each.kind, each.change.text, (each.origin.passage,), label, each.origin.text)


def decide_acceptance(made: Sequence[AlteredSentence], outcomes: Sequence[JudgedClaim]) -> list[JudgedAlteration]:
    """Decide acceptance by the verifier's verdicts, or by a threshold if it gives none."""
    scores = np.array([outcome.judged.score for outcome in outcomes], dtype=np.float64)
    threshold = find_threshold_losing(
        [ScoredClaims(scores, np.array([each.true for each in made], dtype=bool))], LOST_SHARE
    )
    return [
        JudgedAlteration(
            each,
            outcome,
            accepted=outcome.judged.score >= threshold
            if outcome.judged.verdict is None
            else outcome.judged.verdict is Verdict.SUPPORTS,
        )
        for each, outcome in zip(made, outcomes, strict=True)
    ]


def report_alterations(tried: Sequence[JudgedAlteration]) -> dict[str, Any]:
    """Return counts and shares by kind: altered sentences caught, others kept.

    Sentences altered with values of their own passage are counted separately: `caught_nearby`.
    """
    taken = [each.outcome.milliseconds for each in tried]
    return {
        "sentences": len({each.altered.origin for each in tried}),
        "caught": _shares_by_kind(
            each for each in tried if not each.altered.true and each.altered.kind not in NEIGHBOURS
        ),
        "caught_nearby": _shares_by_kind(each for each in tried if each.altered.kind in NEIGHBOURS),
        "kept": _shares_by_kind(each for each in tried if each.altered.true),
        "milliseconds": {name: round(float(np.quantile(taken, at)), 3) for name, at in (("p50", 0.5), ("p95", 0.95))},
    }


def list_mistakes(tried: Sequence[JudgedAlteration], most: int) -> dict[str, list[dict[str, Any]]]:
    """Return up to `most` mistakes of each kind in order, with the verifier's reasons."""
    found: dict[str, list[dict[str, Any]]] = {}
    for each in tried:
        listed = found.setdefault(each.altered.kind, [])
        if not each.right and len(listed) < most:
            listed.append(
                {
                    "sentence": each.altered.change.text,
                    "old": each.altered.change.old,
                    "new": each.altered.change.new,
                    "passage": each.altered.origin.passage,
                    "score": round(each.outcome.judged.score, 4),
                    "reasons": list(each.outcome.judged.reasons),
                }
            )
    return {kind: listed for kind, listed in found.items() if listed}


def render_alterations(verifier: str, found: dict[str, Any]) -> str:
    """Return a report as a table in Markdown."""
    taken = found["milliseconds"]
    lines = [
        f"**{verifier}** over {found['sentences']:,} true sentences",
        "",
        f"A claim takes {taken['p50']:.2f} ms on one core, {taken['p95']:.2f} at p95.",
        "",
        "| changed | sentences | caught | kept |",
        "|---|---|---|---|",
        *(
            f"| {kind} | {at['count']:,} | {at['share']:.3f} | |"
            for half in ("caught", "caught_nearby")
            for kind, at in found[half].items()
        ),
        *(f"| {kind} | {at['count']:,} | | {at['share']:.3f} |" for kind, at in found["kept"].items()),
    ]
    return "\n".join(lines)


def _shares_by_kind(tried: Iterable[JudgedAlteration]) -> dict[str, dict[str, Any]]:
    by_kind: dict[str, list[bool]] = {}
    for each in tried:
        by_kind.setdefault(each.altered.kind, []).append(each.right)
    every = [right for several in by_kind.values() for right in several]
    return {
        kind: {"count": len(right), "share": round(sum(right) / len(right), 4)}
        for kind, right in (*by_kind.items(), *([("all of these", every)] if every else []))
    }


def _lines(found: dict[str, list[dict[str, Any]]]) -> list[str]:
    lines = []
    for kind, listed in found.items():
        lines += ["", f"mistakes for {kind}:"]
        for each in listed:
            lines += [f"- {each['sentence']} ({each['old']!r} -> {each['new']!r}, scored {each['score']:.3f})"]
            lines += [f"  because {reason}" for reason in each["reasons"]]
    return lines


if __name__ == "__main__":
    typer.run(alterations)
