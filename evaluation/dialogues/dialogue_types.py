"""Types of an evaluation in dialogues: topics, turns, judgements, and the manifest of a run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from storage.types import SearchQuery, Verdict


class TopicKind(StrEnum):
    """The kind of a topic."""

    HEAD = "head"  # well known
    TAIL = "tail"  # little known
    RECENT = "recent"
    GIVEN = "given"  # listed by the person who started the run


@dataclass(frozen=True, slots=True)
class Topic:
    """The topic of a dialogue, with everything that the simulated user knows about it."""

    title: str
    first_sentence: str
    corpus: str
    kind: TopicKind
    document: str = ""  # its key in the corpus; empty if the topic has none


@dataclass(frozen=True, slots=True)
class RepliedSentence:
    text: str
    citations: tuple[int, ...] = ()  # numbers of `DialogueTurn.passages`; an unchecked reply has no citations


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
    """A claim that the system checked for its reply."""

    text: str
    origin: Literal["model", "retrieved", "user"]
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class DialogueTurn:
    """The user's message, the system's reply, and the cost of the reply."""

    user: str
    reply: str  # as people read it; an abstention has a text, too
    status: str  # a value of `pipeline.types.Status`, or `unchecked`
    sentences: tuple[RepliedSentence, ...] = ()
    passages: tuple[ShownPassage, ...] = ()  # those that the sentences cite
    knowledge: tuple[str, ...] = ()  # texts of all passages found for the turn, sorted
    claims: tuple[TurnClaim, ...] = ()  # sorted: concurrent checks end in any order
    withheld: int = 0  # sentences that the gate stopped, including those replaced by quotations
    bullets: int = 0  # statements extracted from passages
    draft: str = ""  # before its refinement; empty if the system refines none
    refined: str = ""  # the draft after its refinement, before the gate; the draft if it was good
    candidates: int = 0  # how many drafts were written
    calls: int = 0
    rounds: int = 0  # consecutive calls; concurrent ones count once
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None  # in the price list's currency; None if a call has no price
    seconds: float = 0.0
    first_sentence_seconds: float | None = None  # None without a sentence
    from_cache: int = 0  # model calls answered by the cache, which make the seconds meaningless
    failure: str = ""  # why the turn failed or was refused
    query: SearchQuery | None = None


@dataclass(frozen=True, slots=True)
class Dialogue:
    """A conversation of a simulated user with a system."""

    id: str
    topic: Topic
    system: str  # with its variant, such as `augmenter:policy=always`
    model: str
    simulator: str
    turns: tuple[DialogueTurn, ...] = ()


@dataclass(frozen=True, slots=True)
class JudgedClaim:
    """A claim from a reply, with a verdict from comparing it with passages of the corpora."""

    text: str
    verdict: Verdict
    evidence: tuple[str, ...] = ()  # ids of the passages that it was compared with, nearest first
    reasoning: str = ""
    passages: tuple[str, ...] = ()  # their titles and texts, for people who also judge the claim
    people: Verdict | None = None  # by a vote of people; not stored with the judgement


@dataclass(frozen=True, slots=True)
class CitationCounts:
    """Counts of the sentences and citations of a reply, for precision and recall."""

    sentences: int = 0
    supported: int = 0  # sentences that their citations together support
    citations: int = 0
    needed: int = 0  # citations that support their sentence alone, or without which the others do not


@dataclass(frozen=True, slots=True)
class JudgedTurn:
    """The judgement of a turn."""

    claims: tuple[JudgedClaim, ...] = ()
    relevant: int | None = None  # this and the next three are from 1 to 5; None if not judged
    informational: int | None = None
    natural: int | None = None
    non_repetitive: int | None = None
    temporally_correct: int | None = None  # 0 or 1
    reasons: Mapping[str, str] = field(default_factory=dict)  # by the name of the scale
    draft_scores: Mapping[str, int] = field(default_factory=dict)  # of the draft before its refinement
    refined_scores: Mapping[str, int] = field(default_factory=dict)  # of the draft after it
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
    """All inputs of a run, so that its figures can be reproduced."""

    id: str
    created: str
    commit: str
    version: str
    python: str
    prompts: str  # a digest
    settings: str  # a digest
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
    stand_ins: tuple[str, ...] = ()  # a description of each model that is replaced by rules
    deviations: tuple[str, ...] = ()  # descriptions of deviations from the papers' procedures
    versions: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
