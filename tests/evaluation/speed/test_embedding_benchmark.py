"""The benchmark of embedding compares 32 and 8 bits."""

import json

from typer.testing import CliRunner

from evaluation.cli import app


def test_eight_bits_are_compared_with_32() -> None:
    result = CliRunner().invoke(app, ["speed", "embedding", "--texts", "2", "--rounds", "1", "--json"])

    rates = json.loads(result.stdout)["compared"]

    assert [(rate["words"], rate["bits"]) for rate in rates] == [(55, 32), (55, 8), (120, 32), (120, 8)]
    assert all(rate["least_cosine"] >= (0.9999 if rate["bits"] == 32 else 0.97) for rate in rates)
    assert all(rate["ratio"] > 0 for rate in rates)
