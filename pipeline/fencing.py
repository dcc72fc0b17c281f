"""Fences round quoted material: a random word that nothing inside can contain, and no words that servers obey. Pure.

A model is told that what stands between two lines with the fence's word is quoted. Whoever wrote a passage cannot know
the word, and if it should stand in the text by chance another is drawn.
"""

import re
from random import Random

LETTERS = "bcdfghjkmnpqrstvwxz"
"""No vowels, so that no fence is a word of a language."""
LENGTH = 12
EXAMPLE = "example"
"""The fence of worked examples, which are the same on every call; no turn ever has it."""
_CONTROL = re.compile(
    r"<(?=[|｜])|(?<=[|｜])>|<(?=/?(?:s|bos|eos|pad|unk|think|start_of_turn|end_of_turn|start_of_image|tool_call)>)"
    r"|<(?=<SYS>)|<(?=</SYS>)|\[(?=/?(?:INST|TOOL_CALLS|AVAILABLE_TOOLS|SYSTEM_PROMPT)\])",
    re.IGNORECASE,
)


def draw(random: Random, text: str) -> str:
    """Return a random word that does not stand in the text, in whatever case."""
    folded = text.casefold()
    while (fence := "".join(random.choices(LETTERS, k=LENGTH))) in folded:
        pass
    return fence


def line(text: str) -> str:
    """Return a text on one line, and without the marks by which servers tell whose turn it is.

    On one line, no part of it can look like another line of the message: a turn, a numbered sentence, a fence.
    """
    return _CONTROL.sub(lambda mark: f"{mark[0]} " if mark[0] != ">" else " >", " ".join(text.split()))
