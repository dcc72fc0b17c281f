"""Replies of a weak model: what is complete of a cut one is kept; echoes, dates and other languages are rejected."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import UnreadableReply
from pipeline.llm.chat_request import find_bounds
from pipeline.prompts.demonstrations import OWN_DAY
from pipeline.replies.echo import UNREADABLE, PromptEcho
from pipeline.replies.reply_format import extract_json_object
from pipeline.replies.stage_replies import (
    Bullet,
    ClaimSplitter,
    DraftSplitter,
    TimedClaim,
    bullets_format,
    claims_format,
    criticism_format,
    feedback_format,
    query_format,
)
from pipeline.replies.verdict_replies import VerdictSplitter, verification_format
from pipeline.support.verdict_look import Verification
from storage.types import Verdict
from tests.pipeline.weak_model import (
    BARE_DATES,
    DATE_CLAIMS,
    ECHOED_REPAIR,
    ECHOED_TURN,
    EXTRA_DAY,
    FENCE,
    GERMAN,
    HOURS,
    LOOPS,
    PARTY,
    WITHOUT_EVIDENCE,
    WORKED_EXAMPLES,
    repeat_bullets,
)

FORMS = [
    query_format(),
    bullets_format(5),
    claims_format(),
    feedback_format(),
    criticism_format(),
    verification_format(5, reasoned=True),
    verification_format(5, reasoned=False),
]
ITEMS = st.lists(st.fixed_dictionaries({"text": st.text('ab {}[]"\\,é'), "sentences": st.lists(st.integers(1, 99))}))


@pytest.mark.parametrize("form", FORMS)
def test_every_list_text_and_number_of_a_schema_is_bounded(form: Any) -> None:
    def check(schema: dict[str, Any]) -> None:
        kind = {"array": "maxItems", "string": "maxLength", "integer": "maximum"}.get(schema["type"])
        assert kind is None or kind in schema or "enum" in schema
        assert schema.get("maxLength", 0) < 2_000  # as many as llama.cpp repeats
        for inner in (*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])):
            check(inner)

    check(form.schema)
    assert set(find_bounds(form.schema)) <= {"minItems", "maxItems", "maxLength", "minimum", "maximum"}


@given(ITEMS, st.integers(0, 400))
def test_cut_json_keeps_exactly_its_whole_items(items: list[dict[str, Any]], length: int) -> None:
    ends = [len(json.dumps({"bullets": items[: count + 1]})) - 2 for count in range(len(items))]
    text = json.dumps({"bullets": items})[:length]
    whole = [item for item, end in zip(items, ends, strict=True) if end <= len(text)]
    if whole or text.endswith("]}"):
        assert extract_json_object(text, cut=True) == {"bullets": whole}
    else:
        with pytest.raises(UnreadableReply):
            bullets_format(99).from_json(extract_json_object(text, cut=True))


def test_bullets_of_a_cut_reply_are_kept_once_each() -> None:
    bullets = bullets_format(2).from_json(extract_json_object(repeat_bullets(4) + ', {"text": "', cut=True))
    assert bullets == (Bullet(HOURS, (1,)), Bullet(HOURS, (2,)), Bullet(HOURS, ()))


@pytest.mark.parametrize("name", ["gift", "parcel", "book"])
def test_cut_verdict_is_unreadable(name: str) -> None:
    with pytest.raises(UnreadableReply, match="no complete JSON object"):
        extract_json_object(LOOPS[name], cut=True)


def test_incomplete_claim_of_a_cut_list_is_dropped() -> None:
    splitter = ClaimSplitter()
    text = "- The bell was cast in 1887. | 1887\n- It hangs in the tower of the"
    assert splitter.feed(text) == (TimedClaim("The bell was cast in 1887.", 1887),)
    assert splitter.close(cut=True) == ()


def test_incomplete_sentence_of_a_cut_draft_is_dropped() -> None:
    splitter = DraftSplitter(2)
    sentences = (*splitter.feed("The bell was cast in 1887 [1]. It hangs [2] in the tow"), *splitter.close(cut=True))
    assert [sentence.text for sentence in sentences] == ["The bell was cast in 1887."]


def test_sentence_copied_from_a_note_has_its_number() -> None:
    """SmolLM2 copies a note with the page it is from, and leaves its number out."""
    splitter = DraftSplitter(
        2, notes=("The bell is old.", "Bergen has no parking at all; the light rail stops nearby.")
    )
    text = "Bergen has no parking at all; the light rail stops nearby. (from: Offices (2026-01-08))"
    (sentence,) = (*splitter.feed(text), *splitter.close())
    assert (sentence.text, sentence.numbers) == (text[:58], (2,))


def test_incomplete_verdict_of_a_cut_reply_is_dropped() -> None:
    splitter = VerdictSplitter(2, 12)
    rulings = (*splitter.feed("1. SUPPORTS [2]\n2. SUPPORTS [1"), *splitter.close(cut=True))
    assert {(ruling.claim, ruling.found.sentences) for ruling in rulings} == {(1, (2,))}


def read_verdicts(text: str, claims: int, size: int) -> list[Verification]:
    """Return the rulings that arrive in pieces until the reply becomes unreadable."""
    splitter, rulings = VerdictSplitter(claims, 11), list[Verification]()
    with suppress(UnreadableReply):
        for start in range(0, len(text), size):
            rulings += [ruling.found for ruling in splitter.feed(text[start : start + size])]
        rulings += [ruling.found for ruling in splitter.close()]
    return rulings


@pytest.mark.parametrize("size", [1, 9, 1_000])
def test_worked_examples_support_no_claim(size: int) -> None:
    assert not any(found.verdict is Verdict.SUPPORTS for found in read_verdicts(WORKED_EXAMPLES, 1, size))
    with pytest.raises(UnreadableReply, match="more verdicts than there are claims"):
        VerdictSplitter(1, 11).feed(WORKED_EXAMPLES)


def test_support_of_the_last_claim_waits_for_the_next_line() -> None:
    splitter = VerdictSplitter(1, 3)
    assert splitter.feed("1. SUPPORTS [1]\n") == ()
    with pytest.raises(UnreadableReply):
        splitter.feed("2. NOT ENOUGH INFO One of them is enough.\n3. NOT ENOUGH INFO No manager is named.")


def test_support_is_accepted_before_a_remark_that_follows_it() -> None:
    splitter = VerdictSplitter(1, 3)
    (ruling,) = splitter.feed("1. SUPPORTS [1]\n\nI hope that this helps you further, dear user")
    assert ruling.found == Verification(Verdict.SUPPORTS, (1,))


def test_support_rests_on_sentences_that_its_reasoning_names() -> None:
    form = verification_format(2, reasoned=True)
    assert form.from_json(json.loads(WITHOUT_EVIDENCE)).sentences == (1, 2)
    with pytest.raises(UnreadableReply, match="does not name the numbers"):
        form.from_json({"reasoning": "It is so.", "sentences": [], "verdict": "SUPPORTS"})


@pytest.mark.parametrize("text", [DATE_CLAIMS, BARE_DATES])
def test_date_line_is_no_claim(text: str) -> None:
    splitter = ClaimSplitter()
    assert splitter.feed(text) == ()
    with pytest.raises(UnreadableReply):
        splitter.close()
    with pytest.raises(UnreadableReply):
        claims_format().from_text(text)


def test_statements_with_the_delimiter_are_dropped() -> None:
    other = {"text": "The number of days off is 16.", "sentences": [2, 3]}
    assert bullets_format(3).from_json({"bullets": [FENCE, other]}) == (
        Bullet("The number of days off is 16.", (2, 3)),
    )
    with pytest.raises(UnreadableReply, match="no bullet says"):
        bullets_format(3).from_json({"bullets": [FENCE]})
    assert [sentence.text for sentence in read_draft(f"{FENCE['text'][:-1]} [1]. It is so [1].")] == ["It is so."]


def read_draft(text: str, *spoken: str) -> list[Any]:
    splitter = DraftSplitter(3, frozenset(spoken))
    return [*splitter.feed(text), *splitter.close()]


def test_draft_in_the_language_of_an_example_is_unreadable() -> None:
    marked = GERMAN.replace(":\n\n", " [1]. ")
    with pytest.raises(UnreadableReply, match="another language"):
        read_draft(marked, "en")
    assert [sentence.text for sentence in read_draft(f"The bell is old [2]. {marked}", "en")] == ["The bell is old."]
    for spoken in (("de",), ("en", "de"), ()):
        assert [sentence.text for sentence in read_draft(marked, *spoken)] == ["Das ist eine wiegeleiche."]


def test_copied_source_is_no_part_of_a_sentence() -> None:
    marked = EXTRA_DAY.replace("extra days.", "extra days [1].").replace("anniversary.", "anniversary [1].")
    assert [sentence.text for sentence in read_draft(marked * 3)] == [
        "You get one extra day of leave for every five years with the company, up to four extra days.",
        "It is added on the first of January after the anniversary.",
    ]


NORTH = "Nobody who works in the north may come in on a Sunday unless there is a storm"
ASKED = "When may a colleague of mine who works in the north come in on a Sunday, dear?"
REFUSED = "It is so that they come in whenever they like to, as everybody here knows well"
EXAMPLE = "Your daughter may like that Valentina Tereshkova worked in a textile mill before she became a cosmonaut [3]."
SYSTEM = (
    "You write the replies of a chatbot.\n- Behind each sentence, before its full stop, put the numbers of the notes "
    "that say it, each in brackets: [1] or [2][3]."
)
TURN = f"""Today is Monday, 3 March 2025.
User: {ASKED}
=== qwrtpsdfghjk begins ===
[1] {NORTH}.
=== qwrtpsdfghjk ends ===
A reply that began as follows was refused, since the notes do not say that, or not for what the user asks: “{REFUSED}.”
{UNREADABLE}no sentence has the number of a note behind it; where no note helps, the whole reply is NOTHING.
"""
ECHO = PromptEcho([
    ("system", SYSTEM),
    ("user", "What can I tell her?\n=== example begins ===\n[1] She is the first.\n=== example ends ==="),
    ("assistant", EXAMPLE),
    ("user", "May I come?\n=== zzrtpsdfghjk begins ===\n[1] Our approved answer.\n=== zzrtpsdfghjk ends ==="),
    ("assistant", "You may come whenever you like, as our own approved answer to that question has it [1]."),
    ("user", TURN),
])  # fmt: skip


@pytest.mark.parametrize(("reply", "at"), [
    (PARTY, 0),
    (f"It may ring at noon [1].\n{PARTY}", 25),
    (ECHOED_TURN, 32),
    ("No sentence has the number of a note behind it; where no note helps, the whole reply is", 0),
    ("Put the numbers of the notes that say it, each in brackets: [1] or [2][3].", 0),
    ("=== qwrtpsdfghjk begins ===\n[1] Nobody may.", 0),
    (EXAMPLE, 0),
    ("You may come whenever you like, as our own approved answer to that question has it [1].", None),
    (f"{NORTH} [1].", None),
    (ASKED, None),
    (f"{REFUSED} [1].", None),
    ("The user may come in. Today is Monday, so nobody works.", None),
])  # fmt: skip
def test_echo_of_the_prompt_is_found(reply: str, at: int | None) -> None:
    assert ECHO.find(reply) == at


def test_faults_named_to_the_model_have_no_citation_marks() -> None:
    messages = list[str]()
    splitters = [DraftSplitter(3), VerdictSplitter(1, 3), VerdictSplitter(2, 3), ClaimSplitter()]
    streamed = (lambda text, splitter=splitter: (splitter.feed(text), splitter.close()) for splitter in splitters)
    parsers: list[Any] = [*(form.from_text for form in FORMS), *streamed]
    for parse in parsers:
        with pytest.raises(UnreadableReply) as caught:
            parse(f"{ECHOED_REPAIR.replace(', such as [1]', '')}What? ")
        messages.append(str(caught.value))
    assert not any("[" in message for message in messages)


def test_only_answers_of_our_own_demonstrations_are_echoes() -> None:
    answer = "The Salt Clock was written by Ilse Marwede [1]. It is an opera."

    def find(day: str) -> int | None:
        shown = [("user", f"Today is {day}.\nUser: Who wrote it?"), ("assistant", answer)]
        return PromptEcho([("system", "Answer."), *shown, ("user", "Today is Friday, 27 November 2026.")]).find(answer)

    assert find(f"{OWN_DAY:%A}, {OWN_DAY.day} {OWN_DAY:%B %Y}") == 0
    assert find("Thursday, 26 November 2026") is None
