"""States of single tokens, from the packaged model in eight bits."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from storage.indexes.minilm import open_minilm
from storage.indexes.token_states import LAYERS, MOST_TOKENS, STATES_FILE, TokenStateReader, open_token_states

SENTENCES = [
    "The harbour master closed the gate.",
    "Ein Hund bellte.",
    "猫はマットの上に座った。",
    "",
    "word " * 500,
    "\ud800",
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which the model was made once."""
    folder = tmp_path_factory.mktemp("home")
    open_token_states(folder)
    return folder


@pytest.fixture(scope="module")
def reader(home: Path) -> TokenStateReader:
    """The model, loaded from that home."""
    return open_token_states(home)


def test_each_token_has_a_state_at_each_height(reader: TokenStateReader) -> None:
    """Any text is read, cut where it is too long; rows have length 1."""
    for found in reader.read(SENTENCES):
        tokens = len(found.ids)
        assert tokens <= MOST_TOKENS - 2
        assert [layer.shape for layer in found.layers] == [(tokens, 384)] * len(LAYERS)
        assert np.allclose(np.linalg.norm(found.layers[-1], axis=1), 1, atol=1e-5)


def test_they_are_near_what_the_model_says_in_full(reader: TokenStateReader) -> None:
    """The mean of a text's states is the vector that the embedder gives, but for eight bits' rounding."""
    exact = open_minilm().embed(SENTENCES[:2])
    means = [found.mean for found in reader.read(SENTENCES[:2])]

    assert all(float(one @ other) > 0.98 for one, other in zip(exact, means, strict=True))


def test_texts_that_are_read_together_do_not_see_each_other(reader: TokenStateReader) -> None:
    """Beside others a text has the states that it has alone, but for eight bits' rounding."""
    (alone,) = reader.read(["The gate is closed."])
    together = reader.read(["The harbour master went home early.", "The gate is closed.", "Ein Hund bellte."])[1]

    assert np.array_equal(alone.ids, together.ids)
    assert float((alone.layers[-1] * together.layers[-1]).sum(axis=1).min()) > 0.97


def test_a_damaged_file_is_made_again(home: Path, tmp_path: Path) -> None:
    """A kept model that was cut in half does no harm."""
    kept = tmp_path / "models" / STATES_FILE
    kept.parent.mkdir()
    whole = (home / "models" / STATES_FILE).read_bytes()
    kept.write_bytes(whole[: len(whole) // 2])

    assert len(open_token_states(tmp_path).read(["The gate is closed."])[0].ids) == 5
    assert kept.read_bytes() == whole


def test_a_home_that_cannot_be_written_is_no_fault(tmp_path: Path) -> None:
    """Where nothing can be kept, the model is made for this process alone."""
    (tmp_path / "models").write_text("a file in the folder's place")

    assert open_token_states(tmp_path).read(["The gate."])


def test_making_it_leaves_the_root_logger_as_it_was(tmp_path: Path) -> None:
    """The library would have all that is logged from then on on stderr: seen in a process that has not imported it."""
    code = (
        "import logging, pathlib, sys; from storage.indexes.token_states import open_token_states; "
        "open_token_states(pathlib.Path(sys.argv[1])); root = logging.getLogger(); "
        "logging.getLogger('x').info('spilt'); print(root.handlers, root.level)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)

    assert (done.stdout.strip(), done.stderr) == ("[] 30", "")
