"""Define the parts of a statement that can be asked for: amounts, times, channels, numbers of things."""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StatementPart:
    """A part of a statement that can be asked for.

    Its pattern has groups: the words in `lost` are removed from the statement, and a right reply contains `answer` and
    `noun`.
    """

    kind: str
    words: str  # the start of the question, with groups of the pattern in braces
    pattern: re.Pattern[str]
    quality: float  # of the question


def _part(kind: str, words: str, pattern: str, quality: float = 0.9) -> StatementPart:
    return StatementPart(kind, words, re.compile(pattern), quality)


_MANY = r"two|three|four|five|six|seven|eight|nine|ten|twelve|fifteen|twenty"
NUMBER = rf"(?:\d{{1,3}}(?:,\d{{3}})+|\d{{1,3}}(?:\.\d+)?|{_MANY})"
_ABOUT = r"(?:(?:up to|as many as|at (?:least|most)|a m(?:ax|in)imum of|no more than|around|about|approximately) )?"
_MONEY = r"(?:[£$€]\s?\d[\d,.]*\d?(?:k|m|bn)?|\d[\d,.]* (?:euros|pounds|dollars|EUR|USD|GBP))"
_PERIOD = r"(?:(?:working|business|calendar|consecutive|full) )?(?:minute|hour|day|week|month|quarter|year)"
_OFTEN = rf"(?:every (?:{NUMBER} |other )?(?!days?\b){_PERIOD}s?|(?:once|twice) (?:a|per) \w+)"
_CHANNEL = r"(?:in|on|to) (?:the |our )?(?P<answer>#[a-z0-9-]{3,})(?: Slack)?(?: channel)?"
_CLOCK = r"(?:\d{1,2}(?::\d{2})?\s?(?:am|pm)|\d{1,2}:\d{2})"
_WEEKDAY = r"(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?"
_MONTH = r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_DATE = rf"(?:{_DAY} (?:of )?{_MONTH}(?: \d{{4}})?|{_MONTH} {_DAY}(?:, \d{{4}})?|{_MONTH} \d{{4}})"
_STOP = r"(?=[.,]|$)"
_END = (
    r"(?=[.,]|$| (?:for|to|from|after|before|by|on|in|at|per|a|each|every|of|when|if|unless|with|and|as|during|towards"
    r"|through)\b)"
)

PARTS = (
    _part("amount", "How much", rf"^ (?P<lost>{_ABOUT}(?P<answer>{_MONEY})(?: (?:a|per|each) \w+)?)$", 1.0),
    _part("channel", "In which channel", rf" (?P<lost>{_CHANNEL}){_STOP}", 1.0),
    _part(
        "within",
        "Within how many {unit}s{after}",
        rf" (?P<lost>within (?P<answer>{NUMBER} (?P<unit>{_PERIOD})s?)(?P<after> (?:of|from|after) [^.,]+)?){_STOP}",
        1.0,
    ),
    _part(
        "offset",
        "How many {unit}s{after}",
        rf" (?P<lost>{_ABOUT}(?P<answer>{NUMBER} (?P<unit>{_PERIOD})s?)"
        r"(?P<after> in advance(?: of [^.,]+)?| (?:before|after) [^.,]+))",
    ),
    _part("duration", "For how long", rf" (?P<lost>for {_ABOUT}(?P<answer>{NUMBER} {_PERIOD}s?)){_STOP}"),
    _part("deadline", "By when", rf" (?P<lost>by (?P<answer>{_CLOCK}|{_DATE}|the {_DAY}(?: of [a-z]+ \w+)?)){_END}"),
    _part("clock", "At what time", rf" (?P<lost>at (?P<answer>{_CLOCK})){_END}"),
    _part("date", "On what date", rf" (?P<lost>on (?P<answer>{_DATE}|the {_DAY} of (?:the|each|every) month)){_END}"),
    _part("weekday", "On which day of the week", rf" (?P<lost>(?:on|every) (?P<answer>{_WEEKDAY})){_END}"),
    _part("year", "When", rf" (?P<lost>in (?P<answer>(?:{_MONTH} )?(?:19|20)\d\d)){_END}", 0.8),
    _part("frequency", "How often", rf" (?P<lost>(?P<answer>{_OFTEN})){_END}", 0.8),
    _part("sum", "How much", rf" (?P<lost>{_ABOUT}(?P<answer>{_MONEY})){_END}", 0.8),
    _part(
        "count",
        "How many {unit}",
        rf" (?P<lost>{_ABOUT}(?P<answer>{NUMBER}) (?P<unit>(?:[a-z]+(?<!ly) )?(?P<noun>[a-z]+(?<!s)s))){_END}",
        0.8,
    ),
)
"""All parts; a question asks for the first that a statement has."""
