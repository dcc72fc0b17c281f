"""The language model as the pipeline knows it: a call, its reply, and the protocol that an adapter keeps.

`pipeline.llm` is the adapter for servers that speak OpenAI's chat protocol; tests hand in scripted models.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol


@dataclass(frozen=True, slots=True)
class ChatMessage:
    role: Literal["system", "user", "assistant"]
    text: str


@dataclass(frozen=True, slots=True)
class ModelCall:
    stage: str  # which step of a system asks; settings may name a model for it
    messages: tuple[ChatMessage, ...]
    schema: Mapping[str, Any] | None = None
    """A JSON schema (an object at its top) that the reply must fit; None for plain text."""
    max_tokens: int = 1_024  # how long the visible reply may be
    shared: int = 0  # so many characters of the first message are those of every call, whatever its stage
    note_lost: Callable[["ModelReply"], None] | None = field(default=None, compare=False)
    """Told what each try came to, and took, that gave no whole reply: it failed, or was stopped before its end."""


@dataclass(frozen=True, slots=True)
class ModelReply:
    text: str
    model: str  # the model's name as the server gave it, else as it was asked for
    reasoning: str = ""
    finish: Literal["stop", "length", "refusal", "filtered"] = "stop"
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0  # how many of the prompt's tokens the server had in its cache
    estimated: bool = False  # whether the counts are our estimate, as the server gave none
    cost: float | None = None  # in the price list's currency; None where no price is configured
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
    """What a turn has used so far. The one mutable value of a turn: the adapter adds to it, and refuses beyond it."""

    budget: Budget = field(default_factory=Budget)
    calls: int = 0
    tokens: int = 0
    deadline: float | None = None  # on `time.monotonic()`; None for a turn without an end


class LLM(Protocol):
    """A language model behind a server.

    Both ways to ask raise:
        ModelUnavailable: no usable reply came, after retries; the message says why, never with a key in it.
        ModelRefused: the model, or a filter before it, declined.
        SchemaNotOffered: the call has a schema and this server cannot keep one; ask again without. Never counted.
        PromptTooLong: the call does not fit the model's context window; ask again with less.
        BudgetExceeded: the turn's calls, tokens or seconds are used up.
    """

    def structured(self, stage: str) -> bool:
        """Return whether calls of a stage may carry a schema, as far as is known now."""
        ...

    def busy(self) -> bool: ...

    async def complete(self, call: ModelCall, spent: BudgetMeter) -> ModelReply: ...

    def stream(self, call: ModelCall, spent: BudgetMeter) -> AsyncIterator[ReplyPiece | ModelReply]:
        """Yield pieces as they arrive, and last the whole reply. Closing the iterator ends the call."""
        ...
