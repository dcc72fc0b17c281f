"""Views as pages: whatever they hold, they fit every platform's limits, whole and in order."""

from dataclasses import replace
from datetime import UTC, timedelta, timezone
from itertools import chain

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bot.platforms.discord import messages as discord
from bot.platforms.slack import messages as slack
from bot.views.message_layout import (
    MIN_PART_SIZE,
    MessageLimits,
    MessagePage,
    PartKind,
    TextStyle,
    ViewBlock,
    build_blocks,
    build_evidence_blocks,
    paginate_evidence,
    paginate_view,
)
from bot.views.sanitize import sanitize_url
from bot.views.turn_view import Button, ButtonAction, EvidenceView, ShownSource, View
from pipeline.types import AnsweredSentence
from tests.bot.views.views import DAY, evidences, views
from tests.thorough import sample

SMALL = MessageLimits(
    message=400, parts=3, part=MIN_PART_SIZE, row=2, measure=lambda text: 3 * len(text), markup=12, line=2, gap=2
)
ALL = {
    "slack": slack.SECTIONS, "slack markdown": slack.MARKDOWN, "slack modal": slack.MODAL,
    "discord": discord.CONTENT, "discord components": discord.COMPONENTS, "small": SMALL,
}  # fmt: skip


def words(texts) -> str:
    """Return the text without blanks, so that separators of parts do not count."""
    return "".join("".join(texts).split())


def text_of(pages: tuple[MessagePage, ...]) -> str:
    return words(run.text for page in pages for part in page.parts for run in part.runs)


def source_text(shown: list[ViewBlock]) -> str:
    return words(run.text for block in shown for group in block.groups for run in group)


def marks(pages: tuple[MessagePage, ...]) -> list[str]:
    return [run.text for page in pages for part in page.parts for run in part.runs if run.style is TextStyle.MARK]


def check(pages: tuple[MessagePage, ...], limits: MessageLimits) -> None:
    for page in pages:
        assert len(page.parts) <= limits.parts
        sizes = [sum(map(limits.size, part.runs)) for part in page.parts]
        assert sum(size + limits.gap for size in sizes) <= limits.message
        assert all(size <= limits.part for size in sizes)
        assert all(len(row) <= limits.row for row in page.rows)
    assert all(part.runs for page in pages for part in page.parts)
    assert not any(page.rows for page in pages[:-1])


@pytest.mark.parametrize("name", ALL)
@settings(max_examples=sample(25))
@given(view=views)
@example(View(7, nearest=(ShownSource(0, "", url="https://docs.example.com/a(b)"),)))
def test_pages_contain_every_view_completely_in_order(name: str, view: View) -> None:
    limits, shown = ALL[name], list(build_blocks(view, UTC))
    pages = paginate_view(view, limits)

    check(pages, limits)
    assert marks(pages) == [
        f"[{number}]"
        for number in chain(
            chain(
                *(judgement.numbers for judgement in view.judgements),
                *(sentence.citations for sentence in view.sentences),
            ),
            (source.number for source in (*view.sources, *view.nearest) if source.number),
        )
    ]
    assert tuple(chain.from_iterable(pages[-1].rows)) == view.buttons
    runs = [run for page in pages for part in page.parts for run in part.runs]
    people = [run.text for run in runs if run.style is TextStyle.PERSON]
    assert people == list(view.mentions)
    linked = {run.url for run in runs if run.url}
    sources = (*view.sources, *view.nearest, *filter(None, [view.quote]))
    urls = {sanitize_url(source.url): source.url for source in sources if sanitize_url(source.url)}
    assert linked <= urls.keys()
    in_text = [url for url in urls if url not in linked]
    assert all(words([url]) in text_of(pages) or words([urls[url]]) in text_of(pages) for url in in_text)
    if not in_text:
        assert text_of(pages) == source_text(shown)


@settings(max_examples=sample(25))
@given(view=views, factor=st.integers(1, 4), parts=st.integers(1, 5), most=st.integers(MIN_PART_SIZE, 2_000))
def test_pages_fit_limits_whatever_function_measures_their_length(
    view: View, factor: int, parts: int, most: int
) -> None:
    def measure(text: str) -> int:
        return factor * len(text) + (7 if text.endswith(".") else 0)

    limits = MessageLimits(message=most * 2, parts=parts, part=most, row=3, measure=measure, markup=12, line=2, gap=2)
    check(paginate_view(view, limits), limits)


@settings(max_examples=sample(25))
@given(view=evidences)
@pytest.mark.parametrize("name", ["slack modal", "discord", "small"])
def test_pages_contain_all_evidence_in_order(name: str, view: EvidenceView) -> None:
    pages = paginate_evidence(view, ALL[name], "en")
    check(pages, ALL[name])
    if all(
        ALL[name].measure(sanitize_url(one.url)) < MIN_PART_SIZE // 4
        for one in [*view.sources, *chain.from_iterable((*item.sources, *item.looked_at) for item in view.items)]
    ):
        assert text_of(pages) == source_text(list(build_evidence_blocks(view, "en", UTC)))


def plain(pages: tuple[MessagePage, ...]) -> list[list[str]]:
    return [["".join(run.text for run in part.runs) for part in page.parts] for page in pages]


def test_answer_parts_are_in_order() -> None:
    view = View(
        7,
        "en",
        notice="Only quotations today.",
        collapsed="Statements checked: 2, confirmed: 1.",
        sentences=(
            AnsweredSentence("The quay opens at seven.", (1, 2)),
            AnsweredSentence("It closes at nine.", (2,), note="Hours, 2026"),
            AnsweredSentence("It is long.", (3,), paragraph=True),
        ),
        left_out="Left out: 1 of 4.",
        sources=(
            ShownSource(1, "Harbour", "Hours", DAY, "https://example.com/h"),
            ShownSource(2, "Quay", url="file.md"),
            ShownSource(3, "", url="https://example.com/q"),
        ),
        buttons=tuple(
            Button(action, "Press", 7) for action in (ButtonAction.EVIDENCE, ButtonAction.UP, ButtonAction.DOWN)
        ),
    )
    (page,) = paginate_view(view, slack.SECTIONS, timezone(timedelta(hours=2)))

    assert plain((page,)) == [
        [
            "Only quotations today.",
            "The quay opens at seven. [1][2] (Hours, 2026) It closes at nine. [2]",
            "It is long. [3]",
            "Left out: 1 of 4.",
            "[1] Harbour › Hours · 2026-03-02\n[2] Quay (file.md)\n[3] https://example.com/q",
            "Statements checked: 2, confirmed: 1.",
        ]
    ]
    assert [part.kind for part in page.parts] == [
        PartKind.NOTICE,
        PartKind.PARAGRAPH,
        PartKind.PARAGRAPH,
        PartKind.LEFT_OUT,
        PartKind.SOURCES,
        PartKind.COLLAPSED,
    ]
    assert page.rows == (view.buttons,)


def test_long_text_is_split_between_words() -> None:
    long = " ".join(["word"] * 60)
    view = View(
        7,
        "en",
        sentences=(AnsweredSentence("Short.", (1,)), AnsweredSentence(long, (2,)), AnsweredSentence("End.", (3,))),
    )
    pages = plain(paginate_view(view, replace(SMALL, measure=len)))
    pieces = [part.strip() for page in pages for part in page]

    assert pieces[0] == "Short. [1]"
    assert all(piece.split()[-1] in {"word", "[1]", "[2]", "[3]"} for piece in pieces)


def test_label_moves_to_the_page_of_its_section() -> None:
    nearest = tuple(ShownSource(0, "x" * 100, url=f"https://example.com/{number}") for number in range(3))
    view = View(7, "en", text="y" * 120, nearest_label="The nearest:", nearest=nearest)
    pages = plain(paginate_view(view, MessageLimits(message=330, parts=9, part=320, row=5, measure=len)))

    assert pages[0] == ["y" * 120]
    assert pages[1][0] == "The nearest:"


def test_empty_view_is_one_page() -> None:
    assert paginate_view(View(7), SMALL) == (MessagePage(),)
