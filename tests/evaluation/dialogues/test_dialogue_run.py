"""Dialogues with a real home and models replaced by rules, and the continuation of interrupted runs."""

import asyncio
import json
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime
from random import Random

import pytest

from bot.settings.tables.model_values import ModelValues
from bot.settings.tables.settings_tables import LimitSettings
from bot.types import TurnResult
from evaluation import EvaluationError
from evaluation.answers.model_alone import ask_alone
from evaluation.dialogues.dialogue_run import DialogueRun, build_history, build_turn, plan_dialogues
from evaluation.dialogues.dialogue_types import TopicKind
from evaluation.dialogues.judging.judge_replies import SCALES, grade_format
from evaluation.dialogues.judging.judge_run import JudgeRun
from evaluation.dialogues.models.estimate import describe_expectation, expect_run
from evaluation.dialogues.models.simulated_user import MAX_MESSAGE, parse_message
from evaluation.dialogues.models.stand_ins import open_rule_judge, open_scripted, open_scripted_user
from evaluation.dialogues.prompts import PROMPTS
from evaluation.dialogues.run_folder import _APPENDING, RunFolder
from evaluation.dialogues.run_setup import (
    RunModels,
    RunOptions,
    build_manifest,
    list_changes,
    order_searches,
    refuse_other_dialogues,
    refuse_other_options,
)
from evaluation.dialogues.topics import choose_topics, read_topics, share_count, survey_corpus
from evaluation.simulated_model.scripted_llm import ScriptedLLM
from evaluation.system_variants import parse_variant
from evaluation.workbench import open_home
from pipeline.errors import ModelUnavailable, UnreadableReply
from pipeline.llm.model import BudgetMeter
from pipeline.llm.model_settings import Price
from pipeline.prompts.prompt_templates import PromptMode, render_prefix
from pipeline.prompts.prompter import Prompter
from pipeline.types import Answer, Conversation, Status, Turn, Usage
from tests.handbook import copy_home

OPTIONS = RunOptions(systems=("retrieve-then-generate",), alone=True, models=("scripted",), count=1, turns=2)
NOW = datetime(2026, 3, 1, tzinfo=UTC)
TALK = Conversation((Turn("user", "When did the pier open?"),))
TIMES = {"seconds", "first_sentence_seconds"}


@pytest.fixture
async def app(handbook, tmp_path):
    async with open_home(copy_home(handbook, tmp_path / "home")) as app:
        yield app


@pytest.fixture
async def manifest(app):
    """Return the manifest of a run about a single topic."""
    built = await build_manifest(app, OPTIONS)
    return replace(built, topics=built.topics[:1])


def open_run(app, manifest, path, write=None, log=None):
    """Return a run whose models reply by rules, or with what `write` returns."""

    def open_model(dialogue, user):
        return ScriptedLLM("m", write) if write else open_scripted(dialogue.topic, user)

    app = order_searches(app, manifest)
    turns = [] if log is None else log
    return DialogueRun(app, RunFolder(path), manifest, open_model, open_scripted_user(), turns.append, 2)


def read_plain(path):
    """Return a run's lines by dialogue, without times and the evidence of claims.

    Chroma's approximate search may choose differently among passages with equal scores.
    """
    files = [path / name for name in ("dialogues.jsonl", "judgements.jsonl")]
    lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    plain = [{key: value for key, value in line.items() if key not in {*TIMES, "from_cache"}} for line in lines]
    for record in plain:
        claims = [{key: claim[key] for key in ("text", "verdict")} for claim in record.get("claims", ())]
        record["claims"] = claims
    return sorted(plain, key=lambda record: (record["id"], record["turn"], "user" in record))


async def judge_all(app, manifest, path):
    await JudgeRun(app, RunFolder(path), manifest, open_rule_judge(app.supports), lambda _: None).judge_all()


async def test_interrupted_run_equals_an_uninterrupted_one(app, manifest, tmp_path):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    for path in (whole, cut):
        RunFolder(path).write_manifest(manifest)
    turns = []
    await open_run(app, manifest, whole, log=turns).hold()
    await judge_all(app, manifest, whole)
    assert len(turns) == 4
    dialogues = RunFolder(whole).read_dialogues()
    assert {dialogue.system: {turn.status for turn in dialogue.turns} for dialogue in dialogues} == {
        "retrieve-then-generate": {"answered"},
        "model-alone": {"unchecked"},
    }
    first_turn = next(dialogue for dialogue in dialogues if dialogue.system == "retrieve-then-generate").turns[0]
    assert first_turn.calls
    assert first_turn.knowledge
    assert first_turn.withheld == 1  # the false statement
    assert first_turn.first_sentence_seconds

    seen, enough = [], asyncio.Event()
    run = open_run(app, manifest, cut)
    run = replace(run, report=lambda turn: (seen.append(turn), len(seen) == 1 and enough.set()))
    stopped = asyncio.create_task(run.hold())
    await enough.wait()
    stopped.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopped
    with _APPENDING, (cut / "dialogues.jsonl").open("a") as file:  # a thread of the stopped run may still write
        file.write('{"id": "model-al')
    await open_run(app, manifest, cut).hold()
    await judge_all(app, manifest, cut)
    assert read_plain(cut) == read_plain(whole)
    await judge_all(app, manifest, cut)
    assert read_plain(cut) == read_plain(whole)


async def test_unreachable_model_stops_the_run_without_stored_turns(app, manifest, tmp_path):
    async def write(_):
        raise ModelUnavailable("The server is gone.")

    RunFolder(tmp_path / "run").write_manifest(manifest)
    with pytest.raises(EvaluationError, match=r"The run has stopped: .*The server is gone"):
        await open_run(app, manifest, tmp_path / "run", write).hold()
    assert RunFolder(tmp_path / "run").read_dialogues() == ()


async def test_topics_are_seeded_and_of_every_kind(app, tmp_path):
    (info,) = await app.manifest.corpora()
    state, survey = await survey_corpus(app.manifest, info, 1)
    assert (state.documents, len(state.digest)) == (info.documents, 16)
    chosen = await choose_topics(app.manifest, [survey], 3, 1)
    assert chosen == await choose_topics(app.manifest, [survey], 3, 1)
    assert chosen != await choose_topics(app.manifest, [survey], 3, 2)
    counts = Counter(topic.kind for topic in chosen)
    assert (counts[TopicKind.HEAD], counts[TopicKind.TAIL]) == (3, 3)
    assert len({topic.document for topic in chosen}) == counts.total()
    split = Counter((topic.kind, topic.corpus) for topic in await choose_topics(app.manifest, [survey] * 2, 2, 1))
    assert split[TopicKind.HEAD, info.name] == 2
    (tmp_path / "topics").write_text(
        f'# ours\n{chosen[0].title.upper()}\n{{"title": "Tides", "first_sentence": "They turn."}}\n'
    )
    own = await read_topics(tmp_path / "topics", app.manifest, [survey])
    assert [(topic.first_sentence, topic.document, topic.kind) for topic in own] == [
        (chosen[0].first_sentence, chosen[0].document, TopicKind.GIVEN),
        ("They turn.", "", TopicKind.GIVEN),
    ]
    (tmp_path / "topics").write_text("{no\n")
    with pytest.raises(EvaluationError, match="line 1 of"):
        await read_topics(tmp_path / "topics", app.manifest, [survey])


def test_count_is_divided_into_nearly_equal_shares():
    assert [share_count(20, 3, place) for place in range(3)] == [7, 7, 6]


async def test_dialogue_run_names_what_replaces_a_model_and_refuses_other_options(app, manifest, tmp_path):
    assert manifest.simulator == "scripted user"
    assert len(manifest.stand_ins) == 3
    refuse_other_options(manifest, OPTIONS, tmp_path)
    with pytest.raises(EvaluationError, match="has a run with turns 2, not 5"):
        refuse_other_options(manifest, replace(OPTIONS, turns=5), tmp_path)
    with pytest.raises(EvaluationError, match="No model is configured"):
        await build_manifest(app, replace(OPTIONS, models=("gpt",)))

    assert list_changes(manifest, app) == ()
    before = replace(manifest, versions={**manifest.versions, "prompts": "other"})
    assert list_changes(before, app) == ("prompts",)

    prices = {name: Price(1.0, 2.0) for name in ("scripted", "scripted user", "rules", "none")}
    expected = expect_run(manifest, prices)
    assert expected.calls > 2 * len(plan_dialogues(manifest)) * manifest.turns
    assert expected.cost == pytest.approx((expected.prompt_tokens + 2 * expected.completion_tokens) / 1e6)
    assert expect_run(manifest, prices, judged=2).calls < expected.calls
    free = expect_run(manifest, {})
    assert (free.cost, free.unpriced) == (0, ())
    mixed = replace(manifest, models=("dear", "local"))
    estimate = expect_run(mixed, {"dear": Price(1.0, 2.0)})
    assert estimate.cost > 0
    assert estimate.unpriced == ("local",)
    assert "at least" in describe_expectation(estimate, 4)


async def test_models_are_warmed_up_before_the_first_turn(app, manifest, tmp_path):
    log = []

    async def check(sentence, evidence, *, asked=()):
        log.append("check")
        assert sentence not in evidence[0].text  # warming up quotes nothing
        return await app.supports(sentence, evidence, asked=asked)

    run = open_run(replace(app, supports=check), replace(manifest, systems=("model-alone",), turns=1), tmp_path)
    user = ScriptedLLM("user", lambda call: log.append("turn") or run.simulator.write(call))
    await replace(run, simulator=user).hold()
    assert log == ["check", "turn"]


async def test_dialogues_of_another_run_are_refused(manifest, tmp_path):
    planned = plan_dialogues(manifest)
    refuse_other_dialogues(manifest, planned, tmp_path)
    other = replace(planned[0], topic=replace(planned[0].topic, title="Elsewhere"))
    with pytest.raises(EvaluationError, match="'Elsewhere', which is not of the run"):
        refuse_other_dialogues(manifest, [other], tmp_path)


def test_variant_is_parsed_with_its_limits():
    variant = parse_variant("augmenter:policy=always,rounds=2")
    assert (variant.name, variant.limits) == ("augmenter", {"policy": "always", "rounds": "2"})
    with pytest.raises(EvaluationError, match="names the unknown limit 'polcy'"):
        parse_variant("augmenter:polcy=always")
    with pytest.raises(EvaluationError, match="the value 'sometimes' for policy"):
        parse_variant("augmenter:policy=sometimes")
    with pytest.raises(EvaluationError, match="the value 'hasty' for effort"):
        parse_variant("augmenter:effort=hasty")


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ("What is it?", "What is it?"),
        ("User: What is it?\n\nChatbot: It is a pier.", "What is it?"),
        ("“What is\n it?”", "What is it?"),
        ('Why "old"?', 'Why "old"?'),
    ],
)
def test_labels_and_quotation_marks_around_a_user_message_are_removed(reply, message):
    assert parse_message(reply) == message


@pytest.mark.parametrize("reply", ["", "User: ", "a" * (MAX_MESSAGE + 1)])
def test_invalid_message_is_unreadable(reply):
    with pytest.raises(UnreadableReply):
        parse_message(reply)


CRITICISM = {"stage": "refine", "template": "feedback", "facts": {"draft": "It is long [2]. It is old [4]."}}
REWRITTEN = {"stage": "refine", "template": "refine", "facts": {}, "reply": "It is 90 metres long [2]."}


@pytest.mark.parametrize(
    ("steps", "refined"),
    [
        ([CRITICISM, REWRITTEN], "It is 90 metres long [2]."),
        ([CRITICISM], "It is long [2]. It is old [4]."),
        ([CRITICISM, REWRITTEN | {"reply": "", "error": "ModelUnavailable"}], "It is long [2]. It is old [4]."),
        ([CRITICISM, REWRITTEN, {"stage": "draft", "reply": "Once more [1]."}], "It is 90 metres long [2]."),
    ],
)
def test_refined_draft_is_stored_as_it_was_before_the_gate(steps, refined):
    """The draft is the one that was criticised, not an attempt before it."""
    drafted = {"stage": "draft", "template": "draft", "facts": {}, "reply": "It is"}
    done = TurnResult("a", Answer(Status.ANSWERED), "It is 90 metres long. [1]", "wikichat", "m", Usage(), 1.0)
    turn = build_turn("How long?", done, [drafted, *steps], ())
    assert (turn.draft, turn.refined) == ("It is long [2]. It is old [4].", refined)
    assert build_turn("How long?", done, [drafted], ()).refined == ""


@pytest.mark.parametrize("template", sorted(file.stem for file in PROMPTS.glob("[a-z]*.j2")))
def test_every_prompt_can_be_rendered(template):
    for structured in (False, True):
        message, *examples = render_prefix(template, PromptMode(structured, folder=PROMPTS))
        assert ("begins ===" in message.text) == (template != "alone")
        assert "{" not in message.text
        assert bool(examples) == (template in SCALES)


async def answer_once(text):
    return text


@pytest.mark.parametrize("scale", SCALES)
async def test_examples_of_a_scale_differ_in_grade_and_may_be_repeated(scale):
    grades = [message.text for message in render_prefix(scale, PromptMode(folder=PROMPTS))[2::2]]
    llm = ScriptedLLM("m", lambda _: answer_once(grades[0]))
    prompter = Prompter(llm, BudgetMeter(), note=lambda *_: None, now=NOW, random=Random(1), folder=PROMPTS)
    grade = await prompter.ask(scale, grade_format(scale), stage="grade", talk=TALK, reply_text="In 1890.")
    assert grades[0].endswith(f"Score: {grade.score}")
    assert len({grade_format(scale).from_text(text).score for text in grades}) > 1


async def test_model_alone_is_not_asked_to_avoid_invention():
    """The baseline has the paper's plain prompt; only the claims of WikiChat are asked to be certain."""
    listing = ScriptedLLM("m", lambda call: answer_once(" ".join(sorted(call.messages[0].text.split()))))
    asked = (await ask_alone(TALK, listing, now=NOW)).unchecked.split()
    assert ("truthful" in asked, "sure" in asked, "make" in asked) == (True, False, False)
    assert "do not make up" in render_prefix("generate", PromptMode())[0].text


async def test_unreadable_reply_is_what_the_model_alone_says():
    replies = iter(["User: Is it? ", "User: It is."])
    reply = await ask_alone(TALK, ScriptedLLM("m", lambda _: answer_once(next(replies))), now=NOW)
    assert (reply.unchecked, reply.calls) == ("User: Is it?", 2)


async def test_error_names_another_user_if_the_model_cannot_play_it(app, manifest, tmp_path):
    run = replace(open_run(app, manifest, tmp_path), simulator=ScriptedLLM("m", lambda _: answer_once("User: ")))
    with pytest.raises(EvaluationError, match="No usable message of the user") as caught:
        await run.hold()
    assert "--user" in caught.value.hint


async def test_simulated_user_samples_from_a_nucleus_and_the_judge_does_not(app, manifest, tmp_path):
    model = ModelValues(name="m", base_url="http://127.0.0.1:9")
    configured = replace(app, settings_source=app.settings.model_copy(update={"model": model}))
    async with AsyncExitStack() as stack:
        models = RunModels(configured, replace(manifest, simulator="m", judge="m"), tmp_path, stack)
        user, judge = models.simulator, models.judge
    assert " 1.0  auto 0.5 1" in user.asked
    assert " 0.0  auto 1" in judge.asked


async def test_variant_applies_its_limits(app):
    usual = app.settings.model_copy(update={"limits": LimitSettings(claims=5)})
    own = replace(app, settings_source=usual)
    settings = parse_variant("augmenter:policy=always,rounds=2,effort=quick").apply(own).settings
    limits = settings.limits
    assert settings.effort == "quick"
    assert (limits.policy, limits.rounds, limits.claims) == ("always", 2, 5)


async def test_dialogue_history_carries_cited_documents(app, manifest, tmp_path):
    RunFolder(tmp_path / "run").write_manifest(manifest)
    await open_run(app, replace(manifest, systems=("extractive",), turns=1), tmp_path / "run").hold()
    (dialogue,) = RunFolder(tmp_path / "run").read_dialogues()
    user, bot = build_history(dialogue)
    assert (user.speaker, bot.speaker) == ("user", "bot")
    assert bot.documents
    assert bot.titles[0] == dialogue.turns[0].passages[0].title
    assert bot.query.text
