"""Write a sentence as a triple of subject, predicate and object, where it is plainly built; pure.

A triple is what an example's knowledge is written as where settings say so. English sentences alone are read, by their
first auxiliary or everyday verb; what has none, or something before its subject, stays text.
"""

import json
from dataclasses import replace
from functools import cache
from importlib import resources

from pipeline.support.analysis.parsed_sentence import parse_sentence
from pipeline.types import Demonstration

_MAX_SUBJECT = 8  # words before the predicate: of more it is no plain sentence


@cache
def _load_words(kind: str) -> frozenset[str]:
    file = resources.files("pipeline.stages.examples").joinpath("predicates.json")
    return frozenset(json.loads(file.read_text(encoding="utf-8"))[kind].split())


def find_triple(text: str) -> tuple[str, str, str] | None:
    """Return subject, predicate and object of a sentence; None where they cannot be told."""
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
    """Return a sentence as "(subject, predicate, object)", or as it stands."""
    found = find_triple(text)
    return f"({', '.join(found)})" if found else text


def write_demo_triples(demo: Demonstration) -> Demonstration:
    """Return a worked example whose notes are triples, where they are plain sentences."""
    notes = tuple(replace(note, text=write_as_triple(note.text)) for note in demo.notes)
    return replace(demo, notes=notes, triples=True)
