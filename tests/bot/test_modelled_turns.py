"""Turns with a language model behind a server: answered or failed, always recorded, never with the key."""

import json
from dataclasses import replace
from functools import partial

import pytest

from bot.answering.question_answering import answer, check
from bot.answering.turn_kit import TOO_SLOW, UNCONFIRMED
from bot.settings.tables.settings_tables import LimitSettings
from bot.types import Failure
from bot.views.catalog import find_asked_claim, list_languages, render_only_quoted
from bot.views.view_reducer import finish_view, start_view
from evaluation.simulated_model.chat_protocol import HANG, Reply, answer_error
from pipeline.llm.server_load import CallSample
from pipeline.types import ClaimChecked, DraftStarted, SentencePassed, Status
from storage.language.detection import detect_language
from storage.record.proof.verification import verify_turn
from storage.types import EntryKind, Verdict
from tests.bot.model_app import KEY, CutReply, StalledReply, find_stage, make_request, open_model_app
from tests.pipeline.weak_model import LOOPS

SUPPORTED = "Reasoning: Sentence 1 says so.\nSentences: 1\nVerdict: SUPPORTS"
REFUTED = "Reasoning: Sentence 1 says otherwise.\nSentences: 1\nVerdict: REFUTES"


@pytest.fixture(params=["wikichat", "wikichat-fast"])
def system(request):
    return request.param


@pytest.fixture
def asking(system):
    return partial(make_request, system=system)


async def record(app):
    ((opening, _),) = await app.audit.turns(10)
    return await app.audit.turn(opening.turn_id)


def everything(entries):
    return json.dumps([entry.body for entry in entries], default=str, ensure_ascii=False)


async def test_confirmed_claims_are_answered_and_recorded(tmp_path, asking, system):
    script = {
        "generate": "It was built in 1890. A keeper lives beside it.",
        "split": "- Skarholm lighthouse was built in 1890. | none\n- A keeper lives beside Skarholm lighthouse. | none",
        "verify": lambda call: (
            REFUTED if "Claim: Skarholm lighthouse was built in 1890." in call.messages[-1].text else SUPPORTED
        ),
    }
    events = []
    async with open_model_app(tmp_path, script, prices={"small-model": {"prompt": 1, "completion": 2}}) as (
        app,
        server,
    ):
        done = await answer(app, asking(), events.append)
        entries = await record(app)

    assert (done.answer.status, done.system, done.model) == (Status.ANSWERED, system, "small-model")
    assert "Skarholm lighthouse was built in 1887. [1]" in done.text
    assert "1890" not in done.text
    assert done.usage.llm_calls == len(server.requests) >= 6
    assert 0 < done.usage.llm_rounds < done.usage.llm_calls
    assert done.usage.prompt_tokens > 0
    assert done.usage.cost == pytest.approx((done.usage.prompt_tokens + 2 * done.usage.completion_tokens) / 1e6)
    verdicts = {(claim.claim.origin, claim.verdict) for claim in done.answer.claims}
    assert verdicts >= {("model", Verdict.REFUTES), ("model", Verdict.SUPPORTS), ("retrieved", Verdict.SUPPORTS)}
    assert {type(event) for event in events} >= {ClaimChecked, DraftStarted, SentencePassed}
    opened, closed = entries[0].body, entries[-1].body
    assert (opened["model"], closed["model"], closed["usage"]["llm_calls"]) == ("small-model",) * 2 + (
        len(server.requests),
    )
    assert len({opened["prompts"], opened["support"], opened["settings"]}) == 3
    steps = [entry.body for entry in entries if entry.kind is EntryKind.STEP]
    assert sum("template" in step for step in steps) == len(server.requests)
    assert verify_turn(entries) == ()


async def test_tone_is_in_the_prompt_and_recorded(tmp_path, asking):
    async with open_model_app(tmp_path) as (app, server):
        toned = replace(app, settings_source=app.settings.model_copy(update={"tone": "Brief, as to a friend."}))
        results = [await answer(toned, asking(tone=tone), lambda _: None) for tone in (None, "Solemn.", "")]
        tones = [(await app.audit.turn(result.answer_id))[0].body["tone"] for result in results]

    assert tones == ["Brief, as to a friend.", "Solemn.", ""]
    asked = [(find_stage(request), request.body["messages"][-1]["content"]) for request in server.requests]
    styled = [(stage, text) for stage, text in asked if "in this style" in text]
    assert {stage for stage, _ in styled} <= {"draft", "answer"}
    assert ["“Brief, as to a friend.”" in styled[0][1], "“Solemn.”" in styled[1][1], len(styled)] == [True, True, 2]


async def test_effort_is_from_the_request_or_settings_and_recorded(tmp_path, asking):
    async with open_model_app(tmp_path) as (app, server):
        careful = replace(app, settings_source=app.settings.model_copy(update={"effort": "thorough"}))
        results = [await answer(careful, asking(effort=effort), lambda _: None) for effort in ("quick", None)]
        results.append(await check(careful, asking("Skarholm lighthouse was built in 1887."), lambda _: None))
        entries = [await app.audit.turn(result.answer_id) for result in results]

    claims = [request.body["messages"][-1]["content"] for request in server.requests if find_stage(request) == "claims"]
    assert all(most in texts for most, texts in zip(("(At most 1.)", "(At most 5.)"), claims, strict=False))
    searched = [next(entry.body["k"] for entry in turn if "k" in entry.body) for turn in entries]
    assert searched[0] * 15 == searched[1] * 6
    assert (
        [result.effort for result in results]
        == [turn[0].body.get("effort") for turn in entries]
        == ["quick", "thorough", None]
    )


async def test_slow_server_lowers_the_effort_with_a_recorded_reason(tmp_path, asking):
    async with open_model_app(tmp_path) as (app, _):
        for _ in range(20):
            app.load.observe(CallSample(0.0, 4.0, reading=6.0, tokens=60))
        wanted = [{"effort": "thorough"}, {}, {"effort": "quick"}, {"system": "extractive"}]
        results = [await answer(app, asking(**request), lambda _: None) for request in wanted]
        opened = [(await app.audit.turn(result.answer_id))[0].body for result in results]

    figures = {"call_seconds": 16.0, "waited": 0.0, "first_token": 4.0, "tokens_a_second": 10.0, "refused": 0.0}
    lowered = [{"from": effort, "because": "slow", **figures} for effort in ("thorough", "normal")]
    assert [result.effort for result in results] == ["normal", "quick", "quick", "normal"]
    assert [body.get("lowered") for body in opened] == [*lowered, None, None]


async def test_model_key_is_never_stored_or_shown(tmp_path, asking):
    async with open_model_app(tmp_path, {"draft": answer_error(401, f"Incorrect API key provided: {KEY}.")}) as (
        app,
        _,
    ):
        done = await answer(app, asking(), lambda _: None)
        entries = await record(app)

    seen = everything(entries) + repr(done) + repr(app.settings) + str(app.settings.model_dump()) + repr(app.llm)
    assert done.quoted_because.kind == "model_unavailable"
    assert KEY not in seen
    assert KEY[-6:] not in seen


@pytest.mark.parametrize(("fault", "asked", "kind", "line"), [
    (answer_error(401, "No."), "When was it built?", "model_unavailable",
     "The language model cannot be reached. I only looked for sentences to quote."),
    (answer_error(503, "Busy."), "Wann wurde der Leuchtturm gebaut und warum?", "model_unavailable",
     "Das Sprachmodell ist nicht erreichbar. Ich habe nur nach Sätzen gesucht, die ich zitieren kann."),
    (Reply("what?", finish="stop"), "When was it built?", "unreadable_reply",
     "The language model’s reply could not be read. I only looked for sentences to quote."),
])  # fmt: skip
async def test_model_failure_is_one_line_above_the_quotation(tmp_path, asking, fault, asked, kind, line):
    async with open_model_app(tmp_path, dict.fromkeys(("query", "summarise", "generate"), fault)) as (app, _):
        done = await answer(app, asking(asked), lambda _: None)
        closed = (await record(app))[-1].body

    assert (done.failure, done.quoted_because.kind) == (None, kind)
    assert done.quoted_because.message.startswith(line.partition(".")[0])
    assert render_only_quoted(done.quoted_because, detect_language(asked)) == line
    assert finish_view(start_view(1, detect_language(asked)), done).notice == line
    assert (closed["status"], closed["quoted_because"]["kind"]) == (done.answer.status, kind)


NO_HOST = "http://[::1%25nowhere]:80/v1"  # whose look-up fails without leaving the machine


@pytest.mark.parametrize(("fault", "changes", "message"), [
    (None, {"base_url": "http://127.0.0.1:9/v1"}, "cannot be reached: Cannot connect"),
    (None, {"base_url": NO_HOST}, "cannot be reached: Cannot connect to host ::1%25nowhere:80"),
    (None, {"base_url": "http://a..b/v1"}, "cannot be reached: encoding with 'idna' codec failed"),
    (answer_error(401, "No."), {}, "does not accept the key (401)"),
    (answer_error(404, "The model does not exist."), {}, "does not know the model"),
    (answer_error(404, "Not found."), {}, "no chat API at the address"),
    (answer_error(429, "Slow down."), {}, "overloaded or faulty (429)"),
    (answer_error(429, "insufficient_quota"), {}, "has no credit left"),
    (answer_error(500, "Broken."), {}, "overloaded or faulty (500)"),
    (HANG, {"timeout_seconds": 0.05}, "fell silent"),
])  # fmt: skip
async def test_absent_server_leaves_the_quotation(tmp_path, fault, changes, message):
    async with open_model_app(tmp_path, lambda _: fault, **changes) as (app, _):
        done = await answer(app, make_request(system="wikichat-fast"), lambda _: None)

    assert (done.failure, done.text) == (None, "Skarholm lighthouse was built in 1887. [1]")
    assert (done.quoted_because.kind, message in done.quoted_because.message) == ("model_unavailable", True)


async def test_absent_model_leaves_the_quotation(tmp_path, asking):
    async with open_model_app(tmp_path) as (app, _):
        done = await answer(replace(app, llm=None), asking(), lambda _: None)

    assert (done.failure, done.text) == (None, "Skarholm lighthouse was built in 1887. [1]")
    assert "No language model is configured" in done.quoted_because.message


@pytest.mark.parametrize("language", list_languages())
def test_line_about_a_failed_model_is_in_every_language(language):
    lines = {
        render_only_quoted(Failure(kind, "", ""), language) for kind in (TOO_SLOW, UNCONFIRMED, "unreadable_reply")
    }
    assert len(lines) == 3
    assert language == "en" or not any("sentences to quote" in line for line in lines)


async def test_unsupported_draft_leaves_the_quotation(tmp_path, asking):
    draft = "A keeper lives beside Skarholm lighthouse since 1890 [1]."
    async with open_model_app(tmp_path, {"draft": draft}) as (app, _):
        done = await answer(app, asking(), lambda _: None)

    assert [sentence.text for sentence in done.answer.sentences] == ["Skarholm lighthouse was built in 1887."]


async def test_check_whose_model_fails_is_by_rules(tmp_path, asking):
    async with open_model_app(tmp_path, {"verify": LOOPS["parcel"]}) as (app, _):
        done = await check(app, asking("Skarholm lighthouse was built in 1887."), lambda _: None)

    assert find_asked_claim(done.answer).verdict is Verdict.SUPPORTS
    assert done.quoted_because.kind == "unreadable_reply"


async def test_verdict_is_used_before_its_reason_is_complete(tmp_path):
    begun = Reply("", pieces=("1. SUPPORTS [1] It says so ", "because "))
    script = {"split": "- A keeper lives beside Skarholm lighthouse. | none", "verdicts": StalledReply(begun)}
    async with open_model_app(tmp_path, script, limits=LimitSettings(seconds=20)) as (app, server):
        done = await answer(app, make_request(system="wikichat-fast"), lambda _: None)
        await server.until(lambda server: server.counts.left >= 1)

    assert (done.answer.status, done.failure) == (Status.ANSWERED, None)
    (claim,) = (one for one in done.answer.claims if one.claim.origin == "model")
    assert (claim.verdict, claim.reasoning) == (Verdict.SUPPORTS, "")


async def test_spent_turn_budget_leaves_the_quotation(tmp_path, asking):
    async with open_model_app(tmp_path, limits=LimitSettings(calls=2, query="always")) as (app, server):
        done = await answer(app, asking(), lambda _: None)

    assert (done.answer.status, done.quoted_because.kind) == (Status.ANSWERED, "budget_exceeded")
    assert "limits" in done.quoted_because.hint
    assert 1 <= len(server.requests) <= 2


async def test_hanging_model_leaves_the_quotation_when_the_time_is_up(tmp_path, asking):
    async with open_model_app(
        tmp_path, {"query": HANG, "generate": HANG}, limits=LimitSettings(seconds=0.5, query="always")
    ) as (app, server):
        done = await answer(app, asking(), lambda _: None)
        await server.until(lambda it: it.counts.left == len(it.requests))

    assert (done.answer.status, done.quoted_because.kind) == (Status.ANSWERED, "too_slow")
    assert done.text == "Skarholm lighthouse was built in 1887. [1]"


async def test_sentences_before_a_failure_stay(tmp_path, asking):
    draft = CutReply("Skarholm lighthouse was built in 1887 [1]. A keeper lives beside it, " + "year after year, " * 9)
    events = []
    async with open_model_app(tmp_path, {"draft": draft}, limits=LimitSettings(refine=False)) as (app, _):
        done = await answer(app, asking(), events.append)
        closed = (await record(app))[-1].body

    texts = [event.sentence.text for event in events if isinstance(event, SentencePassed)]
    assert texts == ["Skarholm lighthouse was built in 1887."]
    assert [sentence.text for sentence in done.answer.sentences] == texts
    assert [sentence["text"] for sentence in closed["sentences"]] == texts
    assert done.quoted_because.kind == "model_unavailable"


async def test_model_without_a_name_fails_only_turns_that_call_it(tmp_path, asking):
    async with open_model_app(tmp_path, name="") as (app, server):
        quoted = await answer(app, asking(system="extractive"), lambda _: None)
        asked = await answer(app, asking(), lambda _: None)

    assert quoted.failure is None
    assert (asked.answer.status, asked.quoted_because.kind) == (Status.ANSWERED, "model_unavailable")
    assert "no name is set" in asked.quoted_because.message
    assert "OPENAI_MODEL" in asked.quoted_because.hint
    assert server.requests == []


async def test_stage_calls_its_own_model(tmp_path, asking, system):
    limits = LimitSettings(query="always")
    async with open_model_app(tmp_path, limits=limits, stages={"query": "other-model"}) as (app, server):
        done = await answer(app, asking(), lambda _: None)

    models = {find_stage(request): request.body["model"] for request in server.requests}
    assert models["query"] == "other-model"
    assert models["draft" if system == "wikichat" else "answer"] == "small-model"
    assert done.model == "small-model, other-model (query)"


@pytest.mark.parametrize(("claim", "reply", "verdict"), [
    ("Skarholm lighthouse was built in 1887.", SUPPORTED, Verdict.SUPPORTS),
    ("Skarholm lighthouse was built in 1890.", SUPPORTED, Verdict.NOT_ENOUGH_INFO),
    ("Skarholm lighthouse was built in 1890.", REFUTED, Verdict.REFUTES),
])  # fmt: skip
async def test_rules_override_the_models_verdict(tmp_path, asking, claim, reply, verdict):
    async with open_model_app(tmp_path, {"verify": reply}) as (app, server):
        done = await check(app, asking(claim), lambda _: None)
        entries = await record(app)

    found = find_asked_claim(done.answer)
    assert (found.verdict, found.claim.text) == (verdict, claim)
    assert done.answer.citations[0].quote.startswith("Skarholm lighthouse was built in 1887.")
    assert done.text.startswith(f"{verdict}: ")
    assert [find_stage(request) for request in server.requests] == ["verify"]
    assert (entries[0].body["task"], entries[-1].body["text"]) == ("check", done.text)
    assert verify_turn(entries) == ()
