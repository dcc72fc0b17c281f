"""Text that was cut into tokens for a parser, put together again as a person would have written it."""

import re

_BRACKETS = {"LRB": "(", "RRB": ")", "LSB": "[", "RSB": "]", "LCB": "{", "RCB": "}", "COLON": ":", "SLH": "/"}
_BRACKET = re.compile(rf"-({'|'.join(_BRACKETS)})-")
_QUOTE = re.compile(r"``|''")
_QUOTED = re.compile(r'"\s*([^"]*?)\s*"')
_BEFORE_MARK = re.compile(r"\s+(?=[,.;:!?%)\]}](?:[\s,.;:!?)\]}'\"]|\Z))|(?<=[(\[{])\s+|\s+(?=\.\.\.)")
_CLITIC = re.compile(r"(?<=\w)\s+(?=(?:'s|'re|'ve|'ll|'d|'m|n't)\b|'(?=\s))", re.IGNORECASE)
_DASH = re.compile(r"(?<=\w)\s+--\s+(?=\w)|(?<=\d)\s+[-–]\s+(?=\d)")
_HYPHEN = re.compile(r"(?<=[a-z]) - (?=[a-z])")
_SPACES = re.compile(r"\s+")


def untokenized(text: str) -> str:
    """Return `text` with its brackets and quotes restored and without the spaces that cut marks and clitics off.

    What was never cut stays as it is but for runs of white space. Capitals that were lost stay lost.
    """
    restored = _BRACKET.sub(lambda found: _BRACKETS[found[1]], text)
    restored = _QUOTE.sub('"', restored)
    if restored.count('"') % 2 == 0:
        restored = _QUOTED.sub(r'"\1"', restored)
    restored = _CLITIC.sub("", _BEFORE_MARK.sub("", restored))
    restored = _HYPHEN.sub("-", _DASH.sub("–", restored))
    return _SPACES.sub(" ", restored).strip()
