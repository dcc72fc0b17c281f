"""Properties of a study: both systems answer equally often, and nothing that is shown depends on which one did."""

from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from bot.answering.study import draw, draw_system
from bot.types import Failure, StudyDraw
from bot.views.message_layout import render_plain_text
from bot.views.turn_view import ButtonAction
from bot.views.view_reducer import apply_event, build_evidence_view, finish_view, start_view
from pipeline.types import ClaimChecked, DraftStarted, PageQuoted, PassagesFound, SearchStarted, SentencePassed
from storage.types import CheckedClaim, Claim, Evidence, NewQuestion, Verdict
from tests.bot.fake_services import answered, document, passage
from tests.bot.model_app import open_model_app

PAIR = ("wikichat", "retrieve-then-generate")
SEEDS = st.text(max_size=40)


@given(
    seed=SEEDS,
    pair=st.lists(st.text(min_size=1, max_size=9), min_size=2, max_size=2, unique=True),
    upto=st.integers(1, 60),
)
def test_systems_answer_a_person_equally_often(seed: str, pair: list[str], upto: int) -> None:
    drawn = [draw(pair, seed, number) for number in range(upto)]
    counts = [sum(one.system == system for one in drawn) for system in pair]

    assert abs(counts[0] - counts[1]) <= 1
    assert drawn == [draw(pair, seed, number) for number in range(upto)]


def test_first_system_of_a_pair_of_questions_is_drawn_evenly() -> None:
    firsts = [
        draw(PAIR, f"slack:T1/C1 slack:T1/U{user}", number).system for user in range(50) for number in (0, 2, 4, 6)
    ]

    assert 80 <= firsts.count(PAIR[0]) <= 120
    assert firsts[::4] != firsts[1::4]


async def test_silent_messages_and_fact_checks_have_no_place(tmp_path: Path) -> None:
    async with open_model_app(tmp_path, {}) as (app, _):
        for number, body in enumerate(({"unasked": True}, {"task": "check"}, {"task": "ask"}, {"task": "ask"})):
            question = NewQuestion(f"k{number}", "slack:T1/C1", "slack:T1/C1/1", "slack:T1/U1", "", body, "")
            row, _ = await app.queue.put(question)
        drawn = await draw_system(app, row, PAIR)

    assert drawn == draw(PAIR, "slack:T1/C1 slack:T1/U1 1970-01-01 00:00:00+00:00", 1)


CLAIM = CheckedClaim(Claim("It is blue.", "model"), Verdict.SUPPORTS, ("p1",), "because")
STATED = replace(CLAIM, claim=Claim("It is blue.", "retrieved"))


@given(claims=st.integers(0, 3), fault=st.none() | st.just(Failure("search_unavailable", "HTTP 400", "")))
def test_answer_is_shown_the_same_whichever_system_gave_it(claims: int, fault: Failure | None) -> None:
    drawn = StudyDraw(PAIR[0], PAIR, 0)
    plain = replace(answered(), answer=replace(answered().answer, claims=(STATED,)))
    reply = replace(plain.answer, claims=(STATED, *[CLAIM] * claims))
    first = replace(plain, system=PAIR[0], study=drawn, answer=reply, web_fault=fault)
    second = replace(plain, system=PAIR[1], study=replace(drawn, system=PAIR[1]))
    view = finish_view(start_view(7, "en"), first)

    assert view == finish_view(start_view(7, "en"), second)
    assert build_evidence_view(first, {}, "?", "en") == build_evidence_view(second, {}, "?", "en")
    assert not any(name in f"{view} {render_plain_text(view)}" for name in PAIR)
    assert ButtonAction.RATE in {button.action for button in view.buttons}


def test_steps_of_a_compared_system_are_not_shown() -> None:
    page = Evidence("It is blue.", passage("It is blue.", 1), document(), (0, 11))
    view = replace(start_view(7, "en"), study=True)
    for event in (SearchStarted(""), PassagesFound("", ()), ClaimChecked(CLAIM), DraftStarted(2), PageQuoted(page)):
        assert apply_event(view, event) == view
    (sentence,) = answered().answer.sentences[:1]

    assert apply_event(view, SentencePassed(sentence)).sentences == (sentence,)
