"""Conversations over the example handbook with real retrieval, check and record, and a scripted model."""

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
    with open_document_app(home, FolderSource(HANDBOOK), "handbook") as documents:
        yield documents


@pytest.fixture(params=["wikichat", "wikichat-fast"])
def documents(request: pytest.FixtureRequest, opened: DocumentApp) -> DocumentApp:
    return replace(opened, system=request.param)


async def test_question_about_a_fact_is_answered(documents: DocumentApp) -> None:
    answered = await documents.ask(
        "Who founded the company, and when?",
        reading(
            "founded the company",
            query="who founded the company and when",
            knows="It was founded long ago. Its first order from abroad came from Bergen.",
            claims=("The first order from abroad came from the port of Bergen in 1903. | none",),
        ),
    )

    assert answered.said == [
        "Agnes Tolliver, a clockmaker, and Henrik Ebb, a harbour pilot, founded the company in 1894.",
        "The first order from abroad came from the port of Bergen in 1903.",
    ]
    assert answered.cited == [
        ("A short history of the company", answered.said[0]),
        ("A short history of the company", answered.said[1]),
    ]
    assert set(answered.claims.values()) == {Verdict.SUPPORTS}
    assert [step["stage"] for step in answered.steps("query")] == ["query"]
    assert answered.closed["usage"]["llm_calls"] == len(answered.llm.calls)


async def test_follow_up_uses_the_earlier_turn(documents: DocumentApp) -> None:
    before = (
        Turn("user", "Who is the oldest dog in the office?"),
        Turn("bot", "The dog with the longest service is Bosun, a wire-haired terrier. [1]"),
    )

    def resolved(call: ModelCall) -> str:
        (name,) = re.findall(r"Chatbot: .* service is (\w+),", turn_of(call))
        return f"badge number of the dog {name}"

    answered = await documents.ask("Which badge number does he have?", reading("Bosun", query=resolved), *before)

    assert "badge number 0" in answered.said[0]
    assert [title for title, _ in answered.cited] == ["Dogs, a cat and other animals"]
    assert "badge number of the dog Bosun" in [step["query"] for step in answered.steps("search")]
    assert answered.entries[0].body["earlier"] == [turn.text for turn in before]


async def test_greeting_gets_a_chat_reply(documents: DocumentApp) -> None:
    answered = await documents.ask("Hello there!", {})

    assert (answered.done.answer.status, answered.llm.calls, answered.steps("search")) == (Status.CHATTED, [], [])
    assert answered.done.text


async def test_false_premise_is_corrected(documents: DocumentApp) -> None:
    answered = await documents.ask(
        "Why was the Bergen office opened in 1956?",
        reading(
            "1956|Bergen office followed",
            query="opening of the Hamburg and Bergen offices",
            knows="The Bergen office was opened in 1956 to serve the fjords.",
            claims=("The Bergen office followed in 1956. | none",),
        ),
    )

    assert answered.claims == {"The Bergen office followed in 1956.": Verdict.REFUTES}
    assert any("2004" in text for text in answered.said)
    assert not any("Bergen" in text and "1956" in text for text in answered.said)
    assert answered.closed["claims"][0]["verdict"] == "REFUTES"
    assert answered.closed["claims"][0]["reasoning"]


async def test_inverted_sentence_is_withheld(documents: DocumentApp) -> None:
    answered = await documents.ask(
        "What is the accuracy of the Petrel?",
        reading(
            "Petrel", query="accuracy of the Petrel", writes=lambda notes: (
                f"The Petrel comes back every 18 months [{number('18 months', notes)}]. "
                f"The Petrel comes back every 24 months [{number('18 months', notes)}]."
            ),
        ),
    )  # fmt: skip

    assert "The Petrel comes back every 24 months." not in answered.said
    assert all("every 18 months" in text for text in answered.said)
    assert any("24" in withheld["text"] for withheld in answered.closed["withheld"])


async def test_question_about_a_year_is_answered(documents: DocumentApp) -> None:
    answered = await documents.ask(
        "What was new in 2018?", reading("2018", query="new instruments and services", time="2018")
    )

    assert answered.said == ["2018: Ebbline went into service with six harbours."]
    assert "2018" in turn_of(answered.llm.of("summarise")[0])
    assert 2018 in [step["time"] for step in answered.steps("search")]


async def test_question_for_the_latest_cites_the_newest_page(documents: DocumentApp) -> None:
    answered = await documents.ask(
        "What is the latest meal allowance on business trips?",
        reading(r"allowance on business trips is \d+", query="meal allowance on business trips", time="recent"),
    )

    assert answered.said == ["From 1 February 2026 the meal allowance on business trips is 45 euros a day."]
    assert sources(answered.llm.of("summarise")[0])[0] == "Travel rules 2026 › Meals (2026-01-19)"
    assert answered.done.answer.citations[0].date.date().isoformat() == "2026-01-19"
    assert "recent" in [step["time"] for step in answered.steps("search")]


async def test_disagreement_of_two_pages_is_shown(documents: DocumentApp) -> None:
    answered = await documents.ask(
        "What is the meal allowance?",
        reading(r"allowance on business trips is \d+", query="meal allowance on business trips"),
    )

    assert [re.findall(r"(\d+) euros", text) for text in answered.said] == [["45"], ["38"]]
    assert [sentence.note for sentence in answered.done.answer.sentences] == [
        "Travel rules 2026, 2026-01-19",
        "Travel rules 2024, 2024-02-05",
    ]
    assert "(Travel rules 2026, 2026-01-19) From 1 February 2026" in answered.done.text


async def test_unknown_subject_shows_nearest_pages(documents: DocumentApp) -> None:
    answered = await documents.ask(
        "Who won the chess tournament of the works in spring?",
        reading(
            "chess", query="chess tournament", knows="It was won by Pelle Strand.",
            claims=("Pelle Strand won the chess tournament of the works. | recent",),
        ),
    )  # fmt: skip

    assert (answered.done.answer.status, answered.done.answer.sentences) == (Status.ABSTAINED, ())
    assert set(answered.claims.values()) == {Verdict.NOT_ENOUGH_INFO}
    assert "Strand" not in answered.done.text
    assert len(answered.done.answer.nearest) == 3
    assert answered.closed["nearest"]


async def test_german_question_is_answered_from_a_german_page(documents: DocumentApp) -> None:
    answered = await documents.ask(
        "Wie viel Pfand zahle ich für den Haustürschlüssel in Hamburg?",
        reading("Pfand", query="Pfand für den Haustürschlüssel Hamburg"),
    )

    assert answered.said == ["Für den Haustürschlüssel hinterlegt man 50 Euro Pfand."]
    assert answered.done.answer.sentences[0].note == ""
    assert "in German, the user's language" in turn_of(answered.llm.of("draft")[0])


async def test_german_question_is_answered_from_english_pages(documents: DocumentApp) -> None:
    answered = await documents.ask(
        "Wann und von wem wurde die Firma eigentlich gegründet?",
        reading(
            "founded the company", query="who founded the company and when",
            writes=lambda notes: f"Agnes Tolliver und Henrik Ebb gründeten die Firma 1894 [{number('1894', notes)}].",
        ) | {"verify": "1. SUPPORTS [1] Satz 1 sagt es."},
    )  # fmt: skip

    assert answered.said == ["Agnes Tolliver und Henrik Ebb gründeten die Firma 1894."]
    assert answered.done.answer.sentences[0].note == ""


async def test_question_with_three_parts_is_answered(documents: DocumentApp) -> None:
    def writes(notes: Notes) -> str:
        return (
            f"Ebbline costs 95 euros a month for each harbour [{number('95 euros', notes)}]. "
            f"Saoirse Nolan leads the calibration laboratory [{number('Saoirse Nolan leads', notes)}]. "
            f"In Bergen and Oslo the limit for a hotel is 190 euros a night [{number('190 euros', notes)}]."
        )

    answered = await documents.ask(
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

    assert answered.pages == [["About Tolliver & Ebb"], ["Calibration and repairs"], ["Travel rules 2026"]]


async def test_refined_draft_adds_no_claims(opened: DocumentApp) -> None:
    def refined(call: ModelCall) -> str:
        (mark,) = re.findall(r"Ebbline costs 95 euros[^.]*(\[\d+\])", turn_of(call))
        return f"Ebbline costs 95 euros a month for each harbour {mark}. Lifeboat stations pay 12 euros {mark}."

    answered = await opened.ask(
        "What does Ebbline cost?", reading("Ebbline", query="price of Ebbline", refines=refined)
    )

    assert {text.split(",")[0].rstrip(".") for text in answered.said} == {
        "Ebbline costs 95 euros a month for each harbour"
    }
    assert answered.done.answer.withheld == 1
    assert [step["template"] for step in answered.steps("refine")] == ["feedback", "refine"]


async def test_every_prompt_fences_its_passages(documents: DocumentApp) -> None:
    answered = await documents.ask("When may I bring my dog?", reading("[Dd]og", query="dogs in the office"))

    shown = answered.llm.of("summarise")
    (fence,) = {re.findall(r"^=== (\w+) begins ===$", turn_of(call), re.MULTILINE)[0] for call in shown}
    assert all(turn_of(call).count(fence) == turn_of(call).count(f"=== {fence} ") == 2 for call in shown)
    assert any("Dogs, a cat and other animals" in source for call in shown for source in sources(call))
    assert answered.said


TALK = (
    ("Which dog has been here longest?", "service is Bosun", "dog with the longest service", "Bosun"),
    ("Which badge number does he have?", "badge number", "badge number of the dog Bosun", "badge number 0"),
    ("Thank you!", "", "", ""),
    ("Who won the chess tournament of the works in spring?", "chess tournament", "chess tournament", ""),
)


@pytest.mark.parametrize("system", SYSTEMS)
async def test_every_system_answers_a_conversation(opened: DocumentApp, system: str) -> None:
    documents, earlier = replace(opened, system=system), list[Turn]()
    for question, wanted, query, expected in TALK:

        def write(found: Notes, wanted: str = wanted) -> str:
            return copied({text: place for text, place in found.items() if re.search(wanted, text)})

        answered = await documents.ask(question, reading(wanted, query=query, writes=write), *earlier)
        status, titles = answered.done.answer.status, [citation.title for citation in answered.done.answer.citations]
        if expected:
            assert any(expected in text for text in answered.said), (question, answered.done.text)
        else:
            assert status is (Status.ABSTAINED if wanted else Status.CHATTED)
        earlier += [Turn("user", question), Turn("bot", answered.done.text, titles=tuple(dict.fromkeys(titles)))]
