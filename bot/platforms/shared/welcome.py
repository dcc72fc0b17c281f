"""Introduce the bot in a channel that it was invited to, once."""

from datetime import datetime

from bot.access import Asker
from bot.types import Place, Question
from bot.views.catalog import translate


def build_welcome(by: Asker, place: Place, at: datetime, language: str) -> Question:
    """Return the question who we are, as whoever invited us would ask it; its answer stands in the channel itself.

    Its key is the channel's, so that the desk answers it once, however often we are invited.
    """
    key = f"{place.channel_id}/welcome"
    return Question(key, "ask", translate("intro_question", language or "en"), by, place, key, at)
