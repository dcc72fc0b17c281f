"""How model replies are parsed, in the requested format and in common variations."""

import json
import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import UnreadableReply
from pipeline.replies.reply_format import ReplyFormat, extract_json_object
from pipeline.replies.stage_replies import (
    Bullet,
    TimedClaim,
    bullets_format,
    claims_format,
    feedback_format,
    query_format,
)
from pipeline.replies.verdict_replies import verification_format
from pipeline.support.verdict_look import LOOK_FIELDS, Verification
from storage.types import SearchQuery, Verdict

FORMS: dict[str, ReplyFormat] = {
    "query": query_format(),
    "bullets": bullets_format(5),
    "claims": claims_format(),
    "verification": verification_format(5, reasoned=True),
    "student's verification": verification_format(5, reasoned=False),
    "feedback": feedback_format(),
}


class TestEveryForm:
    """Rules of all stages."""

    @given(text=st.text(alphabet=st.sampled_from("SEARCHsearch:yesno-*[]1234,. |\n{}\"'NOT ENOUGH INFOUPRTSverdic/")))
    def test_no_text_crashes_a_parser(self, text: str) -> None:
        for form in FORMS.values():
            with suppress(UnreadableReply):
                form.from_text(text)

    @pytest.mark.parametrize("form", FORMS)
    @pytest.mark.parametrize("mark", ["", "- It is (", "1. It is"])
    def test_endless_spaces_parse_in_time(self, form: str, mark: str) -> None:
        started = time.process_time()
        with suppress(UnreadableReply):
            FORMS[form].from_text(mark + " " * 8_000 + "x")
        assert time.process_time() - started < 2

    @given(
        found=st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(
                st.sampled_from([
                    "search", "query", "time", "bullets", "text", "sentences", "claims", "reasoning", "verdict",
                    "relevant", "natural", "non_repetitive", "temporally_correct", "remark", "score",
                ]),
                inner,
            ),
        )
    )  # fmt: skip
    def test_no_json_crashes_a_parser(self, found: object) -> None:
        for form in FORMS.values():
            with suppress(UnreadableReply):
                form.from_json(found)

    @pytest.mark.parametrize("name", FORMS)
    def test_schemas_are_strict(self, name: str) -> None:
        def check(schema) -> None:
            if schema["type"] == "object":
                assert schema["required"] == list(schema["properties"])
                assert schema["additionalProperties"] is False
                for inner in schema["properties"].values():
                    check(inner)
            elif schema["type"] == "array":
                check(schema["items"])

        assert FORMS[name].schema["type"] == "object"
        check(FORMS[name].schema)
        json.dumps(FORMS[name].schema)


class TestJson:
    """The JSON object in a reply."""

    @pytest.mark.parametrize(
        "text",
        [
            '{"a": 1}',
            '```json\n{"a": 1}\n```',
            'Here is the JSON {as you asked}:\n\n{"a": 1}\n\nI hope that helps {really}.',
            '  {"a": 1} {"a": 2}',
            '[{"a": 1}]',
        ],
    )
    def test_json_object_is_found_within_other_text(self, text: str) -> None:
        assert extract_json_object(text) == {"a": 1}

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "none",
            "[1, 2]",
            '{"a": 1',
            '{"a": 1,}',
            "{'a': 1}",
            "{" * 100_000,
            "[" * 100_000,
            '{"a":' * 100_000,
            '{"a": ' + "9" * 10_000 + "}",
        ],
        ids=lambda text: text[:12],
    )
    def test_invalid_json_is_unreadable(self, text: str) -> None:
        with pytest.raises(UnreadableReply):
            extract_json_object(text)


class TestQuery:
    """Stage 1: the query."""

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("Search: yes\nQuery: age of Lake Baikal\nTime: none", SearchQuery("age of Lake Baikal")),
            ("search: YES.\nquery: “ferry fares”\ntime: Recent", SearchQuery("ferry fares", "recent")),
            ("**Search:** yes\n**Query:** ferry fares\n**Time:** the year 2019", SearchQuery("ferry fares", 2019)),
            ("Query: ferry fares\nTime: 2019", SearchQuery("ferry fares", 2019)),
            ("Search: yes\nQuery: 3.5 million inhabitants", SearchQuery("3.5 million inhabitants")),
            ("I think so.\n\nSearch: yes\nQuery: fares\nTime: none\n\nShall I?", SearchQuery("fares")),
            ("- Search: yes\n- Query: fares\n- Time: latest", SearchQuery("fares", "recent")),
            ("Search: no", None),
            ("Search: No, it is only thanks.", None),
            ("Search: no\nQuery: -\nTime: none", None),
        ],
    )
    def test_query_is_parsed(self, text: str, expected: SearchQuery | None) -> None:
        assert query_format().from_text(text) == expected

    @pytest.mark.parametrize(
        "text", ["", "yes", "Maybe.", "Search: perhaps", "Search: yes", "Search: yes\nQuery: none"]
    )
    def test_query_without_yes_or_no_is_unreadable(self, text: str) -> None:
        with pytest.raises(UnreadableReply):
            query_format().from_text(text)

    @pytest.mark.parametrize(
        ("time", "expected"),
        [("recent", "recent"), ("none", None), ("", None), ("2016", 2016), (2016, 2016), ("12016", None), ("99", None)],
    )
    def test_time_of_a_json_query_is_parsed(self, time: object, expected: object) -> None:
        assert query_format().from_json({"search": True, "query": "fares", "time": time}) == SearchQuery(
            "fares", expected
        )


class TestBullets:
    """Stage 2: summaries of passages."""

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("- The bell rings. [1]", [Bullet("The bell rings.", (1,))]),
            ("* The bell rings [1, 3].", [Bullet("The bell rings", (1, 3))]),
            ("• [2] The bell rings.", [Bullet("The bell rings.", (2,))]),
            ("1. It rings. [1]\n2. It sings. [2-4]", [Bullet("It rings.", (1,)), Bullet("It sings.", (2, 3, 4))]),
            ("**Bullet 1:** It rings. (sentences 1 and 2)", [Bullet("It rings.", (1, 2))]),
            ("It rings. [1]\nIt sings. [2]", [Bullet("It rings.", (1,)), Bullet("It sings.", (2,))]),
            ("Here you are:\n- It rings. [1]\n\nI left out the rest.", [Bullet("It rings.", (1,))]),
            ("- 3.5 million people hear it. [1]", [Bullet("3.5 million people hear it.", (1,))]),
            ("3.5 million people hear it. [1]", [Bullet("3.5 million people hear it.", (1,))]),
            ("- It is heard by\n3.5 million people. [1]", [Bullet("It is heard by 3.5 million people.", (1,))]),
            ("7. Juli war ein Feiertag. [1]", [Bullet("7. Juli war ein Feiertag.", (1,))]),
            ("- It rings. [9]\n- It sings. [2]", [Bullet("It rings.", ()), Bullet("It sings.", (2,))]),
            ("- It rang in [1953]. [2]", [Bullet("It rang in [1953].", (2,))]),
            ("- Bell of the year (2004) [2]", [Bullet("Bell of the year (2004)", (2,))]),
            ("- It weighs two tons (1) [from sentence 3], [4].", [Bullet("It weighs two tons (1)", (3, 4))]),
            ("- Bell (2004)\n- It rings (1) (3).", [Bullet("Bell (2004)", ()), Bullet("It rings", (1, 3))]),
            ("None", []),
            ("**None.**", []),
            ("- None", []),
            ("“None”", []),
        ],
    )
    def test_bullets_are_parsed(self, text: str, expected: list[Bullet]) -> None:
        """Marks and citations are removed, but no word or number of the statement."""
        assert bullets_format(5).from_text(text) == tuple(expected)

    @pytest.mark.parametrize(
        "text", ["", "The bell rings.", "- The bell rings.", "- The bell rings. [9]", "It rings, I say."]
    )
    def test_bullets_without_numbers_are_unreadable(self, text: str) -> None:
        with pytest.raises(UnreadableReply):
            bullets_format(5).from_text(text)

    def test_sentence_numbers_may_be_strings(self) -> None:
        data = {"bullets": [{"text": "It rings.", "sentences": ["1", "[2]", 9, 0, -1, True, 1.5, None, 2]}]}
        assert bullets_format(5).from_json(data) == (Bullet("It rings.", (1, 2)),)


class TestClaims:
    """Stage 4: the claims of a response."""

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("- The bell was cast in 1887. | 1887", [TimedClaim("The bell was cast in 1887.", 1887)]),
            ("- It rings. | recent\n- It hums. | none", [TimedClaim("It rings.", "recent"), TimedClaim("It hums.")]),
            ("Claim 1: It rings.\nClaim 2: It sings. | 2001", [TimedClaim("It rings."), TimedClaim("It sings.", 2001)]),
            ("1) It rings. (time: recent)\n2) It sings.", [TimedClaim("It rings.", "recent"), TimedClaim("It sings.")]),
            ("It rings. | none\nIt sings. | none", [TimedClaim("It rings."), TimedClaim("It sings.")]),
            ("- 3.5 million people live there. | 2020", [TimedClaim("3.5 million people live there.", 2020)]),
            ("3.5 million people live there. | 2020", [TimedClaim("3.5 million people live there.", 2020)]),
            ("The facts are:\n- It rings. | none\n\nThe rest is opinion.", [TimedClaim("It rings.")]),
            ("- It rings. | none\n- It rings. | none", [TimedClaim("It rings.")]),
            ("- Paris | Texas is a film. | none", [TimedClaim("Paris | Texas is a film.")]),
            ("Nothing", []),
            ("Nothing.", []),
            ("**Nothing**", []),
            ("- Nothing", []),
        ],
    )  # fmt: skip
    def test_claims_are_parsed(self, text: str, expected: list[TimedClaim]) -> None:
        assert claims_format().from_text(text) == tuple(expected)

    @pytest.mark.parametrize("text", ["", "I would say that it rings.", "There are two claims in it:"])
    def test_prose_instead_of_claims_is_unreadable(self, text: str) -> None:
        with pytest.raises(UnreadableReply):
            claims_format().from_text(text)


class TestVerification:
    """Stage 5: the verdict on a claim."""

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("Reasoning: So it is.\nSentences: 1, 2\nVerdict: SUPPORTS",
             Verification(Verdict.SUPPORTS, (1, 2), "So it is.")),
            ("**Reasoning:** No.\n**Sentences:** -\n**Verdict: REFUTES**", Verification(Verdict.REFUTES, (), "No.")),
            ("Sentences: 3\nVerdict: supported.", Verification(Verdict.SUPPORTS, (3,))),
            ("Sentences: -\nVerdict: Not enough information", Verification(Verdict.NOT_ENOUGH_INFO)),
            ('It differs in sentence 2, so the result is "REFUTES".',
             Verification(Verdict.REFUTES, (2,), 'It differs in sentence 2, so the result is "REFUTES".')),
            ("Sentence 2 says it: SUPPORTS", Verification(Verdict.SUPPORTS, (2,), "Sentence 2 says it: SUPPORTS")),
            ("Sentences: 1\nVerdict: SUPPORTS\n\nLet me know if REFUTES was meant.",
             Verification(Verdict.SUPPORTS, (1,), "Let me know if REFUTES was meant.")),
            ("Sentences: 9\nVerdict: REFUTES", Verification(Verdict.REFUTES)),
        ],
    )  # fmt: skip
    def test_verification_is_parsed(self, text: str, expected: Verification) -> None:
        assert verification_format(5, reasoned=True).from_text(text) == expected

    @pytest.mark.parametrize(
        "text",
        [
            "Sentence 1 does not SUPPORT the claim.",
            "Sentence 1 does not, however, SUPPORT it.",
            "Sentence 1 doesn't SUPPORT the claim",
            "The claim is not supported by sentence 1.",
            "Sentences: 1\nVerdict: not SUPPORTED",
            "Sentences: 1\nVerdict: NOT SUPPORTS",
            "Sentences: 1\nVerdict: partially SUPPORTS",
            "Sentences: 1\nVerdict: SUPPORTS only in part",
            "Sentences: 1\nVerdict: SUPPORTS, partly",
            "Sentence 1 neither SUPPORTS nor REFUTES it.",
            "It cannot be said whether sentence 1 SUPPORTS it.",
            "Sentence 1 might SUPPORT the claim.",
            "It never SUPPORTS [1] that.",
            "Sentences: 1\nVerdict: NOT ENOUGH INFO (it almost SUPPORTS it)",
            "Sentences: 1\nVerdict: insufficient evidence",
        ],
    )
    def test_denied_or_hedged_verdict_is_not_support(self, text: str) -> None:
        try:
            verdict = verification_format(5, reasoned=True).from_text(text).verdict
        except UnreadableReply:
            return
        assert verdict is Verdict.NOT_ENOUGH_INFO

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "Yes.",
            "Sentence 1 supports the idea of the claim but gives another year.",
            "Sentences: 1\nVerdict: SUPPORTS, REFUTES or NOT ENOUGH INFO",
            "Sentences: 1\nVerdict: SUPPORTS | REFUTES",
            "Sentences: 1\nVerdict: it is so",
            "Sentences: -\nVerdict: SUPPORTS",
            "Sentences: 9\nVerdict: SUPPORTS",
            "UNSUPPORTED",
            "Reasoning: it is SUPPORTIVE",
        ],
    )
    def test_reply_without_a_single_verdict_is_unreadable(self, text: str) -> None:
        with pytest.raises(UnreadableReply):
            verification_format(5, reasoned=True).from_text(text)

    def test_verdict_over_a_single_sentence_cites_it_without_a_number(self) -> None:
        assert verification_format(1, reasoned=False).from_text("Verdict: SUPPORTS").sentences == (1,)

    def test_student_format_has_no_reasoning(self) -> None:
        form = verification_format(5, reasoned=False)
        assert list(form.schema["properties"]) == ["sentences", *LOOK_FIELDS, "verdict"]
        assert form.from_json({"sentences": [2], "verdict": "SUPPORTS"}) == Verification(Verdict.SUPPORTS, (2,))


class TestFeedback:
    """Stage 7: feedback on a draft."""

    TEXT = "Relevant: On topic. 90/100\nNatural: Stiff, 3/100 words too many. 60 / 100\nNon-Repetitive: Fine. 100/100\n"

    def test_feedback_is_parsed(self) -> None:
        """The last score of a line counts, whatever the case of the label."""
        feedback = feedback_format().from_text(f"**Feedback**\n{self.TEXT}* Temporally correct: Yes. 100 out of 100")

        assert [(point.criterion, point.score) for point in feedback.points] == [
            ("relevant", 90),
            ("natural", 60),
            ("non-repetitive", 100),
            ("temporally correct", 100),
        ]
        assert feedback.points[1].remark == "Stiff, 3/100 words too many."
        assert not feedback.good

    @pytest.mark.parametrize("last", ["", "Temporally correct: Yes.", "Temporally correct: 1.50/100"])
    def test_feedback_without_every_score_is_unreadable(self, last: str) -> None:
        with pytest.raises(UnreadableReply):
            feedback_format().from_text(self.TEXT + last)

    def test_feedback_score_above_the_range_counts_as_good(self) -> None:
        point = {"remark": "Wow!", "score": 900}
        data = dict.fromkeys(("relevant", "natural", "non_repetitive", "temporally_correct"), point)
        assert feedback_format().from_json(data).good
