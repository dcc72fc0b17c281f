"""WikiChat's two systems in scripted conversations, with the real prompts, parsers and gate."""

import asyncio
import re
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import (
    BudgetExceeded,
    ModelRefused,
    ModelUnavailable,
    PipelineError,
    SearchUnavailable,
    UnreadableReply,
)
from pipeline.kit import Limits, System
from pipeline.types import (
    CitedSentence,
    ClaimChecked,
    DraftStarted,
    PageQuoted,
    SearchStarted,
    SentencePassed,
    Status,
    Turn,
)
from storage.types import Hit, SearchQuery, Verdict
from tests.pipeline import skarholm
from tests.pipeline.scripted import Script, ScriptedLLM, accept
from tests.pipeline.skarholm import (
    BUILT,
    QUESTION,
    REFUTES,
    SCRAPS,
    SHELF,
    SILENT,
    SUPPORTS,
    UNKNOWN,
    WIKICHATS,
    WRITTEN,
    Run,
    by_source,
    lines,
    set_up_turn,
    turn_of,
    verdicts,
    wait_until,
)
from tests.pipeline.world import Stage, answered, question, reads_alike
from tests.thorough import sample


@pytest.fixture(params=WIKICHATS)
def system(request: pytest.FixtureRequest) -> System:
    return WIKICHATS[request.param]


@pytest.fixture
def run(system: System) -> Run:
    return partial(skarholm.run, system=system)


async def test_bullet_and_verified_claim_become_one_cited_answer(run: Run) -> None:
    outcome, _ = await run(
        "When was the lighthouse of Skarholm built, and who designed it?",
        {
            **BUILT,
            "generate": "It was designed by Oda Hagen.",
            "split": "- Oda Hagen designed the lighthouse of Skarholm. | none",
            "verify": SUPPORTS,
            "draft": "Skarholm lighthouse was built in 1887 [1]. Oda Hagen designed the lighthouse of Skarholm [2].",
            "continuation": "Oda Hagen designed the lighthouse of Skarholm [1].",
        },
    )

    assert [(sentence.text, sentence.citations) for sentence in outcome.answer.sentences] == [
        ("Skarholm lighthouse was built in 1887.", (1,)),
        ("Oda Hagen designed the lighthouse of Skarholm.", (2,)),
    ]
    assert [(citation.title, citation.quote) for citation in outcome.answer.citations] == [
        ("Skarholm lighthouse", "Skarholm lighthouse was built in 1887."),
        ("Oda Hagen", "Oda Hagen designed the lighthouse of Skarholm."),
    ]
    assert verdicts(outcome) == [("Oda Hagen designed the lighthouse of Skarholm.", Verdict.SUPPORTS)]


async def test_events_report_progress(run: Run) -> None:
    outcome, _ = await run(QUESTION, {**BUILT, "split": "- A keeper lives there. | none", "verify": UNKNOWN})
    assert [event.checked.verdict for event in outcome.events if isinstance(event, ClaimChecked)] == [
        Verdict.NOT_ENOUGH_INFO
    ]
    assert [event.evidence for event in outcome.events if isinstance(event, DraftStarted)] == [1]
    assert [event.sentence.text for event in outcome.events if isinstance(event, SentencePassed)] == answered(outcome)


async def test_follow_up_sees_earlier_turns(run: Run) -> None:
    titles = ("Skarholm lighthouse",)
    before = (
        Turn("user", "What do you know about Skarholm lighthouse?"),
        Turn("bot", "Skarholm lighthouse was built in 1887. [1]", titles=titles, query=SearchQuery("Skarholm", 1887)),
    )
    outcome, llm = await run(
        question("And who designed it?", *before),
        {
            "query": "Search: yes\nQuery: who designed Skarholm lighthouse\nTime: none",
            "summarise": by_source(Oda_Hagen="- Oda Hagen designed the lighthouse of Skarholm. [1]"),
            "draft": "Oda Hagen designed the lighthouse of Skarholm [1].",
        },
    )

    assert answered(outcome) == ["Oda Hagen designed the lighthouse of Skarholm."]
    assert "Chatbot: Skarholm lighthouse was built in 1887. [1]\nUser: And who designed it?" in llm.asked("query")
    assert "(Looked up for earlier messages: Skarholm (time: 1887))" in llm.asked("query")
    assert "Query: who designed Skarholm lighthouse\n" in turn_of(llm.of("summarise")[0])


async def test_chat_without_facts_is_small_talk(run: Run) -> None:
    outcome, _ = await run(
        "You are quite a character, are you?", {"query": "Search: no", "generate": "Haha, I try to be!"}
    )
    assert (outcome.answer.status, outcome.answer.sentences) == (Status.CHATTED, ())


async def test_claim_is_checked_even_without_a_query(run: Run) -> None:
    outcome, _ = await run("Tell me something.", {"query": "Search: no", "split": "- Skarholm is an island. | none"})
    assert outcome.answer.status is Status.ABSTAINED
    assert verdicts(outcome) == [("Skarholm is an island.", Verdict.NOT_ENOUGH_INFO)]


async def test_false_premise_is_not_confirmed(run: Run) -> None:
    outcome, llm = await run(
        "Why was the lighthouse of Skarholm built in 1920?",
        {
            **BUILT,
            "generate": "It was built in 1920 because ships were lost there.",
            "split": "- The lighthouse of Skarholm was built in 1920. | 1920",
            "verify": REFUTES,
        },
    )

    assert answered(outcome) == ["Skarholm lighthouse was built in 1887."]
    assert verdicts(outcome) == [("The lighthouse of Skarholm was built in 1920.", Verdict.REFUTES)]
    assert "1920 because" not in llm.asked("draft")


@pytest.mark.parametrize("verdict", [REFUTES, UNKNOWN])
async def test_unsupported_claim_does_not_reach_the_draft(run: Run, verdict: str) -> None:
    outcome, llm = await run(
        "Who was Oda Hagen?", {"split": "- Oda Hagen was an engineer from Bergen. | none", "verify": verdict}
    )
    assert (outcome.answer.status, llm.of("draft")) == (Status.ABSTAINED, [])
    assert len(verdicts(outcome)) == 1


async def test_question_about_a_year_reads_pages_that_mention_it(run: Run) -> None:
    outcome, llm = await run(
        "What happened to the pier of Skarholm in 1953?",
        {
            "query": "Search: yes\nQuery: pier of Skarholm\nTime: 1953",
            "summarise": lambda call: (
                "- In the storm of 1953 the pier of Skarholm was lost. [1]" if "1953" in turn_of(call) else "None"
            ),
            "draft": "In the storm of 1953 the pier of Skarholm was lost [1].",
        },
        Limits(looked_up=1),
    )

    assert answered(outcome) == ["In the storm of 1953 the pier of Skarholm was lost."]
    assert "From: Storms" in llm.asked("summarise")


async def test_disagreeing_sources_are_dated_and_the_newest_first(run: Run) -> None:
    outcome, llm = await run(
        "What does the ferry to Skarholm cost now?",
        {
            "query": "Search: yes\nQuery: ferry to Skarholm costs\nTime: recent",
            "summarise": by_source(
                Ferry_fares="- The ferry to Skarholm costs 12 crowns. [1]",
                New_ferry_fares="- The ferry to Skarholm costs 15 crowns. [1]",
            ),
            "draft": "The ferry to Skarholm costs 15 crowns [1]. The ferry to Skarholm costs 12 crowns [2].",
        },
    )

    assert [(sentence.text, sentence.note) for sentence in outcome.answer.sentences] == [
        ("The ferry to Skarholm costs 15 crowns.", "New ferry fares, 2026-01-15"),
        ("The ferry to Skarholm costs 12 crowns.", "Ferry fares, 2021-03-01"),
    ]
    assert "[1] The ferry to Skarholm costs 15 crowns." in llm.asked("draft")


async def test_turn_without_findings_abstains_without_a_draft(run: Run) -> None:
    outcome, llm = await run("Who was the first keeper of Skarholm lighthouse?", {})
    assert (outcome.answer.status, llm.of("draft")) == (Status.ABSTAINED, [])
    assert outcome.answer.nearest[0].document.title == "Skarholm lighthouse"


async def test_passages_found_for_claims_are_read_before_abstaining(run: Run) -> None:
    script = {
        "query": "Search: yes\nQuery: What the ferry to Skarholm costs\nTime: none",
        "split": "- Oda Hagen designed the pier of Skarholm. | none",
        "summarise": by_source(Oda_Hagen="- Oda Hagen designed the lighthouse of Skarholm. [1]"),
        "draft": "Oda Hagen designed the lighthouse of Skarholm [1].",
    }
    outcome, llm = await run("What did she design besides the ferry to Skarholm?", script, Limits(looked_up=1))

    assert answered(outcome) == ["Oda Hagen designed the lighthouse of Skarholm."]
    first, *others = [turn_of(call) for call in llm.of("summarise")]
    assert "Oda Hagen" not in first
    assert ["Oda Hagen" in other for other in others] == [True]
    outcome, llm = await run("What did she design besides the ferry to Skarholm?", {**script, "summarise": "None"})
    assert (outcome.answer.status, llm.of("draft")) == (Status.ABSTAINED, [])
    shown = [re.findall("^From: (.*)", turn_of(call), re.MULTILINE) for call in llm.of("summarise")]
    assert len(shown) == len({tuple(sources) for sources in shown})  # none is read twice


async def test_draft_that_finds_no_helpful_note_abstains(run: Run) -> None:
    outcome, _ = await run("What colour is Skarholm lighthouse?", {**BUILT, "draft": "NOTHING"})
    assert (outcome.answer.status, outcome.answer.withheld) == (Status.ABSTAINED, 0)


async def test_german_question_is_answered_in_german_from_english_pages(run: Run) -> None:
    outcome, llm = await run(
        "Wann wurde der Leuchtturm von Skarholm gebaut, und wer hat ihn entworfen?",
        {**BUILT, "draft": "Der Leuchtturm von Skarholm wurde 1887 gebaut [1].", "verify": accept(1)},
    )

    assert [(sentence.text, sentence.note) for sentence in outcome.answer.sentences] == [
        ("Der Leuchtturm von Skarholm wurde 1887 gebaut.", "")
    ]
    assert "Write the query in English" in llm.asked("query")
    assert "in English" in llm.asked("generate")
    assert "Write it in German" in llm.asked("draft")
    assert "Claim 1: Der Leuchtturm von Skarholm wurde 1887 gebaut." in llm.asked("verify")


async def test_bullet_with_a_wrong_number_is_replaced_by_its_sentence(run: Run) -> None:
    _, llm = await run(
        QUESTION,
        {
            **BUILT,
            "summarise": by_source(
                Skarholm_lighthouse="- Skarholm lighthouse was built in 1999. [1]\n- Ships avoid Skarholm. [9]"
            ),
        },
    )

    assert "[1] Skarholm lighthouse was built in 1887. (from" in llm.asked("draft")
    assert "1999" not in llm.asked("draft")
    assert "avoid" not in llm.asked("draft")


async def test_student_drafts_and_refines_in_one_call(run: Run) -> None:
    outcome, llm = await run(
        QUESTION,
        {**BUILT, "split": "- A keeper lives beside it. | none", "verify": "Sentences: -\nVerdict: NOT ENOUGH INFO"},
        Limits(student=True),
    )
    assert answered(outcome) == ["Skarholm lighthouse was built in 1887."]
    assert [len(call.messages) for call in llm.calls] == [2] * len(llm.calls)
    assert "Reasoning" not in llm.of("verify")[0].messages[0].text
    assert (len(llm.of("draft")), len(llm.of("refine"))) == (1, 0)


async def test_number_of_verified_claims_is_limited(run: Run) -> None:
    many = "\n".join(f"- Skarholm has {number} lamps. | none" for number in range(30))
    outcome, _ = await run(QUESTION, {**BUILT, "split": many}, Limits(claims=4))
    assert len(verdicts(outcome)) == 4


async def test_all_findings_reach_the_draft(run: Run) -> None:
    many = "\n".join(f"- The {letter} pier of Skarholm is lost. | none" for letter in "ABCDEFGHIJKLMNOPQRST")
    script = {**BUILT, "summarise": "None", "split": many, "verify": SUPPORTS}
    _, llm = await run(QUESTION, script, Limits(claims=20))
    notes = [line for line in turn_of(llm.of("draft")[0]).splitlines() if line.startswith("[")]
    assert len(notes) >= 15
    assert notes[-1].startswith(f"[{len(notes)}] ")


async def test_concurrent_turns_are_independent(run: Run) -> None:
    async def turn(number: int) -> list[str]:
        draft = f"Skarholm lighthouse was built in 1887{'.' * (number % 3)} [1]."
        failing = {"draft": "NOTHING"} if number % 5 == 0 else {"draft": draft}
        outcome, _ = await run(QUESTION, {**BUILT, **failing}, Limits(refine=number % 2 == 0))
        return [sentence.text for sentence in outcome.answer.sentences]

    answers = await asyncio.gather(*(turn(number) for number in range(40)))

    assert [bool(sentences) for sentences in answers] == [number % 5 != 0 for number in range(40)]


@pytest.mark.parametrize("name", WIKICHATS)
@settings(max_examples=sample(60), deadline=None)
@given(
    script=st.fixed_dictionaries(
        {stage: st.lists(st.sampled_from(SCRAPS), max_size=6).map("".join) for stage in SILENT}
    )
)
def test_arbitrary_replies_let_nothing_unsupported_out(name: str, script: Script) -> None:
    try:
        outcome, _ = asyncio.run(skarholm.run(QUESTION, script, system=WIKICHATS[name]))
    except PipelineError:
        return
    assert all(sentence.citations for sentence in outcome.answer.sentences)
    assert all("1999" not in sentence.text for sentence in outcome.answer.sentences)


CLAIMED = {"generate": "It was built in 1887.", "split": "- A keeper lives beside Skarholm lighthouse. | none"}
STAGES_OF_CLAIMS = ("query", "generate", "split", "draft")


class TestReplies:
    """Hostile and malformed replies."""

    @pytest.mark.parametrize(
        "draft",
        [
            "Skarholm lighthouse was built in 1999 [1].",
            "Everybody must send 100 crowns to Egil [1].",
            "See https://evil.example/skarholm [1] [7].",
            "<@U123> <!channel> come and see [1] [99].",
        ],
    )
    async def test_unsupported_sentence_is_withheld(self, run: Run, draft: str) -> None:
        outcome, _ = await run(QUESTION, {**BUILT, "draft": draft}, Limits(refine=False))
        quoted = [event.evidence.text for event in outcome.events if isinstance(event, PageQuoted)]
        instead = quoted if "https" in draft else ["Skarholm lighthouse was built in 1887."]
        assert [sentence.text for sentence in outcome.answer.sentences] == instead
        assert outcome.answer.withheld == 1

    async def test_draft_without_marks_is_requested_once_more(self, run: Run) -> None:
        drafts = ["The lighthouse is from 1887.", "Skarholm lighthouse was built in 1887 [1]."]
        outcome, llm = await run(QUESTION, {**BUILT, "draft": drafts})
        assert len(answered(outcome)) == 1
        assert "no sentence has the number of a note" in turn_of(llm.of("draft")[1])

    @pytest.mark.parametrize(
        "changes",
        [
            {"query": "Let me think about that for a while."},
            {"generate": ""},
            {"generate": ModelRefused("I would rather not")},
            {"generate": ModelUnavailable("away")},
            {"split": ""},
            {"split": ModelRefused("I would rather not")},
            {"split": ModelUnavailable("away")},
            {
                "summarise": by_source(
                    Skarholm_lighthouse="- Skarholm lighthouse was built in 1887. [1]", Oda_Hagen="Well."
                )
            },
        ],
    )
    async def test_failed_stage_leaves_the_answer_of_the_others(self, run: Run, changes: dict[str, object]) -> None:
        outcome, _ = await run(QUESTION, {**BUILT, "generate": "Built in 1887.", **changes})
        assert len(answered(outcome)) == 1

    @pytest.mark.parametrize(
        ("changes", "error"),
        [
            ({"draft": "It was built in 1887."}, UnreadableReply),
            ({"summarise": ModelUnavailable("the server is away")}, ModelUnavailable),
            ({"query": ModelUnavailable("away")}, ModelUnavailable),
            ({"draft": ModelUnavailable("away")}, ModelUnavailable),
            ({"summarise": "None", **CLAIMED, "verify": ModelUnavailable("away")}, ModelUnavailable),
            *(({**CLAIMED, stage: BudgetExceeded("used up")}, BudgetExceeded) for stage in STAGES_OF_CLAIMS),
        ],
    )
    async def test_failure_without_an_answer_is_raised(
        self, run: Run, changes: dict[str, object], error: type[PipelineError]
    ) -> None:
        limits = Limits() if "summarise" in changes or error is UnreadableReply else WRITTEN
        with pytest.raises(error, match="“draft” could not be read, twice" if error is UnreadableReply else None):
            await run(QUESTION, {**BUILT, **changes}, limits)

    async def test_unverifiable_claim_is_recorded_as_not_enough_info(self, run: Run) -> None:
        outcome, _ = await run(
            QUESTION, {**BUILT, "split": "- A keeper lives beside Skarholm lighthouse. | none", "verify": "Hm."}
        )
        assert len(answered(outcome)) == 1
        assert [
            (claim.verdict, claim.reasoning[:26]) for claim in outcome.answer.claims if claim.claim.origin == "model"
        ] == [(Verdict.NOT_ENOUGH_INFO, "It could not be verified: ")]


async def test_search_failure_is_raised(system: System) -> None:
    async def broken(query: SearchQuery, k: int) -> tuple[Hit, ...]:
        if query.text == "Skarholm lighthouse built":
            raise SearchUnavailable("the index is away")
        return await SHELF.search(query, k)

    llm = ScriptedLLM(lines(BUILT, system))
    talk = question(QUESTION)
    stage = Stage(SHELF, talk, WRITTEN, llm, reads_alike)
    stage.recorder.passages = broken

    with pytest.raises(SearchUnavailable):
        await system(talk, stage.kit)


async def test_claim_is_not_shown_in_search_events(run: Run) -> None:
    outcome, _ = await run(QUESTION, {**BUILT, "split": "- A keeper lives there. | none", "verify": UNKNOWN})
    sought = [event.query for event in outcome.events if isinstance(event, SearchStarted)]
    assert "" in sought
    assert not any("keeper" in query for query in sought)


async def test_cancelling_ends_all_calls_at_once(system: System) -> None:
    away = {"query": asyncio.Event(), "generate": asyncio.Event()}
    stage, llm = set_up_turn(QUESTION, BUILT, WRITTEN, system=system, waits=away)
    turn = asyncio.create_task(system(question(QUESTION), stage.kit))
    await wait_until(lambda: len(llm.calls) == 2)

    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn

    assert sorted(llm.ended) == ["generate", "query"]
    noted = {step.stage: step.facts.get("error") for step in stage.recorder.steps}
    assert noted == {"search": None, "query": "CancelledError", "generate": "CancelledError"}


async def test_cancelled_turn_ends_the_draft_call(system: System) -> None:
    stage, llm = set_up_turn(QUESTION, BUILT, Limits(refine=False), system=system, waits={"draft": asyncio.Event()})
    turn = asyncio.create_task(system(question(QUESTION), stage.kit))
    await wait_until(lambda: bool(llm.of("draft")))
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert llm.ended == ["draft"]
    assert stage.recorder.steps[-1].facts["error"] == "CancelledError"


async def test_sentences_pass_before_the_draft_ends(system: System) -> None:
    draft = "Skarholm lighthouse was built in 1887 [1]. " * 3 + "Skarholm lighthouse " * 20
    stage, _ = set_up_turn(QUESTION, {**BUILT, "draft": draft}, Limits(refine=False), system=system)
    ended: list[set[str]] = []

    async def say(sentence: CitedSentence) -> bool:
        ended.append({step.stage for step in stage.recorder.steps})
        return await stage.gate.say(sentence)

    await system(question(QUESTION), replace(stage.kit, say=say))

    assert "draft" not in ended[0]
    assert "draft" in {step.stage for step in stage.recorder.steps}
