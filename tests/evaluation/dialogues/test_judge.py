"""Replies are judged by claims, citations and style; a judge's replies are parsed strictly."""

from dataclasses import replace

import pytest

from evaluation.dialogues.dialogue_types import CitationCounts, DialogueTurn, RepliedSentence, ShownPassage
from evaluation.dialogues.judging.judge import JudgeCalls, judge_turn
from evaluation.dialogues.judging.judge_replies import ANSWERED, SCALES, grade_format
from evaluation.dialogues.models.stand_ins import open_rule_judge
from pipeline.errors import ModelUnavailable, UnreadableReply
from pipeline.llm.model import ChatMessage, ModelCall
from pipeline.support.verdict_look import Verification
from pipeline.types import Turn
from storage.types import Document, Hit, Passage, Verdict

HIT = Hit(
    Passage("p9", "town", "pier.md", "", "The pier is 90 metres long. It is old.", 0, ""), Document("", "", ""), 1
)
PASSAGES = tuple(
    ShownPassage(number, f"p{number}", "town", "pier.md", "Pier", text)
    for number, text in enumerate(("The pier is 90 metres long.", "The pier is old.", "Gulls cry."), start=1)
)


class FakeJudge:
    """Supports a claim if the sentences have all its words; grades and fails by a table."""

    def __init__(self, **replies):
        grades = dict.fromkeys(SCALES, "Reasoning: So.\nScore: 1")
        self.replies = {"answerable": True, "query": None, **grades, **replies}
        self.asked = []

    async def ask(self, template, form, *, stage, **facts):
        self.asked.append((stage, template))
        reply = self.replies.get(template)
        if isinstance(reply, Exception):
            raise reply
        if template == "split":
            claims = [claim for claim in facts["reply_text"].split(".") if claim.strip()]
            return form.from_text("\n".join(f"- {claim}. | none" for claim in claims))
        if template == "verify":
            words = set(" ".join(sentence.text for sentence in facts["sentences"]).lower().replace(".", "").split())
            supported = set(facts["claim"].lower().replace(".", "").split()) <= words
            return Verification(
                Verdict.SUPPORTS if supported else Verdict.NOT_ENOUGH_INFO, (1,) if supported else (), "Words."
            )
        return form.from_text(reply) if isinstance(reply, str) else reply


async def judge(turn, judged=None, hits=(HIT,), earlier=()):
    searched = []

    async def find(text, k):
        searched.append((text, k))
        return hits

    judged = judged or FakeJudge()
    return await judge_turn(earlier, turn, JudgeCalls(judged.ask, find, [])), searched


def reply(*sentences, status="answered"):
    text = " ".join(f"{sentence} {''.join(f'[{number}]' for number in cited)}".strip() for sentence, cited in sentences)
    return DialogueTurn("How long?", text, status, tuple(RepliedSentence(*each) for each in sentences), PASSAGES)


async def test_each_claim_is_compared_with_five_passages():
    judged, searched = await judge(reply(("The pier is 90 metres long.", (1,)), ("It is red.", (2,))))
    assert [(claim.text.strip(), claim.verdict, claim.evidence) for claim in judged.claims] == [
        ("The pier is 90 metres long.", Verdict.SUPPORTS, ("p9",)),
        ("It is red.", Verdict.NOT_ENOUGH_INFO, ("p9",)),
    ]
    assert [k for _, k in searched] == [5, 5]
    assert judged.relevant == judged.temporally_correct == 1
    assert judged.reasons["natural"] == "So."


@pytest.mark.parametrize(
    ("cited", "supported", "needed"),
    [
        ((1,), 1, 1),
        ((3,), 0, 0),
        ((), 0, 0),
        ((1, 3), 1, 1),  # the gulls add nothing
        ((1, 2), 1, 2),  # neither says all of it
        ((1, 2, 3), 1, 2),
    ],
)
async def test_citation_is_needed_if_the_others_do_not_support_the_sentence(cited, supported, needed):
    sentence = "The pier is 90 metres long." if 2 not in cited else "The pier is 90 metres old."
    judged, _ = await judge(reply((sentence, cited)))
    assert judged.citations == CitationCounts(1, supported, len(cited), needed)


@pytest.mark.parametrize("answered", [True, False])
async def test_abstention_is_judged_by_whether_a_page_answers(answered):
    judged, searched = await judge(
        DialogueTurn("How long?", "I do not know.", "abstained"), FakeJudge(answerable=answered)
    )
    assert (judged.abstained, judged.answerable, judged.claims) == (True, answered, ())
    assert searched == [("How long?", 5)]


async def test_without_passages_nothing_is_supported():
    judged, _ = await judge(DialogueTurn("How long?", "I do not know.", "abstained"), hits=())
    assert judged.answerable is False
    judged, _ = await judge(reply(("It is long.", (1,))), hits=())
    assert [claim.verdict for claim in judged.claims] == [Verdict.NOT_ENOUGH_INFO]


async def test_unusable_judgements_are_named():
    judge_of_none = FakeJudge(natural=UnreadableReply("no score"), split=UnreadableReply("no list"))
    judged, _ = await judge(reply(("The pier is old.", (2,))), judge_of_none)
    assert (judged.natural, judged.claims, judged.relevant) == (None, (), 1)
    assert judged.failure == "UnreadableReply: no list; UnreadableReply: no score"
    assert judged.citations.supported == 1


async def test_unreachable_judge_raises():
    with pytest.raises(ModelUnavailable):
        await judge(reply(("The pier is old.", (2,))), FakeJudge(natural=ModelUnavailable("gone")))


async def test_draft_its_refinement_and_the_reply_are_graded():
    """Texts that differ in their marks alone are graded once."""
    draft = replace(reply(("The pier is old.", (2,))), draft="The old pier [12].", refined="The pier is old [12].")
    judged_by = FakeJudge()
    judged, _ = await judge(draft, judged_by)
    assert judged.draft_scores == judged.refined_scores == dict.fromkeys(SCALES, 1)
    assert sum(stage == "grade" for stage, _ in judged_by.asked) == 2 * len(SCALES)
    await judge(replace(draft, refined="It is old."), judged_by)
    assert sum(stage == "grade" for stage, _ in judged_by.asked) == 5 * len(SCALES)
    plain, _ = await judge(replace(draft, draft="", refined=""))
    assert (plain.draft_scores, plain.refined_scores) == ({}, {})


async def test_failed_turn_is_not_judged():
    judged, searched = await judge(DialogueTurn("How long?", "Something went wrong.", "failed"))
    assert judged.failure
    assert (judged.relevant, searched) == (None, [])


async def test_model_alone_is_judged_by_claims_only():
    judged, _ = await judge(
        DialogueTurn("How long?", "The pier is 90 metres long.", "unchecked"), earlier=(Turn("user", "Hi"),)
    )
    assert judged.citations == CitationCounts()
    assert [claim.verdict for claim in judged.claims] == [Verdict.SUPPORTS]


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("Reasoning: Good.\nScore: 4", 4),
        ("Score: 5/5", 5),
        ("**Score:** 3 out of 5", 3),
        ("Reasoning: Score 2 would be too low.\nScore: 1", 1),
        *((text, None) for text in ("Score: 0", "Score: 6", "Score: 50/100", "It is good.", "Score: good", "")),
    ],
)
def test_grade_of_a_judge_reply_is_parsed_or_unreadable(text, score):
    if score is None:
        with pytest.raises(UnreadableReply):
            grade_format("relevant").from_text(text)
    else:
        assert grade_format("relevant").from_text(text).score == score


def test_time_is_graded_0_or_1():
    assert grade_format("temporally_correct").from_json({"reasoning": "", "score": 0}).score == 0
    with pytest.raises(UnreadableReply):
        grade_format("temporally_correct").from_json({"reasoning": "", "score": 2})


def test_answerable_reply_is_parsed():
    assert ANSWERED.from_text("Answered: yes") is True
    assert ANSWERED.from_text("Reasoning: .\n**Answered:** No.") is False
    with pytest.raises(UnreadableReply):
        ANSWERED.from_text("Perhaps")


async def test_rule_judge_drops_the_place_of_a_quotation():
    message = ChatMessage("user", "Chatbot: (Pier › Size) It is 90 metres long. [1]\nWhich facts does it state?")
    assert await open_rule_judge(None).write(ModelCall("split", (message,), None, 9)) == (
        "- It is 90 metres long. | none"
    )
