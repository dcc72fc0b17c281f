"""Of a message that states more than is checked at once: how much was left, which its reader must know; pure.

What is counted is what the record has, so that it is the same when an answer is shown again.
"""

from bot.turns import Answered
from bot.wording import claims_of
from bot.words import say
from pipeline.checking_texts import statements
from pipeline.errors import NotAClaim


def unchecked(text: str, answered: Answered, language: str) -> str:
    """Say how many statements of a text were not checked; empty where all were, or none."""
    checked = len(claims_of(answered.answer))
    try:
        left = len(statements(text)) - checked
    except NotAClaim:
        return ""
    return say("unchecked", language, count=left, checked=checked) if checked and left > 0 else ""
