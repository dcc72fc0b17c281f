"""WikiChat's seven stages over scripted conversations: real prompts, parsers and gate, a model whose lines stand here."""

from datetime import UTC, datetime

from pipeline.kit import Limits
from pipeline.systems import wikichat
from pipeline.types import ClaimChecked, Conversation, Drafting, Said, Status, Turn
from storage.types import Verdict
from tests.pipeline.scripted import Script, ScriptedLLM
from tests.pipeline.world import Shelf, Told, hit, question, reads_alike, run

SHELF = Shelf([
    hit(
        "Skarholm lighthouse was built in 1887. It stands on the northern point of the island. The keeper lives beside it.",
        key="light.md", title="Skarholm lighthouse", date=datetime(2025, 5, 2, tzinfo=UTC),
    ),
    hit(
        "Oda Hagen designed the lighthouse of Skarholm. Oda Hagen was an engineer from Bergen.",
        key="hagen.md", title="Oda Hagen", date=datetime(2024, 1, 9, tzinfo=UTC),
    ),
    hit(
        "The ferry to Skarholm costs 12 crowns.",
        key="old.md", title="Ferry fares", date=datetime(2021, 3, 1, tzinfo=UTC),
    ),
    hit(
        "The ferry to Skarholm costs 15 crowns.",
        key="new.md", title="New ferry fares", date=datetime(2026, 1, 15, tzinfo=UTC),
    ),
])  # fmt: skip
PERFECT = "\n".join(
    f"{name}: Good. 100/100" for name in ("Relevant", "Natural", "Non-repetitive", "Temporally correct")
)
SILENT: Script = {
    "query": "Search: yes\nQuery: Skarholm lighthouse\nTime: none",
    "summarise": "None",
    "generate": "I am not sure.",
    "split": "Nothing",
    "verify": "Reasoning: Nothing says so.\nSentences: -\nVerdict: NOT ENOUGH INFO",
    "draft": "NOTHING",
    "refine": PERFECT,
}


def by_title(**bullets: str):
    """Return a line of the summariser's that depends on whose passage it reads."""

    def line(call):
        shown = call.messages[-1].text
        return next((said for title, said in bullets.items() if f"From: {title.replace('_', ' ')}" in shown), "None")

    return line


async def told(
    talk: Conversation | str, script: Script, limits: Limits = Limits(), **options
) -> tuple[Told, ScriptedLLM]:  # noqa: B008
    llm = ScriptedLLM({**SILENT, **script}, **options)
    talk = question(talk) if isinstance(talk, str) else talk
    return await run(wikichat.answer, talk, SHELF, limits, llm=llm, supports=reads_alike), llm


async def test_a_question_about_a_fact() -> None:
    """Bullets and a claim that holds become one draft, every sentence of which cites its passage."""
    answer, llm = await told(
        "When was the lighthouse of Skarholm built, and who designed it?",
        {
            "summarise": by_title(Skarholm_lighthouse="- Skarholm lighthouse was built in 1887. [1]"),
            "generate": "It was designed by Oda Hagen.",
            "split": "- Oda Hagen designed the lighthouse of Skarholm. | none",
            "verify": "Reasoning: Sentence 1 says so.\nSentences: 1\nVerdict: SUPPORTS",
            "draft": "Skarholm lighthouse was built in 1887 [1]. Oda Hagen designed the lighthouse of Skarholm [2].",
        },
    )

    assert [(one.text, one.citations) for one in answer.answer.sentences] == [
        ("Skarholm lighthouse was built in 1887.", (1,)),
        ("Oda Hagen designed the lighthouse of Skarholm.", (2,)),
    ]
    assert [(one.title, one.quote) for one in answer.answer.citations] == [
        ("Skarholm lighthouse", "Skarholm lighthouse was built in 1887."),
        ("Oda Hagen", "Oda Hagen designed the lighthouse of Skarholm."),
    ]
