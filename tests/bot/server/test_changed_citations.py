"""Tests of finding sentences of an answer that its cited documents no longer support."""

from dataclasses import replace

import pytest

from bot.server.refresh.changed_citations import find_lost_sentences
from pipeline.support.support_check import SupportChecker
from pipeline.types import Answer, AnsweredSentence, Status
from storage.types import Citation, Document, Passage
from tests.pipeline.support.word_embeddings import read

KEY = ("handbook", "leave.md")
DAYS = "Employees of the yard get 20 days of paid vacation a year."
SICK = "Employees of the yard get 20 days of sick leave a year."
SAYS = "Each year, the yard's employees get 20 paid days of vacation."


def cite(text: str, number: int = 1, corpus: str = "handbook") -> Citation:
    place = (number, corpus, "leave.md", "Leave", "Vacation", "", "", None)
    return Citation(*place, text, f"p{number}", text, "h")


def page(*texts: str) -> tuple[Document, tuple[Passage, ...]]:
    passages = (Passage(f"q{at}", *KEY, "Vacation", text, at, "h") for at, text in enumerate(texts))
    return Document(*KEY, "Leave"), tuple(passages)


async def lost(sentence: str, cited: str, *texts: str, corpus: str = "handbook") -> list[tuple[str, bool]]:
    """Return the page's new words for a sentence that is lost, and whether the page is deleted."""
    answer = Answer(Status.ANSWERED, (AnsweredSentence(sentence, (1,)),), (cite(cited, corpus=corpus),))
    pages = {KEY: page(*texts)} if texts else {}
    sentences = await find_lost_sentences(answer, pages, SupportChecker(read), "How much vacation do I get?")
    return [(sentence.now, sentence.removed) for sentence in sentences]


@pytest.mark.parametrize("sentence", [DAYS, SAYS])
@pytest.mark.parametrize(
    "texts",
    [
        (DAYS,),
        (f"It was decided in May.  {DAYS.replace(' days', chr(10) + 'days')}",),
        ("The yard is closed in July.", DAYS),
        ("A year, employees of the yard get 20 days of paid vacation.",),
    ],
    ids=["the same", "in other company", "in another passage", "in other words"],
)
async def test_sentence_still_on_the_page_holds(sentence: str, texts: tuple[str, ...]) -> None:
    assert await lost(sentence, DAYS, *texts) == []


@pytest.mark.parametrize("sentence", [DAYS, SAYS])
async def test_sentence_missing_from_the_page_does_not_hold(sentence: str) -> None:
    now = DAYS.replace("20", "25")
    assert await lost(sentence, DAYS, now) == [(now, False)]
    assert await lost(sentence, DAYS, SICK, now) == [(now, False)]
    assert await lost(sentence, DAYS, "The yard is closed in July.") == [("", False)]
    assert await lost(sentence, DAYS) == [("", True)]


async def test_web_pages_are_not_rechecked() -> None:
    assert await lost(DAYS, DAYS, corpus="web:searxng") == []


async def test_each_deleted_passage_is_checked_against_its_own_replacement() -> None:
    both = "Employees of the yard get 20 days of paid vacation a year and 20 days of sick leave a year."
    answer = Answer(Status.ANSWERED, (AnsweredSentence(both, (1, 2)),), (cite(DAYS), cite(SICK, 2)))

    async def lost_of(*texts: str) -> int:
        return len(await find_lost_sentences(answer, {KEY: page(*texts)}, SupportChecker(read), ""))

    assert await lost_of(SICK, DAYS.replace("a year", "each year")) == 0
    assert await lost_of(SICK, DAYS.replace("20", "25")) == 1


@pytest.mark.parametrize("places", [(0, 1), (1, 0)])
async def test_sentence_holds_while_one_page_of_its_footnote_does(places: tuple[int, ...]) -> None:
    copies = cite(DAYS), replace(cite(DAYS), document="copy.md", passage_id="p2")
    answer = Answer(Status.ANSWERED, (AnsweredSentence(DAYS, (1,)),), tuple(copies[place] for place in places))
    assert await find_lost_sentences(answer, {KEY: page(DAYS)}, SupportChecker(read), "") == []
