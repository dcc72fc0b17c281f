"""Advice: each rule by figures that call for it and by figures that do not, and the lines to write."""

import re
import tomllib
from dataclasses import replace
from typing import Any

import pytest

from bot.doctor import advice
from bot.doctor.advice import RULES, STRONGER_MODEL, Advice, ExamFacts, collect_advice
from bot.doctor.model_exam import format_settings
from bot.doctor.prompt_variants import Figures, VariantFigures
from bot.settings.tables.settings_tables import Settings
from pipeline.errors import ModelUnavailable
from pipeline.llm.model_settings import ModelSettings, StageSettings
from storage.types import Verdict

S, R, N = Verdict.SUPPORTS, Verdict.REFUTES, Verdict.NOT_ENOUGH_INFO
WELL = Figures(cases=30, first=30, readable=30, right=30, calls=30, seconds=1.0, slow_seconds=2.0, schema=30)
KINDS = ("query", "summarise", "generate", "split", "verify", "draft", "feedback", "refine")
STRUCTURED = ("query", "summarise", "split", "verify", "feedback")


def changed(advice: Advice | None) -> dict[str, Any] | None:
    return dict(advice.changes) if advice else None


def way(name: str = "as set", *, kinds: tuple[str, ...] = KINDS, **changes: Any) -> VariantFigures:
    return VariantFigures(name, {kind: replace(WELL, **changes) for kind in kinds}, {})


def facts(
    *measured: VariantFigures, student: bool = False, at_once: int = 8, limit: float = 60, **settings: Any
) -> ExamFacts:
    return ExamFacts(measured or (way(),), ModelSettings(name="m", **settings), student, limit, at_once)


def only(kind: str, **changes: Any) -> ExamFacts:
    found = way()
    return facts(replace(found, figures={**found.figures, kind: replace(WELL, **changes)}))


def test_good_figures_give_no_advice() -> None:
    assert collect_advice(facts()) == ()
    assert all(rule(facts()) is None for rule in RULES)


def test_the_format_that_is_kept_best_is_advised() -> None:
    text, json = way("text", readable=30, right=30), way("json", kinds=STRUCTURED, readable=24, right=24)
    schema = way("schema", kinds=STRUCTURED, readable=27, right=27)
    found = advice.advise_reply_format(facts(text, json, schema))

    assert found == Advice(
        "Replies are best when requested as text. Readable replies: text 100%, json 80%, schema 90%.",
        {"model.structured": "text"},
    )
    assert advice.advise_reply_format(facts(text, json, schema, structured="text")) is None


def test_right_replies_decide_between_formats_that_are_kept_alike() -> None:
    text, json = way("text", right=20), way("json", kinds=STRUCTURED, right=28)

    assert facts(text, json).best.way == "json"
    assert changed(advice.advise_reply_format(facts(text, json))) == {"model.structured": "json"}
    assert advice.advise_reply_format(facts(way("text", right=27), json)) is None
    assert facts(way("text"), way("json", kinds=STRUCTURED)).best.way == "json"
    assert advice.advise_reply_format(facts(way("text"), way("schema", kinds=STRUCTURED))) is None


def test_a_format_that_the_server_does_not_offer_is_no_choice() -> None:
    text, json = way("text", readable=28), way("json", kinds=STRUCTURED, schema=0)

    assert facts(text, json).best.way == "text"
    assert advice.advise_reply_format(facts(text, json)) is None


def test_a_model_that_keeps_the_format_only_as_a_student_is_to_be_one() -> None:
    poor, student = way("text", readable=20, right=20), way("student", readable=29)

    assert advice.advise_student(facts(poor, student)) == Advice(
        "With the student's prompts it keeps the format in 97% of cases, else in 67%.",
        {"model.student": True, "model.structured": "text"},
    )
    assert advice.advise_reply_format(facts(poor, student, structured="schema")) is None
    assert advice.advise_student(facts(poor, student, student=True)) is None
    assert advice.advise_student(facts(way("text"), student)) is None
    assert changed(advice.advise_student(facts(way("text"), student, student=True))) == {"model.student": False}


def test_a_format_that_is_not_kept_wants_a_comparison() -> None:
    found = advice.advise_comparison(facts(way(readable=24)))

    assert changed(found) == {}
    assert re.search(r"80%.*--compare", str(found))
    assert advice.advise_comparison(facts(way("text", readable=24))) is None
    assert advice.advise_comparison(facts(way(cases=0, readable=0))) is None


def test_unreadable_streamed_replies_are_reported_for_any_format() -> None:
    found = advice.advise_streamed_text(only("verdicts", readable=12, right=12))

    assert found
    assert "requested as text, whatever `structured` is" in found.why
    assert "12 of 30 of verdicts" in found.why
    assert "`wikichat` requests claims and verdicts by a schema" in found.why
    assert advice.advise_streamed_text(only("verdicts", readable=28)) is None
    assert advice.advise_streamed_text(only("verify", readable=12)) is None
    drafts = advice.advise_streamed_text(only("answer", readable=12))
    assert drafts
    assert "by a schema" not in drafts.why


@pytest.mark.parametrize("changes", [{"trimmed": 1}, {"shortened": 3}])
def test_a_window_that_is_too_small_is_to_hold_a_whole_call(changes: dict[str, int]) -> None:
    found = advice.advise_context(only("query", longest_sent=3_000, longest_reply=500, **changes))
    small = advice.advise_context(only("query", longest_sent=300, **changes))

    assert changed(found) == {"model.context_tokens": 6_144}
    assert changed(small) == {"model.context_tokens": 4_096}


def test_thinking_model_is_declared() -> None:
    found = advice.advise_thinking(facts(way(thought=20)))

    assert changed(found) == {"model.thinks": True}
    assert advice.advise_thinking(facts(way(thought=20), thinks=True)) is None
    assert advice.advise_thinking(facts(way(thought=2))) is None


def test_replies_that_are_cut_off_may_be_longer() -> None:
    cut, thought = only("split", cut=3, longest_reply=600), only("split", cut=3, longest_reply=600, thought=30)
    out = only("feedback", faults=(ModelUnavailable("thought", hint="raise thinking_tokens of the model"),))

    assert changed(advice.advise_cut_replies(cut)) == {"model.stages.split.max_tokens": 1_200}
    assert changed(advice.advise_cut_replies(thought)) == {"model.thinking_tokens": 8_192}
    assert changed(advice.advise_cut_replies(out)) == {"model.thinking_tokens": 8_192}
    refine = {"model.stages.refine.max_tokens": 1_200}
    assert changed(advice.advise_cut_replies(only("feedback", cut=3, longest_reply=510))) == refine


@pytest.mark.parametrize(
    ("verdicts", "told"),
    [
        ({(S, S): 10, (R, R): 10, (N, N): 10}, ()),
        ({(S, S): 10, (R, R): 10, (N, N): 8, (N, S): 2}, ()),
        ({(S, S): 10, (R, R): 10, (N, N): 7, (N, S): 3}, ("27 of 30", "it accepts 3:")),
        ({(S, N): 7, (S, S): 3, (R, R): 10, (N, N): 10}, ("23 of 30", "it accepts 0:")),
        ({(S, S): 10, (R, S): 10, (N, S): 10}, ("10 of 30", "it accepts 20:")),
    ],
)
def test_wrong_verdicts_want_a_stronger_judge(verdicts: Any, told: tuple[str, ...]) -> None:
    found = advice.advise_verdicts(only("verify", verdicts=verdicts))

    assert bool(found) == bool(told)
    if found:
        assert all(part in found.why for part in told)
        assert found.changes == {"model.stages.verify.name": STRONGER_MODEL}


def test_weak_stage_gets_a_stronger_model() -> None:
    one, many = advice.advise_weak_stages(only("draft", right=10)), advice.advise_weak_stages(facts(way(right=10)))

    assert changed(one) == {"model.stages.draft.name": STRONGER_MODEL}
    assert "10 of 30 of draft" in str(one)
    assert changed(many) == {"model.name": STRONGER_MODEL}


def test_missing_replies_are_explained() -> None:
    busy, odd = ModelUnavailable("It is busy.", hint="try again later"), ModelUnavailable("odd")
    quiet = ModelUnavailable("silent", hint="raise timeout_seconds of the model")

    assert advice.advise_failures(only("query", faults=(busy, busy, odd, quiet))) == Advice(
        "3 cases got no reply, 2 of them because It is busy. Try again later."
    )
    assert advice.advise_failures(only("query", faults=(odd,))) == Advice("1 case got no reply: odd.")
    assert advice.advise_failures(only("query", faults=(quiet,))) is None


def test_a_silent_server_is_given_twice_the_time() -> None:
    found = advice.advise_silence(
        only("query", faults=(ModelUnavailable("x", hint="raise timeout_seconds of the model"),))
    )

    assert changed(found) == {"model.timeout_seconds": 120, "model.first_token_seconds": 120, "model.idle_seconds": 40}


def test_a_busy_server_is_asked_fewer_at_once() -> None:
    found = advice.advise_concurrency(facts(way(retried=6)))

    assert changed(found) == {"model.max_concurrency": 4}
    assert advice.advise_concurrency(facts(way(retried=1))) is None
    assert advice.advise_concurrency(facts(way(retried=6), at_once=1)) is None


def test_slow_calls_are_given_thrice_their_time() -> None:
    found = advice.advise_slow_calls(only("draft", slow_seconds=34.0))

    assert changed(found) == {"model.timeout_seconds": 110, "model.first_token_seconds": 110}
    assert advice.advise_slow_calls(only("draft", slow_seconds=29.0)) is None


def test_long_turns_are_given_thrice_their_time() -> None:
    found = advice.advise_slow_turns(facts(way(seconds=6.0)))

    assert changed(found) == {"limits.seconds": 110}
    assert found
    assert found.why == "An answer takes about 36 s of the allowed 60 s. Or save 12 s of it with refine = false."
    assert advice.advise_slow_turns(facts(way(seconds=4.0))) is None


def test_the_lines_to_write_are_settings() -> None:
    advice = (
        Advice("a", {"model.structured": "text", "model.student": True, "model.stages.verify.name": "big"}),
        Advice("b", {"limits.seconds": 110, "model.stages.split.max_tokens": 1_200}),
    )
    written = format_settings(advice, {"verify": StageSettings(temperature=0.5), "query": StageSettings()})

    assert written[:4] == (
        "[model]",
        'structured = "text"',
        "student = true",
        'stages = { verify = { temperature = 0.5, name = "big" }, split = { max_tokens = 1200 } }',
    )
    read = Settings(**tomllib.loads("\n".join(written)))
    assert (read.limits.seconds, read.model.student, read.model.stages["verify"].name) == (110, True, "big")
    assert format_settings((), {}) == ()
