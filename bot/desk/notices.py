"""What the desk itself has to show, beside `bot.showing.folding`: pure, from view to view."""

from dataclasses import replace

from bot.showing.view import View
from bot.words import say


def resting(view: View) -> View:
    """Return what stands there while the bot is not running: the next start completes it."""
    return replace(view, status=say("desk_resting", view.language), buttons=(), done=False)


def said(ticket: int, language: str, text: str) -> View:
    """Return one sentence of ours as all there is."""
    return View(ticket, language, text=text, done=True)
