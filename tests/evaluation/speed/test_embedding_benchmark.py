"""The benchmark of embedding compares like with like."""

import json

from typer.testing import CliRunner

from evaluation.cli import app


def test_all_give_the_same_vectors() -> None:
    """Chroma's function, over a graph of its own, agrees with ours to a cosine of .9999, or nearly with eight bits."""
    result = CliRunner().invoke(app, ["speed", "embedding", "--texts", "2", "--rounds", "1", "--json"])

    compared = json.loads(result.stdout)["compared"]

    assert [(one["words"], one["bits"]) for one in compared] == [(55, 32), (55, 8), (120, 32), (120, 8)]
    assert all(one["least_cosine"] >= (0.9999 if one["bits"] == 32 else 0.97) for one in compared)
    assert all(one["ratio"] > 0 for one in compared)
