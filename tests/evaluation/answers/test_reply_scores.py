"""The comparison of replies with those of people: searches, measures, and the command."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bot.settings.tables.model_values import ModelValues
from evaluation import EvaluationError
from evaluation.answers.question_sets import Exam, ExamQuestion, SetText, build_set_source
from evaluation.answers.reply_scores import (
    NO_BERT_SCORE,
    SetReply,
    ask_set,
    expand_searches,
    measure_replies,
    report_replies,
    sample_questions,
)
from evaluation.cli import app
from evaluation.reports.significance import Interval
from evaluation.system_variants import SEARCHES, parse_variant
from evaluation.workbench import open_corpus
from tests.evaluation.answers.test_reference_sets import write_dstc11

NAMES = ("Brasker", "Skarholm", "Larkspur", "Tarn", "Oxmoor", "Pell")
TEXTS = [SetText(name, name, f"The ferry to {name} sails {hour} times a day.") for hour, name in enumerate(NAMES, 2)]
POSED = ExamQuestion("How often does the ferry to Brasker sail?", (), frozenset({"Brasker"}), "talk")
POSED = replace(POSED, reply="Twice a day, to Brasker.", knowledge=(TEXTS[0].text,))
OTHER = replace(POSED, text="And to Oxmoor?", documents=frozenset({"Oxmoor"}), group="other")
EXAM = Exam("ferries", "set", build_set_source(TEXTS, "en"), (POSED, OTHER), removable=True, names=frozenset(NAMES))


async def test_each_search_finds_its_own_passages() -> None:
    async with open_corpus(EXAM.source, "set") as opened:
        variants = {name: parse_variant(f"extractive:search={name}") for name in SEARCHES}
        apps = {name: variant.apply(opened, ("Tarn", "Pell"), ("Oxmoor",)) for name, variant in variants.items()}
        found = {
            name: [hit.document.key for hit in await varied.passages.search("Brasker", ["set"], 9)]
            for name, varied in apps.items()
        }
        with pytest.raises(EvaluationError, match="needs a set") as error:
            parse_variant("extractive:search=gold").apply(opened)

    assert found["lexical"] == ["Brasker"]
    assert {*found["dense"]} == {*NAMES}
    assert {*found["random"]} == {"Tarn", "Pell"}
    assert found["gold"][0] == "Oxmoor"
    assert {*found["gold"][1:]} == {"Tarn", "Pell"}
    assert "--set" in error.value.hint


def test_system_without_a_search_gets_every_search() -> None:
    labels = [variant.label for variant in expand_searches(["augmenter:rounds=2", "extractive:search=gold"])]

    assert labels == [*(f"augmenter:rounds=2,search={name}" for name in SEARCHES), "extractive:search=gold"]
    assert [expand_searches(["extractive"])[0].search, parse_variant("extractive").search] == ["random", "hybrid"]
    with pytest.raises(EvaluationError, match="unknown search") as error:
        parse_variant("extractive:search=web")
    assert "lexical" in error.value.hint


def test_measures_equal_the_values_computed_by_hand() -> None:
    right = SetReply(POSED, "The ferry to Brasker sails 2 times a day.", cites_gold=True)
    wrong = SetReply(OTHER, "", cites_gold=False)
    scored: list[list[tuple[str, str]]] = []

    def score(pairs: list[tuple[str, str]]) -> list[float]:
        scored.append(pairs)
        return [0.8 for _ in pairs]

    measured = measure_replies([right, wrong], NAMES, score)
    values = {name: interval and interval.value for name, interval in measured.items()}

    assert values == {
        "answered": 0.5,
        "cites gold": 0.5,
        "KF1": 0.5,
        "KF1 if answered": 1.0,
        "F1": pytest.approx(3 / 11),  # day, to, Brasker: of 7 and 4 words
        "F1 if answered": pytest.approx(6 / 11),
        "ROUGE-L": pytest.approx(2 / 14),  # "a day" or "to Brasker", of 9 and 5 words, in one of two replies
        "entity precision": 1.0,
        "entity recall": 0.5,
        "entity F1": pytest.approx(2 / 3),
        "BERTScore": 0.4,
    }
    assert scored == [[(right.text, POSED.reply)]]
    assert isinstance(measured["KF1"], Interval)
    assert measured["KF1"].low < measured["KF1"].value < measured["KF1"].high
    assert measure_replies([wrong], NAMES)["KF1 if answered"] is None
    same_talk = replace(wrong, posed=replace(OTHER, group=POSED.group))
    assert measure_replies([right, same_talk], NAMES)["KF1"] == Interval(0.5, 0.5, 0.5, 2)


def test_report_says_what_failed_and_what_is_not_measured() -> None:
    replies = [SetReply(POSED, "", cites_gold=False, fault="The model is away."), SetReply(OTHER, "", cites_gold=False)]
    document, text = report_replies({"extractive": replies}, EXAM, "scripted")
    ruled, _ = report_replies({"wikichat": replies}, EXAM, "scripted")

    assert document["systems"]["extractive"]["KF1"]["value"] == 0.0
    assert document["notes"] == ["extractive: 1 times: The model is away.", NO_BERT_SCORE]
    assert ruled["notes"][1].startswith("Rules replace the model: scripted: rules that copy")
    assert "**ferries**: 2 replies, 6 texts" in text
    assert "| extractive | 0.000" in text
    assert "| – |" in text


async def test_gold_passages_are_cited_and_a_model_that_lies_is_not_believed() -> None:
    one = replace(EXAM, questions=(POSED,))
    variants = expand_searches(["extractive:search=gold", "retrieve-then-generate:search=gold"])
    replies = await ask_set(one, variants, ModelValues(name="scripted"))

    assert [listed[0].cites_gold for listed in replies.values()] == [True, True]
    assert not any("4711" in listed[0].text for listed in replies.values())
    with pytest.raises(EvaluationError, match="needs a model"):
        await ask_set(one, variants, ModelValues())


def test_sample_is_the_same_each_time_and_in_order() -> None:
    many = replace(EXAM, questions=tuple(replace(POSED, text=str(number)) for number in range(9)))
    drawn = [int(posed.text) for posed in sample_questions(many, 4).questions]

    assert drawn == sorted(drawn)
    assert len(drawn) == 4
    assert sample_questions(many, 4) == sample_questions(many, 4)
    assert (sample_questions(many, 0), sample_questions(many, 20)) == (many, many)


def test_command_measures_every_search_of_a_set(tmp_path: Path) -> None:
    paths = write_dstc11(tmp_path)
    result = CliRunner().invoke(app, ["answers", "--set", "dstc11", *map(str, paths), "--json"])
    document = json.loads(result.stdout)
    unset = CliRunner().invoke(app, ["answers", str(paths[0]), "--limit", "1"])

    assert list(document["systems"]) == [f"extractive:search={name}" for name in SEARCHES]
    assert (document["schema"], document["set"], document["replies"]) == (1, "dstc11", 1)
    assert unset.exit_code == 2
