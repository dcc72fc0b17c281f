"""Register `footnote evaluate` and `footnote distil`. `bot` finds them by the entry points `footnote.commands`."""

import typer

from evaluation.answers.answer_scores import answers
from evaluation.answers.own.own_evaluation import EPILOG as MINE_EPILOG
from evaluation.answers.own.own_evaluation import mine
from evaluation.answers.retrieval import retrieval
from evaluation.answers.system_comparison import systems
from evaluation.claims.claim_report import claims
from evaluation.dialogues.dialogue_commands import dialogues, judge_dialogues
from evaluation.dialogues.judging.agreement import agreement, sheet
from evaluation.distillation.lesson_comparison import EPILOG as COMPARE_EPILOG
from evaluation.distillation.lesson_comparison import compare
from evaluation.distillation.lesson_export import EPILOG as EXPORT_EPILOG
from evaluation.distillation.lesson_export import export
from evaluation.reports.run_report import EPILOG as REPORT_EPILOG
from evaluation.reports.run_report import report
from evaluation.reports.user_study import study
from evaluation.robustness.crashes import crashes
from evaluation.robustness.hostile import hostile
from evaluation.robustness.injection import injection
from evaluation.simulated_model.paced_model import serve_model
from evaluation.simulated_model.transcripts import transcripts
from evaluation.speed.load_benchmark import turns
from evaluation.speed.refresh_benchmark import measure_refresh
from evaluation.speed.search_benchmark import lazy_search, search
from evaluation.speed.turn_benchmark import turn
from evaluation.speed.wikipedia_benchmark import wikipedia

app = typer.Typer(no_args_is_help=True, help="Measure how well and how fast it answers.")
speed = typer.Typer(no_args_is_help=True, help="Measure speed and memory.")
distil = typer.Typer(no_args_is_help=True, help="Train a model of your own on the recorded replies of a larger one.")
app.add_typer(speed, name="speed")

app.command()(answers)
app.command()(claims)
app.command()(retrieval)
app.command()(crashes)
app.command()(injection)
app.command()(hostile)
app.command(epilog=MINE_EPILOG)(mine)
app.command(epilog=REPORT_EPILOG)(report)
app.command()(dialogues)
app.command("judge")(judge_dialogues)
app.command()(sheet)
app.command()(agreement)
app.command()(study)
app.command()(systems)
app.command()(transcripts)
speed.command("refresh")(measure_refresh)
speed.command()(search)
speed.command("lazy")(lazy_search)
speed.command()(serve_model)
speed.command()(turn)
speed.command()(turns)
speed.command()(wikipedia)
distil.command(epilog=EXPORT_EPILOG)(export)
distil.command(epilog=COMPARE_EPILOG)(compare)
