"""Conversations over the example handbook, end to end: real retrieval, check and record, a model that reads."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from ingest.sources.folder import FolderSource
from pipeline.llm.model import ModelCall
from pipeline.systems import SYSTEMS
from pipeline.types import Status, Turn
from storage.types import Verdict
from tests.handbook import HANDBOOK, copy_home
from tests.turns.document_app import DocumentApp, open_document_app
from tests.turns.reader import Notes, copied, number, reading, sources, turn_of


@pytest.fixture(scope="module")
def opened(handbook: Path, tmp_path_factory: pytest.TempPathFactory):
    home = copy_home(handbook, tmp_path_factory.mktemp("home"))
    with open_document_app(home, FolderSource(HANDBOOK), "handbook") as house:
        yield house


@pytest.fixture(params=["wikichat", "wikichat-fast"])
def house(request: pytest.FixtureRequest, opened: DocumentApp) -> DocumentApp:
    return replace(opened, system=request.param)


async def test_question_about_a_fact(house: DocumentApp) -> None:
    told = await house.ask(
        "Who founded the company, and when?",
        reading(
            "founded the company",
            query="who founded the company and when",
            knows="It was founded long ago. Its first order from abroad came from Bergen.",
            claims=("The first order from abroad came from the port of Bergen in 1903. | none",),
        ),
    )

    assert told.said == [
        "Agnes Tolliver, a clockmaker, and Henrik Ebb, a harbour pilot, founded the company in 1894.",
        "The first order from abroad came from the port of Bergen in 1903.",
    ]
    assert told.cited == [
        ("A short history of the company", told.said[0]),
        ("A short history of the company", told.said[1]),
    ]
    assert set(told.claims.values()) == {Verdict.SUPPORTS}
    assert [step["stage"] for step in told.steps("query")] == ["query"]
    assert told.closed["usage"]["llm_calls"] == len(told.llm.calls)


async def test_follow_up_uses_the_earlier_turn(house: DocumentApp) -> None:
    before = (
        Turn("user", "Who is the oldest dog in the office?"),
        Turn("bot", "The dog with the longest service is Bosun, a wire-haired terrier. [1]"),
    )

    def resolved(call: ModelCall) -> str:
        (name,) = re.findall(r"Chatbot: .* service is (\w+),", turn_of(call))
        return f"badge number of the dog {name}"

    told = await house.ask("Which badge number does he have?", reading("Bosun", query=resolved), *before)

    assert "badge number 0" in told.said[0]
    assert [title for title, _ in told.cited] == ["Dogs, a cat and other animals"]
    assert "badge number of the dog Bosun" in [step["query"] for step in told.steps("search")]
    assert told.entries[0].body["earlier"] == [turn.text for turn in before]


async def test_a_greeting(house: DocumentApp) -> None:
    told = await house.ask("Hello there!", {})

    assert (told.done.answer.status, told.llm.calls, told.steps("search")) == (Status.CHATTED, [], [])
    assert told.done.text


async def test_a_false_premise(house: DocumentApp) -> None:
    told = await house.ask(
        "Why was the Bergen office opened in 1956?",
        reading(
            "1956|Bergen office followed",
            query="opening of the Hamburg and Bergen offices",
            knows="The Bergen office was opened in 1956 to serve the fjords.",
            claims=("The Bergen office followed in 1956. | none",),
        ),
    )

    assert told.claims == {"The Bergen office followed in 1956.": Verdict.REFUTES}
    assert any("2004" in text for text in told.said)
    assert not any("Bergen" in text and "1956" in text for text in told.said)
    assert told.closed["claims"][0]["verdict"] == "REFUTES"
    assert told.closed["claims"][0]["reasoning"]


async def test_inverted_sentence_is_withheld(house: DocumentApp) -> None:
    told = await house.ask(
        "What is the accuracy of the Petrel?",
        reading(
            "Petrel", query="accuracy of the Petrel", writes=lambda notes: (
                f"The Petrel comes back every 18 months [{number('18 months', notes)}]. "
                f"The Petrel comes back every 24 months [{number('18 months', notes)}]."
            ),
        ),
    )  # fmt: skip

    assert "The Petrel comes back every 24 months." not in told.said
    assert all("every 18 months" in text for text in told.said)
    assert any("24" in one["text"] for one in told.closed["withheld"])


async def test_a_question_about_a_year(house: DocumentApp) -> None:
    told = await house.ask("What was new in 2018?", reading("2018", query="new instruments and services", time="2018"))

    assert told.said == ["2018: Ebbline went into service with six harbours."]
    assert "2018" in turn_of(told.llm.of("summarise")[0])
    assert 2018 in [step["time"] for step in told.steps("search")]


async def test_the_latest_over_pages_of_different_dates(house: DocumentApp) -> None:
    told = await house.ask(
        "What is the latest meal allowance on business trips?",
        reading(r"allowance on business trips is \d+", query="meal allowance on business trips", time="recent"),
    )

    assert told.said == ["From 1 February 2026 the meal allowance on business trips is 45 euros a day."]
    assert sources(told.llm.of("summarise")[0])[0] == "Travel rules 2026 › Meals (2026-01-19)"
    assert told.done.answer.citations[0].date.date().isoformat() == "2026-01-19"
    assert "recent" in [step["time"] for step in told.steps("search")]


async def test_two_pages_that_disagree(house: DocumentApp) -> None:
    told = await house.ask(
        "What is the meal allowance?",
        reading(r"allowance on business trips is \d+", query="meal allowance on business trips"),
    )

    assert [re.findall(r"(\d+) euros", text) for text in told.said] == [["45"], ["38"]]
    assert [sentence.note for sentence in told.done.answer.sentences] == [
        "Travel rules 2026, 2026-01-19",
        "Travel rules 2024, 2024-02-05",
    ]
    assert "(Travel rules 2026, 2026-01-19) From 1 February 2026" in told.done.text


async def test_unknown_subject_shows_nearest_pages(house: DocumentApp) -> None:
    told = await house.ask(
        "Who won the chess tournament of the works in spring?",
        reading(
            "chess", query="chess tournament", knows="It was won by Pelle Strand.",
            claims=("Pelle Strand won the chess tournament of the works. | recent",),
        ),
    )  # fmt: skip

    assert (told.done.answer.status, told.done.answer.sentences) == (Status.ABSTAINED, ())
    assert set(told.claims.values()) == {Verdict.NOT_ENOUGH_INFO}
    assert "Strand" not in told.done.text
    assert len(told.done.answer.nearest) == 3
    assert told.closed["nearest"]


async def test_a_question_in_german_over_a_german_page(house: DocumentApp) -> None:
    told = await house.ask(
        "Wie viel Pfand zahle ich für den Haustürschlüssel in Hamburg?",
        reading("Pfand", query="Pfand für den Haustürschlüssel Hamburg"),
    )

    assert told.said == ["Für den Haustürschlüssel hinterlegt man 50 Euro Pfand."]
    assert told.done.answer.sentences[0].note == ""
    assert "in German, the user's language" in turn_of(told.llm.of("draft")[0])


async def test_a_question_in_german_over_english_pages(house: DocumentApp) -> None:
    told = await house.ask(
        "Wann und von wem wurde die Firma eigentlich gegründet?",
        reading(
            "founded the company", query="who founded the company and when",
            writes=lambda notes: f"Agnes Tolliver und Henrik Ebb gründeten die Firma 1894 [{number('1894', notes)}].",
        ) | {"verify": "1. SUPPORTS [1] Satz 1 sagt es."},
    )  # fmt: skip

    assert told.said == ["Agnes Tolliver und Henrik Ebb gründeten die Firma 1894."]
    assert told.done.answer.sentences[0].note == "A short history of the company, English"


async def test_a_question_with_three_parts(house: DocumentApp) -> None:
    def writes(notes: Notes) -> str:
        return (
            f"Ebbline costs 95 euros a month for each harbour [{number('95 euros', notes)}]. "
            f"Saoirse Nolan leads the calibration laboratory [{number('Saoirse Nolan leads', notes)}]. "
            f"In Bergen and Oslo the limit for a hotel is 190 euros a night [{number('190 euros', notes)}]."
        )

    told = await house.ask(
        "What does Ebbline cost, who leads the calibration laboratory, and how much may a hotel in Oslo cost?",
        reading(
            "Ebbline costs", "laboratory", "190 euros", writes=writes,
            query="price of Ebbline, head of calibration laboratory, hotel limit in Oslo",
            knows="Saoirse Nolan leads the laboratory. In Oslo it is 190 euros.",
            claims=("Saoirse Nolan leads the calibration laboratory. | none",
                    "In Bergen and Oslo the limit for a hotel is 190 euros. | recent",
                    "Ebbline costs 95 euros a month for each harbour. | none"),
        ),
    )  # fmt: skip

    assert told.pages == [
        ["About Tolliver & Ebb"],
        ["Calibration and repairs"],
        ["Travel rules 2026"],
    ]


async def test_a_draft_is_refined_and_adds_nothing(opened: DocumentApp) -> None:
    def refined(call: ModelCall) -> str:
        (mark,) = re.findall(r"Ebbline costs 95 euros[^.]*(\[\d+\])", turn_of(call))
        return f"Ebbline costs 95 euros a month for each harbour {mark}. Lifeboat stations pay 12 euros {mark}."

    told = await opened.ask("What does Ebbline cost?", reading("Ebbline", query="price of Ebbline", refines=refined))

    assert {text.split(",")[0].rstrip(".") for text in told.said} == {"Ebbline costs 95 euros a month for each harbour"}
    assert told.done.answer.withheld == 1
    assert [step["template"] for step in told.steps("refine")] == ["feedback", "refine"]


async def test_every_stage_shows_its_passages_between_fences(house: DocumentApp) -> None:
    told = await house.ask("When may I bring my dog?", reading("[Dd]og", query="dogs in the office"))

    shown = told.llm.of("summarise")
    (fence,) = {re.findall(r"^=== (\w+) begins ===$", turn_of(call), re.MULTILINE)[0] for call in shown}
    assert all(turn_of(call).count(fence) == turn_of(call).count(f"=== {fence} ") == 2 for call in shown)
    assert any("Dogs, a cat and other animals" in source for call in shown for source in sources(call))
    assert told.said


TALK = (
    ("Who is the oldest dog in the office?", "service is Bosun", "oldest dog with the longest service", "Bosun"),
    ("Which badge number does he have?", "badge number", "badge number of the dog Bosun", "badge number 0"),
    ("Thank you!", "", "", ""),
    ("Who won the chess tournament of the works in spring?", "chess tournament", "chess tournament", ""),
)


@pytest.mark.parametrize("system", SYSTEMS)
async def test_conversation_with_every_system(opened: DocumentApp, system: str) -> None:
    house, earlier = replace(opened, system=system), list[Turn]()
    for question, wanted, query, expected in TALK:

        def write(found: Notes, wanted: str = wanted) -> str:
            return copied({text: place for text, place in found.items() if re.search(wanted, text)})

        told = await house.ask(question, reading(wanted, query=query, writes=write), *earlier)
        status, titles = told.done.answer.status, [citation.title for citation in told.done.answer.citations]
        if expected:
            assert any(expected in text for text in told.said), (question, told.done.text)
        else:
            assert status is (Status.ABSTAINED if wanted else Status.CHATTED)
        earlier += [Turn("user", question), Turn("bot", told.done.text, titles=tuple(dict.fromkeys(titles)))]
