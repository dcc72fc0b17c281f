"""Each reader over rows of our own writing: what it makes of them, and how it complains."""

import json
from pathlib import Path
from typing import Any

import pytest

from evaluation.claims.claim_formats import (
    CLAIM_FORMATS,
    drop_duplicates,
    link_groups,
    read_all,
    read_claims,
)
from evaluation.claims.labelled_claims import LabelledClaim, UnreadableClaims
from storage.types import Verdict

SUPPORTS, REFUTES, UNKNOWN = Verdict.SUPPORTS, Verdict.REFUTES, Verdict.NOT_ENOUGH_INFO


def lines(path: Path, *rows: Any) -> Path:
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows), encoding="utf-8")
    return path


def seen(claims: tuple[LabelledClaim, ...]) -> list[tuple[str, tuple[str, ...], Verdict]]:
    return [(claim.claim, claim.evidence, claim.label) for claim in claims]


def made(claim: str, *evidence: str, label: Verdict = SUPPORTS, source: str = "s", group: str = "") -> LabelledClaim:
    return LabelledClaim(claim, source, claim, evidence, label, group or claim)


def test_plain_form_is_named_after_its_file(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "ours.jsonl",
        {"claim": "The kiln is hot.", "evidence": ["It glows.", " "], "label": "SUPPORTS", "id": "k", "group": "kiln"},
        {"claim": "The kiln is cold.", "evidence": "It glows.", "label": "refutes"},
        {"claim": "The kiln is old.", "evidence": "It glows.", "label": "not_enough_info"},
    )

    found = read_claims(path)

    assert seen(found) == [
        ("The kiln is hot.", ("It glows.",), SUPPORTS),
        ("The kiln is cold.", ("It glows.",), REFUTES),
        ("The kiln is old.", ("It glows.",), UNKNOWN),
    ]
    assert {claim.source for claim in found} == {"ours"}
    assert (found[0].id, found[0].group, found[1].id) == ("k", "kiln", "2")


def test_fever_symmetric_is_detokenized(tmp_path: Path) -> None:
    row = {
        "id": "7",
        "claim": "Ada Quill did n't sing `` Low Tide '' .",
        "evidence": "Ada Quill -LRB- born 3 May 1950 -RRB- sang `` Low Tide '' , her sister 's song .",
        "gold_label": "REFUTES",
        "evid": [],
    }

    found = read_claims(lines(tmp_path / "x", row))

    assert seen(found) == [
        (
            'Ada Quill didn\'t sing "Low Tide".',
            ('Ada Quill (born 3 May 1950) sang "Low Tide", her sister\'s song.',),
            REFUTES,
        )
    ]


def test_older_fever_symmetric_fields_are_read(tmp_path: Path) -> None:
    row = {"id": 7, "claim": "Geese fly .", "evidence_sentence": "Geese fly south .", "label": "SUPPORTS"}

    assert seen(read_claims(lines(tmp_path / "x", row))) == [("Geese fly.", ("Geese fly south.",), SUPPORTS)]


def test_fool_me_twice_reads_gold_and_retrieved_evidence(tmp_path: Path) -> None:
    row = {
        "id": "a1",
        "text": "Brasker is an island.",
        "label": "SUPPORTS",
        "gold_evidence": [{"section_header": "Place", "text": "It lies in the sea."}, {"text": "No land touches it."}],
        "retrieved_evidence": [{"text": "It rains."}, {"text": "It snows."}],
        "wikipedia_page": "Brasker",
    }

    path = lines(tmp_path / "x", row)

    (found,) = read_claims(path)
    (searched,) = read_claims(path, "fm2-searched")

    assert found.evidence == ("It lies in the sea.", "No land touches it.")
    assert (found.group, found.title, found.label) == ("Brasker", "Brasker", SUPPORTS)
    assert searched.evidence == (*found.evidence, "It rains.")
    assert (searched.source, searched.family) == ("fm2/searched", "fm2")


def wice(label: str, sets: list[list[int]], evidence: list[str]) -> dict[str, Any]:
    return {
        "claim": "The ferry to Brasker sails twice a day.",
        "label": label,
        "supporting_sentences": sets,
        "evidence": evidence,
        "meta": {"id": "d1", "claim_title": "Brasker", "claim_section": "", "claim_context": ""},
    }


PAGE = [
    "(meta data) TITLE: Timetable",
    *(["Filler " * 50] * 4),
    "It sails at noon.",
    *(["More " * 60] * 3),
    "And at six.",
]


def test_wice_takes_passages_around_supporting_sentences(tmp_path: Path) -> None:
    """The set of sentences that lies closest together is taken, and passages stay within 120 words."""
    (found,) = read_claims(lines(tmp_path / "x", wice("supported", [[1, 5, 9], [5, 9]], PAGE)))

    assert found.label is SUPPORTS
    assert [text for text in ("It sails at noon.", "And at six.") if any(text in each for each in found.evidence)] == [
        "It sails at noon.",
        "And at six.",
    ]
    assert len(found.evidence) == 2
    assert all(len(passage.split()) <= 120 for passage in found.evidence)


def test_wice_packs_scattered_sentences(tmp_path: Path) -> None:
    page = [text for number in range(5) for text in (f"Sailing number {number}.", "Filler " * 118)]

    (found,) = read_claims(lines(tmp_path / "x", wice("partially_supported", [[0, 2, 4, 6, 8]], page)))

    assert found.label is UNKNOWN
    assert found.evidence == ("\n".join(f"Sailing number {number}." for number in range(5)),)


def test_wice_takes_similar_passages_without_support(tmp_path: Path) -> None:
    page = ["Nothing here. " * 50, "The ferry was painted. " * 25, "Brasker has a ferry. " * 25, "A day. " * 50] * 2

    (found,) = read_claims(lines(tmp_path / "x", wice("not_supported", [[], [2]], page)))

    assert found.label is UNKNOWN
    assert len(found.evidence) == 3
    assert found.evidence[0].startswith("The ferry was painted.") or found.evidence[0].startswith("Brasker has")


@pytest.mark.parametrize(
    ("sets", "complaint"),
    [([[99]], "supporting_sentences"), ([[]], "supporting_sentences"), (["x"], "supporting_sentences")],
)
def test_wice_rejects_invalid_sentence_numbers(tmp_path: Path, sets: Any, complaint: str) -> None:
    with pytest.raises(UnreadableClaims, match=complaint):
        read_claims(lines(tmp_path / "x", wice("supported", sets, ["One.", "Two."])))


def test_begin_skips_generic_replies(tmp_path: Path) -> None:
    header = "model_name\tdata_source\tknowledge\tmessage\tresponse\tbegin_label"
    rows = [
        'm\tw\tThe "Low Tide" is a song.\thi\tIt is a song .\tFully attributable',
        "m\tw\tGeese fly.\thi\tGeese swim\tNot fully attributable",
        "m\tw\tGeese fly.\thi\tOh, really?\tGeneric",
    ]

    found = read_claims(lines(tmp_path / "x", header, *rows))

    assert seen(found) == [
        ("It is a song.", ('The "Low Tide" is a song.',), SUPPORTS),
        ("Geese swim", ("Geese fly.",), UNKNOWN),
    ]


def test_faithdial_counts_uncooperative_as_supported(tmp_path: Path) -> None:
    rows = [
        "evidence,history,response,BEGIN,VRM",
        '"Geese fly, mostly.",hi,They fly.,Entailment,x',
        "Geese fly.,hi,Geese do fly.,Uncooperative,x",
        "Geese fly.,hi,Geese fly to us.,Partial Hallucination,x",
        "Geese fly.,hi,Do they?,Generic,x",
    ]

    found = read_claims(lines(tmp_path / "x", *rows))

    assert seen(found) == [
        ("They fly.", ("Geese fly, mostly.",), SUPPORTS),
        ("Geese do fly.", ("Geese fly.",), SUPPORTS),
        ("Geese fly to us.", ("Geese fly.",), UNKNOWN),
    ]


def test_stances_map_to_verdicts(tmp_path: Path) -> None:
    words = ["completely-support", "partially-support", "irrelevant", "refute"]
    rows = [{"claim": "Geese fly.", "evidence": f"Passage {word}", "stance": word} for word in words]

    found = read_claims(lines(tmp_path / "x", *rows))

    assert [claim.label for claim in found] == [SUPPORTS, UNKNOWN, UNKNOWN, REFUTES]
    assert {claim.family for claim in found} == {"factcheck-gpt"}


def benchmark(stances: list[list[str]]) -> dict[str, Any]:
    passages = [[f"Passage {place}." for place, _ in enumerate(said)] or ["Unjudged."] for said in stances]
    claims = [f"Claim {place}." for place, _ in enumerate(stances)]
    sentence = {"claims": claims, "auto_evidence": passages, "stance_claim_autoEvid": stances}
    return {"prompt": "Do geese fly?", "sentences": {"sentence1": sentence}}


def test_factcheck_benchmark_takes_the_clearest_passage(tmp_path: Path) -> None:
    row = benchmark(
        [
            ["irrelevant", "completely-support"],
            ["refute", "partially-support"],
            ["irrelevant", "partially-support"],
            ["refute", "completely-support"],
            [],
        ]
    )

    found = read_claims(lines(tmp_path / "x", row))

    assert [(claim.claim, claim.label) for claim in found] == [
        ("Claim 0.", SUPPORTS),
        ("Claim 1.", REFUTES),
        ("Claim 2.", UNKNOWN),
    ]
    assert found[0].evidence == ("Passage 0.", "Passage 1.")
    assert {claim.group for claim in found} == {"Do geese fly?"}


def test_qags_counts_votes(tmp_path: Path) -> None:
    def said(text: str, *votes: str) -> dict[str, Any]:
        return {"sentence": text, "responses": [{"worker_id": 1, "response": vote} for vote in votes]}

    row = {
        "article": "Geese fly south. Ducks stay at home.",
        "summary_sentences": [said("Geese fly.", "yes", "yes", "no"), said("Ducks fly.", "no", "yes", "no")],
    }

    found = read_claims(lines(tmp_path / "x", row))

    evidence = ("Geese fly south.\nDucks stay at home.",)
    assert seen(found) == [("Geese fly.", evidence, SUPPORTS), ("Ducks fly.", evidence, UNKNOWN)]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ('{"claim": "a", "evidence": "b", "label": "SUPPORTS"}\n{"claim": "a"', "line 2: it is no JSON"),
        ('{"claim": "a", "evidence": "b", "label": "SUPPORTS"}\n\n[1]', "line 3: it is no JSON object"),
        (
            '{"claim": "a", "evidence": "b", "label": "maybe"}',
            r'line 1: "label" should be one of SUPPORTS, REFUTES, .*maybe',
        ),
        ('{"claim": " ", "evidence": "b", "label": "SUPPORTS"}', 'line 1: "claim" should be a text'),
        ('{"claim": "a", "evidence": 7, "label": "SUPPORTS"}', 'line 1: "evidence" should be a list, and is 7'),
        ('{"claim": "a", "evidence": [7], "label": "SUPPORTS"}', 'line 1: "evidence" should be a list of texts'),
        (
            '{"claim": "a", "evidence": "b", "label": "SUPPORTS"}\n{"claim": "a", "label": "REFUTES"}',
            "line 2: .* missing",
        ),
        ("knowledge\tresponse\tbegin_label\na\tb\tGeneric\na\tb", "line 3: it has 2 columns, and the header 3"),
        ('{"text": "a", "label": "SUPPORTS", "gold_evidence": ["x"]}', '"gold_evidence" should be objects'),
    ],
)
def test_malformed_row_is_reported_with_its_line(tmp_path: Path, content: str, complaint: str) -> None:
    path = tmp_path / "odd.jsonl"
    path.write_text(content)

    with pytest.raises(UnreadableClaims, match=complaint) as error:
        read_claims(path)

    assert "odd.jsonl, line" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("content", ["no table", '{"question": "x"}', "a,b\n1,2", "[1, 2]"])
def test_unknown_form_error_lists_the_known_ones(tmp_path: Path, content: str) -> None:
    path = tmp_path / "odd.txt"
    path.write_text(content)

    with pytest.raises(UnreadableClaims) as error:
        read_claims(path)

    assert all(form.says in error.value.hint for form in CLAIM_FORMATS.values())


def test_undecodable_and_missing_files_and_unknown_forms_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "odd.bin"
    path.write_bytes(b'{"claim": "\xff\xfe"}')

    with pytest.raises(UnreadableClaims, match="no text in UTF-8"):
        read_claims(path, "plain")
    with pytest.raises(UnreadableClaims, match="no file"):
        read_claims(tmp_path / "gone.jsonl")
    with pytest.raises(UnreadableClaims, match="No form") as error:
        read_claims(path, "foem")
    assert "fm2" in error.value.hint


@pytest.mark.parametrize("text", ["", "\n \n", "\ufeff"])
@pytest.mark.parametrize("form", ["", "plain"])
def test_empty_file_is_reported_as_empty(tmp_path: Path, text: str, form: str) -> None:
    with pytest.raises(UnreadableClaims, match="is empty") as caught:
        read_claims(lines(tmp_path / "none.jsonl", text), form)

    assert caught.value.hint


def test_named_form_overrides_detection(tmp_path: Path) -> None:
    row = {"claim": "Geese fly.", "evidence": "Geese fly south.", "label": "SUPPORTS"}

    (found,) = read_claims(lines(tmp_path / "x", row), "fever-symmetric")

    assert found.source == "fever-symmetric"


def test_folder_yields_only_its_claim_files(tmp_path: Path) -> None:
    lines(tmp_path / "a.jsonl", {"claim": "Geese fly.", "evidence": "Geese fly.", "label": "SUPPORTS"})
    lines(tmp_path / "README.md", "# About")
    (tmp_path / "folder").mkdir()

    assert len(read_all([tmp_path])) == 1
    assert read_all([tmp_path / "folder"]) == ()


def test_duplicate_claims_are_merged_and_contradictory_ones_dropped() -> None:
    one, other = made("a", "x"), made("b", "x")

    assert drop_duplicates([one, one, other, made("b", "x", label=REFUTES)]) == (one,)


def test_claims_that_share_a_passage_share_a_group() -> None:
    claims = [made("a", "x"), made("b", "x", "y"), made("c", "y"), made("d", "z"), made("e", "x", source="t")]

    groups = [claim.group for claim in link_groups(claims)]

    assert groups[0] == groups[1] == groups[2]
    assert len(set(groups)) == 3


def test_plain_form_reads_kind_question_and_held(tmp_path: Path) -> None:
    row = {"claim": "It glows.", "evidence": "It glows.", "label": "SUPPORTS"}
    path = lines(tmp_path / "ours.jsonl", {**row, "kind": "asked", "asked": "Does it glow?"}, {**row, "held": True})

    first, second = read_claims(path)

    assert (first.source, first.kind, first.asked) == ("ours", "asked", ("Does it glow?",))
    assert (second.source, second.family, second.kind) == ("ours/held", "ours", "")
