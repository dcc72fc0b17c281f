"""The simulated model's replies: read by the very parsers of the pipeline, in both formats, and as long as is set."""

import json
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import pytest

from evaluation.speed.model.lengths import length_of
from evaluation.speed.model.recognising import kind_of
from evaluation.speed.model.replying import Reply, reply_to
from evaluation.speed.model.settings import LENGTHS, Length, Simulated
from pipeline.findings import Finding, sentences_of
from pipeline.forms import Form, Splitter
from pipeline.parsing.bullets import bullets
from pipeline.parsing.claims import CLAIMS, ClaimSplitter
from pipeline.parsing.draft import DraftSplitter
from pipeline.parsing.feedback import FEEDBACK
from pipeline.parsing.query import QUERY
from pipeline.parsing.verdict import verification
from pipeline.parsing.verdicts import VerdictSplitter
from pipeline.prompting import Manner, render
from pipeline.types import Conversation, Turn
from storage.types import Verdict
from tests.pipeline.world import NOW, hit

TALK = Conversation((Turn("user", "Where is the bell of the quay?"), Turn("bot", "Here."), Turn("user", "Since when?")))
HITS = (hit("The bell was cast in 1887. It hangs on the quay."), hit("The quay is long.", key="q.md", title="Quay"))
SENTENCES = sentences_of(HITS)
NOTES = tuple(Finding(one.text, (one,)) for one in SENTENCES)
DRAFT = "The bell was cast in 1887 [1]. It hangs on the quay [2]. The quay is long and made of old stone [3]."
FEEDBACK_OF_IT = FEEDBACK.from_text(
    "\n".join(f"{name}: So so. 50/100" for name in ("relevant", "natural", "non-repetitive", "temporally correct"))
)
FACTS: Mapping[str, Mapping[str, Any]] = {
    "query": {"talk": TALK, "reading": ""},
    "summarise": {"query": "bell", "sentences": SENTENCES[:2]},
    "bullets": {"query": "bell", "sentences": SENTENCES},
    "generate": {"talk": TALK, "reading": ""},
    "claims": {"talk": TALK, "reading": ""},
    "split": {"talk": TALK, "reply_text": "Since 1887."},
    "verify": {"talk": TALK, "sentences": SENTENCES, "claim": "The bell was cast in 1887."},
    "verdicts": {"talk": TALK, "sentences": SENTENCES, "claims": ("It was cast in 1887.", "The quay is long.")},
    "draft": {"talk": TALK, "findings": NOTES, "language": ""},
    "answer": {"talk": TALK, "findings": NOTES, "language": "German"},
    "feedback": {"talk": TALK, "draft": DRAFT},
    "refine": {"talk": TALK, "draft": DRAFT, "feedback": FEEDBACK_OF_IT},
}
SIMULATED = Simulated()
KINDS = {"bullets": "summarise", "claims": "split", "answer": "draft"}
FORMS: Mapping[str, Form[Any]] = {
    "query": QUERY,
    "summarise": bullets(2),
    "bullets": bullets(3),
    "split": CLAIMS,
    "verify": verification(3, reasoned=True),
    "feedback": FEEDBACK,
}
SPLITTERS: Mapping[str, Callable[[], Splitter[Any]]] = {
    "claims": ClaimSplitter,
    "verdicts": lambda: VerdictSplitter(2, 3),
    "draft": lambda: DraftSplitter(3),
    "answer": lambda: DraftSplitter(3),
    "refine": lambda: DraftSplitter(3),
}


def asked(template: str, *, schema: bool = False) -> dict[str, Any]:
    prompt = render(template, FACTS[template], Manner(structured=schema), NOW, Random(1))
    body = {"model": "any", "messages": [{"role": one.role, "content": one.text} for one in prompt.messages]}
    if not schema:
        return body
    return body | {"response_format": {"type": "json_schema", "json_schema": {"schema": FORMS[template].schema}}}


def replied(template: str, simulated: Simulated = SIMULATED, *, schema: bool = False) -> Reply:
    return reply_to(asked(template, schema=schema), simulated)


@pytest.mark.parametrize("template", FACTS)
def test_every_prompt_is_recognised(template: str) -> None:
    """By what it asks for, whoever it is called."""
    assert kind_of(asked(template)) == KINDS.get(template, template)


@pytest.mark.parametrize("schema", [False, True])
@pytest.mark.parametrize("template", FORMS)
def test_replies_can_be_read(template: str, schema: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """As text and as JSON that fits the schema, with the same meaning."""
    form, text = FORMS[template], replied(template, schema=schema).text

    found = form.from_json(json.loads(text)) if schema else form.from_text(text)

    assert found == form.from_text(replied(template).text)
    assert found


@pytest.mark.parametrize("template", SPLITTERS)
def test_streamed_replies_can_be_read_as_they_come(template: str) -> None:
    """Piece by piece, with something certain before the end."""
    splitter, reply = SPLITTERS[template](), replied(template)

    early = [value for piece in reply.pieces() for value in splitter.feed(piece)]

    assert early
    assert len([*early, *splitter.close()]) > 1


def test_what_is_replied() -> None:
    """From the prompt: words of the question, sentences of passages, numbers that nothing has."""
    claims = CLAIMS.from_text(replied("claims").text)
    verdict = FORMS["verify"].from_text(replied("verify").text)

    assert QUERY.from_text(replied("query").text).text == "Since"
    assert [one.text for one in FORMS["bullets"].from_text(replied("bullets").text)] == [
        "The bell was cast in 1887.", "It hangs on the quay.", "The quay is long."
    ]  # fmt: skip
    assert verdict.verdict is Verdict.SUPPORTS
    assert len({one.text for one in claims}) == 5
    assert all(any(sign.isdigit() for sign in one.text) for one in claims)
    assert replied("refine").text == DRAFT
    assert replied("draft").text.startswith("The bell was cast in 1887 [1]. It hangs on the quay [2].")


@pytest.mark.parametrize("template", FACTS)
def test_a_reply_has_as_many_tokens_as_are_set(template: str) -> None:
    """Of each claim, verdict and passage as many as one has."""
    items = {"claims": 5, "split": 5, "verdicts": 2, "bullets": 2}.get(template, 1)
    reply = replied(template)

    pieces = list(reply.pieces())

    assert len(pieces) == LENGTHS[KINDS.get(template, template)].tokens * items
    assert "".join(pieces) == reply.text


def test_each_item_has_its_own_tokens() -> None:
    """So that the third claim of five is whole after three fifths."""
    splitter, reply = ClaimSplitter(), replied("claims", Simulated(lengths={"split": Length(30, items=4)}))
    come = [sum(len(splitter.feed(piece)) for piece in list(reply.pieces())[at : at + 30]) for at in range(0, 120, 30)]

    assert come == [1, 1, 1, 0]
    assert len(splitter.close()) == 1


def test_lengths_are_seeded_by_what_is_asked() -> None:
    """The same each time, others for another prompt or seed, about their mean."""
    simulated = Simulated(spread=0.3)
    drawn = [length_of("draft", str(place), simulated).tokens for place in range(400)]

    assert drawn == [length_of("draft", str(place), simulated).tokens for place in range(400)]
    assert drawn != [length_of("draft", str(place), Simulated(spread=0.3, seed=2)).tokens for place in range(400)]
    assert 110 < sum(drawn) / 400 < 130
    assert min(drawn) >= 1
    assert length_of("draft", "any", Simulated()) == LENGTHS["draft"]
