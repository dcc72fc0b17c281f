"""The extractive system from question to answer."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from pipeline.extraction.answer_ranking import ANSWER_THRESHOLD
from pipeline.kit import Limits
from pipeline.stages import passage_order
from pipeline.support.support_check import check_verbatim
from pipeline.systems.extractive import answer, consider
from pipeline.types import Conversation, Status, Turn
from storage.types import Hit, PassageKind
from tests.pipeline.world import Shelf, Stage, answered, hit, question, run

LEAVE = hit("Everyone has 25 days of leave. It can be taken in half days.", key="leave.md", title="Leave")
PARENTS = hit(
    "Parental leave is 20 weeks long. Part-timers get parental leave, too.", key="p.md", title="Parental leave"
)
OFFICE = hit("The office in Ghent opened in May 2019.", key="office.md", title="Office in Ghent")
BERGEN = hit("The office in Bergen opened in June 2004.", key="bergen.md", title="Office in Bergen")
SHELF = Shelf([LEAVE, PARENTS, OFFICE, BERGEN])


async def test_unanswerable_question_is_abstained() -> None:
    outcome = await run(answer, question("Who painted the Mona Lisa in the office?"), SHELF)
    assert outcome.answer.status is Status.ABSTAINED
    assert {source.document.title for source in outcome.answer.nearest} == {"Office in Ghent", "Office in Bergen"}


async def test_no_hits_lead_to_abstention() -> None:
    outcome = await run(answer, question("How many days of leave has everyone?"), Shelf([]))
    assert (outcome.answer.status, outcome.answer.nearest) == (Status.ABSTAINED, ())


async def test_follow_up_is_searched_with_its_context() -> None:
    shelf = Shelf([LEAVE, PARENTS, OFFICE])
    first = Turn("user", "How long is parental leave?")
    outcome = await run(answer, question("What about part-timers?", first), shelf)
    assert shelf.queries == ["What about part-timers? long parental leave"]
    assert "Part-timers get parental leave, too." in answered(outcome)


async def test_pronoun_may_refer_to_the_cited_page() -> None:
    earlier = (Turn("user", "Where do you sit?"), Turn("bot", "In Ghent.", titles=("Office in Ghent",)))
    outcome = await run(answer, question("And when did it open?", *earlier), SHELF)
    assert answered(outcome)[0] == "The office in Ghent opened in May 2019."


async def test_disagreeing_sources_are_both_shown() -> None:
    old = hit("The meal allowance is 38 euros.", key="o", title="Rules 2024", date=datetime(2024, 2, 1, tzinfo=UTC))
    new = hit("The meal allowance is 45 euros.", key="n", title="Rules 2026", date=datetime(2026, 2, 1, tzinfo=UTC))
    outcome = await run(answer, question("How many euros is the meal allowance?"), Shelf([old, new, LEAVE]))
    assert [(sentence.text, sentence.note) for sentence in outcome.answer.sentences] == [
        ("The meal allowance is 45 euros.", "Rules 2026, 2026-02-01"),
        ("The meal allowance is 38 euros.", "Rules 2024, 2024-02-01"),
    ]


def of_another_corpus(found: Hit) -> Hit:
    return replace(
        found,
        passage=replace(found.passage, id=f"wiki:{found.passage.id}", corpus="wiki"),
        document=replace(found.document, corpus="wiki"),
    )


@pytest.mark.parametrize(
    "text", ["How many days of leave has everyone?", "Who painted the Mona Lisa in the office?", "Who takes leave?"]
)
async def test_second_corpus_does_not_change_chances_in_the_first(text: str) -> None:
    others = [
        of_another_corpus(
            hit(f"Many days of leave were painted in town {number}, they say of the office.", key=f"{number}")
        )
        for number in range(30)
    ]
    alone = Stage(SHELF, question(text), Limits(), None, check_verbatim)
    both = Shelf([*SHELF.hits, *others])
    beside = Stage(both, question(text), Limits(), None, check_verbatim)
    before = await consider(question(text), alone.kit)
    after = await consider(question(text), beside.kit)
    chances = {ranked.candidate.text: ranked.chance for ranked in after.ranked}

    assert before.ranked
    assert both.queries == [text]
    assert [chances[ranked.candidate.text] for ranked in before.ranked] == [ranked.chance for ranked in before.ranked]


async def test_misdetected_question_language_is_ignored() -> None:
    talk = Conversation((Turn("user", "How many days of leave has everyone?", language="fr"),))
    outcome = await run(answer, talk, SHELF)
    assert answered(outcome)[0] == "Everyone has 25 days of leave."


async def test_number_of_quoted_sentences_is_limited() -> None:
    page = hit(" ".join(f"Rule {number} of leave is to ask early about leave." for number in range(9)), title="Leave")
    outcome = await run(answer, question("What are the rules of leave?"), Shelf([page]), Limits(sentences=2))
    assert len(answered(outcome)) <= 2


async def test_limit_bounds_the_passages_searched() -> None:
    hits = [hit(f"Leave rule {number} is fine.", key=f"{number}.md") for number in range(40)]
    outcome = await run(answer, question("What is leave rule 7?"), Shelf(hits), Limits(passages=4))
    assert outcome.recorder.steps[0].facts["k"] == 20
    assert len(outcome.recorder.found) == 20


async def test_pages_in_another_language_are_not_quoted() -> None:
    english = hit("Tage Urlaub haben wir viele, said the ladder.", key="ladders.md", title="Ladders")
    german = hit("Im Urlaub ist das Lager zu.", key="lager.md", title="Lager")
    german = replace(german, document=replace(german.document, language="de"))
    talk = Conversation((Turn("user", "Wie viele Tage Urlaub haben wir?", language="de"),))
    outcome = await run(answer, talk, Shelf([english, german]))
    assert [step.stage for step in outcome.recorder.steps] == ["search"]
    assert "ladder" not in " ".join(sentence.text for sentence in outcome.answer.sentences)


MEALS = hit("The meal allowance on business trips is 45 euros a day.", key="t.md", title="Travel", section="Meals")
HOTELS = hit(
    "A room may cost up to 140 euros a night, except in Bergen, where the limit is 190 euros.",
    key="t.md",
    title="Travel",
    section="Hotels",
    position=1,
)
DOGS = hit("Dogs are welcome in Bergen.", key="dogs.md", title="Dogs")


@pytest.mark.parametrize(
    ("texts", "expected"),
    [(["And hotels?"], HOTELS), (["And hotels?", "In Bergen?"], HOTELS), (["What about dogs?"], DOGS)],
)
async def test_follow_up_with_its_own_word_changes_the_topic(texts: list[str], expected: Hit) -> None:
    earlier = [Turn("user", text) for text in ["What is the meal allowance on business trips?", *texts[:-1]]]
    talk = question(texts[-1], *earlier)
    quotes = await consider(talk, Stage(Shelf([MEALS, HOTELS, DOGS]), talk, Limits(), None, check_verbatim).kit)
    assert [quote.text for quote in quotes.select(3)] == [expected.passage.text]


PUMPS = "\n".join(
    f"Pump: Pump {name}; Price: {price} euros" for name, price in zip("ABC", (199, 349, 500), strict=True)
)


@pytest.mark.parametrize(
    ("page", "asked", "known", "unknown", "said"),
    [
        (hit(PUMPS, title="Pumps", kind=PassageKind.TABLE), "Pump {} cost", "A", "D", "Pump A | Price: 199 euros"),
        (
            hit("Pump A costs 199 euros.\n\nPump B costs 349 euros.", title="Pumps"),
            *("Pump {} cost", "A", "D", "Pump A costs 199 euros."),
        ),
        (
            hit("Room 12 holds eight people. Room 14 holds 7 people.", title="Rooms"),
            *("room {} hold", "12", "7", "Room 12 holds eight people."),
        ),
    ],
)
async def test_other_thing_of_the_same_kind_is_not_an_answer(
    page: Hit, asked: str, known: str, unknown: str, said: str
) -> None:
    first = await run(answer, question(f"How much does {asked.format(known)}?"), Shelf([page]))
    other = await run(answer, question(f"How much does {asked.format(unknown)}?"), Shelf([page]))
    assert answered(first) == [said]
    assert other.answer.status is Status.ABSTAINED


@pytest.mark.parametrize(
    ("text", "language", "read"),
    [("How many pumps are there in Ghent?", "en", True), ("Wie viele Pumpen gibt es in Gent?", "de", False)],
)
async def test_cross_encoder_chooses_sentences_for_english_questions(text: str, language: str, *, read: bool) -> None:
    pages = [hit(f"Pumpen, pumps in Ghent, Gent {n}.", key=f"{n}.md", language=language) for n in range(20)]
    seen: list[str] = []

    async def rerank(_: str, texts: Sequence[str]) -> Sequence[float]:
        seen.extend(texts)
        return [5.0 if "Gent 7" in text else -5.0 for text in texts]

    talk = question(text)
    kit = replace(Stage(Shelf(pages), talk, Limits(), None, check_verbatim).kit, rerank=rerank)
    quotes = await consider(talk, kit)

    assert len(seen) == 2 * passage_order.MOST_READ * read  # a passage and its only sentence
    assert ("7" in quotes.ranked[0].candidate.text) == read
    assert not read or quotes.chance > ANSWER_THRESHOLD


async def test_several_corpora_share_the_passages_read() -> None:
    pages = [hit(f"Leave in town {number}.", key=f"{number}.md") for number in range(20)]
    read: list[int] = []

    async def rerank(_: str, texts: Sequence[str]) -> Sequence[float]:
        read.append(len(texts))
        return [0.0] * len(texts)

    talk = question("Which town has leave?")
    shelf = Shelf([*pages, *map(of_another_corpus, pages)])
    await consider(talk, replace(Stage(shelf, talk, Limits(), None, check_verbatim).kit, rerank=rerank))

    assert sum(read) == 2 * (passage_order.MOST_READ // 2) * 2


STEPS = "1. Charge the laptop.\n2. Sign in to the laptop.\n3. Read a page.\n4. Restart the laptop.\n5. Go home."


async def test_how_to_question_gets_every_step() -> None:
    page = hit(STEPS, title="Laptops", section="How to set up a laptop")
    outcome = await run(answer, question("How do I set up a laptop?"), Shelf([page, LEAVE]))
    assert answered(outcome) == [STEPS]


def of_corpus(name: str, found: Hit) -> Hit:
    passage = replace(found.passage, id=f"{name}:{found.passage.id}", corpus=name)
    return replace(found, passage=passage, document=replace(found.document, corpus=name))


KETELS = hit("The main keeper gets 16 days of boat leave.", key="ketel/l.md", title="Boat leave at Ketel Boats")
LUNDS = hit("The second keeper gets six days of boat leave.", key="lund/leave.md", title="Boat leave")


@pytest.mark.parametrize(
    "pages",
    [
        [of_corpus("ketel", KETELS), of_corpus("lund", LUNDS)],
        [KETELS, of_corpus("lund", LUNDS)],
        [replace(KETELS, document=replace(KETELS.document, title="Boat leave")), LUNDS],
    ],
    ids=["names of corpora", "title", "folders"],
)
@pytest.mark.parametrize(("firm", "page"), [("Ketel", KETELS), ("Lund", LUNDS)])
async def test_named_firm_is_in_the_cited_pages(pages: list[Hit], firm: str, page: Hit) -> None:
    asked = question(f"How many days of boat leave does the second keeper get at {firm}?")
    outcome = await run(answer, asked, Shelf(pages))
    assert {citation.document for citation in outcome.answer.citations} <= {page.passage.document}


async def test_firm_that_no_page_names_does_not_matter() -> None:
    outcome = await run(answer, question("How many days of leave has everyone at Skarholm?"), SHELF)
    assert answered(outcome)[0] == "Everyone has 25 days of leave."


CODE = hit(
    "To roll back a release:\n\nboatctl release rollback --to previous\nboatctl release status\n\n"
    "To see which release runs:\n\nboatctl release status",
    title="Releases",
    kind=PassageKind.CODE,
)
RELEASES = hit("A release is made every Tuesday. It can be rolled back.", key="r.md", title="Releases")


@pytest.mark.parametrize("text", ["Which command rolls back a release?", "How do I roll back a release?"])
async def test_code_answers_in_a_block(text: str) -> None:
    outcome = await run(answer, question(text), Shelf([CODE, RELEASES]))
    assert (
        "To roll back a release:\n\n```\nboatctl release rollback --to previous\nboatctl release status\n```"
        in answered(outcome)
    )


async def test_code_is_not_quoted_if_it_is_not_asked_for() -> None:
    outcome = await run(answer, question("When is a release made?"), Shelf([CODE, RELEASES]))
    assert answered(outcome) == ["A release is made every Tuesday."]


async def test_copy_of_a_list_is_not_quoted_beside_it() -> None:
    text = "The keeper on call must:\n- light the lamp\n- write a note"
    pages = [hit(text, key=key, title="On call") for key in ("a.md", "b.md")]
    outcome = await run(answer, question("What must the keeper on call do?"), Shelf(pages))
    assert "\n".join(answered(outcome)).count("light the lamp") == 1


async def test_opposite_of_what_is_asked_about_is_not_quoted() -> None:
    page = hit("The primary keeper gets 16 days of leave. The secondary keeper gets six days of leave.", title="Leave")
    outcome = await run(answer, question("How many days of leave does the secondary keeper get?"), Shelf([page]))
    assert answered(outcome) == ["The secondary keeper gets six days of leave."]


async def test_end_of_a_list_is_not_quoted_for_its_steps() -> None:
    page = hit("3. Read a page.\n4. Restart the laptop to set it up.\n5. Go home.", title="How to set up a laptop")
    outcome = await run(answer, question("How do I set up a laptop?"), Shelf([page]))
    assert answered(outcome)[0] == "Restart the laptop to set it up."
