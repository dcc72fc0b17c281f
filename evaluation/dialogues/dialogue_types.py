"""Values of an evaluation by dialogues: topics, turns, judgements, the run's manifest."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from storage.types import Verdict


class TopicKind(StrEnum):
    """How well known a topic is, or that a user named it."""

    HEAD = "head"
    TAIL = "tail"
    RECENT = "recent"
    GIVEN = "given"


@dataclass(frozen=True, slots=True)
class Topic:
    """The subject of a simulated user, with everything that the user knows about it."""

    title: str
    first_sentence: str
    corpus: str
    kind: TopicKind
    document: str = ""  # its key in the corpus; empty if the topic has none


@dataclass(frozen=True, slots=True)
class RepliedSentence:
    text: str
    citations: tuple[int, ...] = ()  # numbers of `DialogueTurn.passages`; none in an unchecked reply


@dataclass(frozen=True, slots=True)
class ShownPassage:
    """A passage that a reply cites."""

    number: int
    id: str
    corpus: str
    document: str
    title: str
    text: str
    quote: str = ""


@dataclass(frozen=True, slots=True)
class TurnClaim:
    """A claim that the system itself checked for its reply."""

    text: str
    origin: Literal["model", "retrieved", "user"]
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class DialogueTurn:
    """The user's message, the system's reply, and its cost."""

    user: str
    reply: str  # as people read it, also of an abstention
    status: str  # of `pipeline.types.Status`
    sentences: tuple[RepliedSentence, ...] = ()
    passages: tuple[ShownPassage, ...] = ()  # those that the sentences cite
    knowledge: tuple[str, ...] = ()  # texts of all passages found for the turn, sorted
    claims: tuple[TurnClaim, ...] = ()  # sorted: concurrent checks end in any order
    withheld: int = 0  # sentences that the gate stopped, also those whose passage was quoted instead
    bullets: int = 0  # statements that were extracted from passages
    draft: str = ""  # the reply before its refinement; empty without one
    candidates: int = 0  # drafts until one was good enough
    calls: int = 0
    rounds: int = 0  # calls one after another, by the clock
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None  # in the price list's currency; None if a call has no price
    seconds: float = 0.0
    first_sentence_seconds: float | None = None  # None without a sentence
    from_cache: int = 0  # model calls answered by the cache: the seconds are not those of a server
    failure: str = ""  # why the turn failed or was refused


@dataclass(frozen=True, slots=True)
class Dialogue:
    id: str
    topic: Topic
    system: str  # with its variant, such as `augmenter:policy=always`
    model: str
    simulator: str
    turns: tuple[DialogueTurn, ...] = ()


@dataclass(frozen=True, slots=True)
class JudgedClaim:
    """A claim from a reply, judged against passages of the corpora."""

    text: str
    verdict: Verdict
    evidence: tuple[str, ...] = ()  # ids of the passages that it was compared with, nearest first
    reasoning: str = ""
    passages: tuple[str, ...] = ()  # their titles and texts, for people who judge the claim again


@dataclass(frozen=True, slots=True)
class CitationCounts:
    """Sentences and citations of a reply, counted for precision and recall."""

    sentences: int = 0  # those that state something
    supported: int = 0  # those that their citations, read together, support
    citations: int = 0
    needed: int = 0  # citations that support alone, or without which the others do not support


@dataclass(frozen=True, slots=True)
class JudgedTurn:
    claims: tuple[JudgedClaim, ...] = ()
    relevant: int | None = None  # these from 1 to 5; None if not judged
    informational: int | None = None
    natural: int | None = None
    non_repetitive: int | None = None
    temporally_correct: int | None = None  # 0 or 1
    reasons: Mapping[str, str] = field(default_factory=dict)  # by the name of the scale
    draft_scores: Mapping[str, int] = field(default_factory=dict)
    """The grades of the reply before its refinement; empty if it was not refined."""
    citations: CitationCounts = CitationCounts()
    abstained: bool = False
    answerable: bool | None = None  # whether passages of the corpora answer the user; None if not judged
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    failure: str = ""  # which judgements failed, and why


@dataclass(frozen=True, slots=True)
class CorpusState:
    name: str
    documents: int
    passages: int
    edition: str = ""
    generation: int = 0
    digest: str = ""  # of the keys and revisions of its documents


@dataclass(frozen=True, slots=True)
class RunManifest:
    """All inputs of a run's figures, so that they can be reproduced."""

    id: str
    created: str
    commit: str
    version: str
    python: str
    prompts: str  # digests
    settings: str
    systems: tuple[str, ...]
    models: tuple[str, ...]
    simulator: str
    judge: str
    corpora: tuple[CorpusState, ...]
    topics: tuple[Topic, ...]
    turns: int
    seed: int
    today: str  # the date in the prompts of all turns
    dialogues: int = 0  # how many are planned; 0 in runs of earlier versions
    currency: str = ""
    stand_ins: tuple[str, ...] = ()  # which models are replaced by rules, in words
    deviations: tuple[str, ...] = ()  # from the papers' procedures, in words
    versions: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
