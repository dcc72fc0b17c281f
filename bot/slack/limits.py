"""What Slack takes in one message, as data. Lengths are counted as UTF-16 does, which is never less than Slack's count.

From its documents: 50 blocks a message and 100 a modal, 3,000 characters a section, 12,000 in all markdown blocks
together, 25 elements of a row of actions. Not documented, but reported (slackapi/bolt-js 2509 and 2867): about 12,000
characters in all blocks of a message together, of which what is around each block takes some, so that 11,341 were too
many. Messages stay well below.
"""

from bot.slack.escaping import escaped, escaped_markdown
from bot.views.render_tree import MessageLimits

ROW = 5
"""Buttons in a row: more are possible, but hard to survey."""


def measure(text: str) -> int:
    """Return how long a text is as mrkdwn."""
    return units(escaped(text))


def measure_markdown(text: str) -> int:
    """Return how long a text is as Markdown."""
    return units(escaped_markdown(text))


def units(text: str) -> int:
    """Return the length in UTF-16 units; halves of surrogate pairs count as what they are replaced by."""
    return len(text.encode("utf-16-le", "replace")) // 2


SECTIONS = MessageLimits(message=9_000, parts=46, part=3_000, row=ROW, measure=measure, markup=8, line=2, gap=80)
"""Sections of mrkdwn, with room for a row of buttons, one for feedback, and a divider each."""
MARKDOWN = MessageLimits(
    message=9_000, parts=46, part=9_000, row=ROW, measure=measure_markdown, markup=8, line=2, gap=2
)
"""Markdown blocks, and what is streamed."""
MODAL = MessageLimits(message=36_000, parts=49, part=3_000, row=ROW, measure=measure, markup=8, line=2)
"""Blocks of a modal, of which all together take 250,000 bytes at most, whatever the script and however it is coded. A
line may part any two of them, and there is room for a row of buttons."""
