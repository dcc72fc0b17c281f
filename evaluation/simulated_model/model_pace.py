"""Set the pace of a simulated model: rates, faults, lengths of replies, token counts, and the prompt cache.

Each token is due at a fixed time after the token before it, even if this process wakes up late.
"""

import json
import math
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class ReplyLength:
    """The length of one kind of reply: tokens per item, and the number of items if the prompt does not set it."""

    tokens: int
    items: int = 1


@dataclass(frozen=True, slots=True)
class ServerPace:
    """The speed of the server. Rates are in tokens per second; `math.inf` means no limit."""

    first_token: float = 0.4  # seconds from a request to its first token, without the time to read the prompt
    out: float = 60.0  # of one reply
    prompt: float = 4_000.0  # of one prompt
    total_out: float = math.inf  # of all replies together
    total_prompt: float = math.inf  # of all prompts together
    concurrency: int = 0  # requests answered at once; others wait in their order. 0: all
    cache: bool = False  # whether the prefix that a prompt shares with an earlier prompt is read from a cache
    cached_cost: float = 0.0  # the time to read a cached token, as a share of the time for another token


@dataclass(frozen=True, slots=True)
class FaultRates:
    """The shares of requests that fail, for each kind of failure."""

    busy: float = 0.0
    broken: float = 0.0
    cut: float = 0.0  # started, but cut off half-way


@dataclass(frozen=True, slots=True)
class HabitRates:
    """Which share of replies is spoilt, and how."""

    loop: float = 0.0  # repeats itself without end
    cut: float = 0.0  # ends in the middle
    drift: float = 0.0  # is in German
    echo: float = 0.0  # repeats a worked example, or the last message


@dataclass(frozen=True, slots=True)
class SimulatedModel:
    pace: ServerPace = ServerPace()
    faults: FaultRates = FaultRates()
    lengths: Mapping[str, ReplyLength] = field(default_factory=dict)  # by kind, where it differs from the default
    habits: HabitRates = HabitRates()
    spread: float = 0.0  # the standard deviation of lengths, as a share of their mean
    seed: int = 1


def encode_simulation(simulated: SimulatedModel) -> str:
    """Return settings as text, from which `decode_simulation` restores them in another process."""
    return json.dumps(asdict(simulated))


def decode_simulation(text: str) -> SimulatedModel:
    document: dict[str, Any] = json.loads(text)
    lengths = {kind: ReplyLength(**length) for kind, length in document.pop("lengths").items()}
    habits = HabitRates(**document.pop("habits"))
    pace, faults = ServerPace(**document.pop("pace")), FaultRates(**document.pop("faults"))
    return SimulatedModel(pace, faults, lengths, habits, **document)


CHARACTERS_A_TOKEN = 4


def join_messages(messages: Iterable[Mapping[str, Any]]) -> str:
    """Return the messages of a prompt as the one text that a model reads."""
    return "".join(f"<{message['role']}>\n{message['content']}\n" for message in messages)


def count_tokens(text: str) -> int:
    return max(1, len(text) // CHARACTERS_A_TOKEN)


class RateMeter:
    """A rate that several users share: whoever requests first is served first."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._free = -math.inf

    def take(self, tokens: int, at: float) -> float:
        """Return when `tokens` requested at the time `at` have been served; at once if the rate has no limit."""
        if math.isinf(self._rate):
            return at
        self._free = max(self._free, at) + tokens / self._rate
        return self._free


class ReplyPacer:
    def __init__(self, pace: ServerPace) -> None:
        self._pace = pace
        self._out = RateMeter(pace.total_out)
        self._prompts = RateMeter(pace.total_prompt)

    def begins(self, prompt: int, cached: int, at: float) -> float:
        """Return when a reply starts. `prompt` and `cached` are numbers of tokens; `at` is the time of the request."""
        to_read = prompt - cached + cached * self._pace.cached_cost
        alone = at + to_read / self._pace.prompt
        return self._pace.first_token + max(alone, self._prompts.take(math.ceil(to_read), at))

    def ends(self, tokens: int, begins: float) -> Iterator[float]:
        """Yield when each token of a reply is due. Take the next time only after the token before was sent."""
        due = begins
        for _ in range(tokens):
            due = max(due + 1 / self._pace.out, self._out.take(1, due))
            yield due


BLOCK_TOKENS = 16
MOST_BLOCKS = 1_000_000


class PrefixCache:
    """The prefixes of earlier prompts, in blocks. The hash of a block covers all text up to the block's end."""

    def __init__(self, most: int = MOST_BLOCKS) -> None:
        self._most = most
        self._known: OrderedDict[int, None] = OrderedDict()

    def read(self, prompt: str) -> int:
        """Return how many tokens of a prompt's prefix are cached, in whole blocks. Then cache the whole prompt."""
        blocks = _hash_blocks(prompt)
        known = next((place for place, block in enumerate(blocks) if block not in self._known), len(blocks))
        for block in blocks:
            self._known[block] = None
            self._known.move_to_end(block)
        while len(self._known) > self._most:
            self._known.popitem(last=False)
        return known * BLOCK_TOKENS


def _hash_blocks(prompt: str) -> Sequence[int]:
    """Return a hash for each whole block of a prompt, computed from the block and all text before it."""
    size, made, before = BLOCK_TOKENS * CHARACTERS_A_TOKEN, list[int](), 0
    for at in range(0, len(prompt) - size + 1, size):
        before = hash((before, prompt[at : at + size]))
        made.append(before)
    return made
