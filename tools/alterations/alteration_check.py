"""Measure how many altered sentences a verifier rejects, and how many harmless variants it accepts."""

import asyncio
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
from evaluation.claims.labelled_claims import LabelledClaim
from evaluation.claims.verifiers import JudgedClaim, judge_claims, open_local
from evaluation.reports.printing import AsJson, compute_share, print_report, render_table
from ingest.sources.dumps.wikipedia_dump import WikipediaDump
from ingest.sources.folder import FolderSource
from storage.language.words import count_words, words
from storage.types import Verdict
from tools.alterations import sentence_changes, word_changes
from tools.alterations.sentence_changes import Change, ChangeProposer, has_value, shuffle
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

_WORD_COUNTS = range(6, 46)


@dataclass(frozen=True, slots=True)
class AlteredSentence:
    """A changed sentence, the kind of its change, and whether its passage still supports it."""

    kind: str
    change: Change
    origin: TrueSentence
    true: bool


def is_usable(sentence: TrueSentence) -> bool:
    """Return whether a text is a complete sentence on one line, with 6 to 45 words."""
    text = sentence.text
    return text[:1].isupper() and text.endswith(".") and "\n" not in text and count_words(text) in _WORD_COUNTS


def build_changers(pool: Sequence[TrueSentence]) -> Mapping[str, ChangeProposer]:
    """Return a function for every kind of alteration. Names are replaced by names from the sentences of `pool`.

    A word that also occurs in lower case, such as "teacher", is not taken for a name.
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
    """Return up to `count` random sentences. The kinds of alteration take turns to choose one that they can alter."""
    candidates = shuffle(list(dict.fromkeys(filter(is_usable, sentences))), rng)
    queues = [_find_alterable(candidates, change, rng) for change in build_changers(candidates).values()]
    chosen: dict[TrueSentence, None] = {}
    while queues and len(chosen) < count:
        for queue in list(queues):
            candidate = next((sentence for sentence in queue if sentence not in chosen), None)
            if candidate is None:
                queues.remove(queue)
            elif len(chosen) < count:
                chosen[candidate] = None
    return list(chosen)


def alter_sentences(sentences: Sequence[TrueSentence], rng: Random) -> Iterator[AlteredSentence]:
    """Yield each sentence unchanged, and with one change of each kind that is possible.

    Then yield sentences changed to other values of their passage. Those changes have a random generator of their own,
    so that the others do not depend on them.
    """
    changers = build_changers(sentences)
    for sentence in sentences:
        yield AlteredSentence(TRUE, Change(sentence.text, "", ""), sentence, true=True)
        for true, proposers in ((True, HARMLESS), (False, changers)):
            for kind, propose in proposers.items():
                if change := _first_change(sentence, propose(sentence.text, rng)):
                    yield AlteredSentence(kind, change, sentence, true=true)
    own = Random(rng.random())
    for sentence in sentences:
        for kind, propose_nearby in NEIGHBOURS.items():
            if change := _first_change(sentence, propose_nearby(sentence.text, sentence.passage, own)):
                yield AlteredSentence(kind, change, sentence, true=False)


def is_false_by_passage(change: Change, passage: str) -> bool:
    """Return whether neither the changed sentence nor its new value occurs in the passage."""
    return change.text not in passage and not any(has_value(value, passage) for value in change.absent)


def _find_alterable(sentences: Sequence[TrueSentence], propose: ChangeProposer, rng: Random) -> Iterator[TrueSentence]:
    return (sentence for sentence in sentences if _first_change(sentence, propose(sentence.text, rng)))


def _first_change(sentence: TrueSentence, changes: Iterable[Change]) -> Change | None:
    return next((change for change in changes if is_false_by_passage(change, sentence.passage)), None)


@dataclass(frozen=True, slots=True)
class JudgedAlteration:
    """A changed sentence, and whether the verifier accepted it."""

    altered: AlteredSentence
    outcome: JudgedClaim
    accepted: bool

    @property
    def right(self) -> bool:
        """Whether the verifier was right: a true sentence was accepted, or a false one rejected."""
        return self.accepted == self.altered.true


def alterations(
    dump: Annotated[Path, typer.Option(help="Source of true sentences: a wiki dump or a folder.")],
    count: Annotated[int, typer.Option(min=1, help="How many true sentences.")] = 500,
    seed: Annotated[int, typer.Option(help="Seed for sentences and changes.")] = 7,
    examples: Annotated[int, typer.Option(min=0, help="Show up to this many mistakes of each kind.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Measure how many altered sentences are caught by kind, and how many true and harmlessly changed ones are kept.

    Each sentence is compared with its own passage. An altered sentence is certainly unsupported, because the new
    number, name, date or unit does not occur in the passage. Rows "of the same passage" are harder: the new value
    occurs in another sentence of the passage, about something else.

    Example: python -m tools.alterations.alteration_check --dump enwiki-2016-shortened.xml.bz2 --examples 3
    """
    rng = Random(seed)
    source = FolderSource(dump) if dump.is_dir() else WikipediaDump(dump)
    sentences = choose_sentences(list(find_true_sentences(source)), count, rng)
    if not sentences:
        raise EvaluationError(f"{dump} has no sentence that can be altered.", hint="Name a dump with articles.")
    altered = list(alter_sentences(sentences, rng))
    claims = [build_claim(sentence, number) for number, sentence in enumerate(altered)]
    judged = decide_acceptance(altered, asyncio.run(judge_claims(claims, open_local())))
    report, mistakes = report_alterations(judged), list_mistakes(judged, examples)
    text = "\n".join((render_alterations(report), *_render_mistakes(mistakes)))
    print_report({**report, "mistakes": mistakes}, text, as_json=as_json)


def build_claim(sentence: AlteredSentence, number: int) -> LabelledClaim:
    """Return a changed sentence as a claim with its passage as evidence."""
    label = Verdict.SUPPORTS if sentence.true else Verdict.NOT_ENOUGH_INFO
    evidence = (sentence.origin.passage,)
    return LabelledClaim(str(number), sentence.kind, sentence.change.text, evidence, label, sentence.origin.text)


def decide_acceptance(altered: Sequence[AlteredSentence], outcomes: Sequence[JudgedClaim]) -> list[JudgedAlteration]:
    """Return which sentences were accepted, by the verdicts of the check."""
    pairs = zip(altered, outcomes, strict=True)
    return [
        JudgedAlteration(sentence, outcome, outcome.judged.verdict is Verdict.SUPPORTS) for sentence, outcome in pairs
    ]


def report_alterations(judged: Sequence[JudgedAlteration]) -> dict[str, Any]:
    """Return counts and shares for each kind: how many altered sentences are caught, and how many others are kept.

    Sentences that were altered with values of their own passage are counted separately, as `caught_nearby`.
    """
    groups: dict[str, list[JudgedAlteration]] = {"caught": [], "caught_nearby": [], "kept": []}
    for result in judged:
        nearby = result.altered.kind in NEIGHBOURS
        groups["kept" if result.altered.true else "caught_nearby" if nearby else "caught"].append(result)
    p50, p95 = np.quantile([result.outcome.milliseconds for result in judged], (0.5, 0.95))
    return {
        "sentences": len({result.altered.origin for result in judged}),
        **{name: _shares_by_kind(group) for name, group in groups.items()},
        "milliseconds": {"p50": round(float(p50), 3), "p95": round(float(p95), 3)},
    }


def list_mistakes(judged: Sequence[JudgedAlteration], limit: int) -> dict[str, list[dict[str, Any]]]:
    """Return the first mistakes of each kind, up to `limit`, with the verifier's reasons."""
    mistakes: dict[str, list[dict[str, Any]]] = {}
    for result in judged:
        altered, judged_claim = result.altered, result.outcome.judged
        if not result.right and len(mistakes.get(altered.kind, ())) < limit:
            mistake = {
                "sentence": altered.change.text,
                "old": altered.change.old,
                "new": altered.change.new,
                "passage": altered.origin.passage,
                "score": round(judged_claim.score, 4),
                "reasons": list(judged_claim.reasons),
            }
            mistakes.setdefault(altered.kind, []).append(mistake)
    return mistakes


def render_alterations(report: dict[str, Any]) -> str:
    """Return a report as a table in Markdown."""
    milliseconds = report["milliseconds"]
    rows = [
        (
            kind,
            f"{group['count']:,}",
            *(("", f"{group['share']:.3f}") if part == "kept" else (f"{group['share']:.3f}", "")),
        )
        for part in ("caught", "caught_nearby", "kept")
        for kind, group in report[part].items()
    ]
    return (
        f"{report['sentences']:,} true sentences\n\n"
        f"A claim takes {milliseconds['p50']:.2f} ms on one core, {milliseconds['p95']:.2f} at p95.\n\n"
        + render_table(("changed", "sentences", "caught", "kept"), rows)
    )


def _shares_by_kind(judged: Iterable[JudgedAlteration]) -> dict[str, dict[str, Any]]:
    by_kind: dict[str, list[bool]] = {}
    for result in judged:
        by_kind.setdefault(result.altered.kind, []).append(result.right)
    if by_kind:
        by_kind["all of these"] = [right for group in by_kind.values() for right in group]
    return {kind: {"count": len(group), "share": compute_share(group)} for kind, group in by_kind.items()}


def _render_mistakes(mistakes: dict[str, list[dict[str, Any]]]) -> list[str]:
    lines = []
    for kind, examples in mistakes.items():
        lines += ["", f"mistakes for {kind}:"]
        for example in examples:
            change = f"{example['old']!r} -> {example['new']!r}"
            lines += [f"- {example['sentence']} ({change}, scored {example['score']:.3f})"]
            lines += [f"  because {reason}" for reason in example["reasons"]]
    return lines


if __name__ == "__main__":
    typer.run(alterations)
