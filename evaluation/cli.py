"""`footnote evaluate`: measures answers, retrieval and speed. An entry point, so that bot knows nothing of it."""

import typer

app = typer.Typer(no_args_is_help=True, help="Measure retrieval, answers and speed.")
