"""Charts of figures: every point inside, and the same in words."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from bot.pages.figure_charts import HEIGHT, WIDTH, draw_charts
from storage.record.record_search import Figures

COUNT = st.integers(0, 10**12)
BEGIN = datetime(2026, 10, 1, tzinfo=UTC)


@given(st.lists(st.tuples(COUNT, COUNT, COUNT, st.floats(0, 1e6)), max_size=9))
def test_every_point_is_inside_the_chart(measured: list[tuple[int, int, int, float]]) -> None:
    rows = [
        Figures(BEGIN + timedelta(day), BEGIN, turns=turns, claims=claims, supported=min(claims, some), seconds=seconds)
        for day, (turns, claims, some, seconds) in enumerate(measured)
    ]
    for chart in draw_charts(rows, UTC):
        paths = [
            tuple(map(float, pair.split(","))) for line in chart.lines for path in line.paths for pair in path.split()
        ]
        dots = [dot for line in chart.lines for dot in line.dots]
        assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in [*paths, *dots])


def test_chart_has_a_summary_and_gaps() -> None:
    rows = [Figures(BEGIN + timedelta(day), BEGIN, turns=turns, seconds=2.0) for day, turns in enumerate((4, 1, 0, 2))]
    questions, _, _, seconds, *_ = draw_charts(rows, UTC)
    assert questions.summary == "2026-10-01 to 2026-10-04: asked between 0 and 4; not answered between 0 and 0."
    assert [(len(line.paths), len(line.dots)) for line in seconds.lines] == [(1, 1), (1, 1)]
