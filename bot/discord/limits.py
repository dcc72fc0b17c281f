"""What Discord takes in one message, as data. Lengths are counted as UTF-16 does, which is never less than its count.

From its documents: 2,000 characters of content; or, as components, 4,000 characters in sum and 40 components, nested
ones included, 5 buttons in a row.
"""

from bot.discord.escaping import escaped
from bot.views.render_tree import MessageLimits


def measure(text: str) -> int:
    """Return how long a text is as Discord's Markdown."""
    return units(escaped(text))


def units(text: str) -> int:
    """Return the length in UTF-16 units; halves of surrogate pairs count as what they are replaced by."""
    return len(text.encode("utf-16-le", "replace")) // 2


CONTENT = MessageLimits(message=2_000, parts=100, part=2_000, row=5, measure=measure, markup=12, line=2, gap=2)
"""Plain content, its parts divided by an empty line."""
COMPONENTS = MessageLimits(message=4_000, parts=26, part=4_000, row=5, measure=measure, markup=12, line=4)
"""Text displays, with room among the 40 for two containers, two rows of buttons and ten buttons."""
EVIDENCE = MessageLimits(message=4_000, parts=35, part=4_000, row=5, measure=measure, markup=12, line=4)
"""The same without buttons but the two that turn pages."""
