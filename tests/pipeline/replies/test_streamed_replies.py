"""Claims and verdicts of a streamed reply: each is returned once it is complete."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.errors import UnreadableReply
from pipeline.replies.stage_replies import ClaimSplitter, claims_format
from pipeline.replies.verdict_replies import ClaimRuling, VerdictSplitter
from storage.types import Verdict

S, R, N = Verdict.SUPPORTS, Verdict.REFUTES, Verdict.NOT_ENOUGH_INFO
CLAIM_LINES = st.lists(
    st.sampled_from([
        "- The pier is lost. | none", "- It opened in 1911 | 1911", "* Runs on", "  over two lines. | recent", "",
        "```", "1. A first one. | none", "2. A second one.", "3.5 million people live there. | recent",
        "Here they are:", "Nothing", "**- Bold. | none**", "- The pier is lost. | none", "Claim 1: Oak | none",
    ]),
    max_size=8,
).map("\n".join)  # fmt: skip
RULING_LINES = st.lists(
    st.sampled_from([
        "1. SUPPORTS [2, 3] Both say so.", "2. REFUTES [1] It says otherwise.", "3. NOT ENOUGH INFO", "Well:", "",
        "SUPPORTS [1]", "2. SUPPORTS", "and more of it", "1. SUPPORTS [1] in part", "**1.** REFUTES [4]",
        "4. SUPPORTS [1]", "1. [2] who: a; if: SUPPORTS; NOT ENOUGH INFO", "[3] who: b; SUPPORTS",
        "Verdict: SUPPORTS", "Sentences: 2", "as sentence 2 says", "and sentence 3 [4]", "[5]",
        "1. SUPPORTS (2) / REFUTES", "[2] Supports [1] NOT ENOUGH", "3 - Verdict: REFUTED", "Support for it, none? [1]",
    ]),
    max_size=6,
).map("\n".join)  # fmt: skip


def cut(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


@given(CLAIM_LINES, st.integers(1, 9))
def test_streamed_claims_include_those_of_the_whole_reply(text: str, size: int) -> None:
    splitter, yielded = ClaimSplitter(), list[str]()
    try:
        for piece in cut(text, size):
            yielded += [claim.text for claim in splitter.feed(piece)]
        yielded += [claim.text for claim in splitter.close()]
    except UnreadableReply:
        with pytest.raises(UnreadableReply):
            claims_format().from_text(text)
        return

    whole = [claim.text for claim in claims_format().from_text(text)]
    assert set(whole) <= set(yielded)
    assert len(yielded) == len(set(yielded))


def test_claim_is_yielded_once_its_line_ends_with_a_time() -> None:
    splitter = ClaimSplitter()
    assert splitter.feed("- The pier is lost. | no") == ()
    assert [claim.text for claim in splitter.feed("ne\n")] == ["The pier is lost."]
    assert splitter.feed("- It was made of oak\n") == ()
    assert splitter.feed("  and of iron. | 1911") == ()
    (claim,) = splitter.close()
    assert (claim.text, claim.time) == ("It was made of oak and of iron.", 1911)


@pytest.mark.parametrize("size", [7, 100_000])
def test_endless_list_of_claims_is_cut_off(size: int) -> None:
    splitter, text = ClaimSplitter(), "".join(f"- It has {number} windows. | none\n" for number in range(1_000))
    claims = [*(claim for piece in cut(text, size) for claim in splitter.feed(piece)), *splitter.close()]
    assert [claim.text for claim in claims] == [f"It has {number} windows." for number in range(len(claims))]
    assert 200 < len(claims) < 300


@pytest.mark.parametrize(
    ("text", "claims", "verdicts"),
    [
        ("1. [2] who: SUPPORTS [1]; if: only now; SUPPORTS\n2. [1] who: a; if: -; REFUTES", 2,
         {1: (S, (2,), "who: SUPPORTS [1]; if: only now."), 2: (R, (1,), "who: a.")}),
        ("[3] who: a; how many: 2; if: -; SUPPORTS", 1, {1: (S, (3,), "who: a; how many: 2.")}),
        ("1. [3] who: a; if: REFUTES; SUPPORTS", 1, {1: (N, (), "who: a; if: REFUTES.")}),
        ("1. [3] who: a; if: -; SUPPORTS in part", 1, {1: (N, (), "who: a. in part")}),
        ("1. [3] who: a; it does not SUPPORTS\n2. [3] who: b; REFUTES", 2, {2: (R, (3,), "who: b.")}),
        ("1. SUPPORTS [2, 3] Both say so.", 1, {1: (S, (2, 3), "Both say so.")}),
        ("SUPPORTS [2][3] Both say so.", 1, {1: (S, (2, 3), "Both say so.")}),
        ("1. SUPPORTS [2]\n2. REFUTES [1] No.\n3. NOT ENOUGH INFO", 3,
         {1: (S, (2,), ""), 2: (R, (1,), "No."), 3: (N, (), "")}),
        ("**1. NOT ENOUGH INFO** Nothing\nspeaks of it.", 1, {1: (N, (), "Nothing speaks of it.")}),
        ("Claim 2: Refuted [1] no", 2, {2: (R, (1,), "no")}),
        ("1. SUPPORTS Sentence 4 says so.", 1, {1: (S, (4,), "Sentence 4 says so.")}),
        ("Reasoning: It does.\nSentences: 1\nVerdict: SUPPORTS", 1, {1: (S, (1,), "It does.")}),
        ("1. SUPPORTS [1]\n1. REFUTES [1]", 1, {1: (S, (1,), "")}),
        ("1. SUPPORTS [1]\n7. SUPPORTS [1]", 2, {1: (S, (1,), "")}),
        ("(1) SUPPORTS (2, 3) Both.\n[2] REFUTES [1] No.", 2, {1: (S, (2, 3), "Both."), 2: (R, (1,), "No.")}),
        ("1 - SUPPORTS [1]\n2. Verdict: **REFUTES** [1] No.", 2, {1: (S, (1,), ""), 2: (R, (1,), "No.")}),
        ("1. Supports [2] It does.", 1, {1: (S, (2,), "It does.")}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("size", [1, 7, 1_000])
def test_verdicts_are_parsed(text: str, claims: int, verdicts: dict, size: int) -> None:
    rulings = parse_rulings(text, claims, size)
    assert {
        ruling.claim: (ruling.found.verdict, ruling.found.sentences, ruling.found.reasoning)
        for ruling in rulings
        if ruling.whole
    } == verdicts


@pytest.mark.parametrize(
    "text",
    [
        "1. SUPPORTS [2] only in part, as no date is given.",
        "1. SUPPORTS [2] in part.",
        "1. SUPPORTS [2] to some extent, but not the date.",
        "1. SUPPORTS only [2]",
        "1. PARTLY SUPPORTED [2]\nNOT ENOUGH INFO",
        "1. SUPPORTS [1], except for the year.",
        "1. SUPPORTS [1], but not the date.",
        "1. SUPPORTS [1] Though it says “may”.",
        "1. SUPPORTS [1], not the price.",
        "1. SUPPORTS [1], aber nicht das Datum.",
        "1. SUPPORTS [1] / REFUTES [1]",
        "1. SUPPORTS [1] NOT ENOUGH INFO on the year.",
        "SUPPORTS [2]? No, nothing says so.",
    ],
)
@pytest.mark.parametrize("size", [1, 5, 1_000])
def test_verdict_with_a_reservation_is_not_enough_info(text: str, size: int) -> None:
    assert {ruling.found.verdict for ruling in parse_rulings(text, 1, size)} == {N}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Hm.",
        "1. Not supported [2]",
        "1. SUPPORTS",
        "1. SUPPORTS [99] so it is.",
        "Support for this claim is missing in [1].",
        "1. Support for it is found in none.",
    ],
)
def test_streamed_reply_without_verdict_is_unreadable(text: str) -> None:
    with pytest.raises(UnreadableReply):
        parse_rulings(text, 1, 3)


def test_reply_of_empty_lines_is_unreadable() -> None:
    with pytest.raises(UnreadableReply):
        parse_rulings("\n" * 1_400, 3, 2)


def test_verdict_is_yielded_before_its_reason() -> None:
    splitter = VerdictSplitter(1, 3)
    assert splitter.feed("1. SUPPORTS [2, 3]") == ()  # [4] could follow
    (ruling,) = splitter.feed(" Sentence 2")[:1] or splitter.feed(" says")
    assert (ruling.found.verdict, ruling.found.sentences, ruling.whole) == (S, (2, 3), False)
    assert splitter.feed(" says it of") == ()
    assert [ruling.found.reasoning for ruling in splitter.close()] == ["Sentence 2 says it of"]


@example(text="1. SUPPORTS [2, 3] Both say so.\nSupport for it, none? [1]", claims=1, size=1)
@given(RULING_LINES, st.integers(1, 3), st.integers(1, 9))
def test_verdicts_do_not_depend_on_piece_boundaries(text: str, claims: int, size: int) -> None:
    try:
        rulings = parse_rulings(text, claims, size)
    except UnreadableReply:
        with pytest.raises(UnreadableReply):
            parse_rulings(text, claims, 10_000)
        return
    assert sorted(map(_sort_key, rulings)) == sorted(map(_sort_key, parse_rulings(text, claims, 10_000)))
    for number in {ruling.claim for ruling in rulings}:
        assert [ruling.whole for ruling in rulings if ruling.claim == number] == [False, True]


def parse_rulings(text: str, claims: int, size: int) -> list[ClaimRuling]:
    splitter = VerdictSplitter(claims, 5)
    return [*(ruling for piece in cut(text, size) for ruling in splitter.feed(piece)), *splitter.close()]


def _sort_key(one: ClaimRuling) -> tuple[int, bool, str, tuple[int, ...], str]:
    return one.claim, one.whole, one.found.verdict, one.found.sentences, one.found.reasoning
