"""The readers of reference sets, with files from this module in the published formats."""

import csv
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from evaluation.answers.question_sets import Exam, ExamQuestion, UnreadableSet
from evaluation.answers.reference_sets import REFERENCE_FORMS, read_reference_set

USER, BOT = "I like ferries.", "The ferry to Brasker sails at noon."
WOW = [
    {
        "chosen_topic": "Ferry",
        "chosen_topic_passage": ["A ferry carries people.", "Its ferry sails at noon."],
        "persona": "i like boats.",
        "wizard_eval": 5,
        "dialog": [
            {
                "speaker": "0_Wizard",
                "text": "Hello!",
                "checked_sentence": {},
                "checked_passage": {},
                "retrieved_passages": [],
                "retrieved_topics": [],
            },
            {
                "speaker": "1_Apprentice",
                "text": USER,
                "retrieved_passages": [{"Brasker": ["Brasker is an island.", "Its ferry sails at noon."]}],
                "retrieved_topics": ["Brasker"],
            },
            {
                "speaker": "0_Wizard",
                "text": BOT,
                "checked_sentence": {"partner_Brasker_1": "Its ferry sails at noon."},
                "checked_passage": {"partner_Brasker_1": "Brasker"},
                "retrieved_passages": [{"Noon": ["Noon is at twelve."]}],
                "retrieved_topics": ["Noon"],
            },
            {"speaker": "1_Apprentice", "text": "Nice.", "retrieved_passages": [], "retrieved_topics": []},
            {
                "speaker": "0_Wizard",
                "text": "It is.",
                "checked_sentence": {"no_passages_used": "no_passages_used"},
                "checked_passage": {"no_passages_used": "no_passages_used"},
                "retrieved_passages": [],
                "retrieved_topics": [],
            },
        ],
    }
]
PAGE = {"url": "https://brasker.example", "title": "Brasker", "content": ["An island.", "Its ferry sails at noon."]}
NOTHING: dict[str, Any] = {"contents": [], "selected_contents": []}
WOI = {
    "7": {
        "apprentice_persona": "I like boats.",
        "start_time": "2021-03-01",
        "dialog_history": [
            {"action": "Apprentice => Wizard", "text": USER, "context": {}},
            {"action": "Wizard => SearchAgent", "text": "ferry", "context": NOTHING},
            {"action": "SearchAgent => Wizard", "text": "", "context": {"contents": [PAGE], "selected_contents": []}},
            {
                "action": "Wizard => Apprentice",
                "text": BOT,
                "context": {"contents": [PAGE], "selected_contents": [[False], [False, True]]},
            },
            {"action": "Apprentice => Wizard", "text": "Nice.", "context": {}},
            {
                "action": "Wizard => Apprentice",
                "text": "It is.",
                "context": {"contents": [PAGE], "selected_contents": [[True], [False, True]]},
            },
        ],
    }
}
SNIPPET = {"domain": "hotel", "entity_id": 3, "doc_type": "review", "doc_id": 0, "sent_id": 1}
LOGS = [[{"speaker": "U", "text": USER}], [{"speaker": "U", "text": "Thanks."}]]
LABELS: list[dict[str, Any]] = [
    {"target": True, "knowledge": [SNIPPET, {**SNIPPET, "doc_type": "faq"}], "response": BOT},
    {"target": False},
]
del LABELS[0]["knowledge"][1]["sent_id"]
KNOWLEDGE = {
    "hotel": {
        "3": {
            "name": "OLD PIER INN",
            "reviews": {"0": {"traveler_type": "Solo", "sentences": {"0": "We slept.", "1": "The ferry is near."}}},
            "faqs": {"0": {"question": "Is there a ferry?", "answer": "At noon."}},
        }
    }
}
PATH = [0.9, [["Brasker", "is_reached_by", "Ferry"]], "Brasker is reached by Ferry"]
ACTIONS: list[dict[str, Any]] = [
    {"type": "chat", "sender": "assistant", "message": "Have you seen Brasker?"},
    {"type": "chat", "sender": "user", "message": USER},
    {"type": "action", "sender": "assistant", "action_id": "kgwalk/choose_path", "metadata": {"path": PATH}},
    {"type": "chat", "sender": "assistant", "message": BOT},
    {"type": "chat", "sender": "user", "message": "Nice."},
    {"type": "action", "sender": "assistant", "action_id": "meta_thread/send_meta_message"},
    {"type": "chat", "sender": "assistant", "message": "It is."},
]
NODES = [["noon", [1, 1], None, "table"], ["Brasker", [1, 0], "/wiki/Brasker_(island)", "passage"]]
OTT = [{"question_id": "a", "question": USER, "table_id": "Ferries_0", "answer-text": BOT, "answer-node": NODES}]
TABLE = {
    "title": "Ferries",
    "header": [["To", []], ["At", []]],
    "data": [[["Skarholm", []], ["ten", []]], [["Brasker", ["/wiki/Brasker_(island)"]], ["noon", []]]],
}


def write(path: Path, content: Any) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def write_wow(folder: Path, dialogues: Any = WOW) -> list[Path]:
    return [write(folder / "valid.json", dialogues)]


def write_woi(folder: Path, dialogue: Any = WOI) -> list[Path]:
    return [write(folder / "valid.jsonl", dialogue)]


def write_dstc11(folder: Path, logs: Any = LOGS, labels: Any = LABELS, knowledge: Any = KNOWLEDGE) -> list[Path]:
    return [write(folder / f"{name}.json", part) for name, part in zip("abc", (logs, labels, knowledge), strict=True)]


def write_opendialkg(folder: Path, actions: Any = ACTIONS, triples: str | None = None) -> list[Path]:
    path = folder / "opendialkg.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        messages = actions if isinstance(actions, str) else json.dumps(actions)
        csv.writer(file).writerows([["Messages", "User Rating", "Assistant Rating"], [messages, "5", "5"]])
    return [path] if triples is None else [path, write(folder / "triples.txt", triples)]


def write_ott_qa(folder: Path, questions: Any = OTT, table: Any = TABLE) -> list[Path]:
    write(folder / "tables" / "Ferries_0.json", table)
    write(
        folder / "requests" / "Ferries_0.json", {"/wiki/Brasker_(island)": "Brasker , an island , is small .", "x": ""}
    )
    return [write(folder / "dev.traced.json", questions), folder / "tables", folder / "requests"]


WRITERS: Mapping[str, Callable[[Path], list[Path]]] = {
    "wow": write_wow,
    "woi": write_woi,
    "dstc11": write_dstc11,
    "opendialkg": write_opendialkg,
    "ott-qa": write_ott_qa,
}


def read(name: str, folder: Path) -> tuple[Exam, ExamQuestion]:
    exam = read_reference_set(name, WRITERS[name](folder))
    (posed,) = exam.questions
    return exam, posed


@pytest.mark.parametrize(
    ("name", "knowledge", "relevant", "texts"),
    [
        ("wow", ("Its ferry sails at noon.",), {"Brasker"}, 3),
        ("woi", ("Its ferry sails at noon.",), {"Brasker"}, 1),
        ("dstc11", ("The ferry is near.", "Is there a ferry? At noon."), {"Old Pier Inn"}, 2),
        ("opendialkg", ("Brasker is reached by Ferry",), {"Brasker"}, 1),
        ("ott-qa", ("To: Brasker; At: noon", "Brasker, an island, is small."), {"Ferries", "Brasker (island)"}, 2),
    ],
)
def test_set_yields_the_replies_that_use_knowledge(
    tmp_path: Path, name: str, knowledge: tuple[str, ...], relevant: set[str], texts: int
) -> None:
    exam, posed = read(name, tmp_path)
    pages = {document.key: document.load() for document in exam.source.documents({})}

    assert {*WRITERS} == {*REFERENCE_FORMS}
    assert (posed.text, posed.reply, posed.knowledge) == (USER, BOT, knowledge)
    assert {pages[key].title for key in posed.documents} == relevant
    assert (len(pages), exam.source.expected()) == (texts, texts)
    assert relevant <= exam.names
    used = "\n".join(block.text for key in posed.documents for block in pages[key].sections[0].blocks)
    assert all(part in used for part in knowledge)


def test_conversation_before_a_reply_is_kept_with_the_titles_that_the_bot_names(tmp_path: Path) -> None:
    _, posed = read("opendialkg", tmp_path)

    assert [(turn.speaker, turn.text, turn.titles) for turn in posed.earlier] == [
        ("bot", "Have you seen Brasker?", ("Brasker",))
    ]


def test_wizard_sentence_outside_its_passages_is_a_text_of_the_topic(tmp_path: Path) -> None:
    dialogue = json.loads(json.dumps(WOW).replace('"partner_Brasker_1": "Its ferry', '"partner_Brasker_1": "A ferry'))
    exam = read_reference_set("wow", write_wow(tmp_path, dialogue))
    (key,) = exam.questions[0].documents

    assert {document.key: document.load().title for document in exam.source.documents({})}[key] == "Ferry"


def test_triples_of_the_graph_are_texts_without_their_reverse(tmp_path: Path) -> None:
    triples = "Ferry\tsails_to\tSkarholm\nSkarholm\t~sails_to\tFerry\n"
    exam = read_reference_set("opendialkg", write_opendialkg(tmp_path, triples=triples))

    assert [document.load().sections[0].blocks[0].text for document in exam.source.documents({})] == [
        "Brasker is reached by Ferry",
        "Ferry sails to Skarholm.",
    ]
    assert exam.names == {"Brasker", "Ferry", "Skarholm"}


@pytest.mark.parametrize(
    ("name", "paths", "complaint"),
    [
        ("wow", lambda folder: write_wow(folder, [*WOW, {"dialog": []}]), 'dialogue 2: "chosen_topic" is missing'),
        ("wow", lambda folder: write_wow(folder, "[\n{"), "line 2: it is not JSON"),
        ("wow", lambda folder: write_wow(folder, WOI), "line 1: it is not the beginning of a JSON list"),
        ("woi", lambda folder: write_woi(folder, {"7": {}}), 'line 1: "dialog_history" is missing'),
        ("woi", lambda folder: write_woi(folder, WOW[0]), 'line 1: "the file" should be an object of objects'),
        (
            "woi",
            lambda folder: write_woi(folder, json.dumps(WOI).replace("[[false], [", "[[false], [], [")),
            'line 1: "selected_contents" should be one list more than the 1 contents',
        ),
        ("woi", lambda folder: write_woi(folder, json.dumps(WOI).replace("[[true]", "[7")), "should be one list more"),
        ("dstc11", lambda folder: write_dstc11(folder, labels=LABELS[:1]), r"b.json, instance 1: it is the last one"),
        ("dstc11", lambda folder: write_dstc11(folder, logs=LABELS), r'a.json, instance 1: "turns" is missing'),
        ("dstc11", lambda folder: write_dstc11(folder, knowledge={"hotel": {}}), "b.json, instance 1: .*'hotel/3/rev"),
        ("dstc11", lambda folder: write_dstc11(folder, knowledge=[]), 'c.json, line 1: "the file" should be an object'),
        ("opendialkg", lambda folder: write_opendialkg(folder, "[{"), "line 2: it is not JSON"),
        (
            "opendialkg",
            lambda folder: write_opendialkg(folder, [{**ACTIONS[2], "metadata": {"path": [1]}}]),
            'line 2: "path" should be a score, triples and a text',
        ),
        ("opendialkg", lambda folder: write_opendialkg(folder, triples="a\tb"), "triples.txt, line 1: .* tabs"),
        (
            "ott-qa",
            lambda folder: write_ott_qa(folder, [{**OTT[0], "answer-node": [["x", [9, 0], None, "table"]]}]),
            'question 1: "answer-node" should be cells',
        ),
        ("ott-qa", lambda folder: write_ott_qa(folder, [{**OTT[0], "table_id": "Gone"}]), "Gone.json cannot be read"),
        ("ott-qa", lambda folder: write_ott_qa(folder, [{**OTT[0], "table_id": "../a"}]), "name without a folder"),
        ("ott-qa", lambda folder: write_ott_qa(folder, table={**TABLE, "data": [7]}), "not in the format of OTT-QA"),
        ("wow", lambda folder: [folder / "gone.json"], "gone.json cannot be read: No such file"),
        ("wow", lambda folder: write_wow(folder, []), "has no reply that is based on knowledge"),
        ("wow", write_dstc11, "3 is a wrong number of files for Wizard"),
        ("wiz", write_wow, "No set is called 'wiz'"),
    ],
)
def test_wrong_file_is_refused_with_its_line_and_a_hint(
    tmp_path: Path, name: str, paths: Callable[[Path], list[Path]], complaint: str
) -> None:
    with pytest.raises(UnreadableSet, match=complaint) as error:
        read_reference_set(name, paths(tmp_path))

    assert "\n" not in str(error.value)
    assert error.value.hint


def test_files_in_a_wrong_order_are_explained_by_the_order(tmp_path: Path) -> None:
    with pytest.raises(UnreadableSet) as error:
        read_reference_set("dstc11", write_dstc11(tmp_path, labels=KNOWLEDGE, knowledge=LABELS))

    assert "logs.json labels.json knowledge.json" in error.value.hint
