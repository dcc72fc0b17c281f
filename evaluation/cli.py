"""`footnote evaluate`: measures answers, retrieval and speed.

Registered as an entry point, so that bot knows nothing of it.
"""

import typer

from evaluation.answers import answers
from evaluation.calibration import calibrate
from evaluation.claims.alterations import alterations
from evaluation.claims.command import claims
from evaluation.claims.training import train
from evaluation.crashes import crashes
from evaluation.hostile.command import hostile
from evaluation.injection.command import injection
from evaluation.retrieval import retrieval
from evaluation.speed.desk import desk
from evaluation.speed.dumps import dumps
from evaluation.speed.embedding import embedding
from evaluation.speed.model.command import serve_model
from evaluation.speed.queue import queue
from evaluation.speed.refresh import refreshing
from evaluation.speed.search import search
from evaluation.speed.turn.command import turn
from evaluation.speed.turns import turns
from evaluation.speed.wikipedia import wikipedia
from evaluation.statements import statements
from evaluation.systems.command import systems

app = typer.Typer(no_args_is_help=True, help="Measure how well and how fast it answers.")
speed = typer.Typer(no_args_is_help=True, help="Measure speed and memory.")
app.add_typer(speed, name="speed")

app.command()(alterations)
app.command()(answers)
app.command()(calibrate)
app.command()(claims)
app.command()(train)
app.command()(retrieval)
app.command()(crashes)
app.command()(statements)
app.command()(injection)
app.command()(hostile)
app.command()(systems)
speed.command()(desk)
speed.command()(dumps)
speed.command()(embedding)
speed.command()(queue)
speed.command("refresh")(refreshing)
speed.command()(search)
speed.command()(serve_model)
speed.command()(turn)
speed.command()(turns)
speed.command()(wikipedia)
