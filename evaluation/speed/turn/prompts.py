"""What turns send: how much of each prompt stood in one before, and which passages are sent more than once. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from evaluation.speed.model.counting import flat, tokens
from evaluation.speed.turn.tracing import Step
from pipeline.spans import quotable_spans
from storage.types import Passage


@dataclass(frozen=True, slots=True)
class Sent:
    """Prompt tokens of one stage in one turn, and how many of them a server may have in its cache."""

    calls: int
    tokens: int
    stable: int
    """From the beginning of each prompt, the same characters as in a call before."""


def prompt_of(step: Step) -> str:
    """Return the prompt of a call as the one text that a server reads."""
    return flat({"role": message.role, "content": message.text} for message in step.messages)


def stable_prefixes(earlier: Iterable[str], calls: Sequence[Step]) -> Mapping[str, Sent]:
    """Return what each stage of a turn sent.

    Args:
        earlier: Prompts of turns before, with other questions.
        calls: The calls of the turn, in the order in which they began; each may find itself in those before it.
    """
    before, found = list(earlier), dict[str, Sent]()
    for call in calls:
        prompt = prompt_of(call)
        same = max((_shared(prompt, one) for one in before), default=0)
        one, size = found.get(call.name, Sent(0, 0, 0)), tokens(prompt)
        stable = min(tokens("x" * same) if same else 0, size)
        found[call.name] = Sent(one.calls + 1, one.tokens + size, one.stable + stable)
        before.append(prompt)
    return found


def sent_again(calls: Sequence[Step], passages: Iterable[Passage], rounds: Sequence[int]) -> int:
    """Return how many passages are sent in more than one call of a round, once for each call beyond the first.

    A passage is sent where all of its sentences stand in the last message.

    Args:
        calls: The calls of a turn.
        passages: All that it found.
        rounds: In which round each call was made.
    """
    sentences = {one.id: [_plain(one.text[start:end]) for start, end in quotable_spans(one)] for one in passages}
    times: Mapping[int, Counter[str]] = defaultdict(Counter)
    for call, place in zip(calls, rounds, strict=True):
        said = _plain(call.messages[-1].text)
        times[place].update(name for name, all_of in sentences.items() if all_of and all(one in said for one in all_of))
    return sum(count - 1 for counted in times.values() for count in counted.values())


def _shared(one: str, other: str) -> int:
    """Return how many characters two texts begin with that are the same."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low


def _plain(text: str) -> str:
    return " ".join(text.split())
