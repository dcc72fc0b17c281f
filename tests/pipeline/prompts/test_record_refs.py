"""How a step's facts are recorded."""

import json

from pipeline.prompts.prompter import reference_facts
from pipeline.replies.stage_replies import CriterionScore, Feedback
from pipeline.stages.findings import SourcedFinding, collect_sentences
from pipeline.types import Conversation, Turn
from tests.pipeline.world import NOW, hit

BELL = hit("The bell was cast in 1887. It rings.", key="bell.md")


def test_recorded_values_become_references() -> None:
    sentences = collect_sentences([BELL])

    assert reference_facts(BELL) == reference_facts(BELL.passage) == "bell.md#0"
    assert reference_facts(sentences) == ["bell.md#0:0-26", "bell.md#0:27-36"]
    assert reference_facts(Conversation((Turn("user", "Hi"), Turn("user", "Ho")))) == 2


def test_finding_is_recorded_with_its_text() -> None:
    finding = SourcedFinding("Cast in 1887.", collect_sentences([BELL])[:1])

    assert reference_facts((finding,)) == [{"text": "Cast in 1887.", "evidence": ["bell.md#0:0-26"]}]


def test_other_facts_are_recorded_as_plain_json() -> None:
    fact = {
        "feedback": Feedback((CriterionScore("natural", "Fine.", 90),)),
        "n": [1, None, True, 0.5],
        "at": NOW,
        3: {"a"},
    }

    assert json.loads(json.dumps(reference_facts(fact))) == {
        "feedback": {"points": [{"criterion": "natural", "remark": "Fine.", "score": 90}]},
        "n": [1, None, True, 0.5],
        "at": str(NOW),
        "3": "{'a'}",
    }
