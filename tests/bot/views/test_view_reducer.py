"""What is shown of a turn from its first moment to its end, as values."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.views.catalog import translate
from bot.views.message_layout import build_blocks
from bot.views.turn_view import ButtonAction, ClaimCard, Confirmation, ShownSource, ShownVerdict, View
from bot.views.view_reducer import (
    apply_event,
    build_evidence_view,
    finish_check_view,
    finish_view,
    remove_share_button,
    show_queue_position,
    start_view,
    stop_view,
)
from pipeline.types import (
    Answer,
    AnsweredSentence,
    ClaimChecked,
    ClaimExplained,
    DraftStarted,
    Event,
    PageQuoted,
    PassagesFound,
    SearchStarted,
    SentencePassed,
    Status,
)
from storage.types import CheckedClaim, Claim, Evidence, Hit, Verdict, VerdictReason
from tests.bot.house import DAY, answered, citation, document, hit, passage

MADE_UP = "The keeper was born on the moon."
OTHERWISE = "The documents say otherwise: “The quay opens at seven.”"


def claim(verdict: Verdict, origin: str = "model", evidence: tuple[str, ...] = ("p1",)) -> CheckedClaim:
    return CheckedClaim(Claim(MADE_UP, origin), verdict, evidence, "because")


def found(dense: float, number: int, text: str = "Words.") -> Hit:
    return Hit(passage(text, number), document(title=f"Page {number}"), 1.0, dense=dense)


def shown_after(*events: Event) -> View:
    view = start_view(7, "en")
    for event in events:
        view = apply_event(view, event)
    return view


def actions(view: View) -> list[ButtonAction]:
    return [button.action for button in view.buttons]


def words_of(view: View) -> str:
    return " ".join(run.text for block in build_blocks(view, DAY.tzinfo) for group in block.groups for run in group)


def test_something_is_shown_at_once_that_can_be_stopped() -> None:
    """In the asker's language, with what is to be known beforehand."""
    view = start_view(7, "de", notice="Nur Zitate.")
    assert (view.status, view.notice, actions(view), view.done) == (
        translate("begun", "de"),
        "Nur Zitate.",
        [ButtonAction.STOP],
        False,
    )
    assert view.buttons[0].ticket == 7


def test_who_waits_is_told_how_many_are_before() -> None:
    """And may still give up."""
    view = show_queue_position(start_view(7, "en"), 3)
    assert "3" in view.status
    assert actions(view) == [ButtonAction.STOP]


@pytest.mark.parametrize(
    ("event", "status"),
    [
        (SearchStarted("a\n b"), "Searching “a b” …"),
        (SearchStarted("x" * 99), f"Searching “{'x' * 60}” …"),
        (SearchStarted(""), "Looking for evidence …"),
        (PassagesFound("a", (hit(),)), "Passages found: 1. Reading …"),
        (ClaimChecked(claim(Verdict.REFUTES)), "Checking statements …"),
        (DraftStarted(3), "Drafting from what was found: 3 …"),
        (SentencePassed(AnsweredSentence("x", (1,))), "Writing …"),
    ],
)
def test_what_is_done_is_told_in_a_line(event: Event, status: str) -> None:
    """The last thing that happened."""
    assert apply_event(start_view(7, "en"), event).status == status


def test_a_claim_has_words_only_once_passages_support_it() -> None:
    """Before, and where they do not, a card says how it stands."""
    view = shown_after(SearchStarted(""), SearchStarted(""), SearchStarted(""))
    assert view.claims == tuple(ClaimCard(number, "checking") for number in (1, 2, 3))

    view = apply_event(view, PassagesFound("", (found(0.5, 1),)))
    for verdict in (Verdict.REFUTES, Verdict.SUPPORTS, Verdict.NOT_ENOUGH_INFO, Verdict.SUPPORTS):
        view = apply_event(view, ClaimChecked(claim(verdict)))

    supported = ClaimCard(2, "supported", MADE_UP, ("Page 1",))
    assert view.claims == (ClaimCard(1, "refuted"), supported, ClaimCard(3, "unknown"), replace(supported, number=4))


def test_cards_that_got_no_verdict_go_when_the_answer_is_written() -> None:
    """Nothing is checked any more."""
    view = shown_after(SearchStarted(""), SearchStarted(""), ClaimChecked(claim(Verdict.REFUTES)), DraftStarted(1))
    assert view.claims == (ClaimCard(1, "refuted"),)


def test_the_claim_somebody_asks_about_is_no_card() -> None:
    """Its verdict is the answer."""
    assert shown_after(ClaimChecked(claim(Verdict.SUPPORTS, "user"))).claims == ()


def quoted(text: str, number: int) -> PageQuoted:
    page = found(0.5, number, text)
    return PageQuoted(Evidence(text, page.passage, page.document, (0, len(text))))


def test_a_page_is_quoted_until_there_is_a_sentence() -> None:
    """Labelled as what it is. What was only found is not quoted, and a quotation changes nothing else."""
    view = shown_after(PassagesFound("", (found(0.9, 1),)), PassagesFound("q", (found(0.9, 2),)))
    assert view.quote is None

    before, view = view, apply_event(view, quoted("Best.", 3))
    assert view.quote == ShownSource(0, "Page 3", "Hours", DAY, "https://example.com/harbour.md", "Best.")
    assert view.quote_label == translate("quote_meanwhile", "en")
    assert replace(view, quote=None, quote_label="") == before

    view = apply_event(view, SentencePassed(AnsweredSentence("It is so.", (1,), "note", paragraph=True)))
    assert (view.quote, view.quote_label) == (None, "")
    assert view.sentences == (AnsweredSentence("It is so.", (1,), "note", paragraph=True),)
    assert apply_event(view, quoted("Too late.", 6)).quote is None
    assert finish_view(shown_after(quoted("Best.", 3)), answered(answer=Answer(Status.ABSTAINED))).quote is None


def test_why_a_claim_was_given_its_verdict_is_not_shown_on_the_way() -> None:
    """Its verdict stands already; the reason is the evidence view's."""
    view = shown_after(SearchStarted(""), ClaimChecked(claim(Verdict.REFUTES)))
    assert apply_event(view, ClaimExplained(claim(Verdict.REFUTES))) == view


def test_an_answer_stays_with_its_sources_and_its_counts() -> None:
    """The claims are one line then, and what could not be confirmed is counted."""
    before = shown_after(SearchStarted("q"), PassagesFound("q", (hit(),)), ClaimChecked(claim(Verdict.SUPPORTS)))
    claims = (claim(Verdict.SUPPORTS), claim(Verdict.REFUTES), claim(Verdict.SUPPORTS, "retrieved"))
    sentences = (AnsweredSentence("The quay opens at seven.", (1,)),)
    answer = Answer(Status.ANSWERED, sentences, (citation(),), claims, nearest=(hit(),), withheld=2)
    view = finish_view(before, answered(answer=answer), ask=True)

    assert view.sentences == (AnsweredSentence("The quay opens at seven.", (1,)),)
    assert view.sources == (ShownSource(1, "Harbour", "Hours", DAY, "https://example.com/harbour.md"),)
    assert view.collapsed == translate("statements", "en", checked=2, confirmed=1)
    assert view.left_out == "Left out, because not confirmed: 2 of 3 statements."
    assert (view.status, view.claims, view.quote, view.text, view.nearest, view.done) == ("", (), None, "", (), True)
    assert actions(view) == [
        ButtonAction.EVIDENCE,
        ButtonAction.UP,
        ButtonAction.DOWN,
        ButtonAction.ASK,
        ButtonAction.RETRACT,
    ]


def test_what_only_the_asker_sees_can_be_shared() -> None:
    """What all see can be taken back."""
    assert actions(finish_view(start_view(7, "en"), answered(), only_asker=True)) == [
        ButtonAction.EVIDENCE,
        ButtonAction.UP,
        ButtonAction.DOWN,
        ButtonAction.SHARE,
    ]


def test_who_asks_a_person_about_what_only_they_see_is_asked_first() -> None:
    """It tells others of the question; what all see does not need that."""
    whole = [finish_view(start_view(7, "de"), answered(), only_asker=alone, ask=True) for alone in (True, False)]
    alone, open_to_all = [next(one for one in view.buttons if one.action is ButtonAction.ASK) for view in whole]

    assert alone.sure == Confirmation(translate("ask_sure", "de"), alone.label, translate("ask_not", "de"))
    assert open_to_all.sure is None


def test_where_there_is_nobody_to_share_with_nothing_is_shared() -> None:
    """As in a DM; the rest stays."""
    view = finish_view(start_view(7, "en"), answered(), only_asker=True)

    assert [one.action for one in remove_share_button(view.buttons)] == [
        ButtonAction.EVIDENCE,
        ButtonAction.UP,
        ButtonAction.DOWN,
    ]


def test_an_abstention_shows_the_nearest_pages_it_was_given() -> None:
    """By title, section, date and address, without their words."""
    given_up = answered(answer=Answer(Status.ABSTAINED, nearest=(hit(),)), text="I found nothing.")
    view = finish_view(start_view(7, "en"), given_up, ask=True)

    assert (view.text, view.sentences, view.sources) == ("I found nothing.", (), ())
    assert view.nearest == (ShownSource(0, "Harbour", "Hours", DAY, "https://example.com/harbour.md"),)
    assert view.nearest_label == translate("nearest", "en")
    assert actions(view) == [ButtonAction.EVIDENCE, ButtonAction.UP, ButtonAction.DOWN, ButtonAction.ASK]
    assert finish_view(start_view(7, "en"), answered(answer=Answer(Status.ABSTAINED), text="-")).nearest_label == ""


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (Status.CHATTED, []),
        (Status.FAILED, [ButtonAction.ASK]),
        (Status.REFUSED, [ButtonAction.ASK]),
        (Status.CANCELLED, []),
    ],
)
def test_our_own_words_stand_alone(status: Status, expected: list[ButtonAction]) -> None:
    """A greeting needs no help; a failure may."""
    view = finish_view(
        start_view(7, "en"), answered(answer=Answer(status, nearest=(hit(),)), text="Our words."), ask=True
    )
    assert (view.text, view.nearest, view.sources, actions(view)) == ("Our words.", (), (), expected)


def test_a_fact_check_shows_the_claim_its_verdict_why_and_the_passages() -> None:
    """The passages in their own words."""
    answer = Answer(Status.ANSWERED, (AnsweredSentence("x", (1,)),), (citation(),), (claim(Verdict.REFUTES, "user"),))
    view = finish_check_view(start_view(7, "en"), answered(answer=answer))

    assert view.judgements == (ShownVerdict("❌ Contradicted", MADE_UP, OTHERWISE, (1,)),)
    assert (view.text, view.sentences, view.collapsed) == ("", (), "")
    assert [source.quote for source in view.sources] == ["The quay opens at seven."]
    assert ButtonAction.EVIDENCE in actions(view)


def test_a_models_reason_stands_in_the_evidence_alone_as_its_own_and_cleaned() -> None:
    """Without links, mentions, marks that are no footnotes of ours, or end; a rule's reasons stand as they are."""
    remark = "Sentence 1 says so [1]. **Ask** <@U1> or @channel, see [here](https://evil.example). " + "More. " * 200
    because = (VerdictReason("absent", ("the moon",)),)
    claims = [
        replace(claim(Verdict.REFUTES, "user"), reasoning=remark),
        replace(claim(Verdict.REFUTES), because=because),
    ]
    view = build_evidence_view(
        answered(answer=Answer(Status.ANSWERED, (), (citation(),), tuple(claims))), {}, "?", "en"
    )
    reasons = [item.reason for item in view.items]

    assert reasons[1] == "Why: The documents do not mention “the moon”."
    assert reasons[0].startswith("The language model’s reason, which nobody checked: Sentence 1 says so. Ask")
    assert not re.search(r"[<>@\[\]*]|evil", reasons[0])
    assert len(reasons[0]) < 600


def test_a_check_that_came_to_no_verdict_ends_as_an_answer_does() -> None:
    """With our own words."""
    refused = answered(answer=Answer(Status.REFUSED), text="That is a question.")
    assert finish_check_view(start_view(7, "en"), refused) == finish_view(start_view(7, "en"), refused)


def test_of_a_stopped_turn_stays_that_it_was_stopped() -> None:
    """Sentences whose sources are not known yet go."""
    view = stop_view(shown_after(SentencePassed(AnsweredSentence("It is so.", (1,)))))
    assert view == View(7, "en", text="Stopped.", done=True)


_verdicts = st.sampled_from([Verdict.REFUTES, Verdict.NOT_ENOUGH_INFO])
_events = st.one_of(
    st.builds(SearchStarted, st.sampled_from(["", "q"])),
    st.builds(PassagesFound, st.sampled_from(["", "q"]), st.sampled_from([(), (hit(),), (found(0.7, 9),)])),
    st.builds(ClaimChecked, st.builds(claim, _verdicts)),
    st.builds(ClaimExplained, st.builds(claim, _verdicts)),
    st.builds(quoted, st.just("A page says so."), st.integers(1, 9)),
    st.builds(DraftStarted, st.integers(0, 5)),
    st.builds(SentencePassed, st.just(AnsweredSentence("It is so.", (1,)))),
)


@given(st.lists(_events, max_size=12))
def test_what_was_not_confirmed_is_never_said(events: list[Event]) -> None:
    """Whatever happens in whatever order, no refuted or unknown claim is put into words, nor why."""
    view = shown_after(*events)
    claims = tuple(event.checked for event in events if isinstance(event, ClaimChecked))
    last = finish_view(view, answered(answer=Answer(Status.ANSWERED, claims=claims, withheld=1), text="-"))

    for one in (view, last):
        assert MADE_UP not in words_of(one)
        assert "because" not in words_of(one).replace("Left out, because not confirmed", "")
    assert len({card.number for card in view.claims}) == len(view.claims)


def test_of_several_checked_statements_each_has_its_verdict_and_its_footnotes() -> None:
    """In the order in which they were written; one of which nothing was found has none."""
    names = {"p1": Verdict.SUPPORTS, "p2": Verdict.REFUTES, "p3": Verdict.NOT_ENOUGH_INFO}
    claims = tuple(
        CheckedClaim(Claim(f"Of {name}.", "user"), verdict, (name,), "made up") for name, verdict in names.items()
    )
    citations = (replace(citation(1), passage_id="p2"), replace(citation(2), passage_id="p1"))
    answer = Answer(Status.ANSWERED, (), citations, claims=claims)
    view = finish_check_view(start_view(7, "en"), answered(answer=answer))

    assert view.judgements == (
        ShownVerdict("✅ Confirmed", "Of p1.", "The documents say so: “The quay opens at seven.”", (2,)),
        ShownVerdict("❌ Contradicted", "Of p2.", OTHERWISE, (1,)),
        ShownVerdict("❔ Not enough information", "Of p3.", "The documents do not say so."),
    )
    assert words_of(view).startswith(f"✅ Confirmed “Of p1.” \n{view.judgements[0].reason}   [2] ❌")
    assert [one.number for one in view.sources] == [1, 2]


def test_a_note_that_says_again_where_the_sentence_before_stands_is_left_out() -> None:
    """As it streams and in the end; one that names another page stays."""
    notes = [("a", 1, "Harbour › Hours"), ("b", 1, "Harbour › Hours"), ("c", 2, "Quay"), ("d", 1, "Harbour › Hours")]
    sentences = tuple(AnsweredSentence(text, (number,), note) for text, number, note in notes)
    expected = ["Harbour › Hours", "", "Quay", "Harbour › Hours"]

    assert [one.note for one in shown_after(*map(SentencePassed, sentences)).sentences] == expected
    done = finish_view(start_view(7, "en"), answered(answer=Answer(Status.ANSWERED, sentences, (citation(),))))
    assert [one.note for one in done.sentences] == expected


def test_taking_back_is_asked_about_first() -> None:
    """In the asker's language, as it is done for everybody."""
    (button,) = [
        one for one in finish_view(start_view(7, "de"), answered()).buttons if one.action is ButtonAction.RETRACT
    ]

    assert button.sure == Confirmation(translate("retract_sure", "de"), button.label, translate("retract_not", "de"))
