"""Which brackets and raised digits of a reply are citation marks, and what they cite."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.replies.citation_marks import strip_marks

NAMED = [
    ("[1]", (1,)),
    ("[1, 2]", (1, 2)),
    ("[1][2]", (1, 2)),
    ("[1] [2]", (1, 2)),
    ("[1], [2] and [3]", (1, 2, 3)),
    ("[1-3]", (1, 2, 3)),
    ("[1–3]", (1, 2, 3)),
    ("[3-2]", (2, 3)),
    ("[1]–[3]", (1, 2, 3)),
    ("[1;2]", (1, 2)),
    ("[1 and 2]", (1, 2)),
    ("[1, 2, and 3]", (1, 2, 3)),
    ("[3, 1, 3]", (3, 1)),
    ("【1】", (1,)),
    ("［１］", (1,)),
    ("【1、2】", (1, 2)),
    ("[١]", (1,)),
    ("[१, २]", (1, 2)),
    ("【1†source】", (1,)),
    ("【4:0†source】", ()),
    ("[^1]", (1,)),
    ("[^note]", ()),
    ("[Source 2]", (2,)),
    ("[citation:3]", (3,)),
    ("[1, p. 5]", (1,)),
    ("[[1]]", (1,)),
    (r"\[1\]", (1,)),
    ("([2])", (2,)),
    ("(see [2, 3])", (2, 3)),
    ("[1](https://example.org/a)", (1,)),
    ("[0]", ()),
    ("[9]", ()),
    ("[2, 9]", (2,)),
    ("[2-400]", (2, 3)),
    ("[250]", ()),
]


@pytest.mark.parametrize(("mark", "numbers"), NAMED)
def test_mark_is_removed_and_gives_its_numbers(mark: str, numbers: tuple[int, ...]) -> None:
    assert strip_marks(f"It opened {mark}.", 3) == ("It opened.", numbers)


@pytest.mark.parametrize(
    "text",
    [
        "It was [1990] then.",
        "From [1990-1995] on.",
        "In the interval [0, 1] it grows.",
        "It is [sic] so.",
        "[Apollo 11] landed.",
        "Version [3.5] came.",
        "First (1) then (2).",
        "Then a[1] = 5 holds.",
        "Over 5 km² and 10⁵ and 3 m³.",
        "It holds 12 meters² of it.",
        "At s⁻¹ it stops.",
    ],
)
def test_bracketed_prose_is_not_a_mark(text: str) -> None:
    assert strip_marks(text, 3) == (text, ())


@pytest.mark.parametrize(
    ("text", "offered", "plain", "numbers"),
    [
        ("It ended.¹ Then more² came.", 3, "It ended. Then more came.", (1, 2)),
        ("It ended.¹² Then", 3, "It ended. Then", (1, 2)),
        ("It ended.¹,³ Then", 3, "It ended. Then", (1, 3)),
        ("It ended.⁹ Then", 3, "It ended. Then", ()),
        ("It ended.¹²", 12, "It ended.", (12,)),
        ("It ended [1990].", 2000, "It ended.", (1990,)),
    ],
)
def test_citation_digits_are_split_by_the_number_of_offered_sources(
    text: str, offered: int, plain: str, numbers: tuple[int, ...]
) -> None:
    assert strip_marks(text, offered) == (plain, numbers)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("It ended.[1]Then", "It ended. Then"),
        ("It ended [1] , then", "It ended , then"),
        ("It ended. [1]. Then", "It ended. Then"),
        ("It is [1] *old*.", "It is *old*."),
        ("[1] It ended.", " It ended."),
        ("它很古老[1]。下", "它很古老。下"),
        ("它很[1]古老", "它很古老"),
        ("old[1](and new)", "old (and new)"),
    ],
)
def test_spacing_is_right_after_a_mark_is_removed(text: str, plain: str) -> None:
    assert strip_marks(text, 3)[0] == plain


@given(st.text(alphabet="[]【】^()-–,;0123456789１٢¹² ab.", max_size=60), st.integers(0, 12))
def test_marks_give_each_offered_number_at_most_once(text: str, count: int) -> None:
    _, numbers = strip_marks(text, count)
    assert len(set(numbers)) == len(numbers)
    assert all(1 <= number <= count for number in numbers)
