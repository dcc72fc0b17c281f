"""Examinations of scripted models: perfect, ignoring the format, agreeing with everything, failing and slow."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from bot.doctor.advice import Advice
from bot.doctor.examiner import MAX_DEAD_CASES
from bot.doctor.model_exam import ExamRequest, ExamResults, ModelReport, build_report, plan_exam, run_exam
from bot.doctor.prompt_variants import Figures
from bot.settings.tables.model_values import ModelValues
from bot.settings.tables.settings_tables import Settings
from evaluation.simulated_model.chat_protocol import HANG, ChatRequest, Reply
from pipeline.errors import BudgetExceeded, ModelRefused, ModelUnavailable
from pipeline.llm.model import ModelCall, ModelReply
from pipeline.llm.model_client import open_model
from pipeline.llm.model_settings import ModelSettings
from storage.types import Verdict
from tests.bot.doctor.gold import BY_KIND, NOW, GoldLLM, asked, cases, opens, perfect, right
from tests.fake_model_rules import OPENAI, VLLM, StrictProfile
from tests.fake_model_server import serve
from tests.pipeline.weak_model import LOOPS

S, R, N = Verdict.SUPPORTS, Verdict.REFUTES, Verdict.NOT_ENOUGH_INFO


async def examine(*llms: GoldLLM, settings: Settings | None = None, tokens: int = 10**9, **wanted: Any) -> ExamResults:
    model = ModelValues(name="gold", base_url="http://127.0.0.1:1")
    results, chosen = ExamResults(), settings or Settings(model=model, system="wikichat")
    asked_for = plan_exam(ExamRequest(**wanted), chosen, NOW)
    await run_exam(asked_for, opens(*llms), tokens=tokens, now=NOW, report=_silent, results=results)
    return results


def report_on(results: ExamResults, **model: Any) -> ModelReport:
    return build_report(results, Settings(model=ModelValues(name="gold", base_url="http://127.0.0.1:1", **model)))


def figures(results: ExamResults, way: int = 0) -> dict[str, Figures]:
    return dict(report_on(results).facts.measured[way].figures)


@pytest.mark.parametrize("schemas", [False, True])
@pytest.mark.parametrize("student", [False, True])
@pytest.mark.parametrize("system", ["wikichat", ""])
async def test_perfect_model_gets_full_marks_and_no_advice(*, schemas: bool, student: bool, system: str) -> None:
    llm = GoldLLM(schemas=schemas)
    model = ModelValues(name="gold", base_url="http://127.0.0.1:1", student=student)
    results = await examine(llm, settings=Settings(model=model, system=system))

    for kind, each in figures(results).items():
        count = len(cases(BY_KIND[kind]))
        assert (each.cases, each.first, each.readable, each.right, each.calls) == (count,) * 5, (kind, each.wrong)
        assert each.valid == each.cited
        assert each.prompt_tokens == 1_400 * count
        assert each.cost == pytest.approx(0.002 * count)
        assert each.schema == (count if schemas and BY_KIND[kind].structured else 0)
    assert figures(results)["verify"].verdicts == {(S, S): 10, (R, R): 10, (N, N): 10}
    assert ("refine" in figures(results)) is (system == "wikichat" and not student)
    assert "verdicts" in figures(results)
    assert report_on(results).facts.figures
    assert report_on(results).advice == ()
    assert len(set(llm.calls)) == len(llm.calls)


async def test_calls_run_at_once_up_to_the_limit() -> None:
    llm = GoldLLM()
    await examine(llm, stages=("query",))

    assert llm.most == 8


async def test_stages_and_cases_can_be_limited() -> None:
    results = await examine(GoldLLM(), stages=("refine", "draft"), limit=3)

    assert {kind: each.cases for kind, each in figures(results).items()} == {"draft": 3, "feedback": 3, "refine": 3}


async def test_second_attempts_after_unreadable_replies_are_counted() -> None:
    def speak(kind: Any, case: Any, call: ModelCall) -> str:
        again = call.messages[-1].text.startswith("This reply cannot be read")
        return perfect(kind, case, call) if again else "Let me think about that."

    results = figures(await examine(GoldLLM(speak), stages=("split", "verify", "draft")))

    for each in results.values():
        assert (each.cases, each.first, each.readable, each.right, each.calls) == (30, 0, 30, 30, 60)


async def test_model_that_ignores_the_format_is_advised_a_comparison() -> None:
    results = await examine(GoldLLM(lambda *_: "I would rather talk about the weather."), stages=("query", "verify"))
    each = figures(results)["verify"]

    assert (each.cases, each.readable, each.right, each.calls, each.faults) == (30, 0, 0, 60, ())
    assert results.fault is None
    assert any("--compare" in advice.why for advice in report_on(results).advice)


async def test_model_that_confirms_every_claim_is_advised_a_stronger_judge() -> None:
    def speak(kind: Any, case: Any, call: ModelCall) -> str:
        if kind.name != "verify":
            return perfect(kind, case, call)
        return "Reasoning: Sure.\nSentences: 1\nVerdict: SUPPORTS"

    results = await examine(GoldLLM(speak))
    verify = figures(results)["verify"]

    assert verify.verdicts == {(S, S): 10, (R, S): 10, (N, S): 10}
    assert (verify.readable, verify.right) == (30, 10)
    assert report_on(results).advice == (
        Advice(
            "40 of 60 verdicts are right; of 40 claims without support it accepts 20: let a stronger model verify.",
            {"model.stages.verify.name": "NAME OF A STRONGER MODEL"},
        ),
    )
    assert report_on(results).lines == ("[model]", 'stages = { verify = { name = "NAME OF A STRONGER MODEL" } }')


async def test_examination_stops_soon_if_no_call_gets_a_reply() -> None:
    gone = ModelUnavailable("the server does not accept the key", hint="check api_key")
    llm = GoldLLM(lambda *_: gone)
    results = await examine(llm)

    assert results.fault is gone
    assert not results.anything
    assert MAX_DEAD_CASES <= len(llm.calls) <= MAX_DEAD_CASES + 8
    assert {kind for kind, _ in llm.calls} == {"query"}


@pytest.mark.parametrize("compare", [False, True])
async def test_outage_over_several_kinds_of_calls_stops_the_whole_examination(*, compare: bool) -> None:
    gone = ModelUnavailable("the server does not reply", hint="is it running?")
    llm = GoldLLM(lambda *_: gone)
    results = await examine(llm, limit=2, compare=compare)

    assert results.fault is gone
    assert len(llm.calls) == MAX_DEAD_CASES
    assert len({kind for kind, _ in llm.calls}) == MAX_DEAD_CASES // 2


async def test_outage_during_the_examination_stops_it_after_a_few_calls() -> None:
    gone, llm = ModelUnavailable("the server does not reply", hint="is it running?"), GoldLLM()
    llm.speak = lambda *values: gone if len(llm.calls) > 40 else perfect(*values)
    results = await examine(llm, limit=20)
    shown = report_on(results).facts.measured[0]

    assert not results.fault
    assert len(llm.calls) <= 40 + 2 * (MAX_DEAD_CASES + 8)
    assert set(shown.cut_short.values()) == {str(gone)}
    assert 1 <= len(shown.cut_short) <= 2


async def test_missing_model_of_a_stage_stops_only_that_stage() -> None:
    gone = ModelUnavailable("it does not know the model 'typo'", hint="check name")
    results = await examine(GoldLLM(lambda kind, *rest: gone if kind.name == "split" else perfect(kind, *rest)))
    shown = report_on(results)

    assert shown.facts.measured[0].cut_short == {"split": str(gone)}
    assert figures(results)["verify"].right == 30
    assert "it does not know the model 'typo'. Check name." in shown.advice[0].why


async def test_refusals_are_counted_and_do_not_stop_a_stage() -> None:
    def speak(kind: Any, case: Any, call: ModelCall) -> str | Exception:
        return ModelRefused("the model declined to reply") if "order" in case.name else perfect(kind, case, call)

    each = figures(await examine(GoldLLM(speak), stages=("verify",)))["verify"]

    assert (each.cases, len(each.faults), each.right) == (28, 2, 28)


async def test_used_up_budget_stops_the_examination() -> None:
    llm = GoldLLM()
    llm.speak = lambda *values: BudgetExceeded("used up") if len(llm.calls) > 40 else perfect(*values)
    model = ModelValues(name="gold", base_url="http://127.0.0.1:1", max_concurrency=1)
    results = await examine(llm, tokens=40_000, settings=Settings(model=model, system="wikichat"))
    shown = report_on(results)

    assert shown.facts.measured[0].cut_short == {"summarise": "the budget of 40,000 tokens is used up"}
    assert figures(results)["query"].right == 31
    assert figures(results)["summarise"].cases == 40 - 31
    assert figures(results)["summarise"].faults == ()
    assert "split" not in figures(results)


async def test_budget_too_small_for_any_case_is_an_error() -> None:
    results = await examine(GoldLLM(lambda *_: BudgetExceeded("used up")), tokens=10)

    assert str(results.fault) == "the budget of 10 tokens is used up"
    assert results.fault
    assert results.fault.hint == "raise --tokens"
    assert not results.anything


async def test_replies_with_reasoning_and_replies_cut_off_are_counted() -> None:
    def speak(kind: Any, case: Any, _: ModelCall) -> ModelReply:
        text = right(kind, case, schema=False)
        return ModelReply(text, "m", "Hm.", "length", prompt_tokens=900, completion_tokens=500)

    results = await examine(GoldLLM(speak), stages=("split",))

    assert figures(results)["split"].cut == figures(results)["split"].thought == 30
    changes = {key: value for advice in report_on(results).advice for key, value in advice.changes.items()}
    assert changes == {"model.thinks": True, "model.thinking_tokens": 8_192}


async def test_loops_are_counted_and_advised_no_longer_replies() -> None:
    def speak(kind: Any, case: Any, call: ModelCall) -> ModelReply:
        text = right(kind, case, schema=False)
        if call.varied:
            return ModelReply(text, "m", prompt_tokens=900, completion_tokens=50)
        return ModelReply(LOOPS["consolation"][:300], "m", finish="loop", prompt_tokens=900, completion_tokens=75)

    results = await examine(GoldLLM(speak), stages=("split",))

    split = figures(results)["split"]
    assert (split.looped, split.cut, split.first, split.readable, split.calls) == (30, 0, 0, 30, 60)
    (advice,) = report_on(results).advice
    assert advice.changes == {}
    assert "More tokens would not help" in advice.why


async def test_slow_server_is_measured_beyond_the_configured_timeout() -> None:
    def slow(request: ChatRequest) -> Reply:
        return replace(http(request), seconds=0.3)

    async with serve(slow, OPENAI) as server:
        results = await _over_http(
            server.url, OPENAI, patience=30, stages=("verify",), limit=2, timeout_seconds=0.1, first_token_seconds=0.1
        )

    measured = figures(results)["verify"]
    assert (measured.cases, measured.faults) == (2, ())
    advice = report_on(results, timeout_seconds=0.1).advice
    assert {"model.timeout_seconds": 10} in [dict(each.changes) for each in advice]


async def test_all_variants_can_be_compared() -> None:
    def as_json(kind: Any, case: Any, call: ModelCall) -> str:
        return perfect(kind, case, call) if call.schema or not kind.structured else "Sure!"

    text, json, schema, student = GoldLLM(as_json), GoldLLM(schemas=True), GoldLLM(schemas=True), GoldLLM()
    results = await examine(text, json, schema, student, compare=True)
    shown = report_on(results, structured="text")

    assert [each.way for each in shown.facts.measured] == ["text", "json", "schema", "student"]
    assert set(figures(results, 1)) == {"query", "summarise", "split", "verify", "feedback"}
    assert set(figures(results, 3)) == {"query", "summarise", "generate", "split", "verify", "verdicts", "draft"}
    assert shown.facts.measured[0].readable == 0
    assert shown.lines == ("[model]", 'structured = "schema"')
    assert report_on(results).lines == ()


def http(request: ChatRequest) -> Reply:
    texts = [message["content"] for message in request.body["messages"]]
    kind, case = asked(texts)
    return Reply(right(kind, case, schema="response_format" in request.body))


@pytest.mark.parametrize(("profile", "schema"), [(OPENAI, 2), (replace(VLLM, formats=("text",)), 0)])
async def test_examination_works_over_http(profile: StrictProfile, schema: int) -> None:
    async with serve(http, profile) as server:
        results = await _over_http(server.url, profile, stages=("query", "verify", "draft"), limit=2)

    for kind, each in figures(results).items():
        assert (each.readable, each.right, each.shortened) == (2, 2, 0)
        assert each.schema == (schema if BY_KIND[kind].structured else 0)
        assert each.seconds > 0
        assert not each.estimated


@pytest.mark.parametrize(("changes", "message"), [
    ({"api_key": "sk-wrong-key-0000"}, "does not accept the key"),
    ({"name": "no-such-model"}, "does not know the model 'no-such-model'"),
    ({"base_url": "http://127.0.0.1:9/v1", "retries": 0}, "cannot be reached"),
])  # fmt: skip
async def test_wrong_key_name_or_address_is_reported_in_one_line(changes: dict[str, Any], message: str) -> None:
    async with serve(http, OPENAI) as server:
        results = await _over_http(server.url, OPENAI, **changes)

    assert isinstance(results.fault, ModelUnavailable)
    assert message in str(results.fault)
    assert results.fault.hint
    assert "wrong-key" not in str(results.fault)


async def test_silent_server_gets_longer_timeouts() -> None:
    calls = 0

    def script(request: ChatRequest) -> Any:
        nonlocal calls
        calls += 1
        return http(request) if calls <= 2 else HANG

    async with serve(script, OPENAI) as server:
        results = await _over_http(
            server.url, OPENAI, patience=0, stages=("verify",), limit=4, timeout_seconds=0.5, max_concurrency=2
        )
    (measured,) = report_on(results).facts.measured
    changes = [advice.changes for advice in report_on(results, timeout_seconds=0.5).advice]

    assert measured.figures["verify"].right == 2
    assert len(measured.figures["verify"].faults) == 2
    assert {"model.timeout_seconds": 1.0, "model.first_token_seconds": 120, "model.idle_seconds": 40} in changes


async def _over_http(url: str, profile: StrictProfile, **wanted: Any) -> ExamResults:
    limits = {name: wanted.pop(name) for name in ("stages", "limit") if name in wanted}
    more = {name: wanted.pop(name) for name in ("patience",) if name in wanted}
    values = {"name": profile.models[0], "base_url": url, "api_key": profile.key, **wanted}
    settings, results = Settings(model=ModelValues(**values)), ExamResults()

    def opened(model: ModelSettings) -> Any:
        return open_model(model, sleep=lambda _: asyncio.sleep(0))

    plan = plan_exam(ExamRequest(**limits), settings, NOW)
    await run_exam(plan, opened, tokens=10**9, now=NOW, report=_silent, results=results, **more)
    return results


def _silent(done: int, total: int | None, doing: str = "") -> None:
    del done, total, doing
