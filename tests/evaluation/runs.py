"""A hand-written run of dialogues: its topic, turn, judgement and manifest."""

from evaluation.dialogues.dialogue_types import (
    CitationCounts,
    CorpusState,
    Dialogue,
    DialogueTurn,
    JudgedClaim,
    JudgedTurn,
    RepliedSentence,
    RunManifest,
    ShownPassage,
    Topic,
    TopicKind,
    TurnClaim,
)
from storage.types import Verdict

TOPIC = Topic("Pier", "The pier is old.", "handbook", TopicKind.HEAD, "pier.md")
DIALOGUE = Dialogue("fast/m/1", TOPIC, "fast", "m", "u")
TURN = DialogueTurn(
    "How long is it?", "It is 90 metres long.", "answered", seconds=2.0, cost=0.02, calls=4, bullets=3,
    sentences=(RepliedSentence("It is 90 metres long.", (1,)),),
    passages=(ShownPassage(1, "p", "handbook", "pier.md", "Pier", "The pier is 90 metres long."),),
    claims=(
        TurnClaim("It is 90 metres long.", "model", Verdict.SUPPORTS),
        TurnClaim("It is blue.", "model", Verdict.REFUTES),
    ),
)  # fmt: skip
JUDGED = JudgedTurn(
    (JudgedClaim("It is 90 metres long.", Verdict.SUPPORTS, ("p",), "It says so."),), relevant=5, temporally_correct=1,
    reasons={"relevant": "It answers."}, citations=CitationCounts(1, 1, 1, 1),
)  # fmt: skip
MANIFEST = RunManifest(
    id="r1", created="2026-03-01T10:00:00+00:00", commit="abc", version="0.1", python="3.11", prompts="p", settings="s",
    systems=("good", "model-alone"), models=("m",), simulator="u", judge="j",
    corpora=(CorpusState("handbook", 3, 9),), topics=(TOPIC,), turns=1, seed=5, today="2026-03-01", currency="USD",
    stand_ins=("the judge: a script",), deviations=("one turn",), options={"count": 3},
)  # fmt: skip
