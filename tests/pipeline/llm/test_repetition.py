"""Loops in replies: found soon, and never in lists, tables, code or poems with a refrain."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.llm.repetition import find_loop
from tests.pipeline.weak_model import HOURS, LOOPS, repeat_bullets

WORDS = st.text("abcdefghijklmnopqrstuvwxyz", min_size=2, max_size=9)
SENTENCES = st.lists(WORDS, min_size=4, max_size=16).map(lambda words: f"{' '.join(words).capitalize()}. ")
NUMBERS = st.integers(0, 99_999).map(str)


def find_first_loop(text: str) -> tuple[int, int] | None:
    """Return after how many characters of a text that arrives a loop is found, and where it begins."""
    found = ((length, find_loop(text[:length])) for length in range(16, len(text) + 16, 16))
    return next(((length, at) for length, at in found if at is not None), None)


@pytest.mark.parametrize("text", LOOPS.values(), ids=LOOPS)
def test_loop_of_a_real_model_is_found_within_700_characters_of_its_beginning(text: str) -> None:
    length, at = find_first_loop(text) or (0, 0)
    assert 0 < length - at < 700
    assert text[at:].startswith(text[at : at + 20])


def test_text_before_the_loop_has_the_first_repetition() -> None:
    _, at = find_first_loop(repeat_bullets()) or (0, 0)
    assert repeat_bullets()[:at].count(HOURS) == 1


@given(st.lists(SENTENCES, max_size=6), SENTENCES, st.integers(1, 3))
def test_sentences_repeated_without_end_are_found(before: list[str], sentence: str, together: int) -> None:
    beginning = "".join(before)
    length, _ = find_first_loop(beginning + f"{sentence * together}\n" * 60) or (0, 0)
    assert 0 < length <= len(beginning) + max(320, 4 * len(sentence * together) + 40)


ROWS = st.lists(st.tuples(WORDS, NUMBERS, NUMBERS, st.sampled_from(["yes", "no", ""])), min_size=1, max_size=40)
CODE = st.lists(st.tuples(WORDS, WORDS, NUMBERS), min_size=1, max_size=40)


@given(ROWS)
def test_tables_are_no_loops(rows: list[tuple[str, str, str, str]]) -> None:
    lines = ["| name | a year | in all | paid |", "|---|---|---|---|", *(f"| {' | '.join(row)} |" for row in rows)]
    assert find_first_loop("\n".join(lines)) is None or _has_equal_neighbours(lines)


@given(st.lists(SENTENCES, min_size=1, max_size=30), st.sampled_from(["- {1}", "{0}. {1}", "Step {0}: {1}"]))
def test_lists_are_no_loops(items: list[str], form: str) -> None:
    lines = [form.format(number, item) for number, item in enumerate(items, start=1)]
    assert find_first_loop("\n".join(lines)) is None or _has_equal_neighbours(items)


@given(CODE)
def test_code_is_no_loop(lines: list[tuple[str, str, str]]) -> None:
    text = "".join(f"    self.{name}1 = {call}({number}, 128)\n" for name, call, number in lines)
    assert find_first_loop(text) is None or _has_equal_neighbours(lines)


@given(st.lists(st.lists(SENTENCES, min_size=4, max_size=4, unique=True).map("\n".join), max_size=8), SENTENCES)
def test_poem_with_a_refrain_is_no_loop(verses: list[str], refrain: str) -> None:
    poem = "\n\n".join(f"{verse}\n{refrain}\n{refrain}" for verse in verses)
    assert find_first_loop(poem) is None or _has_equal_neighbours(verses)


def _has_equal_neighbours(parts: list[object]) -> bool:
    """Return whether a generated text repeats a part: then it may well be a loop."""
    return any(one == other for one, other in pairwise(map(str, parts)))


@pytest.mark.parametrize("text", [
    "",
    " ",
    "-" * 400,
    "|---" * 100,
    "Item ........................................ 7\n" * 3,
    "".join(f"| {number} | {number * number} | {number**3} |\n" for number in range(60)),
    "".join(f"In {year} the company had {year * 7 % 400} employees.\n" for year in range(1990, 2026)),
    "".join(f"    x{number} = read_sensor({number}, timeout=30)\n" for number in range(9)),
    "0, 0, 0, 0, 0, 0, 0, 0,\n" * 9,
    "la la la " * 12,
])  # fmt: skip
def test_regular_text_is_no_loop(text: str) -> None:
    assert find_first_loop(text) is None
