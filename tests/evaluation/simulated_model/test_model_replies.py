"""The simulated model's replies: the parsers of the pipeline read them in both formats and at their set lengths."""

import json
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import pytest

from evaluation.simulated_model.model_pace import ReplyLength, SimulatedModel
from evaluation.simulated_model.model_replies import REPLY_LENGTHS, SimulatedReply, build_reply, detect_kind
from pipeline.prompts.prompt_templates import PromptMode, render_prompt
from pipeline.replies.reply_format import ReplyFormat, ReplySplitter
from pipeline.replies.stage_replies import (
    ClaimSplitter,
    DraftSplitter,
    bullets_format,
    claims_format,
    criticism_format,
    feedback_format,
    query_format,
)
from pipeline.replies.verdict_replies import VerdictSplitter, verification_format
from pipeline.stages.findings import SourcedFinding, collect_sentences
from pipeline.systems import SYSTEMS
from pipeline.types import Conversation, Turn
from storage.types import Verdict
from tests.pipeline.world import NOW, hit

TALK = Conversation((Turn("user", "Where is the bell of the quay?"), Turn("bot", "Here."), Turn("user", "Since when?")))
HITS = (hit("The bell was cast in 1887. It hangs on the quay."), hit("The quay is long.", key="q.md", title="Quay"))
SENTENCES = collect_sentences(HITS)
NOTES = tuple(SourcedFinding(sentence.text, (sentence,)) for sentence in SENTENCES)
DRAFT = "The bell was cast in 1887 [1]. It hangs on the quay [2]. The quay is long and made of old stone [3]."
FEEDBACK_OF_IT = feedback_format().from_text(
    "\n".join(f"{name}: So so. 50/100" for name in ("relevant", "natural", "non-repetitive", "temporally correct"))
)
FACTS: Mapping[str, Mapping[str, Any]] = {
    "query": {"talk": TALK, "reading": ""},
    "web_query": {"talk": TALK, "reading": ""},
    "summarise": {"query": "bell", "sentences": SENTENCES[:2]},
    "bullets": {"query": "bell", "sentences": SENTENCES},
    "generate": {"talk": TALK, "reading": ""},
    "claims": {"talk": TALK, "reading": ""},
    "split": {"talk": TALK, "reply_text": "Since 1887."},
    "verify": {"talk": TALK, "sentences": SENTENCES, "claim": "The bell was cast in 1887."},
    "verdicts": {"talk": TALK, "sentences": SENTENCES, "claims": ("It was cast in 1887.", "The quay is long.")},
    "draft": {"talk": TALK, "findings": NOTES, "language": ""},
    "answer": {"talk": TALK, "findings": NOTES, "language": "German"},
    "continuation": {"talk": TALK, "told": NOTES[:1], "begun": "It is a bell.", "findings": NOTES, "language": ""},
    "feedback": {"talk": TALK, "draft": DRAFT},
    "refine": {"talk": TALK, "draft": DRAFT, "feedback": FEEDBACK_OF_IT},
    "need": {"talk": TALK, "findings": NOTES, "reading": ""},
    "criticism": {"talk": TALK, "findings": NOTES, "draft": DRAFT},
}
SIMULATED = SimulatedModel()
KINDS = {"web_query": "query", "bullets": "summarise", "claims": "split", "answer": "draft"}
FORMS: Mapping[str, ReplyFormat[Any]] = {
    "query": query_format(),
    "web_query": query_format(),
    "summarise": bullets_format(2),
    "bullets": bullets_format(3),
    "split": claims_format(),
    "verify": verification_format(3, reasoned=True),
    "feedback": feedback_format(),
    "need": query_format(),
    "criticism": criticism_format(),
}
SPLITTERS: Mapping[str, Callable[[], ReplySplitter[Any]]] = {
    "claims": ClaimSplitter,
    "verdicts": lambda: VerdictSplitter(2, 3),
    "draft": lambda: DraftSplitter(3),
    "answer": lambda: DraftSplitter(3),
    "continuation": lambda: DraftSplitter(3),
    "refine": lambda: DraftSplitter(3),
}


def build_request(template: str, *, schema: bool = False) -> dict[str, Any]:
    prompt = render_prompt(template, FACTS[template], PromptMode(structured=schema), NOW, Random(1))
    body = {
        "model": "any",
        "messages": [{"role": message.role, "content": message.text} for message in prompt.messages],
    }
    if not schema:
        return body
    return body | {"response_format": {"type": "json_schema", "json_schema": {"schema": FORMS[template].schema}}}


def reply_to(template: str, simulated: SimulatedModel = SIMULATED, *, schema: bool = False) -> SimulatedReply:
    return build_reply(build_request(template, schema=schema), simulated)


@pytest.mark.parametrize("template", FACTS)
def test_every_prompt_is_recognised(template: str) -> None:
    assert detect_kind(build_request(template)) == KINDS.get(template, template)


def test_every_call_of_a_system_has_sample_facts() -> None:
    assert {call for entry in SYSTEMS.values() for call in entry.calls} <= {*FACTS}


@pytest.mark.parametrize("schema", [False, True])
@pytest.mark.parametrize("template", FORMS)
def test_replies_are_parsed_as_text_and_json(template: str, schema: bool) -> None:  # noqa: FBT001 - a parameter of the test
    form, text = FORMS[template], reply_to(template, schema=schema).text

    parsed = form.from_json(json.loads(text)) if schema else form.from_text(text)

    assert parsed == form.from_text(reply_to(template).text)
    assert parsed


@pytest.mark.parametrize("template", SPLITTERS)
def test_streamed_replies_are_parsed_piecewise(template: str) -> None:
    splitter, reply = SPLITTERS[template](), reply_to(template)

    early = [value for piece in reply.pieces() for value in splitter.feed(piece)]

    assert early
    assert len([*early, *splitter.close()]) > 1


def test_simulated_replies_follow_the_prompt() -> None:
    claims = claims_format().from_text(reply_to("claims").text)
    verdict = FORMS["verify"].from_text(reply_to("verify").text)

    assert query_format().from_text(reply_to("query").text).text == "Since"
    assert [item.text for item in FORMS["bullets"].from_text(reply_to("bullets").text)] == [
        "The bell was cast in 1887.", "It hangs on the quay.", "The quay is long."
    ]  # fmt: skip
    assert verdict.verdict is Verdict.SUPPORTS
    assert len({item.text for item in claims}) == 3
    assert all(any(sign.isdigit() for sign in claim.text) for claim in claims)
    assert reply_to("refine").text == DRAFT
    assert reply_to("draft").text.startswith(
        "The bell was cast in 1887, and that is so [1]. It hangs on the quay, and that is so [2]."
    )


@pytest.mark.parametrize("template", FACTS)
def test_reply_has_the_set_number_of_tokens(template: str) -> None:
    items = {"claims": 3, "split": 3, "verdicts": 2, "bullets": 2}.get(template, 1)
    reply = reply_to(template)

    pieces = list(reply.pieces())

    assert len(pieces) == REPLY_LENGTHS[KINDS.get(template, template)].tokens * items
    assert "".join(pieces) == reply.text


def test_each_item_of_a_reply_has_its_own_tokens() -> None:
    splitter, reply = ClaimSplitter(), reply_to("claims", SimulatedModel(lengths={"split": ReplyLength(30, items=4)}))
    come = [sum(len(splitter.feed(piece)) for piece in list(reply.pieces())[at : at + 30]) for at in range(0, 120, 30)]

    assert come == [1, 1, 1, 0]
    assert len(splitter.close()) == 1
