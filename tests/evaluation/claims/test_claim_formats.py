"""The readers of labelled claims, with rows from this file: their claims and errors."""

import json
from pathlib import Path
from typing import Any

import pytest

from evaluation.claims.claim_formats import CLAIM_FORMATS, drop_duplicates, link_groups, read_all, read_claims
from evaluation.claims.labelled_claims import LabelledClaim, UnreadableClaims
from storage.types import Verdict

SUPPORTS, REFUTES, UNKNOWN = Verdict.SUPPORTS, Verdict.REFUTES, Verdict.NOT_ENOUGH_INFO


def write(path: Path, *rows: Any) -> Path:
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows), encoding="utf-8")
    return path


def make_claim(claim: str, *evidence: str, label: Verdict = SUPPORTS, source: str = "s") -> LabelledClaim:
    return LabelledClaim(claim, source, claim, evidence, label, claim)


def make_benchmark_row(stances: list[list[str]]) -> dict[str, Any]:
    passages = [[f"Passage {place}." for place, _ in enumerate(listed)] or ["Unjudged."] for listed in stances]
    claims = [f"Claim {place}." for place, _ in enumerate(stances)]
    sentence = {"claims": claims, "auto_evidence": passages, "stance_claim_autoEvid": stances}
    return {"prompt": "Do geese fly?", "sentences": {"sentence1": sentence}}


def make_summary(text: str, *votes: str) -> dict[str, Any]:
    return {"sentence": text, "responses": [{"worker_id": 1, "response": vote} for vote in votes]}


ARTICLE = ("Geese fly south.\nDucks stay at home.",)


@pytest.mark.parametrize(
    ("source", "rows", "claims"),
    [
        (
            "plain",
            [
                {
                    "claim": "It is hot.",
                    "evidence": ["It glows.", " "],
                    "label": "SUPPORTS",
                    "id": "k",
                    "group": "kiln",
                },
                {"claim": "It is cold.", "evidence": "It glows.", "label": "refutes"},
                {"claim": "It is old.", "evidence": "It glows.", "label": "not_enough_info"},
            ],
            [
                ("It is hot.", ("It glows.",), SUPPORTS),
                ("It is cold.", ("It glows.",), REFUTES),
                ("It is old.", ("It glows.",), UNKNOWN),
            ],
        ),
        (
            "fever-symmetric",
            [
                {
                    "id": "7",
                    "claim": "Ada Quill did n't sing `` Low Tide '' .",
                    "evidence": "Ada Quill -LRB- born 3 May 1950 -RRB- sang `` Low Tide '' , her sister 's song .",
                    "gold_label": "REFUTES",
                    "evid": [],
                }
            ],
            [
                (
                    'Ada Quill didn\'t sing "Low Tide".',
                    ('Ada Quill (born 3 May 1950) sang "Low Tide", her sister\'s song.',),
                    REFUTES,
                )
            ],
        ),
        (
            "begin",  # quotation marks mean nothing in it, and generic replies claim nothing
            [
                "model_name\tdata_source\tknowledge\tmessage\tresponse\tbegin_label",
                'm\tw\tThe "Low Tide" is a song.\thi\tIt is a song .\tFully attributable',
                "m\tw\tGeese fly.\thi\tGeese swim\tNot fully attributable",
                "m\tw\tGeese fly.\thi\tOh, really?\tGeneric",
            ],
            [
                ("It is a song.", ('The "Low Tide" is a song.',), SUPPORTS),
                ("Geese swim", ("Geese fly.",), UNKNOWN),
            ],
        ),
        (
            "faithdial",
            [
                "evidence,history,response,BEGIN,VRM",
                '"Geese fly, mostly.",hi,They fly.,Entailment,x',
                "Geese fly.,hi,Geese do fly.,Uncooperative,x",
                "Geese fly.,hi,Geese fly to us.,Partial Hallucination,x",
                "Geese fly.,hi,Do they?,Generic,x",
            ],
            [
                ("They fly.", ("Geese fly, mostly.",), SUPPORTS),
                ("Geese do fly.", ("Geese fly.",), SUPPORTS),
                ("Geese fly to us.", ("Geese fly.",), UNKNOWN),
            ],
        ),
        (
            "factcheck-gpt/passages",
            [
                {"claim": "Geese fly.", "evidence": word, "stance": word}
                for word in ("completely-support", "partially-support", "irrelevant", "refute")
            ],
            [
                ("Geese fly.", ("completely-support",), SUPPORTS),
                ("Geese fly.", ("partially-support",), UNKNOWN),
                ("Geese fly.", ("irrelevant",), UNKNOWN),
                ("Geese fly.", ("refute",), REFUTES),
            ],
        ),
        (
            "factcheck-gpt/claims",  # claims with contradictory or unjudged passages are skipped
            [
                make_benchmark_row(
                    [
                        ["irrelevant", "completely-support"],
                        ["refute"],
                        ["partially-support"],
                        ["refute", "completely-support"],
                        [],
                    ]
                )
            ],
            [
                ("Claim 0.", ("Passage 0.", "Passage 1."), SUPPORTS),
                ("Claim 1.", ("Passage 0.",), REFUTES),
                ("Claim 2.", ("Passage 0.",), UNKNOWN),
            ],
        ),
        (
            "qags",
            [
                {
                    "article": "Geese fly south. Ducks stay at home.",
                    "summary_sentences": [
                        make_summary("Geese fly.", "yes", "yes", "no"),
                        make_summary("Ducks fly.", "no", "yes", "no"),
                    ],
                }
            ],
            [("Geese fly.", ARTICLE, SUPPORTS), ("Ducks fly.", ARTICLE, UNKNOWN)],
        ),
    ],
)
def test_rows_of_each_form_become_claims(tmp_path: Path, source: str, rows: list[Any], claims: list[Any]) -> None:
    read = read_claims(write(tmp_path / "plain.jsonl", *rows))

    assert [(claim.claim, claim.evidence, claim.label) for claim in read] == claims
    assert {claim.source for claim in read} == {source}


def test_claim_file_in_plain_form_is_read_with_its_optional_fields(tmp_path: Path) -> None:
    row = {"claim": "It glows.", "evidence": "It glows.", "label": "SUPPORTS"}
    optional = {"kind": "asked", "asked": "Does it glow?", "id": "k", "group": "kiln"}
    path = write(tmp_path / "ours.jsonl", {**row, **optional}, {**row, "held": True})

    first, second = read_claims(path)

    assert (first.source, first.kind, first.asked) == ("ours", "asked", ("Does it glow?",))
    assert (first.id, first.group, second.id) == ("k", "kiln", "2")
    assert (second.source, second.family, second.kind) == ("ours/held", "ours", "")


def test_fool_me_twice_reads_gold_evidence(tmp_path: Path) -> None:
    row = {
        "id": "a1",
        "text": "Brasker is an island.",
        "label": "SUPPORTS",
        "gold_evidence": [{"section_header": "Place", "text": "It lies in the sea."}, {"text": "No land touches it."}],
        "wikipedia_page": "Brasker",
    }
    path = write(tmp_path / "x", row)

    (gold,) = read_claims(path)

    assert gold.evidence == ("It lies in the sea.", "No land touches it.")
    assert (gold.group, gold.title, gold.label) == ("Brasker", "Brasker", SUPPORTS)


def make_wice_row(label: str, sets: Any, evidence: list[str]) -> dict[str, Any]:
    meta = {"id": "d1", "claim_title": "Brasker", "claim_section": "", "claim_context": ""}
    claim = "The ferry to Brasker sails twice a day."
    return {"claim": claim, "label": label, "supporting_sentences": sets, "evidence": evidence, "meta": meta}


FILLER, MORE = ["Filler " * 50] * 4, ["More " * 60] * 3
PAGE = ["(meta data) TITLE: Timetable", *FILLER, "It sails at noon.", *MORE, "And at six."]
SCATTERED = [text for number in range(5) for text in (f"Sailing number {number}.", "Filler " * 118)]
ALIKE = ["Nothing here. " * 50, "The ferry was painted. " * 25, "Brasker has a ferry. " * 25, "A day. " * 50] * 2


def test_wice_takes_the_passages_of_supporting_sentences(tmp_path: Path) -> None:
    def read(*row: Any) -> LabelledClaim:
        return read_claims(write(tmp_path / "x", make_wice_row(*row)))[0]

    near = read("supported", [[1, 5, 9], [5, 9]], PAGE)
    scattered = read("partially_supported", [[0, 2, 4, 6, 8]], SCATTERED)
    unsupported = read("not_supported", [[], [2]], ALIKE)

    assert (near.label, len(near.evidence)) == (SUPPORTS, 2)
    assert all(any(text in passage for passage in near.evidence) for text in ("It sails at noon.", "And at six."))
    assert all(len(passage.split()) <= 120 for passage in near.evidence)
    assert scattered.label is UNKNOWN
    assert scattered.evidence == ("\n".join(f"Sailing number {number}." for number in range(5)),)
    assert (unsupported.label, len(unsupported.evidence)) == (UNKNOWN, 3)
    assert unsupported.evidence[0].startswith(("The ferry was painted.", "Brasker has"))


@pytest.mark.parametrize("sets", [[[99]], [[]], ["x"]])
def test_wice_rejects_invalid_sentence_numbers(tmp_path: Path, sets: Any) -> None:
    with pytest.raises(UnreadableClaims, match="supporting_sentences"):
        read_claims(write(tmp_path / "x", make_wice_row("supported", sets, ["One.", "Two."])))


ROW = '{"claim": "a", "evidence": "b", "label": "SUPPORTS"}'


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (f'{ROW}\n{{"claim": "a"', "line 2: it is not JSON"),
        (f"{ROW}\n\n[1]", "line 3: it is not a JSON object"),
        (ROW.replace("SUPPORTS", "maybe"), r'line 1: "label" should be one of SUPPORTS, REFUTES, .*maybe'),
        (ROW.replace('"a"', '" "'), 'line 1: "claim" should be a text'),
        (ROW.replace('"b"', "7"), 'line 1: "evidence" should be a list, and is 7'),
        (ROW.replace('"b"', "[7]"), 'line 1: "evidence" should be a list of texts'),
        (f'{ROW}\n{{"claim": "a", "label": "REFUTES"}}', "line 2: .* missing"),
        ("knowledge\tresponse\tbegin_label\na\tb\tGeneric\na\tb", "line 3: it has 2 columns, and the header 3"),
        ('{"text": "a", "label": "SUPPORTS", "gold_evidence": ["x"]}', '"gold_evidence" should be objects'),
    ],
)
def test_malformed_row_is_reported_with_its_line(tmp_path: Path, content: str, complaint: str) -> None:
    with pytest.raises(UnreadableClaims, match=complaint) as error:
        read_claims(write(tmp_path / "odd.jsonl", content))

    assert "odd.jsonl, line" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("content", ["no table", '{"question": "x"}', "a,b\n1,2", "[1, 2]"])
def test_unknown_form_error_lists_the_known_ones(tmp_path: Path, content: str) -> None:
    with pytest.raises(UnreadableClaims) as error:
        read_claims(write(tmp_path / "odd.txt", content))

    assert all(name in error.value.hint for name in CLAIM_FORMATS)


def test_undecodable_and_missing_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "odd.jsonl"
    path.write_bytes(ROW.encode() + b"\n" * 10_000 + b'{"claim": "\xff\xfe"}')

    with pytest.raises(UnreadableClaims, match="not text in UTF-8"):
        read_claims(path)
    with pytest.raises(UnreadableClaims, match="no file"):
        read_claims(tmp_path / "gone.jsonl")


@pytest.mark.parametrize("text", ["", "\n \n", "\ufeff"])
def test_empty_file_is_reported_as_empty(tmp_path: Path, text: str) -> None:
    with pytest.raises(UnreadableClaims, match="is empty") as caught:
        read_claims(write(tmp_path / "none.jsonl", text))

    assert caught.value.hint


def test_folder_yields_only_its_claim_files(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", ROW)
    write(tmp_path / "README.md", "# About")
    (tmp_path / "folder").mkdir()

    assert len(read_all([tmp_path])) == 1
    assert read_all([tmp_path / "folder"]) == ()


def test_duplicate_claims_are_merged_and_contradictory_ones_dropped() -> None:
    first, second = make_claim("a", "x"), make_claim("b", "x")

    assert drop_duplicates([first, first, second, make_claim("b", "x", label=REFUTES)]) == (first,)


def test_claims_that_share_a_passage_share_a_group() -> None:
    shared = [make_claim("a", "x"), make_claim("b", "x", "y"), make_claim("c", "y")]
    claims = [*shared, make_claim("d", "z"), make_claim("e", "x", source="t")]

    groups = [claim.group for claim in link_groups(claims)]

    assert groups[0] == groups[1] == groups[2]
    assert len(set(groups)) == 3
