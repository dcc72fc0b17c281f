"""Turn demonstrations into worked examples of single calls, with their notes as text or as triples.

Our own demonstrations are in `demonstrations.json`, with invented facts. Like any quoted text, a demonstration is
enclosed in delimiters on separate lines. It is never evidence, as the gate accepts only passages found in the turn. If
settings say so, a triple of subject, predicate and object replaces a note; only plain English sentences become triples.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from importlib import resources
from itertools import zip_longest
from types import MappingProxyType
from typing import Any

from pipeline.stages.findings import SourcedFinding
from pipeline.support.analysis.parsed_sentence import parse_sentence
from pipeline.support.verdict_look import LOOK_FIELDS, parse_look
from pipeline.types import Conversation, DemoClaim, DemoNote, Demonstration, Turn
from storage.language.detection import english_name
from storage.types import Document, Evidence, Passage, Verdict

MAX_DEMO_CHARACTERS = 6_000  # of all demonstrations before one call: about 1,500 tokens
OWN_DAY = date(2025, 3, 3)


@dataclass(frozen=True, slots=True)
class WorkedExample:
    facts: Mapping[str, Any]
    reply: Any


def fit_demo(template: str, demo: Demonstration) -> WorkedExample | None:
    """Return a demonstration as a worked example of this template's calls; None if it cannot be one. Pure."""
    build = _BUILDERS.get(template)
    return build(demo) if build else None


def select_demos(template: str, demos: Sequence[Demonstration]) -> tuple[Demonstration, ...]:
    """Return those demonstrations in the first `MAX_DEMO_CHARACTERS` of all that fit this template. Pure."""
    left, fitting = MAX_DEMO_CHARACTERS, list[Demonstration]()
    for demo in demos:
        left -= len(demo.searched) + len(demo.answer)
        if left >= 0 and fit_demo(template, demo):
            fitting.append(demo)
    return tuple(fitting)


def write_triples(facts: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a call's facts, with the plain sentences among its notes written as triples. Pure."""
    notes = [replace(finding, text=write_as_triple(finding.text)) for finding in facts.get("findings", ())]
    return {**facts, "findings": tuple(notes)} if notes else facts


def _build_query(demo: Demonstration) -> WorkedExample | None:
    if not demo.query:
        return None
    reply = {"search": True, "query": demo.query, "time": demo.time}
    return WorkedExample({"talk": _build_talk(demo), "reading": ""}, reply)


def _build_draft(demo: Demonstration) -> WorkedExample | None:
    if not demo.answer:
        return None
    findings = tuple(SourcedFinding(sentence.text, (sentence,)) for sentence in _build_sentences(demo))
    return WorkedExample(
        {"talk": _build_talk(demo), "findings": findings, "language": english_name(demo.language)}, demo.answer
    )


def _build_verdicts(demo: Demonstration) -> WorkedExample | None:
    if not demo.claims:
        return None
    claims, reply = demo.claims, list[dict[str, Any]]()
    for claim in claims:
        cited = " ".join(demo.notes[number - 1].text for number in claim.notes)
        look = dict(zip_longest(LOOK_FIELDS, parse_look(claim.reason) or (cited,), fillvalue=""))
        reply.append({"sentences": list(claim.notes), **look, "verdict": claim.verdict.value})
    facts = {
        "talk": _build_talk(demo),
        "sentences": _build_sentences(demo),
        "claims": tuple(claim.text for claim in claims),
    }
    return WorkedExample(facts, reply)


_BUILDERS: Mapping[str, Callable[[Demonstration], WorkedExample | None]] = MappingProxyType(
    {"query": _build_query, "draft": _build_draft, "answer": _build_draft, "verdicts": _build_verdicts}
)  # by template


def _build_talk(demo: Demonstration) -> Conversation:
    return Conversation(tuple(Turn(speaker, text) for speaker, text in demo.turns))


def _build_sentences(demo: Demonstration) -> tuple[Evidence, ...]:
    made = []
    for place, note in enumerate(demo.notes):
        document = Document("example", str(place), note.title, date=note.date, language=note.language)
        passage = Passage(f"example-{place}", "example", str(place), note.section, note.text, 0, "")
        made.append(Evidence(note.text, passage, document, (0, len(note.text))))
    return tuple(made)


@cache
def load_own_demos() -> tuple[Demonstration, ...]:
    raw = json.loads(resources.files("pipeline.prompts").joinpath("demonstrations.json").read_text(encoding="utf-8"))
    return tuple(map(_read_own_demo, raw))


def _read_own_demo(raw: Mapping[str, Any]) -> Demonstration:
    claims = [DemoClaim(text, Verdict(verdict), tuple(notes), reason) for text, verdict, notes, reason in raw["claims"]]
    return Demonstration(
        raw["id"],
        tuple(("user" if speaker == "user" else "bot", text) for speaker, text in raw["turns"]),
        OWN_DAY,
        tuple(DemoNote(text, title, section) for title, section, text in raw["notes"]),
        raw["answer"],
        tuple(claims),
        raw["query"],
        raw.get("time", "none"),
        raw["language"],
    )


_MAX_SUBJECT = 8  # words before the predicate of a plain sentence


@cache
def _load_words(kind: str) -> frozenset[str]:
    file = resources.files("pipeline.prompts").joinpath("predicates.json")
    return frozenset(json.loads(file.read_text(encoding="utf-8"))[kind].split())


def find_triple(text: str) -> tuple[str, str, str] | None:
    """Return a sentence's subject, predicate (which starts at the first verb) and object; None if it is not plain."""
    tokens = parse_sentence(text, "en").text
    low, modals, being = tokens.low, _load_words("modals"), _load_words("being")
    verbs = modals | being | _load_words("verbs")
    first = next((place for place, word in enumerate(low) if word in verbs), 0)
    if not 0 < first <= _MAX_SUBJECT or any(not word[0].isalnum() for word in low[:first]):
        return None
    end, follows = first + 1, being | _load_words("adverbs") | _load_words("participles")
    while low[first] in modals | being and end < len(low):
        if not (low[end] in follows or low[end].endswith("ed") or low[end - 1] in modals):
            break
        end += 1
    end += end > first + 1 and tokens.at(end) in _load_words("prepositions")
    last = len(low)
    while last > end and not low[last - 1][0].isalnum():
        last -= 1
    if end >= last or not low[end][0].isalnum():
        return None
    return tokens.said(0, first), tokens.said(first, end), tokens.said(end, last)


def write_as_triple(text: str) -> str:
    """Return a sentence as "(subject, predicate, object)", or unchanged if it is not plain."""
    triple = find_triple(text)
    return f"({', '.join(triple)})" if triple else text


def write_demo_triples(demo: Demonstration) -> Demonstration:
    """Return a worked example with the plain sentences of its notes as triples."""
    notes = tuple(replace(note, text=write_as_triple(note.text)) for note in demo.notes)
    return replace(demo, notes=notes, triples=True)
