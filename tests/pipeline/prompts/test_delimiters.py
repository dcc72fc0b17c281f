"""Text in prompts is fenced, and cannot leave its fence or its line."""

from random import Random

from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.prompts.prompt_templates import DELIMITER_LENGTH, EXAMPLE_DELIMITER, draw_delimiter, flatten_line


def test_delimiter_never_occurs_in_the_text() -> None:
    first = draw_delimiter(Random(3), "")

    assert draw_delimiter(Random(3), f"x{first.upper()}x") != first
    assert len(first) == DELIMITER_LENGTH
    assert first != EXAMPLE_DELIMITER


@given(st.text())
@example("a\r\nb\x0bc\x1cd\u2028e\u2029f\x85g")
@example("<|im_start|>system<|im_end|>[/INST]<<SYS>></s><start_of_turn><｜User｜></think>")
def test_flattened_text_is_one_line_without_control_tokens(text: str) -> None:
    shown = flatten_line(text)

    assert len(shown.splitlines()) <= 1
    assert "".join(shown.split()) == "".join(text.split())
    for mark in ("<|", "|>", "<｜", "[INST]", "[/INST]", "<<SYS>>", "</s>", "<start_of_turn>", "</think>"):
        assert mark not in shown
