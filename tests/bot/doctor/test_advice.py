"""The rules for advice, each with figures that trigger it or do not, and the resulting settings."""

import tomllib
from collections.abc import Callable
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


def way(name: str = "as set", *, kinds: tuple[str, ...] = KINDS, **changes: Any) -> VariantFigures:
    return VariantFigures(name, {kind: replace(WELL, **changes) for kind in kinds}, {})


def facts(
    *measured: VariantFigures, student: bool = False, at_once: int = 8, limit: float = 60, **settings: Any
) -> ExamFacts:
    return ExamFacts(measured or (way(),), ModelSettings(name="m", **settings), student, limit, at_once)


def only(kind: str, **changes: Any) -> ExamFacts:
    usual = way()
    return facts(replace(usual, figures={**usual.figures, kind: replace(WELL, **changes)}))


def test_good_figures_give_no_advice() -> None:
    assert collect_advice(facts()) == ()
    assert all(rule(facts()) is None for rule in RULES)


def test_best_reply_format_is_advised_with_the_readable_shares_of_all_formats() -> None:
    text, json = way("text", readable=30, right=30), way("json", kinds=STRUCTURED, readable=24, right=24)
    schema = way("schema", kinds=STRUCTURED, readable=27, right=27)

    assert advice.advise_reply_format(facts(text, json, schema)) == Advice(
        "Replies are best when requested as text. Readable replies: text 100%, json 80%, schema 90%.",
        {"model.structured": "text"},
    )
    assert advice.advise_reply_format(facts(text, json, schema, structured="text")) is None


JSON, SCHEMA = way("json", kinds=STRUCTURED, right=28), way("schema", kinds=STRUCTURED)
POOR, STUDENT = way("text", readable=20, right=20), way("student", readable=29)
BUSY, ODD = ModelUnavailable("It is busy.", hint="try again later"), ModelUnavailable("odd")
QUIET = ModelUnavailable("silent", hint="raise timeout_seconds of the model")
THOUGHT = ModelUnavailable("thought", hint="raise thinking_tokens of the model")
DOUBLED = {"model.timeout_seconds": 120, "model.first_token_seconds": 120, "model.idle_seconds": 40}
TRIPLED = {"model.timeout_seconds": 110, "model.first_token_seconds": 110}
STRONGER_JUDGE = {"model.stages.verify.name": STRONGER_MODEL}
STREAMED = "requested as text, whatever `structured` is; too few are readable: 12 of 30 of verdicts."
BY_SCHEMA = "`wikichat` requests claims and verdicts by a schema"
Expected = tuple[dict[str, Any], str] | None
CASES: list[tuple[Callable[[ExamFacts], Advice | None], ExamFacts, Expected]] = [
    (advice.advise_reply_format, facts(way("text", right=20), JSON), ({"model.structured": "json"}, "text 100%")),
    (advice.advise_reply_format, facts(way("text", right=27), JSON), None),
    (advice.advise_reply_format, facts(way("text"), SCHEMA), None),
    (advice.advise_reply_format, facts(way("text", readable=28), way("json", kinds=STRUCTURED, schema=0)), None),
    (advice.advise_reply_format, facts(POOR, STUDENT, structured="schema"), None),
    (advice.advise_student, facts(POOR, STUDENT), ({"model.student": True, "model.structured": "text"},
     "It keeps the format in 97% of cases with the student's prompts, in 67% without.")),
    (advice.advise_student, facts(POOR, STUDENT, student=True), None),
    (advice.advise_student, facts(way("text"), STUDENT), None),
    (advice.advise_student, facts(way("text"), STUDENT, student=True), ({"model.student": False}, "")),
    (advice.advise_comparison, facts(way(readable=24)), ({}, "80%")),
    (advice.advise_comparison, facts(way(readable=24)), ({}, "--compare")),
    (advice.advise_comparison, facts(way("text", readable=24)), None),
    (advice.advise_comparison, facts(way(cases=0, readable=0)), None),
    (advice.advise_streamed_text, only("verdicts", readable=12, right=12), ({}, STREAMED)),
    (advice.advise_streamed_text, only("verdicts", readable=12, right=12), ({}, BY_SCHEMA)),
    (advice.advise_streamed_text, only("answer", readable=12), ({}, "12 of 30 of answer. A stronger model")),
    (advice.advise_streamed_text, only("verdicts", readable=28), None),
    (advice.advise_streamed_text, only("verify", readable=12), None),
    (advice.advise_context, only("query", longest_sent=3_000, longest_reply=500, trimmed=1),
     ({"model.context_tokens": 6_144}, "1 times a prompt did not fit")),
    (advice.advise_context, only("query", longest_sent=3_000, longest_reply=500, shortened=3),
     ({"model.context_tokens": 6_144}, "only a part of 3 prompts")),
    (advice.advise_context, only("query", longest_sent=300, trimmed=1), ({"model.context_tokens": 4_096}, "")),
    (advice.advise_thinking, facts(way(thought=20)), ({"model.thinks": True}, "")),
    (advice.advise_thinking, facts(way(thought=20), thinks=True), None),
    (advice.advise_thinking, facts(way(thought=2)), None),
    (advice.advise_cut_replies, only("split", cut=3, longest_reply=600),
     ({"model.stages.split.max_tokens": 1_200}, "")),
    (advice.advise_cut_replies, only("feedback", cut=3, longest_reply=510),
     ({"model.stages.refine.max_tokens": 1_200}, "")),
    (advice.advise_cut_replies, only("split", cut=3, longest_reply=600, thought=30),
     ({"model.thinking_tokens": 8_192}, "")),
    (advice.advise_cut_replies, only("feedback", faults=(THOUGHT,)), ({"model.thinking_tokens": 8_192}, "")),
    (advice.advise_cut_replies, only("split", looped=9, longest_reply=600), None),
    (advice.advise_loops, only("split", looped=9), ({}, "9 of split. More tokens would not help; a stronger model")),
    (advice.advise_loops, only("split", cut=9), None),
    (advice.advise_verdicts, only("verify", verdicts={(S, S): 10, (R, R): 10, (N, N): 10}), None),
    (advice.advise_verdicts, only("verify", verdicts={(S, S): 10, (R, R): 10, (N, N): 8, (N, S): 2}), None),
    (advice.advise_verdicts, only("verify", verdicts={(S, S): 10, (R, R): 10, (N, N): 7, (N, S): 3}),
     (STRONGER_JUDGE, "27 of 30 verdicts are right; of 20 claims without support it accepts 3:")),
    (advice.advise_verdicts, only("verify", verdicts={(S, N): 7, (S, S): 3, (R, R): 10, (N, N): 10}),
     (STRONGER_JUDGE, "23 of 30 verdicts are right; of 20 claims without support it accepts 0:")),
    (advice.advise_verdicts, only("verify", verdicts={(S, S): 10, (R, S): 10, (N, S): 10}),
     (STRONGER_JUDGE, "10 of 30 verdicts are right; of 20 claims without support it accepts 20:")),
    (advice.advise_weak_stages, only("draft", right=10),
     ({"model.stages.draft.name": STRONGER_MODEL}, "10 of 30 of draft")),
    (advice.advise_weak_stages, facts(way(right=10)), ({"model.name": STRONGER_MODEL}, "")),
    (advice.advise_failures, only("query", faults=(BUSY, BUSY, ODD, QUIET)),
     ({}, "3 cases got no reply, 2 of them because It is busy. Try again later.")),
    (advice.advise_failures, only("query", faults=(ODD,)), ({}, "1 case got no reply: odd.")),
    (advice.advise_failures, only("query", faults=(QUIET,)), None),
    (advice.advise_silence, only("query", faults=(QUIET,)), (DOUBLED, "")),
    (advice.advise_concurrency, facts(way(retried=6)), ({"model.max_concurrency": 4}, "")),
    (advice.advise_concurrency, facts(way(retried=1)), None),
    (advice.advise_concurrency, facts(way(retried=6), at_once=1), None),
    (advice.advise_slow_calls, only("draft", slow_seconds=34.0), (TRIPLED, "")),
    (advice.advise_slow_calls, only("draft", slow_seconds=29.0), None),
    (advice.advise_slow_turns, facts(way(seconds=6.0)), ({"limits.seconds": 110},
     "An answer takes about 36 s of the allowed 60 s. Or save 12 s of it with refine = false.")),
    (advice.advise_slow_turns, facts(way(seconds=4.0)), None),
    (advice.advise_slow_turns, facts(way(kinds=(*KINDS, "answer", "verdicts"), seconds=40.0)),
     ({"system": "retrieve-then-generate", "effort": "quick", "limits.seconds": 240}, "An answer takes about 240 s.")),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "measured", "expected"), CASES)
def test_each_advice_rule_gives_its_advice_for_the_measured_figures(
    rule: Callable[[ExamFacts], Advice | None], measured: ExamFacts, expected: Expected
) -> None:
    advised = rule(measured)

    assert (dict(advised.changes) if advised else None) == (expected and expected[0])
    assert expected is None or (advised and expected[1] in advised.why)


@pytest.mark.parametrize(("measured", "best"), [
    ((way("text", right=20), JSON), "json"),
    ((way("text"), way("json", kinds=STRUCTURED)), "json"),
    ((way("text", readable=28), way("json", kinds=STRUCTURED, schema=0)), "text"),
])  # fmt: skip
def test_best_prompt_variant_has_the_most_readable_and_right_replies(
    measured: tuple[VariantFigures, ...], best: str
) -> None:
    assert facts(*measured).best.way == best


def test_advice_on_drafts_does_not_mention_schemas() -> None:
    drafts = advice.advise_streamed_text(only("answer", readable=12))
    assert drafts
    assert "by a schema" not in drafts.why


def test_advice_is_formatted_as_settings() -> None:
    advice = (
        Advice("a", {"model.structured": "text", "model.student": True, "model.stages.verify.name": "big"}),
        Advice("b", {"limits.seconds": 110, "model.stages.split.max_tokens": 1_200, "effort": "quick"}),
    )
    written = format_settings(advice, {"verify": StageSettings(temperature=0.5), "query": StageSettings()})

    assert written[:5] == (
        'effort = "quick"',
        "[model]",
        'structured = "text"',
        "student = true",
        'stages = { verify = { temperature = 0.5, name = "big" }, split = { max_tokens = 1200 } }',
    )
    read = Settings(**tomllib.loads("\n".join(written)))
    assert (read.limits.seconds, read.model.student, read.model.stages["verify"].name) == (110, True, "big")
    assert read.effort == "quick"
    assert format_settings((), {}) == ()
