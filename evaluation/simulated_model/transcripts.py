"""Replay conversations whose model replies were written by hand, and count the sentences by their labels.

A transcript has the model's replies by stage, and the label that a reader gave to each possible sentence. A reply does
not depend on a prompt's wording: a bullet is given if its cited sentences are in the prompt, a verdict if its claim is.
A transcript has no text of documents: words and lines are stored as checksums, and copied from the prompt.
"""

import asyncio
import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from bot.answering.question_answering import answer
from bot.app import App
from bot.cli.questions.chat_session import extend_history
from bot.types import TurnRequest, TurnResult
from evaluation.answers.question_sets import Exam, has_all_strings, read_exam
from evaluation.reports.printing import render_table
from evaluation.simulated_model.model_replies import write_verdicts
from evaluation.simulated_model.scripted_llm import ScriptedLLM, script_stages
from evaluation.workbench import TERMINAL, open_corpus
from ingest.types import DocumentSource, Listing
from pipeline.types import Status, Turn
from storage.language.sentences import sentence_spans
from storage.language.words import content_terms
from storage.types import Verdict

OWN_TRANSCRIPTS = Path(__file__).parents[1] / "answers" / "questions" / "transcripts" / "example_handbook.json"
_WORD = re.compile(r"\w+")
_LINE = re.compile(r"^\[?(\d+)[\]:] (.*?)(?: \(from: [^\n]*\))?$", re.MULTILINE)
_CLAIM = re.compile(r"^(?:Claim|Sentence|Statement)(?: (\d+))?: (.*)$", re.MULTILINE)
_STRETCH = re.compile(r"\{(\d+):([0-9a-f]{8})\}")
_CITED = re.compile(r"\[@([0-9a-f]{8})\]")
_DEFAULTS = {"generate": "Nothing", "split": "Nothing", "draft": "NOTHING", "refine": ""}


def fingerprint(text: str) -> str:
    """Return a checksum of the words of a text. Case, punctuation and white space do not matter."""
    return f"{zlib.crc32(' '.join(_WORD.findall(text.casefold())).encode()):08x}"


def restore_reply(text: str, prompt: str, *, nearest: bool = False) -> str:
    """Restore a stored reply for a prompt: the prompt's words and line numbers replace their checksums.

    A line that is missing in the prompt loses its number. With `nearest`, it gets the number of the line with most
    words in common, because notes can be reworded.
    """
    lines = _LINE.findall(prompt)
    numbers = {fingerprint(line): number for number, line in lines}
    words = [(match.start(), match.end()) for match in _WORD.finditer(prompt)]

    def find_stretch(match: re.Match[str]) -> str:
        count = int(match[1])
        for first, last in zip(words, words[count - 1 :], strict=False):
            if fingerprint(prompt[first[0] : last[1]]) == match[2]:
                return prompt[first[0] : last[1]]
        return "[…]"

    def find_number(match: re.Match[str]) -> str:
        number = numbers.get(match[1])
        if number is None and nearest and lines and (before := sentence_spans(text[: match.start()])):
            sentence = text[before[-1][0] : match.start()]
            likely = _find_nearest_line(sentence, lines)
            shown = set(content_terms(dict(lines)[likely]))
            number = likely if shown & set(content_terms(sentence)) else None
        return f"[{number}]" if number else ""

    return _STRETCH.sub(find_stretch, _CITED.sub(find_number, text))


@dataclass(frozen=True, slots=True)
class TranscriptTurn:
    """A question, the model's replies in its turn, and the labels of sentences that the system may say."""

    question: str
    answerable: bool
    planted: str  # the wrong detail that the model had to add; empty if none
    replies: Mapping[str, Sequence[str]]  # by stage, in order; without bullets and verdicts
    bullets: Sequence[str] = ()
    rulings: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The verdict of each claim and its decisive lines, by the claim's fingerprint."""
    labels: Mapping[str, str] = field(default_factory=dict)  # supported, unsupported or planted, by fingerprint
    held_by: frozenset[str] = frozenset()  # fingerprints of the sentences with the right answer
    answer: tuple[str, ...] = ()  # strings that every right answer contains; empty if unknown


def read_transcripts(path: Path) -> tuple[tuple[str, tuple[TranscriptTurn, ...]], ...]:
    """Return the conversations of a file, each as (system, turns)."""
    talks = json.loads(path.read_text(encoding="utf-8"))["conversations"]
    return tuple((talk["system"], tuple(map(_read_turn, talk["turns"]))) for talk in talks)


def _read_turn(row: Mapping[str, Any]) -> TranscriptTurn:
    return TranscriptTurn(
        row["question"],
        bool(row.get("answerable", True)),
        str(row.get("planted", "")),
        row["replies"],
        row["bullets"],
        row["rulings"],
        row["labels"],
        held_by=frozenset(row.get("held_by", ())),
        answer=tuple(row.get("answer", ())),
    )


def build_transcript_model(turn: TranscriptTurn) -> ScriptedLLM:
    """Return the model of one turn."""
    return script_stages("by hand", build_replies(turn))


def build_replies(turn: TranscriptTurn) -> Mapping[str, Callable[[str], str]]:
    """Return, for each stage, a function that makes the reply from the last message of the prompt."""
    calls = Counter[str]()

    def say(stage: str, prompt: str) -> str:
        if stage == "draft" and (MORE_COMING in prompt or CONTINUED in prompt):
            return _draft_in_waves(turn, prompt)
        texts = turn.replies.get(stage) or [_DEFAULTS.get(stage, "")]
        calls[stage] += 1
        text = texts[min(calls[stage], len(texts)) - 1]
        reply = restore_reply(text, prompt, nearest=stage in {"draft", "refine"})
        return reply if re.search(r"\[\d", reply) or not _CITED.search(text) else _DEFAULTS.get(stage, "")

    stages: dict[str, Callable[[str], str]] = {name: partial(say, name) for name in ("query", *_DEFAULTS)}
    by_content = {"summarise": partial(_say_bullets, turn), "verify": partial(_say_verdicts, turn)}
    return {**stages, **by_content}


MORE_COMING, CONTINUED = "\nMore notes are on their way", "\nNew notes:\n"
"""Words that are only in the prompts of the first and of the second wave of a draft."""


def _draft_in_waves(turn: TranscriptTurn, prompt: str) -> str:
    """Return the sentences of the first draft whose notes are in the prompt.

    A turn may draft in two waves. The first says nothing if the notes of the first sentence are missing; in the second,
    only notes that are new to the prompt count.
    """
    text, first = "".join(turn.replies.get("draft", ())[:1]), CONTINUED not in prompt
    shown = {fingerprint(line) for _, line in _LINE.findall(prompt.rpartition(CONTINUED)[2])}
    sentences = [text[start:end] for start, end in sentence_spans(text)]
    shown_sentences = [sentence for sentence in sentences if (cited := {*_CITED.findall(sentence)}) and cited <= shown]
    if first and shown_sentences[:1] != sentences[:1]:
        return _DEFAULTS["draft"]
    return restore_reply(" ".join(shown_sentences), prompt) or _DEFAULTS["draft"]


def _say_bullets(turn: TranscriptTurn, prompt: str) -> str:
    shown = {fingerprint(line) for _, line in _LINE.findall(prompt)}
    cited = ((bullet, set(_CITED.findall(bullet))) for bullet in turn.bullets)
    bullets = [restore_reply(bullet, prompt) for bullet, lines in cited if lines and lines <= shown]
    return "\n".join(f"- {text.replace('][', ', ')}" for text in bullets) or "None"


def _say_verdicts(turn: TranscriptTurn, prompt: str) -> str:
    lines = _LINE.findall(prompt)
    rulings = [(number, *_rule(turn, claim, lines, prompt)) for number, claim in _CLAIM.findall(prompt)]
    return write_verdicts(rulings, prompt)


def _rule(turn: TranscriptTurn, claim: str, lines: Sequence[tuple[str, str]], prompt: str) -> tuple[str, str]:
    """Return the verdict on a claim, and the lines that decide it, by the turn's rulings or else by the labels."""
    verdict, named = turn.rulings.get(fingerprint(claim), ("", ""))
    cited = ", ".join(re.findall(r"\[(\d+)\]", restore_reply(named, prompt)))
    if verdict and (cited or verdict != Verdict.SUPPORTS):
        return verdict, cited
    if turn.labels.get(fingerprint(claim)) == "supported":
        return Verdict.SUPPORTS, _find_nearest_line(claim, lines)
    return Verdict.NOT_ENOUGH_INFO, ""


def _find_nearest_line(claim: str, lines: Sequence[tuple[str, str]]) -> str:
    terms = set(content_terms(claim))
    return max(lines, key=lambda line: len(terms & set(content_terms(line[1]))))[0]


@dataclass(frozen=True, slots=True)
class TurnOutcome:
    """The outcome of a turn that was replayed."""

    turn: TranscriptTurn
    status: Status
    said: tuple[tuple[str, str], ...]  # each sentence and its label; if it has none, "quoted" or "unknown"

    @property
    def answered(self) -> bool:
        return self.status is Status.ANSWERED

    def says(self, *labels: str) -> bool:
        return any(label in labels for _, label in self.said)

    @property
    def right(self) -> bool:
        """Return whether all sentences with the answer were said, or the answer's strings without a wrong sentence."""
        sentences, turn = [text for text, _ in self.said], self.turn
        has_held = bool(turn.held_by) and turn.held_by <= set(map(fingerprint, sentences))
        spelt = bool(turn.answer) and has_all_strings(turn.answer, " ".join(sentences))
        return has_held or (spelt and not self.says("planted", "unsupported"))


def judge_turn(turn: TranscriptTurn, done: TurnResult) -> TurnOutcome:
    passages = {citation.number: citation.passage_text for citation in done.answer.citations}
    sentences = []
    for sentence in done.answer.sentences:
        quoted = any(sentence.text in passages[number] for number in sentence.citations)
        sentences.append(
            (sentence.text, turn.labels.get(fingerprint(sentence.text), "quoted" if quoted else "unknown"))
        )
    return TurnOutcome(turn, done.answer.status, tuple(sentences))


def count_outcomes(outcomes: Sequence[TurnOutcome]) -> dict[str, tuple[int, int]]:
    """Return the count and the total for each measure. Only the last measure counts sentences without a label."""
    labels = [label for outcome in outcomes for _, label in outcome.said]
    known = [outcome for outcome in outcomes if outcome.turn.answerable]
    unknown = [outcome for outcome in outcomes if not outcome.turn.answerable]
    planted = [outcome for outcome in outcomes if outcome.turn.planted]
    true = labels.count("supported") + labels.count("quoted")
    lost = [outcome for outcome in known if outcome.answered and outcome.turn.held_by and not outcome.right]
    return {
        "said sentences that are supported": (true, len(labels) - labels.count("unknown")),
        "turns that say their planted detail": (sum(outcome.says("planted") for outcome in planted), len(planted)),
        "answerable and not answered": (sum(not outcome.answered for outcome in known), len(known)),
        "answered without the answer that the model gave": (len(lost), len(known)),
        "right main answers": (sum(outcome.right for outcome in known), len(known)),
        "unanswerable and abstained": (sum(not outcome.answered for outcome in unknown), len(unknown)),
        "sentences said that no reader has seen": (labels.count("unknown"), len(labels)),
    }


@dataclass(frozen=True)
class SelectedDocuments:
    """A source that lists only the documents with these keys."""

    source: DocumentSource
    keys: frozenset[str]

    @property
    def reference(self) -> bool:
        return self.source.reference

    def expected(self) -> int | None:
        return len(self.keys)

    def documents(self, known: Mapping[str, str], since: str = "") -> Listing:
        return Listing(document for document in self.source.documents(known, since) if document.key in self.keys)


def read_documents(path: Path) -> Exam:
    """Return the exam of a file, with only the documents that it needs. Raises `UnreadableSet`."""
    exam = read_exam(path)
    keys = json.loads(path.read_text(encoding="utf-8")).get("documents")
    return replace(exam, source=SelectedDocuments(exam.source, frozenset(keys))) if keys else exam


async def replay_file(path: Path, home: Path | None = None) -> list[TurnOutcome]:
    """Replay the conversations of a file over its documents. Raises `UnreadableSet`."""
    exam = read_documents(path)
    async with open_corpus(exam.source, exam.corpus, home and home / path.stem) as app:
        talks = [await _replay_talk(app, system, turns) for system, turns in read_transcripts(path)]
        return [outcome for talk in talks for outcome in talk]


async def _replay_talk(app: App, system: str, turns: Sequence[TranscriptTurn]) -> list[TurnOutcome]:
    outcomes, history = [], tuple[Turn, ...]()
    for turn in turns:
        request = TurnRequest(turn.question, TERMINAL, earlier=history, system=system)
        done = await answer(replace(app, llm=build_transcript_model(turn)), request, lambda _: None)
        outcomes.append(judge_turn(turn, done))
        history = extend_history(history, turn.question, done)
    return outcomes


def transcripts(
    files: Annotated[list[Path] | None, typer.Argument(help="Files of transcripts; default: our own.")] = None,
    listed: Annotated[bool, typer.Option("--list", help="List false, lost and unlabelled sentences.")] = False,
    home: Annotated[Path | None, typer.Option(help="Keep the indexes here, one folder for each file.")] = None,
) -> None:
    """Replay conversations whose model replies were written by hand, and count the sentences by their labels.

    Example: footnote evaluate transcripts evaluation/answers/questions/transcripts/example_handbook.json --list
    """
    outcomes = [outcome for path in files or [OWN_TRANSCRIPTS] for outcome in asyncio.run(replay_file(path, home))]
    rows = [(name, part, whole) for name, (part, whole) in count_outcomes(outcomes).items()]
    print(render_table(("measure", "", "of"), rows))
    for outcome in outcomes if listed else ():
        wrong = [f"{label}: {text}" for text, label in outcome.said if label in {"unsupported", "planted", "unknown"}]
        if (
            wrong
            or (outcome.turn.answerable and not outcome.right)
            or (outcome.answered and not outcome.turn.answerable)
        ):
            print(
                f"\n{outcome.turn.question} [{outcome.status}{', right' if outcome.right else ''}]", *wrong, sep="\n  "
            )
