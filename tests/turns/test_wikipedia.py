"""Conversations over articles of a Wikipedia dump of 2016, where they differ from `test_handbook`."""

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from evaluation.simulated_model.transcripts import SelectedDocuments
from ingest.sources.dumps.wikipedia_dump import WikipediaDump
from pipeline.llm.model import ModelCall
from pipeline.types import SearchStarted, Turn
from tests.turns.document_app import DocumentApp, open_document_app
from tests.turns.reader import number, reading, turn_of

DATA = Path(os.environ.get("FOOTNOTE_DATA") or Path(__file__).parents[3] / "shared/data")
DUMP = DATA / "wikipedia_dumps" / "enwiki-2016-shortened.xml.bz2"
pytestmark = pytest.mark.skipif(not DUMP.is_file(), reason=f"no dump in {DUMP}")
ARTICLES = {
    "An American in Paris": "309",
    "Animalia (book)": "332",
    "Allan Dwan": "344",
    "Politics of Angola": "705",
    "Transport in Angola": "708",
}


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory):
    source = SelectedDocuments(WikipediaDump(DUMP, processes=1), frozenset(ARTICLES.values()))
    with open_document_app(tmp_path_factory.mktemp("home"), source, "wikipedia") as documents:
        yield documents


@pytest.fixture(params=["wikichat", "wikichat-fast"])
def documents(request: pytest.FixtureRequest, opened: DocumentApp) -> DocumentApp:
    return replace(opened, system=request.param)


async def test_question_about_a_fact_is_answered(documents: DocumentApp) -> None:
    searched: list[str] = []
    answered = await documents.ask(
        "Who wrote Animalia, and when was it published?",
        reading(
            "picture book|children's book|originally published",
            query="Animalia children's book originally published",
            writes=lambda notes: (
                f"Animalia is an illustrated children's book by Graeme Base [{number('children', notes)}]. "
                f"Animalia was originally published in 1986 [{number('1986', notes)}]."
            ),
        ),
        tell=lambda event: searched.append(event.query) if isinstance(event, SearchStarted) else None,
    )

    assert answered.said == [
        "Animalia is an illustrated children's book by Graeme Base.",
        "Animalia was originally published in 1986.",
    ]
    assert {title for title, _ in answered.cited} == {"Animalia (book)"}
    assert all("1986" in quote or "Graeme Base" in quote for _, quote in answered.cited)
    (citation,) = answered.done.answer.citations
    assert citation.url.endswith(f"title=Animalia_(book)&oldid={citation.revision}")
    assert "Animalia children's book originally published" in searched


async def test_follow_up_uses_the_earlier_turn(documents: DocumentApp) -> None:
    before = (
        Turn("user", "Who directed silent films from Toronto?"),
        Turn("bot", "Allan Dwan was a Canadian-born director. [1]", titles=("Allan Dwan",)),
    )

    def resolved(call: ModelCall) -> str:
        (name,) = re.findall(r"Chatbot: (\w+ \w+) was", turn_of(call))
        return f"{name} death"

    answered = await documents.ask("When did he die?", reading("28 December 1981", query=resolved), *before)

    assert all("28 December 1981" in text for text in answered.said)
    assert {title for title, _ in answered.cited} == {"Allan Dwan"}
    assert "Allan Dwan death" in [step["query"] for step in answered.steps("search")]


def _accept_premiere(call: ModelCall) -> str:
    """Support a claim by the sentence with the date of the premiere."""
    (numbered, *_) = re.findall(r"^(\d+): .*December 13, 1928", turn_of(call), re.MULTILINE)
    return f"1. [{numbered}] who: An American in Paris; if: -; when: December 13, 1928; SUPPORTS"


async def test_german_question_is_answered_from_articles(documents: DocumentApp) -> None:
    answered = await documents.ask(
        "Wann wurde „An American in Paris“ uraufgeführt und von welchem Orchester?",
        reading(
            "December 13, 1928", query="An American in Paris premiere",
            writes=lambda notes: (
                "„An American in Paris“ wurde am 13. Dezember 1928 in der Carnegie Hall uraufgeführt "
                f"[{number('December 13', notes)}]."
            ),
        ) | {"verify": _accept_premiere},
    )  # fmt: skip

    assert "Write the query in English" in turn_of(answered.llm.of("query")[0])
    assert answered.said == ["„An American in Paris“ wurde am 13. Dezember 1928 in der Carnegie Hall uraufgeführt."]
    assert answered.done.answer.sentences[0].note == ""


async def test_wrong_german_date_is_withheld(documents: DocumentApp) -> None:
    answered = await documents.ask(
        "Wann wurde „An American in Paris“ uraufgeführt und von welchem Orchester?",
        reading(
            "December 13, 1928", query="An American in Paris premiere",
            writes=lambda notes: (
                f"„An American in Paris“ wurde am 14. Dezember 1928 uraufgeführt [{number('December 13', notes)}]."
            ),
        ) | {"verify": _accept_premiere},
    )  # fmt: skip

    assert answered.done.answer.withheld == 1
    assert all("December 13, 1928" in text for text in answered.said)
