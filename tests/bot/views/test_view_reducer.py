"""The views of a turn from its start to its end."""

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
from tests.bot.fake_services import DAY, answered, citation, document, hit, passage

MADE_UP = "The keeper was born on the moon."
OTHERWISE = "The documents say otherwise: “The quay opens at seven.”"
RATED = [ButtonAction.EVIDENCE, ButtonAction.UP, ButtonAction.DOWN]


def claim(verdict: Verdict, origin: str = "model", evidence: tuple[str, ...] = ("p1",)) -> CheckedClaim:
    return CheckedClaim(Claim(MADE_UP, origin), verdict, evidence, "because")


def make_hit(dense: float, number: int, text: str = "Words.") -> Hit:
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


def test_first_view_has_a_stop_button() -> None:
    view = start_view(7, "de", notice="Nur Zitate.")
    assert (view.status, view.notice, view.done) == (translate("begun", "de"), "Nur Zitate.", False)
    assert [(button.action, button.ticket) for button in view.buttons] == [(ButtonAction.STOP, 7)]


def test_waiting_view_has_the_position() -> None:
    view = show_queue_position(start_view(7, "en"), 3)
    assert "3" in view.status
    assert actions(view) == [ButtonAction.STOP]


@pytest.mark.parametrize(("event", "status"), [
    (SearchStarted("a\n b"), "Searching “a b” …"),
    (SearchStarted("x" * 99), f"Searching “{'x' * 60}” …"),
    (SearchStarted(""), "Looking for evidence …"),
    (PassagesFound("a", (hit(),)), "Passages found: 1. Reading …"),
    (ClaimChecked(claim(Verdict.REFUTES)), "Checking statements …"),
    (DraftStarted(3), "Findings: 3. Drafting …"),
    (SentencePassed(AnsweredSentence("x", (1,))), "Writing …"),
])  # fmt: skip
def test_status_describes_the_last_event(event: Event, status: str) -> None:
    assert apply_event(start_view(7, "en"), event).status == status


def test_claim_text_is_shown_only_if_supported() -> None:
    view = shown_after(SearchStarted(""), SearchStarted(""), SearchStarted(""))
    assert view.claims == tuple(ClaimCard(number, "checking") for number in (1, 2, 3))

    view = apply_event(view, PassagesFound("", (make_hit(0.5, 1),)))
    for verdict in (Verdict.REFUTES, Verdict.SUPPORTS, Verdict.NOT_ENOUGH_INFO, Verdict.SUPPORTS):
        view = apply_event(view, ClaimChecked(claim(verdict)))

    supported = ClaimCard(2, "supported", MADE_UP, ("Page 1",))
    assert view.claims == (ClaimCard(1, "refuted"), supported, ClaimCard(3, "unknown"), replace(supported, number=4))


def test_cards_without_verdict_are_removed() -> None:
    view = shown_after(SearchStarted(""), SearchStarted(""), ClaimChecked(claim(Verdict.REFUTES)), DraftStarted(1))
    assert view.claims == (ClaimCard(1, "refuted"),)


def test_claim_made_by_the_user_is_not_shown_as_a_card() -> None:
    assert shown_after(ClaimChecked(claim(Verdict.SUPPORTS, "user"))).claims == ()


def quoted(text: str, number: int) -> PageQuoted:
    page = make_hit(0.5, number, text)
    return PageQuoted(Evidence(text, page.passage, page.document, (0, len(text))))


def test_quotation_is_shown_until_the_first_sentence() -> None:
    view = shown_after(PassagesFound("", (make_hit(0.9, 1),)), PassagesFound("q", (make_hit(0.9, 2),)))
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


def test_explanation_of_a_checked_claim_does_not_change_the_view() -> None:
    view = shown_after(SearchStarted(""), ClaimChecked(claim(Verdict.REFUTES)))
    assert apply_event(view, ClaimExplained(claim(Verdict.REFUTES))) == view


def test_final_view_has_sources_and_counts() -> None:
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


@pytest.mark.parametrize(("status", "only_asker", "expected"), [
    (Status.ANSWERED, False, [*RATED, ButtonAction.ASK, ButtonAction.RETRACT]),
    (Status.ANSWERED, True, [*RATED, ButtonAction.ASK, ButtonAction.SHARE]),
    (Status.ABSTAINED, False, [*RATED, ButtonAction.ASK]),
    (Status.CHATTED, False, []),
    (Status.FAILED, False, [ButtonAction.ASK]),
    (Status.REFUSED, False, [ButtonAction.ASK]),
    (Status.CANCELLED, False, []),
])  # fmt: skip
def test_buttons_depend_on_status_and_audience(
    status: Status, *, only_asker: bool, expected: list[ButtonAction]
) -> None:
    result = answered(answer=Answer(status, nearest=(hit(),)), text="Our words.")
    view = finish_view(start_view(7, "de"), result, only_asker=only_asker, ask=True)

    assert actions(view) == expected
    assert ButtonAction.SHARE not in {button.action for button in remove_share_button(view.buttons)}
    if status not in {Status.ANSWERED, Status.ABSTAINED}:
        assert (view.text, view.nearest, view.sources) == ("Our words.", (), ())
    for button in view.buttons:
        key, sure = button.action.value, button.action is ButtonAction.RETRACT
        sure = sure or (only_asker and button.action is ButtonAction.ASK)
        words = (translate(f"{key}_sure", "de"), button.label, translate(f"{key}_not", "de")) if sure else ()
        assert button.sure == (Confirmation(*words) if words else None)


def test_abstention_shows_nearest_pages() -> None:
    given_up = answered(answer=Answer(Status.ABSTAINED, nearest=(hit(),)), text="I found nothing.")
    view = finish_view(start_view(7, "en"), given_up, ask=True)

    assert (view.text, view.sentences, view.sources) == ("I found nothing.", (), ())
    assert view.nearest == (ShownSource(0, "Harbour", "Hours", DAY, "https://example.com/harbour.md"),)
    assert view.nearest_label == translate("nearest", "en")
    assert finish_view(start_view(7, "en"), answered(answer=Answer(Status.ABSTAINED), text="-")).nearest_label == ""


def test_fact_check_shows_verdict_reason_and_passages() -> None:
    answer = Answer(Status.ANSWERED, (AnsweredSentence("x", (1,)),), (citation(),), (claim(Verdict.REFUTES, "user"),))
    view = finish_check_view(start_view(7, "en"), answered(answer=answer))

    assert view.judgements == (ShownVerdict("❌ Contradicted", MADE_UP, OTHERWISE, (1,)),)
    assert (view.text, view.sentences, view.collapsed) == ("", (), "")
    assert [source.quote for source in view.sources] == ["The quay opens at seven."]
    assert ButtonAction.EVIDENCE in actions(view)


def test_remark_of_a_model_is_cleaned_and_marked_in_the_evidence() -> None:
    remark = "Sentence 1 says so [1]. **Ask** <@U1> or @channel, see [here](https://evil.example). " + "More. " * 200
    because = (VerdictReason("absent", ("the moon",)),)
    user, other = claim(Verdict.REFUTES, "user"), claim(Verdict.REFUTES)
    claims = (replace(user, reasoning=remark), replace(other, because=because))
    result = answered(answer=Answer(Status.ANSWERED, (), (citation(),), claims))
    reasons = [item.reason for item in build_evidence_view(result, {}, "?", "en").items]

    assert reasons[1] == "Why: The documents do not mention “the moon”."
    assert reasons[0].startswith("The language model’s reason, which was not checked: Sentence 1 says so. Ask")
    assert not re.search(r"[<>@\[\]*]|evil", reasons[0])
    assert len(reasons[0]) < 600


def test_check_without_verdict_shows_its_text() -> None:
    refused = answered(answer=Answer(Status.REFUSED), text="That is a question.")
    assert finish_check_view(start_view(7, "en"), refused) == finish_view(start_view(7, "en"), refused)


def test_stopped_view_has_no_sentences() -> None:
    view = stop_view(shown_after(SentencePassed(AnsweredSentence("It is so.", (1,)))))
    assert view == View(7, "en", text="Stopped.", done=True)


_verdicts = st.sampled_from([Verdict.REFUTES, Verdict.NOT_ENOUGH_INFO])
_events = st.one_of(
    st.builds(SearchStarted, st.sampled_from(["", "q"])),
    st.builds(PassagesFound, st.sampled_from(["", "q"]), st.sampled_from([(), (hit(),), (make_hit(0.7, 9),)])),
    st.builds(ClaimChecked, st.builds(claim, _verdicts)),
    st.builds(ClaimExplained, st.builds(claim, _verdicts)),
    st.builds(quoted, st.just("A page says so."), st.integers(1, 9)),
    st.builds(DraftStarted, st.integers(0, 5)),
    st.builds(SentencePassed, st.just(AnsweredSentence("It is so.", (1,)))),
)


@given(st.lists(_events, max_size=12))
def test_unconfirmed_claims_are_never_shown(events: list[Event]) -> None:
    view = shown_after(*events)
    claims = tuple(event.checked for event in events if isinstance(event, ClaimChecked))
    last = finish_view(view, answered(answer=Answer(Status.ANSWERED, claims=claims, withheld=1), text="-"))

    for shown in map(words_of, (view, last)):
        assert MADE_UP not in shown
        assert "because" not in shown.replace("Left out, because not confirmed", "")
    assert len({card.number for card in view.claims}) == len(view.claims)


def test_each_checked_statement_has_verdict_and_footnotes() -> None:
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
    assert [source.number for source in view.sources] == [1, 2]


def test_repeated_note_is_omitted() -> None:
    notes = [("a", 1, "Harbour › Hours"), ("b", 1, "Harbour › Hours"), ("c", 2, "Quay"), ("d", 1, "Harbour › Hours")]
    sentences = tuple(AnsweredSentence(text, (number,), note) for text, number, note in notes)
    expected = ["Harbour › Hours", "", "Quay", "Harbour › Hours"]

    assert [sentence.note for sentence in shown_after(*map(SentencePassed, sentences)).sentences] == expected
    done = finish_view(start_view(7, "en"), answered(answer=Answer(Status.ANSWERED, sentences, (citation(),))))
    assert [sentence.note for sentence in done.sentences] == expected
