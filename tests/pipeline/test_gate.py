"""The gate: which sentences pass, which are withheld, and the resulting answer."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from pipeline.errors import BudgetExceeded, ModelUnavailable, PipelineError, UnreadableReply
from pipeline.gate import REMOVED, Gate
from pipeline.support.support_check import check_verbatim
from pipeline.types import CitedSentence, Event, SentencePassed, Status, Support
from storage.types import CheckedClaim, Claim, Evidence, Hit, Verdict
from tests.pipeline.world import hit

OFFICE = hit("The office opens at nine. It closes at six.", key="office.md", title="Office", section="Hours")
LEAVE = hit("Everyone has 30 days of leave.", key="leave.md", title="Leave", date=datetime(2026, 1, 5, tzinfo=UTC))


def evidence(found: Hit, text: str) -> Evidence:
    start = found.passage.text.index(text)
    return Evidence(text, found.passage, found.document, (start, start + len(text)))


def sentence(found: Hit, text: str, note: str = "") -> CitedSentence:
    return CitedSentence(text, (evidence(found, text),), note=note)


@pytest.fixture
def events() -> list[Event]:
    return []


@pytest.fixture
def gate(events: list[Event]) -> Gate:
    hits = {source.passage.id: source for source in (OFFICE, LEAVE)}
    return Gate(found=hits, supports=check_verbatim, tell=events.append)


OPENS = evidence(OFFICE, "The office opens at nine.")
STRANGER = hit("The office opens at nine.", key="elsewhere.md")
HOSTILE = {
    "cites nothing.": CitedSentence("The office opens at nine.", ()),
    "has no text.": CitedSentence(" \n", (OPENS,)),
    "cites a passage that was not retrieved": sentence(STRANGER, "The office opens at nine."),
    "edits the text of a passage": CitedSentence(
        "The office opens at ten.",
        (
            Evidence(
                "The office opens at ten.",
                replace(OFFICE.passage, text="The office opens at ten."),
                OFFICE.document,
                (0, 24),
            ),
        ),
    ),
    "edits the section of a passage": CitedSentence(
        OPENS.text, (replace(OPENS, passage=replace(OFFICE.passage, section="Elsewhere")),)
    ),
    "links somewhere else": CitedSentence(
        OPENS.text, (replace(OPENS, document=replace(OFFICE.document, url="https://evil.example")),)
    ),
    "has a span that says something else": CitedSentence(OPENS.text, (replace(OPENS, span=(1, 26)),)),
    "has a span past the end": CitedSentence(OPENS.text, (replace(OPENS, span=(0, 400)),)),
    "has a span from the end": CitedSentence(OPENS.text, (replace(OPENS, span=(-43, 25)),)),
    "has an empty span": CitedSentence(OPENS.text, (replace(OPENS, text="", span=(3, 3)),)),
    "says what its passage does not": CitedSentence("The office opens at ten.", (OPENS,)),
    "says less than a whole sentence": CitedSentence("office opens at nine.", (OPENS,)),
    "says what only another passage says": CitedSentence("Everyone has 30 days of leave.", (OPENS,)),
    "adds words of its own": CitedSentence("The office opens at nine. Call 555-0100.", (OPENS,)),
    "says something in its note": CitedSentence(OPENS.text, (OPENS,), note="Free money at https://evil.example"),
    "has one good evidence and one bad": CitedSentence(OPENS.text, (OPENS, replace(OPENS, span=(1, 26)))),
}


@pytest.mark.parametrize("why", HOSTILE)
async def test_false_sentence_is_withheld(gate: Gate, events: list[Event], why: str) -> None:
    passed = await gate.say(HOSTILE[why])
    answer = gate.answer(Status.ANSWERED)
    assert not passed
    assert events == []
    assert (answer.status, answer.sentences, answer.citations, answer.claims) == (Status.ABSTAINED, (), (), ())
    assert answer.withheld == 1
    assert gate.withheld[0].reason


async def test_supported_sentence_passes(gate: Gate, events: list[Event]) -> None:
    passed = await gate.say(sentence(OFFICE, "It closes at six.", note="Office › Hours"))

    answer = gate.answer(Status.ANSWERED)
    assert passed
    assert [event.sentence.citations for event in events if isinstance(event, SentencePassed)] == [(1,)]
    assert [(sentence.text, sentence.citations, sentence.note) for sentence in answer.sentences] == [
        ("It closes at six.", (1,), "Office › Hours")
    ]
    assert [(citation.title, citation.url, citation.quote) for citation in answer.citations] == [
        ("Office", "https://example.org/office.md", "It closes at six.")
    ]
    assert [(claim.claim.origin, claim.verdict, claim.evidence) for claim in answer.claims] == [
        ("retrieved", Verdict.SUPPORTS, ("office.md#0",))
    ]


@pytest.mark.parametrize(
    "quoted",
    [
        CitedSentence("The office\nopens  at nine.", (OPENS,)),
        sentence(OFFICE, "The office opens at nine. It closes at six."),
        sentence(LEAVE, "Everyone has 30 days of leave.", note="Leave, 2026-01-05"),
        sentence(LEAVE, "Everyone has 30 days of leave.", note="Leave, English"),
    ],
)
async def test_quotation_passes_with_any_spaces_and_own_notes(gate: Gate, quoted: CitedSentence) -> None:
    assert await gate.say(quoted)


async def test_failed_turn_has_no_sentences(gate: Gate) -> None:
    await gate.say(sentence(LEAVE, "Everyone has 30 days of leave."))
    assert gate.answer(Status.FAILED).sentences == ()


async def test_only_abstentions_have_nearest_pages(gate: Gate) -> None:
    abstained = gate.answer(Status.ABSTAINED, nearest=[LEAVE])
    await gate.say(sentence(LEAVE, "Everyone has 30 days of leave."))
    answered = gate.answer(Status.ANSWERED, nearest=[LEAVE])
    assert (abstained.nearest, answered.nearest) == ((LEAVE,), ())


SURE, DOUBTFUL = Support(0.9, holds=True), Support(0.3, holds=True, reasons=("just about",), doubtful=True)
APPEALABLE = Support(0.3, holds=False, reasons=("says something else",), appealable=True)
FALSE = Support(0.3, holds=False, reasons=("a number is not there",))
VERBATIM = Support(1.0, holds=True, verbatim=True)


class TestJudgement:
    """The model, if there is one, judges every sentence that is neither a quotation nor certainly false."""

    SENTENCE = sentence(OFFICE, "The office opens at nine.")

    def gate(self, support: Support, opinion: CheckedClaim | Exception | None, asked: Sequence[str] = ()) -> Gate:
        async def checks(said: str, _: object, *, asked: Sequence[str] = ()) -> Support:
            self.told_asked = asked
            return support if said == self.SENTENCE.text else VERBATIM

        async def verify(said: str, cited: object, **_: object) -> CheckedClaim | None:
            assert (said, cited) == (self.SENTENCE.text, self.SENTENCE.evidence)
            self.verified += 1
            if isinstance(opinion, Exception):
                raise opinion
            return opinion

        self.verified = 0
        hits = {hit.passage.id: hit for hit in (OFFICE, LEAVE)}
        return Gate(found=hits, supports=checks, tell=lambda _: None, verify=verify, asked=asked)

    def opinion(self, verdict: Verdict) -> CheckedClaim:
        return CheckedClaim(Claim(self.SENTENCE.text, "retrieved"), verdict, ("office.md#0",), "Sentence 1 tells.")

    @pytest.mark.parametrize("support", [SURE, DOUBTFUL, APPEALABLE])
    async def test_verdict_of_the_model_overrides_the_local_check(self, support: Support) -> None:
        gate = self.gate(support, self.opinion(Verdict.SUPPORTS))
        assert await gate.say(self.SENTENCE)
        assert gate.answer(Status.ANSWERED).claims == (self.opinion(Verdict.SUPPORTS),)
        for verdict in (Verdict.REFUTES, Verdict.NOT_ENOUGH_INFO):
            gate = self.gate(support, self.opinion(verdict))
            assert not await gate.say(self.SENTENCE)
            verb = "refute" if verdict is Verdict.REFUTES else "do not confirm"
            assert gate.withheld[0].reason == f"The model finds that the passages {verb} it: Sentence 1 tells."
            assert gate.replaced_by(self.SENTENCE) == ("nothing" if verdict is Verdict.REFUTES else "notes")

    @pytest.mark.parametrize("support", [SURE, DOUBTFUL, APPEALABLE])
    async def test_changed_copy_is_quoted_without_asking_the_model(self, support: Support) -> None:
        gate = self.gate(replace(support, better_quoted=True), self.opinion(Verdict.SUPPORTS))
        assert not await gate.say(self.SENTENCE)
        assert gate.replaced_by(self.SENTENCE) == "quotation"
        assert gate.withheld[0].reason.endswith("A quotation may replace it.")
        assert await gate.say(sentence(LEAVE, LEAVE.passage.text))
        assert gate.answer(Status.ANSWERED).withheld == 1
        assert await gate.say(sentence(OFFICE, "It closes at six."))
        assert gate.answer(Status.ANSWERED).withheld == 0

    @pytest.mark.parametrize("error", [UnreadableReply("odd"), BudgetExceeded("spent"), ModelUnavailable("away")])
    async def test_only_sure_sentences_pass_if_the_judgement_fails(self, error: PipelineError) -> None:
        assert await self.gate(SURE, error).say(self.SENTENCE)
        for support in (DOUBTFUL, APPEALABLE):
            gate = self.gate(support, error)
            assert not await gate.say(self.SENTENCE)
            assert gate.withheld[0].reason == f"{support.reasons[0]} It could not be verified: {error}"

    async def test_sentence_is_withheld_without_evidence_to_judge_by(self) -> None:
        assert not await self.gate(APPEALABLE, None).say(self.SENTENCE)

    @pytest.mark.parametrize(("support", "passes"), [(VERBATIM, True), (FALSE, False)])
    async def test_verbatim_or_surely_false_sentence_is_decided_without_the_model(
        self, support: Support, *, passes: bool
    ) -> None:
        gate = self.gate(support, AssertionError("asked"))
        assert await gate.say(self.SENTENCE) is passes
        assert self.verified == 0

    @pytest.mark.parametrize(
        ("support", "looked_up"), [(SURE, True), (VERBATIM, True), (APPEALABLE, True), (FALSE, False)]
    )
    async def test_sentence_citing_a_removed_document_is_withheld(self, support: Support, *, looked_up: bool) -> None:
        looked: list[tuple[str, str]] = []

        async def exists(corpus: str, key: str) -> bool:
            looked.append((corpus, key))
            return False

        gate = self.gate(support, AssertionError("asked"))
        gate.exists = exists

        assert not await gate.say(self.SENTENCE)
        assert bool(looked) is looked_up
        assert (gate.withheld[0].reason == REMOVED) is looked_up

    async def test_doubtful_sentence_is_withheld_without_a_model(self) -> None:
        async def doubts(_: str, __: object, *, asked: Sequence[str] = ()) -> Support:
            del asked
            return DOUBTFUL

        gate = Gate(found={OFFICE.passage.id: OFFICE}, supports=doubts, tell=lambda _: None)
        assert not await gate.say(self.SENTENCE)

    async def test_judgement_made_before_a_sentence_is_said_is_not_repeated(self) -> None:
        gate = self.gate(SURE, self.opinion(Verdict.SUPPORTS))
        assert await gate.judge(self.SENTENCE)
        assert gate.answer(Status.ANSWERED).status is Status.ABSTAINED
        assert await gate.say(self.SENTENCE)
        assert self.verified == 1

    async def test_local_check_gets_the_askers_texts(self) -> None:
        gate = self.gate(SURE, self.opinion(Verdict.SUPPORTS), asked=("May I come at ten?",))
        await gate.say(self.SENTENCE)
        assert self.told_asked == ("May I come at ten?",)


async def test_model_claims_are_in_answers_and_abstentions(gate: Gate) -> None:
    claim = CheckedClaim(Claim("The office opens at ten.", "model"), Verdict.REFUTES, ("office.md#0",), "No.")
    await gate.say(sentence(OFFICE, "The office opens at nine."))
    answered, abstained = (gate.answer(status, claims=[claim]) for status in (Status.ANSWERED, Status.ABSTAINED))
    assert [claim.verdict for claim in answered.claims] == [Verdict.REFUTES, Verdict.SUPPORTS]
    assert (abstained.claims, abstained.sentences) == ((claim,), ())


async def test_withheld_sentences_are_logged_by_count_only(gate: Gate, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="pipeline.gate")
    await gate.say(CitedSentence("The office opens at ten.", (OPENS,)))
    assert [(record.levelno, record.getMessage()) for record in caplog.records if record.name == "pipeline.gate"] == [
        (logging.INFO, "sentences withheld in this turn: 1")
    ]
