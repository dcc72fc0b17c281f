"""The texts that two checkouts show: normalized, described and compared."""

from pathlib import Path

import pytest

from tools.surface import compare, describe_json, flatten, inline, normalize, normalize_ids, parse_body


def test_ids_times_and_paths_are_normalized() -> None:
    assert normalize_ids("1700000000.000100 at 127.0.0.1:5000, 2026-11-22") == "TS at HOST, DATE"
    assert normalize("/tmp/x/home took 3.2 s at 12:05", Path("/tmp/x")) == "SCRATCH/home took NUMBER s at CLOCK"


def test_json_and_form_bodies_are_normalized_alike() -> None:
    assert parse_body('{"blocks": [{"type": "divider"}], "token": "x"}') == '{"blocks": [{"type": "divider"}]}'
    assert parse_body("blocks=%5B%7B%22type%22%3A+%22divider%22%7D%5D") == '{"blocks": [{"type": "divider"}]}'


def test_json_is_described_by_keys_and_types() -> None:
    assert describe_json('[0]\n{"hits": [{"score": 1.5}, {"score": 2.5}]}') == "$.hits[].score: float"
    assert describe_json("[0]\nno document") == ""


def test_schema_description_omits_class_names() -> None:
    schema = {"$defs": {"Any": {"title": "Any", "type": "string"}}, "properties": {"key": {"$ref": "#/$defs/Any"}}}
    assert dict(flatten(inline(schema, schema))) == {".properties.key.type": "string"}


def test_differences_are_printed_and_counted(capsys: pytest.CaptureFixture) -> None:
    assert compare("help", {"ask": "one", "gone": "x"}, {"ask": "two", "new": "x"}) == 3
    printed = capsys.readouterr().out
    assert "- gone" in printed
    assert "+ new" in printed
    assert "    -one\n    +two" in printed
