"""Questions that rules make from sentences, headings and table rows."""

from dataclasses import replace
from random import Random

import pytest

from evaluation.answers.own.own_questions import order_questions
from evaluation.answers.own.question_maker import ask_heading, ask_rows, make_questions
from evaluation.answers.own.sentence_questions import MadeQuestion, Prose, ask_sentence
from storage.types import Document, Passage, PassageKind

PAGE = Document("handbook", "ferry.md", "Harbour ferry", language="en")


def passage(text: str, section: str = "", kind: PassageKind = PassageKind.PROSE, position: int = 0) -> Passage:
    return Passage(f"p{position}", "handbook", "ferry.md", section, text, position, "h", kind)


STATEMENTS = """
The day ticket of the ferry is £12.50 a head. | How much is the day ticket of the ferry? | £12.50
Repairs should be reported in the #boatyard Slack channel. | In which channel should repairs be reported? | #boatyard
You must return the key within 3 working days of your last shift. | \
Within how many working days of your last shift must you return the key? | 3 working days
Skippers must book a berth at least 30 days in advance. | How many days in advance must skippers book a berth? | 30 days
The roster will be sent to you 2 hours before the tide. | \
How many hours before the tide will the roster be sent to you? | 2 hours
Logs are retained in the cabin for two years. | For how long are logs retained in the cabin? | two years
Your timesheet must be handed in by 5pm on the last day. | \
By when must your timesheet be handed in on the last day? | 5pm
The bell is rung at 06:30 on the pier. | At what time is the bell rung on the pier? | 06:30
The accounts are closed on 31 March by auditors. | On what date are the accounts closed by auditors? | 31 March
The crew is briefed on Mondays in the mess. | On which day of the week is the crew briefed in the mess? | Mondays
The old pier was rebuilt in May 1956. | When was the old pier rebuilt? | May 1956
We check the life jackets every two weeks. | How often do we check the life jackets? | every two weeks
You may claim up to 65 euros for a dinner. | How much may you claim for a dinner? | 65 euros
You may split the leave into as many as three blocks. | How many blocks may you split the leave into? | three & blocks
The Deck team is responsible for the mooring lines. | Who is responsible for the mooring lines? | Deck team
The spare parts must be approved by the Yard team. | Who must the spare parts be approved by? | Yard team
HarbourLog is a notebook in which skippers write. | What is HarbourLog? |
"""


@pytest.mark.parametrize("row", STATEMENTS.strip().splitlines())
def test_statement_becomes_a_question_for_its_value(row: str) -> None:
    sentence, question, answer = (part.strip() for part in row.split("|"))
    made = [
        (candidate.text, " & ".join(candidate.answer)) for candidate in ask_sentence(sentence, Prose.read(sentence))
    ]

    assert made == [(question, answer)]


@pytest.mark.parametrize(
    "sentence",
    [
        "It must be returned within 3 days of the trip.",  # what?
        "You must not return the key within 3 days of a trip.",
        "You may take 3 days in May or 5 days in June.",  # which?
        "The berth is worth 300 euros in a year of storms.",
        "We opened the second pier in 1956.",
        "The team is responsible for the mooring lines.",  # any team
        "The ferry can be seen from the second of three towers.",
        "Made in 1956.",
        "All questions should be directed to the #boatyard channel.",
        "The harbour team will reply within 3 days.",
        "The Deck team should follow our policy of travel.",  # so does everybody
    ],
)
def test_context_dependent_sentence_yields_no_question(sentence: str) -> None:
    assert list(ask_sentence(sentence, Prose.read(sentence))) == []


@pytest.mark.parametrize(
    ("heading", "question"),
    [
        ("How to moor a boat", "How do I moor a boat?"),
        ("How we choose new boats", "How do we choose new boats?"),
        ("What to do in a storm", "What should I do in a storm?"),
        ("Who may use the crane?", "Who may use the crane?"),
        ("What are the tides (by month) ?", "What are the tides (by month)?"),
        ("When to use the crane?", "When should I use the crane?"),
        ("What to tell the crew", "What should I tell the crew?"),
        ("How to log a repair in your notebook", "How do I log a repair in my notebook?"),
        ("What to do if you lose your key", "What should I do if I lose my key?"),
        ("How to wake you at night", ""),
        ("How debug the old crane?", ""),
        ("Why paint the old crane?", ""),
        ("Which cranes ARE for hire?", ""),
        ("What happens then?", ""),
        ("What about the old pier?", ""),
        ("Who may use the [name of crane]?", ""),
        ("Are you a new skipper?", ""),
        ("What does this mean?", ""),
        ("Mooring and anchoring of boats", ""),
        ("Why?", ""),
    ],
)
def test_heading_becomes_a_question(heading: str, question: str) -> None:
    assert ask_heading(heading) == question


def test_heading_question_is_self_contained_and_answered_by_its_section() -> None:
    answered = "The crane may be used by whoever has a licence of the yard. The licence is shown at the gate each time."
    passages = [
        passage(answered, "Who may use the crane?"),
        passage(answered + " The crane is moved by the steps below:", "How to move the crane", position=3),
        passage(f"{answered} Follow the steps below. Take care.", "How to paint the crane", position=4),
        passage("Nothing to be seen in these two sentences. " * 3, "Who owns the hydrofoil?", position=1),
        passage("See the other page about the crane and its licences. " * 2, "How to use a crane"),
    ]

    assert [(question.text, question.answer, question.passage) for question in make_questions(passages, PAGE)] == [
        ("Harbour ferry: who may use the crane?", (), "p0")
    ]
    named = [passage(answered.replace("crane", "Goliath"), "Who may use the Goliath?")]
    assert [question.text for question in make_questions(named, PAGE)] == ["Who may use the Goliath?"]
    inner = [passage(answered, "Cranes › Who may use the crane?")]
    assert [question.text for question in make_questions(inner, PAGE)] == [
        "Harbour ferry, Cranes: who may use the crane?"
    ]
    listed = "- The licences of all the cranes of the yard\n- The crane of the second pier, and how it is moved"
    links = [passage(listed, "Who may use the crane?")]
    assert list(make_questions(links, PAGE)) == []
    german = replace(PAGE, language="de")
    assert list(make_questions(named, german)) == []


@pytest.mark.parametrize(
    ("section", "text", "asked"),
    [
        (
            "Is the crane for hire?",
            "No, the crane is kept for the yard alone, all year round, for fear of storms at sea. So it is for now.",
            True,
        ),
        (
            "Is the crane for hire?",
            "The crane is for hire from May. Whoever has a licence may hire it, for a day at most, in all weathers.",
            True,
        ),
        (
            "Is the crane for hire?",
            "Most people bring a winch. The crane stands at the end of the pier, where nobody minds it for long.",
            False,
        ),
        (
            "How to hire the crane",
            "A crane is a big thing. The process of hiring it is documented here. It is no sure thing, but we try.",
            False,
        ),
        (
            "How to hire the crane",
            "For a crane read more of the yard. The hire of a crane is shown here. Do leave a comment on it, please.",
            False,
        ),
    ],
)
def test_section_without_the_answer_is_not_asked(section: str, text: str, asked: object) -> None:
    assert bool(list(make_questions([passage(text, section)], PAGE))) is asked


LOG, LINES = (
    "HarbourLog is a notebook in which skippers write.",
    "The Deck team is responsible for the mooring lines.",
)


@pytest.mark.parametrize(
    ("title", "section", "text", "asked"),
    [
        ("HarbourLog", "", LOG, ["What is HarbourLog?"]),
        ("Tools", "About HarbourLog", LOG, ["Tools: what is HarbourLog?"]),
        ("Rules of HarbourLog", "Rules", LOG, []),
        ("HarbourLog", "", f"We write it all down. {LOG}", []),
        ("Deck team rota", "", LINES, []),
        ("Ferry", "", LINES, ["Ferry: who is responsible for the mooring lines?"]),
        ("Care of mooring lines", "", LINES, ["Who is responsible for the mooring lines?"]),
    ],
)
def test_page_title_is_added_once_without_the_answer(title: str, section: str, text: str, asked: list[str]) -> None:
    page = replace(PAGE, title=title)
    assert [question.text for question in make_questions([passage(text, section)], page)] == asked


def test_table_row_with_a_unique_value_becomes_a_question() -> None:
    rows = "Office: Cobh; Address: 3 Hawser Lane\nOffice: Bergen; Address: Pier 4\nOffice: Hull; Address: Pier 4"
    unasked = "Office: Cobh; The company pays: 9 percent\nVersion: 1.0; Date: 2026-01-01\nJob: Cook; Crew: see above"
    unasked = f"{unasked}\nFlag: Red; Use: Storm; Fire"

    assert [(row.text, row.answer) for row in ask_rows(rows)] == [
        ("What is the address of the office “Cobh”?", ("3 Hawser Lane",))
    ]
    assert list(ask_rows(unasked)) == []


def test_duplicate_facts_are_not_asked_and_kinds_alternate() -> None:
    first = MadeQuestion("How long is the pier?", ("90",), "count", "It is.", "p", "a.md")
    questions = [first, MadeQuestion("How deep is it?", ("9",), "count", "Deep.", "q", "a.md")]
    questions.append(MadeQuestion("Ferry: how deep is it?", ("9",), "count", "Deep.", "r", "b.md"))
    rows = [MadeQuestion(f"What is the cost of “{n}”?", (f"{n}",), "table", f"{n}", f"t{n}", "c.md") for n in range(9)]
    made = [*order_questions([*rows, *questions], Random(1))]

    assert made[0] == first
    assert [made.kind for made in made] == ["count", "table", "table"]
