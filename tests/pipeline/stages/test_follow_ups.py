"""Terms that a question takes from earlier turns."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.stages.question_analysis import (
    ResolvedQuestion,
    asks_for_fact,
    depends_on_context,
    leans_back,
    read_as_query,
    resolve_question,
    split_question,
)
from pipeline.types import Conversation, Turn
from storage.types import SearchQuery

LEAVE = Turn("user", "How many days of parental leave do I get?")
BRIDGE = Turn("user", "Tell me about the Golden Gate Bridge.")
ANSWER = Turn("bot", "It is a bridge.", titles=("Golden Gate Bridge", "San Francisco"))


def borrowed(text: str, *earlier: Turn) -> set[str]:
    return set(resolve_question(Conversation((*earlier, Turn("user", text)))).borrowed.split())


THANKS = Turn("user", "thanks!")
SPLIT = Turn("user", "Can it be split?")
GATE = {"Golden", "Gate", "Bridge"}
LONG = Turn("user", " ".join(f"thing{number}" for number in range(500)))


@pytest.mark.parametrize(
    ("earlier", "text", "kept", "left_out"),
    [
        *(
            ((BRIDGE, ANSWER), text, GATE, ())
            for text in (
                *("And when did it open?", "How long is it?", "When was it built?", "Really? And how long is it?"),
                *("Who designed this?", "What about its towers?", "How tall?", "Why?"),
            )
        ),
        ((LEAVE,), "What about part-timers?", {"days", "parental", "leave", "get"}, ()),
        ((LEAVE, SPLIT), "And who may take it?", {"split", "parental", "leave"}, ()),
        ((LEAVE, BRIDGE), "How long is it?", (), {"parental"}),
        ((BRIDGE, THANKS), "And when did it open?", GATE, ()),
        ((Turn("user", "What may a hotel in Oslo cost?"),), "And in Bergen?", {"hotel"}, {"Oslo"}),
        ((Turn("user", "How many days for apprentices?"),), "for managers?", {"days"}, {"apprentices"}),
        ((Turn("user", "Wann wurde das Hamburger Büro eröffnet?"),), "Und wer leitet es?", {"Hamburger"}, ()),
        ((Turn("user", "¿Cuántos días de vacaciones tengo?"),), "¿Y los becarios?", {"vacaciones"}, ()),
        ((Turn("user", "Combien de jours de congé ai-je ?"),), "Et les stagiaires ?", {"congé"}, ()),
        ((Turn("user", "公司有几天年假？"),), "那兼职员工呢？", {"公司有几天年假"}, ()),
    ],
)
def test_follow_up_borrows_the_words_of_its_topic(
    earlier: tuple[Turn, ...], text: str, kept: Iterable[str], left_out: Iterable[str]
) -> None:
    """A pronoun, an opening "and", or a question without a topic borrows; a replaced phrase is not borrowed."""
    assert borrowed(text, *earlier) >= set(kept)
    assert borrowed(text, *earlier).isdisjoint(left_out)


@pytest.mark.parametrize(
    "text",
    [
        "How do I order a new laptop?",
        "Who approves holiday?",
        "When is payday?",
        "Is it possible to work from abroad?",
        "Is there a canteen in Ghent?",
        "What does the university call its newspaper?",
        "When did Ada Lovelace publish her notes?",
        "What do we celebrate this year?",
        "How long does it take to get a badge?",
    ],
)
def test_question_with_its_own_topic_borrows_nothing(text: str) -> None:
    assert borrowed(text, LEAVE, ANSWER) == set()


def test_borrowed_words_are_limited() -> None:
    assert len(borrowed("And when did it open?", LONG)) == 24


def test_first_question_borrows_nothing() -> None:
    question = resolve_question(Conversation((Turn("user", "And when did it open?"),)))
    assert (question.text, question.borrowed, question.query) == ("And when did it open?", "", "And when did it open?")


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        *((text, True) for text in ("It was built.", "They carry it.", "“These are red.", "Its span is 1280 m.")),
        *(
            (text, True)
            for text in ("Therefore it closes.", "For example, ask Ada.", "However, pay.", "In return, pay.")
        ),
        *((text, False) for text in ("Instead of tea, ask for milk.", "In addition to tea, pay.", "Software opens.")),
        *((text, False) for text in ("Italy is red.", "There are five.", "The bridge opened.", "This year is short.")),
    ],
)
def test_sentence_that_needs_the_one_before_it_is_detected(sentence: str, *, expected: bool) -> None:
    assert leans_back(sentence, "en") is expected


@given(st.lists(st.text(max_size=40), min_size=1, max_size=5), st.sampled_from(["", "en", "de", "zh", "xx"]))
def test_any_conversation_can_be_resolved(texts: list[str], language: str) -> None:
    talk = Conversation(tuple(Turn("user", text, language=language) for text in texts))
    assert resolve_question(talk).text == texts[-1]
    assert isinstance(depends_on_context(texts[-1], language), bool)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("How long is the trial, and can it be extended?", ["How long is the trial", "can it be extended?"]),
        ("I am ill, who do I tell and by when?", ["I am ill, who do I tell", "by when?"]),
        ("Who signs it off, and how long does that take?", ["Who signs it off", "how long does that take?"]),
        ("When do the offices in Bergen and Cobh open?", ["When do the offices in Bergen and Cobh open?"]),
        ("Who is the head of research and development?", ["Who is the head of research and development?"]),
    ],
)
def test_question_for_two_things_is_split(text: str, parts: list[str]) -> None:
    questions = split_question(ResolvedQuestion(text))
    assert [part.text for part in questions] == parts
    assert all(bool(part.borrowed) == (len(parts) > 1) for part in questions)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("At weekends?", True),
        ("For apprentices?", True),
        ("Bergen?", True),
        ("In which year was the office opened?", False),
        ("Opening hours of the office in Bergen", False),
        ("After how many days is leave lost?", False),
    ],
)
def test_elliptic_question_depends_on_context(text: str, *, expected: bool) -> None:
    assert depends_on_context(text, "en") is expected


@pytest.mark.parametrize(
    ("text", "varied"),
    [
        ("And hotels?", "hotels"),
        ("What about part-timers?", "part timers"),
        ("in Bergen?", "Bergen"),
        ("And when did it open?", ""),
        ("And who may take it?", ""),
        ("How many?", ""),
        ("How do I order a new laptop?", ""),
    ],
)
def test_short_follow_up_varies_the_previous_question(text: str, varied: str) -> None:
    assert resolve_question(Conversation((LEAVE, Turn("user", text)))).varied == varied


FERRIES = (
    Turn("user", "Which ferries sail to Skarholm in winter?"),
    Turn("bot", "Larkspur Ferries sails on Sundays.", titles=("Ferries",)),
)


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("How many days of parental leave do I get?", None),
        ("how do i order a new laptop", None),
        ("Hi! Who approves holiday? Thanks!", None),
        ("Can you tell me who looks after the boiler?", None),
        ("Tell me about the pier of Skarholm.", None),
        ("Who won the race to Skarholm in 1998?", 1998),
        ("What is the current fare to Skarholm?", "recent"),
        ("Was kostet die aktuelle Überfahrt?", "recent"),
        ("Quanto costa il traghetto?", None),
        ("码头是什么时候建成的？", None),
    ],
)
def test_clear_first_question_is_its_own_query(text: str, time: str | int | None) -> None:
    assert read_as_query(Conversation((Turn("user", text),))) == SearchQuery(text, time)
    later = read_as_query(Conversation((Turn("user", "hello"), Turn("bot", "Hello!"), Turn("user", text))))
    assert later == SearchQuery(text, time)


UNCLEAR_FIRST = [
    "The canteen is lovely.",
    "I was told that the ferry sails at noon.",
    "What do you know?",
    "Who made you, and are you clever?",
    "What does the ferry cost? And when does it leave?",
    "Who steers the ferry, and who owns the pier?",
    "Who steers the ferry, where does he live?",
    "What was our profit last year?",
    "How often did the ferry fail since 1990?",
    "Was it colder in 1911 than in 1912?",
    "How many boats sailed to Skarholm in 1911 and 1912?",
    "Who sailed yesterday?",
    "Wer hat letztes Jahr gewonnen?",
    "What does https://example.org say?",
    "Is " + "the very " * 30 + "old pier open?",
    "Spares",
]
OWN_TOPIC = [
    "When was the Golden Gate Bridge opened?",
    "Does Larkspur Ferries carry bicycles?",
    "Which ferries to Skarholm carry bicycles?",
    "How is the winter crew of ferries paid?",
    "How many people live in the city of Ghent?",
]
UNCLEAR_LATER = [
    "And when do they sail?",
    "What does a return ticket cost?",
    "What does the return ticket cost?",
    "Which is faster?",
    "Which ferries are cheaper than this ferry to Skarholm?",
    "Are there other ferries to Skarholm?",
    "What about the first boat of Larkspur Ferries?",
    "What are Larkspur's plans?",
    "Sounds good, Skarholm ferries carry bicycles on Sundays?",
    "What is the opposite shore of Skarholm called?",
    "What are the harbours in Norway called?",
    "What does Larkspur charge for bicycles?",
    "Do both ferries to Skarholm carry bicycles?",
    "Was kostet die Überfahrt nach Skarholm?",
    "Quanto costa il traghetto per Skarholm?",
]


@pytest.mark.parametrize(
    ("earlier", "text", "clear"),
    [
        *(((), text, False) for text in UNCLEAR_FIRST),
        *((FERRIES, text, True) for text in OWN_TOPIC),
        *((FERRIES, text, False) for text in UNCLEAR_LATER),
    ],
)
def test_only_a_clear_question_with_its_own_topic_is_its_own_query(
    earlier: tuple[Turn, ...], text: str, *, clear: bool
) -> None:
    assert read_as_query(Conversation((*earlier, Turn("user", text)))) == (SearchQuery(text) if clear else None)


@given(st.text(max_size=60), st.lists(st.text(max_size=40), max_size=2))
def test_query_without_a_model_is_the_question_itself(text: str, earlier: list[str]) -> None:
    talk = Conversation((*(Turn("user", said) for said in earlier), Turn("user", text)))
    query = read_as_query(talk)
    assert query is None or query.text == resolve_question(talk).query


@pytest.mark.parametrize(
    ("fact", "text"),
    [
        (True, "When was the pier built?"),
        (True, "And since when has it been closed?"),
        (True, "The pier is closed. Who mends it?"),
        (True, "What colour is the lighthouse?"),
        (True, "What does a ticket to Skarholm cost?"),
        (True, "Please, is the ferry free?"),
        (True, "Wie lange fährt die Fähre?"),
        (True, "¿Cuánto cuesta el billete?"),
        (True, "Où est le phare ?"),
        (False, "Why was the pier built?"),
        (False, "When was the pier built, and how did it fall?"),
        (False, "Tell me about the pier."),
        (False, "Can you explain who keeps the lighthouse?"),
        (False, "Who was Oda Hagen?"),
        (False, "What is Skarholm known for?"),
        (False, "Wie wurde die Mole gebaut?"),
        (False, "¿Quién fue Oda Hagen?"),
        (False, "灯台はどこですか。"),
        (False, "Thanks!"),
    ],
)
def test_fact_questions_are_distinguished_from_explanations(fact: bool, text: str) -> None:  # noqa: FBT001 - a parameter of the test
    assert asks_for_fact(Conversation((Turn("user", text),))) is fact
