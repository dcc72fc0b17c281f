"""Drafts and refinements, refinements that end early, and the notes of sentences."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from pipeline.errors import ModelUnavailable, ReplyBroken
from pipeline.kit import Limits
from pipeline.replies import footnotes
from pipeline.replies.cited_sentences import MarkedSentence, format_draft, split_sentences
from pipeline.stages.draft.answer_draft import (
    SentenceAnnotator,
    collect_draft,
    is_repeated,
    say_draft,
    stream_refinement,
)
from pipeline.stages.findings import SourcedFinding, collect_sentences
from pipeline.stages.turn_context import TurnContext
from pipeline.types import CitedSentence, Status, Support
from storage.types import CheckedClaim, Claim, Evidence, Hit, SearchQuery, Verdict
from tests.pipeline.scripted import ScriptedLLM
from tests.pipeline.world import Shelf, Stage, hit, question, reads_alike

DRAFTED = MarkedSentence("The bell was cast in 1887.", (1,), paragraph=False)
POOR = "\n".join(
    f"{name}: Could be better. 40/100" for name in ("Relevant", "Natural", "Non-repetitive", "Temporally correct")
)


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        (MarkedSentence("It was cast in 1887.", (1, 3), paragraph=False), "It was cast in 1887 [1][3]."),
        (MarkedSentence("Really?", (2,), paragraph=False), "Really [2]?"),
        (MarkedSentence("鐘は1887年に鋳造された。", (1,), paragraph=False), "鐘は1887年に鋳造された [1]。"),
        (MarkedSentence("It was cast in 1887", (1,), paragraph=False), "It was cast in 1887 [1]"),
        (MarkedSentence("I wonder...", (), paragraph=False), "I wonder..."),
    ],
)
def test_format_draft_puts_numbers_before_the_full_stop(sentence: MarkedSentence, expected: str) -> None:
    assert format_draft([sentence]) == expected


def test_formatted_draft_parses_to_the_same_sentences() -> None:
    draft = split_sentences("The bell was cast in 1887 [1]. It hangs on the quay [2][1]. It rings.", 2)
    assert split_sentences(format_draft(draft), 2) == draft


def test_repeated_sentence_is_skipped() -> None:
    text = "The bell was cast in 1887."
    one, other = (tuple(collect_sentences([hit(text, key=key)])) for key in ("bells.md", "quay.md"))
    assert is_repeated(CitedSentence(text, other), [CitedSentence(text, one)])
    assert not is_repeated(CitedSentence("It was cast in 1887.", other), [CitedSentence(text, one)])


async def refined(sentences_before: int) -> list[MarkedSentence | str]:
    """Return the sentences of a refinement whose server fails after some of them, and the error if it is raised."""
    talk, sentences = question("When was the bell cast?"), list[MarkedSentence | str]()
    kit = Stage(Shelf([]), talk, Limits(), ScriptedLLM({"refine": POOR}), reads_alike).kit

    async def stream(*_: object, **__: object) -> AsyncIterator[Any]:
        for _sentence in range(sentences_before):
            yield DRAFTED
        raise ModelUnavailable("the server went away")

    try:
        async for sentence in stream_refinement(TurnContext(talk), [DRAFTED], (), replace(kit, stream=stream)):
            sentences.append(sentence)
    except ModelUnavailable as error:
        sentences.append(str(error))
    return sentences


async def test_broken_refinement_raises_only_after_a_sentence() -> None:
    assert await refined(1) == [DRAFTED, "the server went away"]
    assert await refined(0) == []


@pytest.mark.parametrize(
    ("breaks", "error", "mended"),
    [
        (1, ReplyBroken("it broke"), True),
        (2, ReplyBroken("it broke"), False),
        (1, ModelUnavailable("it is down"), False),
    ],
)
async def test_draft_that_breaks_off_is_requested_once_more(
    breaks: int, error: ModelUnavailable, *, mended: bool
) -> None:
    talk, calls = question("When was the bell cast?"), list[str]()
    kit = Stage(Shelf([]), talk, Limits(), ScriptedLLM({}), reads_alike).kit

    async def stream(template: str, *_: object, **__: object) -> AsyncIterator[Any]:
        calls.append(template)
        yield DRAFTED
        if len(calls) <= breaks:
            raise error

    drafting = collect_draft(TurnContext(talk), (), replace(kit, stream=stream))
    if mended:
        assert await drafting == (DRAFTED,)
    else:
        with pytest.raises(type(error)):
            await drafting
    assert len(calls) == (2 if isinstance(error, ReplyBroken) else 1)


BELL = hit("The bell was cast in 1887. It hangs in the tower of the mill.", key="bell")
ALTERED = "The bell was cast in 1887 by a monk."


async def marks_altered(sentence: str, evidence: Sequence[Evidence], *, asked: Sequence[str] = ()) -> Support:
    if sentence == ALTERED:
        return Support(0.4, holds=True, doubtful=True, better_quoted=True)
    return await reads_alike(sentence, evidence, asked=asked)


@pytest.mark.parametrize(
    ("note", "borrowed"), [("The bell was cast in 1887.", False), (ALTERED, False), (ALTERED, True)]
)
async def test_changed_copy_is_replaced_by_its_passage_without_another_draft(note: str, *, borrowed: bool) -> None:
    talk = question("When was the bell cast?")
    stage = Stage(Shelf([BELL]), talk, Limits(), ScriptedLLM({}), marks_altered)
    await stage.kit.search(SearchQuery("bell"), 1)
    cast, hangs = collect_sentences([BELL])
    drafts = iter(
        [
            [MarkedSentence(ALTERED, (1,), paragraph=False, borrowed=borrowed)],
            [MarkedSentence(hangs.text, (2,), paragraph=False)],
        ]
    )

    async def stream(*_: object, **__: object) -> AsyncIterator[Any]:
        for sentence in next(drafts):
            yield sentence

    findings = (SourcedFinding(note, (cast,)), SourcedFinding(hangs.text, (hangs,)))
    assert await say_draft(TurnContext(talk), findings, replace(stage.kit, stream=stream))

    assert [sentence.text for sentence in stage.finish(Status.ANSWERED).answer.sentences] == [
        "The bell was cast in 1887."
    ]
    assert len(list(drafts)) == 1


@pytest.mark.parametrize(
    ("verdict", "rule", "shown"),
    [
        (Verdict.SUPPORTS, "Guests may ring the bell only if the ringer is away.", "Yes: “{}”"),
        (Verdict.SUPPORTS, "Guests may not ring the bell at night.", "{}"),
        (Verdict.REFUTES, "Guests may ring the bell only if the ringer is away.", "{}"),
        (Verdict.NOT_ENOUGH_INFO, "Guests may ring the bell only if the ringer is away.", "{}"),
    ],
)
async def test_quotation_keeps_a_yes_that_the_model_confirms(verdict: Verdict, rule: str, shown: str) -> None:
    page = hit(rule, key="ring")
    talk, written = question("May guests ring the bell?"), "Yes, guests may ring the bell without asking."

    async def check(sentence: str, evidence: Sequence[Evidence], *, asked: Sequence[str] = ()) -> Support:
        if sentence == written:
            return Support(0.4, holds=True, doubtful=True, better_quoted=True)
        if sentence.startswith("Yes: "):
            return Support(0.9, holds=True, doubtful=True)
        return await reads_alike(sentence, evidence, asked=asked)

    async def verify(sentence: str, *_: object, **__: object) -> CheckedClaim:
        return CheckedClaim(Claim(sentence, origin="retrieved"), verdict, ())

    stage = Stage(Shelf([page]), talk, Limits(), ScriptedLLM({}), check)
    stage.gate.verify = verify
    await stage.kit.search(SearchQuery("bell"), 1)

    async def stream(*_: object, **__: object) -> AsyncIterator[Any]:
        yield MarkedSentence(written, (1,), paragraph=False)

    async def rerank(_: str, texts: Sequence[str]) -> Sequence[float]:
        return [8.0 if "oak" in text else -8.0 for text in texts]  # a first sentence is replaced even so

    other = SourcedFinding("The bell is of oak.", collect_sentences([hit("The bell is of oak.", key="oak")]))
    findings = (SourcedFinding(rule, collect_sentences([page])), other)
    kit = stage.kit if verdict is not Verdict.SUPPORTS else replace(stage.kit, rerank=rerank)
    assert await say_draft(TurnContext(talk), findings, replace(kit, stream=stream))
    (said,) = stage.finish(Status.ANSWERED).answer.sentences
    assert said.text == shown.format(rule)


async def test_note_in_place_of_a_withheld_sentence_omits_what_was_said() -> None:
    talk = question("When was the bell cast?")
    stage = Stage(Shelf([BELL]), talk, Limits(), ScriptedLLM({}), reads_alike)
    await stage.kit.search(SearchQuery("bell"), 1)
    cast, hangs = collect_sentences([BELL])

    async def stream(*_: object, **__: object) -> AsyncIterator[Any]:
        yield MarkedSentence(cast.text, (1,), paragraph=False)
        yield MarkedSentence("The bell hangs in the tower since 1999.", (1,), paragraph=False)

    note = replace(cast, text=BELL.passage.text, span=(0, hangs.span[1]))
    findings = (SourcedFinding(note.text, (note,)),)
    assert await say_draft(TurnContext(talk), findings, replace(stage.kit, stream=stream))

    assert [sentence.text for sentence in stage.finish(Status.ANSWERED).answer.sentences] == [cast.text, hangs.text]


LEAVE = hit(
    "Keepers get 20 days of paid leave. However, leave in August is limited to 5 days. Leave in winter is unlimited. "
    "The canteen is closed in winter.",
    key="leave.md",
)
COPY = hit("Of paid leave, keepers get 20 days.", key="copy.md")
INVENTED = "Nobody has ever counted how often keepers were away."


@pytest.mark.parametrize(
    ("draft", "said"),
    [
        ([(INVENTED, 4, 3, 1)], [1]),
        ([(INVENTED, 4)], []),
        ([("Keepers get 20 days of paid leave.", 1), (INVENTED, 2, 3)], [1, "leave in August is limited to 5 days."]),
        ([("Keepers get 20 days of paid leave.", 1), (INVENTED, 5)], [1]),
        ([("Keepers get 20 days of paid leave.", 1), (INVENTED, 1), ("Keepers are often away, it is said.", 1)], [1]),
    ],
    ids=["best note only", "no note that answers", "connective after what it leans on", "same fact", "said before"],
)
async def test_only_one_note_that_answers_and_is_new_replaces_a_sentence(
    draft: Sequence[tuple[Any, ...]], said: Sequence[int | str]
) -> None:
    talk = question("How many days of paid leave do keepers get?")
    stage = Stage(Shelf([LEAVE, COPY]), talk, Limits(), None, reads_alike)
    await stage.kit.search(SearchQuery("leave of keepers"), 2)
    notes = collect_sentences([LEAVE, COPY])
    findings = tuple(SourcedFinding(note.text, (note,)) for note in notes)

    async def stream(*_: object, **__: object) -> AsyncIterator[Any]:
        for text, *numbers in draft:
            yield MarkedSentence(text, tuple(numbers), paragraph=False)

    async def rerank(_: str, texts: Sequence[str]) -> Sequence[float]:
        return [-8.0 if "canteen" in text else 6.0 if "20 days" in text else 4.0 for text in texts]

    await say_draft(
        TurnContext(talk, search_query=talk.question.text), findings, replace(stage.kit, stream=stream, rerank=rerank)
    )
    sentences = stage.finish(Status.ANSWERED).answer.sentences
    expected = [notes[one - 1].text if isinstance(one, int) else one for one in said]
    assert [sentence.text.removeprefix("However, ") for sentence in sentences] == expected


OLD = hit("The ferry costs 12 crowns.", key="old.md", title="Old fares", date=datetime(2021, 3, 1, tzinfo=UTC))
NEW = hit("The ferry costs 15 crowns.", key="new.md", title="New fares", date=datetime(2026, 1, 15, tzinfo=UTC))
PIER = hit("The pier is made of oak.", key="pier.md", title="Pier")


def annotator_for(language: str, *hits: Hit) -> SentenceAnnotator:
    findings = [SourcedFinding(source.passage.text, collect_sentences([source])) for source in hits]
    return SentenceAnnotator(TurnContext(question("Why?"), language), findings)


def annotate(annotator: SentenceAnnotator, *numbers: int, text: str = "The pier is made of oak.") -> str:
    sentence = annotator.annotate(MarkedSentence(text, numbers, paragraph=False))
    annotator.note_named(sentence)
    assert not sentence.evidence or any(footnotes.is_own_note(sentence.note, piece) for piece in sentence.evidence)
    return sentence.note


def test_sentence_in_the_askers_language_has_no_note() -> None:
    assert annotate(annotator_for("en", PIER), 1) == ""
    assert annotate(annotator_for("", PIER), 1) == ""


def test_disagreeing_sources_are_noted_with_their_dates() -> None:
    annotator = annotator_for("en", NEW, PIER, OLD)
    assert [annotate(annotator, number) for number in (1, 2, 3, 1)] == [
        "New fares, 2026-01-15", "", "Old fares, 2021-03-01", "New fares, 2026-01-15",
    ]  # fmt: skip


def test_source_in_another_language_is_noted_once() -> None:
    annotator = annotator_for("de", PIER, OLD)
    assert annotate(annotator, 1, text="Der Steg ist aus Eichenholz gemacht.") == ""  # it quotes nothing
    assert [annotate(annotator, number) for number in (1, 1, 2)] == ["Pier, English", "", "Old fares, English"]


def test_sentence_without_numbers_has_no_evidence_and_no_note() -> None:
    assert annotate(annotator_for("de", PIER)) == ""
