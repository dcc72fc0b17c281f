"""The report of a hand-written run of a few dialogues."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evaluation.cli import app
from evaluation.dialogues.dialogue_types import CitationCounts, Dialogue, JudgedClaim, JudgedTurn, Topic, TopicKind
from evaluation.dialogues.run_folder import RunFolder
from evaluation.reports import run_figures as figures
from evaluation.reports.report_page import Plot, PlotPoint, render_page
from evaluation.reports.run_figures import FACTUAL, MEASURES, Arm, join_judgements, measure
from evaluation.reports.run_report import build_figures, enter_run, write_report
from storage.types import Verdict
from tests.evaluation import runs
from tests.evaluation.runs import TURN

S, R = Verdict.SUPPORTS, Verdict.REFUTES
TOPICS = tuple(
    Topic(title, f"{title} is a place.", "handbook", kind)
    for title, kind in (("Pier", TopicKind.HEAD), ("Ferry", TopicKind.TAIL), ("Crane <b>", TopicKind.TAIL))
)
MANIFEST = replace(runs.MANIFEST, topics=TOPICS)


def judged(*verdicts: Verdict, **more: object) -> JudgedTurn:
    claims = tuple(JudgedClaim(f"claim {place}", verdict) for place, verdict in enumerate(verdicts))
    scales = dict.fromkeys(("relevant", "informational", "natural", "non_repetitive"), 4)
    return JudgedTurn(**{"claims": claims, "temporally_correct": 1, **scales, **more})


def write_run(path: Path, good: tuple[JudgedTurn, ...], alone: tuple[JudgedTurn, ...]) -> RunFolder:
    folder = RunFolder(path)
    folder.write_manifest(MANIFEST)
    for system, judgements in (("good", good), ("model-alone", alone)):
        for topic, grades in zip(TOPICS, judgements, strict=True):
            talk = Dialogue(f"{system}-{topic.title}", topic, system, "m", "u")
            abstained = replace(TURN, status="abstained", reply="I do not know.", passages=(), claims=())
            folder.append_turn(talk, abstained if grades.abstained else TURN)
            folder.append_judgement((talk.id, 1), grades)
    return folder


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    good = (
        judged(S, S, citations=CitationCounts(2, 2, 3, 2)),
        judged(S, R, citations=CitationCounts(2, 1, 1, 1)),
        judged(abstained=True, answerable=False, temporally_correct=None),
    )
    return write_run(tmp_path / "run", good, (judged(S, R), judged(R, R), judged(R, answerable=False)))


def test_report_figures_equal_those_computed_by_hand(run: RunFolder):
    dialogues = join_judgements(run.read_dialogues(), run.read_judgements())
    good = figures.select(dialogues, Arm("good", "m"))

    def value(what):
        measured = measure(good, what)
        return None if measured is None else round(measured.interval.value, 4)

    assert value(FACTUAL) == 0.75  # 3 of 4 claims
    assert value(figures.TEMPORAL) == 1.0
    assert [value(cost) for cost in figures.ABSTENTION] == [round(1 / 3, 4), 1.0, None]
    assert [value(cost) for cost in figures.ORIGINS] == [3.0, round(4 / 3, 4), 0.5]
    assert [value(cost) for cost in figures.CITATIONS[:2]] == [0.75, 0.75]
    # "it is 90 metres long" and "pier is 90 metres long": 4 of 5 words each
    assert value(figures.CITATIONS[2]) == 0.8
    costs = {cost.name: value(cost) for cost in figures.COSTS}
    assert costs["turn_cost"] == 0.02
    assert costs["claim_cost"] == 0.015  # three turns' cost over four claims
    assert costs["claim_seconds"] == 1.5
    assert costs["first_seconds"] is None


def test_cached_turns_have_a_cost_but_no_seconds(tmp_path: Path):
    folder = RunFolder(tmp_path)
    folder.append_turn(Dialogue("d", TOPICS[0], "good", "m", "u"), replace(TURN, from_cache=2))
    (dialogue,) = join_judgements(folder.read_dialogues(), {})
    measured = {what.name: measure((dialogue,), what) for what in MEASURES}
    assert measured["turn_seconds"] is None
    assert measured["turn_cost"].interval.value == 0.02
    assert measured["factual"] is None


@pytest.mark.parametrize(("status", "counts"), [("answered", True), ("failed", False), ("refused", False)])
def test_seconds_count_if_the_turn_was_finished_without_its_model(tmp_path: Path, status: str, *, counts: bool):
    folder = RunFolder(tmp_path)
    folder.append_turn(Dialogue("d", TOPICS[0], "good", "m", "u"), replace(TURN, status=status, failure="unreadable"))
    (dialogue,) = join_judgements(folder.read_dialogues(), {})
    assert [measure((dialogue,), what) is not None for what in (figures.COSTS[3], figures.FAILED)] == [counts, True]


def test_report_has_the_papers_tables_and_names_what_replaced_a_model(run: RunFolder):
    page = write_report(run)
    text = (run.path / "report.md").read_text("utf-8")
    assert "the judge: a script" in text
    assert "| all | good · m | 75.0" in text
    assert "| tail | good · m | 50.0 | 4.0 ± 0.0 |" in text
    assert "in docs/systems.md" in text
    assert "one turn" in text
    html = page.read_text("utf-8")
    assert not re.search(r"(?:src|href)=|@import|url\(|<script", html)
    assert "Crane <b>" not in html
    assert "Crane &lt;b&gt;" in html
    assert html.count("<svg") == 2


def test_the_same_run_gives_the_same_report(run: RunFolder):
    first = write_report(run).read_bytes()
    assert write_report(run).read_bytes() == first


def test_two_runs_are_compared(run: RunFolder, tmp_path: Path):
    better = write_run(tmp_path / "later", (judged(S, S), judged(S, S), judged(S)), (judged(S), judged(R), judged(S)))
    write_report(better, run)
    text = (better.path / "report.md").read_text("utf-8")
    assert "## Against the run `r1`" in text
    assert re.search(r"\| good · m \| Factual \| 75\.0 \([^)]*\) \| 100\.0 \([^)]*\) \| 2 \|", text)


def test_significantly_better_system_is_marked(tmp_path: Path):
    topics = tuple(replace(TOPICS[0], title=f"Pier {place}") for place in range(12))
    folder = RunFolder(tmp_path)
    folder.write_manifest(replace(MANIFEST, topics=topics))
    for system, verdicts in (("good", (S, S, S, S)), ("model-alone", (S, R, R, R))):
        for place, topic in enumerate(topics):
            talk = Dialogue(f"{system}{place}", topic, system, "m", "u")
            folder.append_turn(talk, TURN)
            folder.append_judgement((talk.id, 1), judged(*verdicts[: 2 + place % 3]))
    write_report(folder)
    text = (tmp_path / "report.md").read_text("utf-8")
    assert re.search(r"\| head \| good · m \| 100\.0 \(75\.\d–100\.0\) \* \|", text)
    assert not re.search(r"model-alone · m \| [^|]* \* \|", text)


def test_leaderboard_has_each_run_once_and_keeps_edits(run: RunFolder, tmp_path: Path):
    board = tmp_path / "leaderboard.md"
    enter_run(board, run)
    board.write_text(board.read_text("utf-8").replace("# Leaderboard", "# Ours") + "\nA remark.\n", "utf-8")
    first = board.read_text("utf-8")
    enter_run(board, run)
    assert board.read_text("utf-8") == first
    assert len(re.findall(r"^\| r1 \| handbook \| 3 \|", first, re.MULTILINE)) == 2
    assert "| j | the judge |" in first
    assert first.startswith("# Ours")
    assert first.endswith("A remark.\n")


def test_run_without_turns_has_a_report(tmp_path: Path):
    folder = RunFolder(tmp_path)
    folder.write_manifest(MANIFEST)
    write_report(folder)
    assert "0 dialogues of 1 turn over" in (tmp_path / "report.md").read_text("utf-8")
    assert build_figures(folder) == []


def test_report_command_refuses_a_folder_without_a_run(tmp_path: Path):
    ended = CliRunner().invoke(app, ["report", str(tmp_path)])
    assert ended.exit_code == 1
    assert "has no run in it" in ended.output


def test_plot_states_its_values_as_text_for_screen_readers():
    plot = Plot("Seconds", (PlotPoint("a <system>", 1.0, 0.5, 3.0),), 2.0, lambda value: f"{value:g} s")
    drawn = render_page("# A report", "Report", [plot])
    assert 'aria-label="a &lt;system&gt;: 1 s"' in drawn
    assert '<line class="range" x1="445.0" x2="790.0"' in drawn  # an interval beyond the axis ends with it


def test_report_compares_refined_replies_with_drafts(tmp_path: Path) -> None:
    """Like table 15, the report has grades of the reply minus those of the draft, if drafts were refined."""
    plain = (judged(S), judged(S), judged(S))
    scores = {"draft_scores": {"relevant": 2, "natural": 4, "temporally_correct": 0}}
    refined = judged(S, **scores, refined_scores={"relevant": 5, "temporally_correct": 1})
    write_report(write_run(tmp_path / "refined", (refined, *plain[1:]), plain))
    text = (tmp_path / "refined" / "report.md").read_text()
    assert "As WikiChat's table 15" in text
    assert "| head | good · m, refinement | 3 | – | – | – | 1 |" in text
    assert "| head | good · m, gate | -1 | – | – | – | 0 |" in text
    write_report(write_run(tmp_path / "plain", plain, plain))
    assert "As WikiChat's table 15" not in (tmp_path / "plain" / "report.md").read_text()


def test_words_of_drafts_and_replies_are_compared_without_citation_marks(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.write_manifest(MANIFEST)
    said = "The pier of the harbour is 90 metres long"
    turn = replace(TURN, draft=f"{said} [7].", refined=f"{said} [4][7].", reply="It is 90 metres long. [1]")
    folder.append_turn(Dialogue("d", TOPICS[0], "good", "m", "u"), turn)
    (dialogue,) = join_judgements(folder.read_dialogues(), {})
    assert measure((dialogue,), figures.CITATIONS[2]).interval.value == pytest.approx(0.8)
    scores = figures.score_steps((dialogue,))
    assert scores["refinement"] == pytest.approx(1)
    assert scores["gate"] < 1
    write_report(folder)
    assert "| good · m, refinement | 100.0 |" in (tmp_path / "report.md").read_text()
