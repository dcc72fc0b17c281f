"""A scripted language model, with fixed replies for one question over the example handbook.

It reads a prompt only to find the numbers of the sentences that it cites. If they are missing, the handbook was edited,
and it fails rather than reply something wrong.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from evaluation.simulated_model.scripted_llm import ScriptedLLM, script_stages
from storage.types import Verdict

LABEL = "scripted model: no key configured"
"""Also its name, so that every recorded call shows who replied."""
QUESTION = "What may I spend on a night away on a business trip?"

HOTEL = "A hotel may cost up to 140 euros a night, except in Bergen and Oslo, where the limit is 190 euros."
BREAKFAST = "Breakfast is part of the price."
FRIENDS = "Private rooms with friends or family are welcome: you receive 30 euros a night to spend on your hosts."
"""Three sentences of the handbook."""


class HandbookChanged(Exception):
    """The script does not fit the found passages."""


@dataclass(frozen=True, slots=True)
class Judged:
    """The scripted verdict on a claim."""

    verdict: Verdict
    reasoning: str
    by: str = ""
    """The sentence that decides the claim."""
    silent_on: str = ""
    """The word that no sentence contains, if none decides the claim."""


SUPPORTED = "For a private room with friends or family you receive 30 euros a night to spend on your hosts."
REFUTED = "A hotel on a business trip may cost up to 120 euros a night."
UNKNOWN = "Loyalty points of hotels belong to the traveller."
CLAIMS: Mapping[str, Judged] = MappingProxyType({
    SUPPORTED: Judged(Verdict.SUPPORTS, "A sentence gives the same sum for the same rooms.", by=FRIENDS),
    REFUTED: Judged(Verdict.REFUTES, "The limit is 140 euros, and 190 in Bergen and Oslo, not 120.", by=HOTEL),
    UNKNOWN: Judged(Verdict.NOT_ENOUGH_INFO, "No sentence speaks of loyalty points.", silent_on="oyalty"),
})  # fmt: skip
"""The model's own claims, with their verdicts."""


def _query(_: str) -> str:
    return "Search: yes\nQuery: cost of a hotel a night on business trips\nTime: recent"


def _summary(prompt: str) -> str:
    found = [f"- {text} [{number}]" for text in (HOTEL, BREAKFAST) if (number := _number(text, prompt))]
    return "\n".join(found) or "None"


def _generated(_: str) -> str:
    return " ".join(CLAIMS)


def _claims(_: str) -> str:
    return "\n".join(f"- {claim} | recent" for claim in CLAIMS)


def _verdict(prompt: str) -> str:
    sentences, *claims = re.split(r"^Claim(?: \d+)?: ", prompt, flags=re.MULTILINE)
    judged = [_judge(claim.strip(), sentences) for claim in claims]
    numbers = [_cited(scripted.by, prompt) if scripted.by else "" for scripted in judged]
    if f"Claim {len(claims)}: " not in prompt:
        look = f"Sentences: {numbers[0] or '-'}\nWho: {judged[0].by or '-'}"
        return f"{look}\nReasoning: {judged[0].reasoning}\nVerdict: {judged[0].verdict}"
    return "\n".join(
        f"{place}. [{number}] who: {scripted.by}; if: -; {scripted.verdict}"
        for place, (scripted, number) in enumerate(zip(judged, numbers, strict=True), start=1)
    )


def _judge(claim: str, sentences: str) -> Judged:
    if claim not in CLAIMS:
        raise HandbookChanged(f"no verdict is written for “{claim}”")
    judged = CLAIMS[claim]
    if judged.silent_on and judged.silent_on in sentences:
        raise HandbookChanged(f"something is found about “{claim}”")
    return judged


def _draft(prompt: str) -> str:
    return " ".join(f"{text[:-1]} [{_cited(text, prompt)}]." for text in (HOTEL, BREAKFAST, SUPPORTED))


def _refined(prompt: str) -> str:
    """Return feedback on the draft or, if the prompt has it, the draft without the criticised sentence."""
    if "Feedback:" not in prompt:
        return (
            "Relevant: The question is not about breakfast. 70/100\nNatural: It reads well. 100/100\n"
            "Non-repetitive: Nothing is said twice. 100/100\nTemporally correct: It speaks of today. 100/100"
        )
    draft = next(line for line in prompt.splitlines() if line.startswith(HOTEL[:-1]))
    return re.sub(rf"{BREAKFAST[:-1]} \[\d+\]\. ", "", draft)


_REPLIES: Mapping[str, Callable[[str], str]] = MappingProxyType({
    "query": _query,
    "summarise": _summary,
    "generate": _generated,
    "split": _claims,
    "verify": _verdict,
    "draft": _draft,
    "refine": _refined,
})  # fmt: skip


def build_scripted_model() -> ScriptedLLM:
    """Return the `LLM`, which replies in the text format. Its replies raise `HandbookChanged`."""
    return script_stages(LABEL, _REPLIES)


def _cited(text: str, prompt: str) -> str:
    number = _number(text, prompt)
    if not number:
        raise HandbookChanged(f"no passage says “{text}”")
    return number


def _number(text: str, prompt: str) -> str:
    """Return the number of a sentence (`3: …`) or of a note (`[3] …`); empty if the prompt lacks it."""
    found = re.search(rf"^\[?(\d+)[\]:] {re.escape(text)}", prompt, re.MULTILINE)
    return found[1] if found else ""
