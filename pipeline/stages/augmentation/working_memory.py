"""The immutable working memory of a turn: query and history, evidence, rated candidates, and decisions. Pure."""

from dataclasses import dataclass
from enum import Enum

from pipeline.errors import PipelineError
from pipeline.replies.cited_sentences import MarkedSentence
from pipeline.stages.findings import SourcedFinding, quote_passages
from pipeline.stages.turn_context import TurnContext
from storage.types import SearchQuery


class Act(Enum):
    """The acts that a policy may pick."""

    SELF_ASK = "ask the model whether the evidence is enough"
    ACQUIRE = "acquire evidence"
    DRAFT = "ask the model for a candidate"
    SEND = "send the best candidate, or abstain"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A reply over numbered notes, its utility from 0 to 1, and feedback in words."""

    sentences: tuple[MarkedSentence, ...]
    notes: tuple[SourcedFinding, ...]
    utility: float = 0.0
    feedback: str = ""  # empty if it is good enough
    let_out: bool | None = None  # whether the gate lets any of it out; None if unknown

    @property
    def passed(self) -> bool:
        return bool(self.sentences) and not self.feedback


@dataclass(frozen=True, slots=True)
class WorkingMemory:
    context: TurnContext  # the query, and the history before it
    evidence: tuple[SourcedFinding, ...]
    candidates: tuple[Candidate, ...] = ()  # in the order of their rounds
    consolidated: bool = False  # whether more evidence was acquired than the question's own hits
    explores: bool = False  # whether the policy's first decision is reversed, so that ratings can train it
    asked_itself: bool = False  # whether the model was asked if more is needed
    lacking: SearchQuery | None = None  # the model's query for missing evidence
    wants_facts: bool = True  # whether the user asks for facts
    fault: PipelineError | None = None  # the error that ended the loop

    @property
    def latest(self) -> Candidate | None:
        return self.candidates[-1] if self.candidates else None

    @property
    def repeats(self) -> bool:
        """Whether the last candidate is the same as an earlier one, so that the next prompt would repeat, too."""
        written = [(candidate.sentences, candidate.notes) for candidate in self.candidates]
        return bool(written) and written[-1] in written[:-1]

    @property
    def best(self) -> Candidate | None:
        """The last candidate with the highest utility among those that may pass the gate."""
        open_ones = [one for one in self.candidates if one.sentences and one.let_out is not False]
        return max(reversed(open_ones), key=lambda one: one.utility, default=None)


def open_memory(context: TurnContext, passages: int) -> WorkingMemory:
    """Return a turn's first memory, with the nearest passages as evidence."""
    return WorkingMemory(context, quote_passages(context.nearest[:passages]))
