"""The language model as the pipeline sees it: a call, its reply, and the protocol that adapters implement.

`model_client` is the adapter for servers that speak OpenAI's chat protocol; tests use scripted models.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Finish = Literal["stop", "length", "loop", "refusal", "filtered"]
"""How a reply ended; `loop`: it repeated itself, and was stopped."""
CUT = frozenset({"length", "loop"})  # endings of replies whose last item may be incomplete


@dataclass(frozen=True, slots=True)
class ChatMessage:
    role: Literal["system", "user", "assistant"]
    text: str


@dataclass(frozen=True, slots=True)
class ModelCall:
    stage: str  # the step of a system that makes the call; settings may name a model for it
    messages: tuple[ChatMessage, ...]
    schema: Mapping[str, Any] | None = None
    """A JSON schema (an object at its top) that the reply must fit; None for plain text."""
    max_tokens: int = 1_024  # how long the visible reply may be
    varied: bool = False  # whether repetition is penalised, after a reply that repeated itself without end
    shared: int = 0  # how many characters of the first message all calls share, whatever their stage
    note_lost: Callable[["ModelReply"], None] | None = field(default=None, compare=False)
    """Called with the partial reply and cost of each try that failed or was stopped before its end."""


@dataclass(frozen=True, slots=True)
class ModelReply:
    text: str
    model: str  # the model's name by the server, else as requested
    reasoning: str = ""
    finish: "Finish" = "stop"
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0  # how many of the prompt's tokens the server had in its cache
    estimated: bool = False  # whether the counts are our estimate because the server sent none
    cost: float | None = None  # in the price list's currency; None if no price is configured
    milliseconds: float = 0.0
    attempts: int = 1


@dataclass(frozen=True, slots=True)
class ReplyPiece:
    text: str


@dataclass(frozen=True, slots=True)
class Budget:
    calls: int = 60
    tokens: int = 120_000  # prompt and completion together
    seconds: float = 60.0


@dataclass(slots=True)
class BudgetMeter:
    """A turn's usage so far, its only mutable value. The adapter adds to it, and refuses calls beyond the budget."""

    budget: Budget = field(default_factory=Budget)
    calls: int = 0
    tokens: int = 0
    deadline: float | None = None  # on `time.monotonic()`; None if unlimited


class LLM(Protocol):
    """A language model behind a server.

    `complete` and `stream` raise:
        ModelUnavailable: no usable reply came, after retries; the message gives the reason and never contains a key.
        ModelRefused: the model, or a filter before it, declined.
        SchemaNotOffered: the server does not support the call's schema; ask again without. Such a call is not counted.
        PromptTooLong: the call does not fit the model's context window; ask again with less.
        BudgetExceeded: the turn's calls, tokens or seconds are used up.
    """

    def structured(self, stage: str) -> bool:
        """Return whether calls of a stage may include a schema, as far as known."""
        ...

    def busy(self) -> bool:
        """Return whether a call would have to wait for a free slot."""
        ...

    async def complete(self, call: ModelCall, spent: BudgetMeter) -> ModelReply: ...

    def stream(self, call: ModelCall, spent: BudgetMeter) -> AsyncIterator[ReplyPiece | ModelReply]:
        """Yield pieces as they arrive, and finally the whole reply. Closing the iterator ends the call."""
        ...
