"""Draft sentences are judged together with the question, and replaced if they are withheld."""

import asyncio
import re
from collections.abc import Callable
from functools import partial

import pytest

from pipeline.errors import ModelUnavailable
from pipeline.kit import Limits, System
from pipeline.llm.model import ModelCall
from pipeline.systems import wikichat, wikichat_fast
from pipeline.types import Status
from tests.pipeline import skarholm
from tests.pipeline.skarholm import BUILT, POOR, QUESTION, WIKICHATS, Run, by_source, set_up_turn, turn_of, wait_until
from tests.pipeline.world import answered, question

ABOUT_BOTH = {
    "query": "Search: yes\nQuery: ferry to Skarholm and who designed the lighthouse\nTime: none",
    "summarise": by_source(
        New_ferry_fares="- The ferry to Skarholm costs 15 crowns. [1]",
        Oda_Hagen="- Oda Hagen designed the lighthouse of Skarholm. [1]",
    ),
}
# In the order in which notes of these pages are numbered: the designer is [1], the ferry is [2].
NOTES = ["The ferry to Skarholm costs 15 crowns.", "Oda Hagen designed the lighthouse of Skarholm."]


@pytest.fixture(params=WIKICHATS)
def system(request: pytest.FixtureRequest) -> System:
    return WIKICHATS[request.param]


@pytest.fixture
def run(system: System) -> Run:
    return partial(skarholm.run, system=system)


def refusing(*wrong: str) -> Callable[[ModelCall], str]:
    """Return a judge's reply that supports all sentences except those with such words."""

    def reply(call: ModelCall) -> str:
        claims = re.findall(r"^Claim (\d+): (.*)$", turn_of(call), re.MULTILINE)
        numbered = re.findall(r"^(\d+): (.*)$", turn_of(call), re.MULTILINE)
        return "\n".join(
            f"{number}. NOT ENOUGH INFO Nobody says so."
            if any(word in claim for word in wrong)
            else f"{number}. SUPPORTS [{max(numbered, key=lambda one: len(_words(one[1]) & _words(claim)))[0]}]"
            for number, claim in claims
        )

    return reply


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text))


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ("The ferry of Skarholm costs 15 crowns", "Skarholm's lighthouse was designed by Oda Hagen",
         ["The ferry of Skarholm costs 15 crowns.", "Skarholm's lighthouse was designed by Oda Hagen."]),
        ("The ferry of Skarholm costs only 15 crowns", "Skarholm's lighthouse was designed by Oda Hagen",
         [NOTES[0], "Skarholm's lighthouse was designed by Oda Hagen."]),
        ("The ferry of Skarholm costs 15 crowns", "Only Oda Hagen designed the lighthouse of Skarholm",
         ["The ferry of Skarholm costs 15 crowns.", NOTES[1]]),
        ("The ferry of Skarholm costs 15 crowns", "The ferry to Skarholm costs only 15 crowns",
         ["The ferry of Skarholm costs 15 crowns."]),
    ],
)  # fmt: skip
async def test_note_replaces_a_sentence_the_model_rejects(run: Run, first: str, second: str, said: list[str]) -> None:
    draft = f"{first} [2]. {second} [{2 if 'ferry' in second else 1}]."
    outcome, _ = await run(
        "What does the ferry cost and who designed the lighthouse?",
        {**ABOUT_BOTH, "draft": draft, "verify": refusing("only", "Only")},
        Limits(looked_up=6, refine=False),
    )
    assert answered(outcome) == said
    assert outcome.answer.withheld == len([sentence for sentence in (first, second) if "nly" in sentence])


async def test_refuted_sentence_is_replaced_by_nothing(run: Run) -> None:
    draft = "The ferry of Skarholm costs 15 crowns [2]. Only Oda Hagen designed the lighthouse of Skarholm [1]."
    refuting = refusing("Only")
    outcome, _ = await run(
        "What does the ferry cost and who designed the lighthouse?",
        {**ABOUT_BOTH, "draft": draft, "verify": lambda call: refuting(call).replace("NOT ENOUGH INFO", "REFUTES [1]")},
        Limits(looked_up=6, refine=False),
    )
    assert answered(outcome) == ["The ferry of Skarholm costs 15 crowns."]
    assert outcome.answer.withheld == 1


async def test_asker_statements_may_be_repeated(run: Run) -> None:
    sentence = "For 20 crowns you get the ferry to Skarholm, as it costs 15 crowns."
    limits = Limits(looked_up=6, refine=False, query="always")
    script = {**ABOUT_BOTH, "draft": f"{sentence[:-1]} [2].", "verify": refusing()}
    outcome, llm = await run("Are 20 crowns enough for the ferry to Skarholm?", script, limits)
    assert answered(outcome) == [sentence]
    assert "User: Are 20 crowns enough" in turn_of(llm.of("verify")[-1])
    outcome, _ = await run("Are my crowns enough for the ferry to Skarholm?", script, limits)
    assert answered(outcome) == [NOTES[0]]


async def test_sentence_is_judged_while_the_next_is_written(system: System) -> None:
    draft = "The lighthouse of Skarholm was built in 1887 [1]. " + "Skarholm lighthouse " * 40
    stage, llm = set_up_turn(
        QUESTION, {**BUILT, "draft": draft, "verify": refusing()}, Limits(refine=False), system=system
    )
    turn = asyncio.create_task(system(question(QUESTION), stage.kit))
    await wait_until(lambda: bool(llm.of("verify")))
    assert "draft" not in {step.stage for step in stage.recorder.steps}
    assert await turn is Status.ANSWERED


async def test_pronoun_is_judged_with_the_sentence_before_it(run: Run) -> None:
    draft = "Oda Hagen drew the lighthouse of Skarholm [1]. She designed that lighthouse of Skarholm [1]."
    _, llm = await run(
        QUESTION, {**ABOUT_BOTH, "draft": draft, "verify": refusing()}, Limits(looked_up=6, refine=False)
    )
    outcome = "\n".join(map(turn_of, llm.of("verify")))
    assert re.search(r"mean: Oda Hagen drew the lighthouse of Skarholm\.\nClaim \d: She designed", outcome)
    assert outcome.count("Before claim") == 1


async def test_doubtful_sentence_is_quoted_if_the_judge_fails(run: Run) -> None:
    outcome, _ = await run(
        QUESTION,
        {
            **BUILT,
            "draft": "Some lonely old sailor is said to have begun it before 1887 [1].",
            "verify": ModelUnavailable("away"),
        },
        Limits(refine=False),
    )

    assert answered(outcome) == ["Skarholm lighthouse was built in 1887."]


async def test_quotation_in_another_language_has_a_note_that_names_the_language(run: Run) -> None:
    outcome, _ = await run(
        "Wann wurde der Leuchtturm von Skarholm gebaut, und wer hat ihn entworfen?",
        {**BUILT, "draft": "Der Leuchtturm von Skarholm wurde erst 1887 gebaut [1].", "verify": refusing("erst")},
        Limits(refine=False),
    )
    assert [(sentence.text, sentence.note) for sentence in outcome.answer.sentences] == [
        ("Skarholm lighthouse was built in 1887.", "Skarholm lighthouse, English")
    ]


async def test_rejected_refined_sentence_falls_back_to_the_draft() -> None:
    outcome, _ = await skarholm.run(
        "What does the ferry cost and who designed the lighthouse?",
        {
            **ABOUT_BOTH,
            "draft": "The ferry of Skarholm costs 15 crowns [2]. The lighthouse was designed by Oda Hagen [1].",
            "refine": [POOR, "Ferries to Skarholm cost only 15 crowns [2]. Oda Hagen designed Skarholm's light [1]."],
            "verify": refusing("only"),
        },
        Limits(looked_up=6),
        system=wikichat.answer,
    )

    assert answered(outcome) == ["The ferry of Skarholm costs 15 crowns.", "Oda Hagen designed Skarholm's light."]


async def test_quotation_with_a_link_is_not_a_replacement() -> None:
    outcome, _ = await skarholm.run(
        QUESTION,
        {**BUILT, "draft": "See https://evil.example/skarholm for all of 1887 [1]."},
        Limits(refine=False),
        system=wikichat_fast.answer,
    )
    assert outcome.answer.status is Status.ABSTAINED


@pytest.mark.parametrize(
    ("second", "said"),
    [
        ("The ferry of Skarholm costs 15 crowns [2].", ["The ferry of Skarholm costs 15 crowns."]),
        ("The ferry of Skarholm costs only 15 crowns [2].", [NOTES[0]]),
        (ModelUnavailable("away"), [NOTES[0]]),
        ("Oda Hagen designed Skarholm's lighthouse [1].", [NOTES[0], "Oda Hagen designed Skarholm's lighthouse."]),
        ("Oda Hagen only designed the lighthouse of Skarholm [1].", NOTES),
        (
            "Oda Hagen designed Skarholm's lighthouse [1]. The ferry of Skarholm costs 15 crowns [2].",
            ["Oda Hagen designed Skarholm's lighthouse.", "The ferry of Skarholm costs 15 crowns."],
        ),
        ("NOTHING", []),
    ],
)
async def test_draft_with_a_rejected_beginning_is_redrafted(run: Run, second: str | Exception, said: list[str]) -> None:
    first = "Yes, the ferry of Skarholm costs only 15 crowns [2]. Skarholm's lighthouse was designed by Oda Hagen [1]."
    outcome, llm = await run(
        "What does the ferry cost and who designed the lighthouse?",
        {**ABOUT_BOTH, "draft": [first, second], "verify": refusing("only")},
        Limits(looked_up=6, refine=False),
    )

    assert [sentence.text for sentence in outcome.answer.sentences] == said
    assert len(llm.of("draft")) == 2
    assert "“Yes, the ferry of Skarholm costs only 15 crowns.”" in turn_of(llm.of("draft")[1])
    assert "refused" not in turn_of(llm.of("draft")[0])


async def test_refinement_and_draft_with_rejected_beginnings_are_redrafted() -> None:
    first = "Yes, the ferry of Skarholm costs only 15 crowns [2]. Skarholm's lighthouse was designed by Oda Hagen [1]."
    outcome, llm = await skarholm.run(
        "Does the ferry cost 20 crowns, and who designed the lighthouse?",
        {
            **ABOUT_BOTH,
            "draft": [first, "No, the ferry of Skarholm costs 15 crowns [2]."],
            "refine": [POOR, first.replace("costs only", "only costs")],
            "verify": refusing("only"),
        },
        Limits(looked_up=6),
        system=wikichat.answer,
    )

    assert [sentence.text for sentence in outcome.answer.sentences] == ["No, the ferry of Skarholm costs 15 crowns."]
    assert "“Yes, the ferry of Skarholm only costs 15 crowns.”" in turn_of(llm.of("draft")[1])
