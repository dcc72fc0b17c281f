"""A scripted model that reads its prompt: it extracts sentences by patterns, and judges claims by shared words.

It knows no passage, so its replies are right only if retrieval, numbers and fences of the prompt are.
"""

import re
from collections.abc import Callable, Mapping

from pipeline.llm.model import ModelCall
from storage.language.words import content_terms
from tests.pipeline.scripted import Script

CRITERIA = ("Relevant", "Natural", "Non-repetitive", "Temporally correct")
PERFECT = "\n".join(f"{name}: As it should be. 100/100" for name in CRITERIA)
POOR = "\n".join(f"{name}: Could be said more plainly. 40/100" for name in CRITERIA)
Notes = Mapping[str, int]
"""The notes that a draft is made of, and their numbers."""


def reading(
    *wanted: str,
    query: str | Callable[[ModelCall], str],
    time: str = "none",
    knows: str = "I would have to look it up.",
    claims: tuple[str, ...] = (),
    writes: Callable[[Notes], str] | None = None,
    refines: Callable[[ModelCall], str] | None = None,
) -> Script:
    """Return the lines of a model that looks for sentences that match any of the patterns `wanted`.

    Args:
        wanted: Regular expressions.
        query: What it looks up, or how it finds out from the conversation.
        time: Of what time.
        knows: What it replies by itself.
        claims: The claims in that.
        writes: Its draft over the notes; None: all notes unchanged.
        refines: What it makes of its draft; None: nothing, as it finds nothing to make better.
    """
    return {
        "query": lambda call: f"Search: yes\nQuery: {query(call) if callable(query) else query}\nTime: {time}",
        "summarise": lambda call: _bullets(wanted, call),
        "generate": knows,
        "split": "\n".join(f"- {claim}" for claim in claims) or "Nothing",
        "verify": weighed,
        "draft": lambda call: (writes or copied)(notes(call)) or "NOTHING",
        "continuation": lambda call: (writes or copied)(notes(call)) or "NOTHING",
        "refine": lambda call: (refines(call) if "Feedback:" in turn_of(call) else POOR) if refines else PERFECT,
    }


def turn_of(call: ModelCall) -> str:
    return call.messages[-1].text


def sources(call: ModelCall) -> list[str]:
    return re.findall(r"^From: (.*)$", turn_of(call), re.MULTILINE)


def notes(call: ModelCall) -> Notes:
    shown = re.findall(r"^\[(\d+)\] (.*?)(?: \(from: .*\))?$", turn_of(call), re.MULTILINE)
    return {text: int(number) for number, text in reversed(shown)}


def number(pattern: str, found: Notes) -> int:
    return min(place for text, place in found.items() if re.search(pattern, text))


def copied(found: Notes) -> str:
    return " ".join(f"{text.rstrip('.')} [{place}]." for text, place in sorted(found.items(), key=lambda item: item[1]))


def weighed(call: ModelCall) -> str:
    """Verify claims by their words: supported where one sentence has them all, refuted where only numbers differ.

    A single claim gets its reasoning before the verdict; numbered claims get one line each.
    """
    numbered = re.findall(r"^Claim (\d+): (.*)$", turn_of(call), re.MULTILINE)
    if numbered:
        return "\n".join(_ruling(int(place), *_judged(claim, call)) for place, claim in numbered)
    verdict, best = _judged(re.findall(r"^Claim: (.*)$", turn_of(call), re.MULTILINE)[-1], call)
    return f"Reasoning: {_why(best)}\nSentences: {best or '-'}\nVerdict: {verdict}"


def _judged(claim: str, call: ModelCall) -> tuple[str, str]:
    """Return the verdict on a claim, and the number of the sentence that settles it."""
    terms, figures = _terms(claim), _figures(claim)
    shares = {
        place: len(terms & _terms(text)) / len(terms)
        for place, text in _numbered(call)
        if not figures or _figures(text)
    }
    best = max(shares, key=lambda place: shares[place], default="")
    if not best or shares[best] < 0.6:
        return "NOT ENOUGH INFO", ""
    said = _figures(dict(_numbered(call))[best])
    return "SUPPORTS" if figures <= said else "REFUTES", best


def _ruling(place: int, verdict: str, best: str) -> str:
    return f"{place}. {verdict}{f' [{best}]' if best else ''} {_why(best)}"


def _why(best: str) -> str:
    return f"Sentence {best} tells." if best else "No sentence speaks of it."


def _bullets(wanted: tuple[str, ...], call: ModelCall) -> str:
    found = [
        f"- {text} [{place}]" for place, text in _numbered(call) if any(re.search(pattern, text) for pattern in wanted)
    ]
    return "\n".join(found) or "None"


def _numbered(call: ModelCall) -> list[tuple[str, str]]:
    return re.findall(r"^(\d+): (.*)$", turn_of(call), re.MULTILINE)


def _terms(text: str) -> set[str]:
    return {term for term in content_terms(text) if not term.isdigit()}


def _figures(text: str) -> set[str]:
    return set(re.findall(r"\d+", text))
