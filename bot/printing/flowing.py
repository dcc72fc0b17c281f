"""An answer as it comes, sentence by sentence, set as the whole would be: what stands on the screen is never moved."""

from rich.console import Console
from rich.text import Text

from bot.printing.terminal import WIDTH, styled
from bot.wording import marked
from pipeline.types import AnsweredSentence


class Flow:
    """One answer; say each sentence with `flow.say`, and close it to end its last line."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._text = Text()
        self._shown = 0

    @property
    def begun(self) -> bool:
        """Whether anything was said."""
        return bool(self._shown)

    def say(self, sentence: AnsweredSentence) -> None:
        """Print what comes after the sentences before."""
        piece = marked(sentence)
        self._text.append_text(styled(piece if self.begun else piece.lstrip(), [sentence]))
        width = min(WIDTH, self._console.width)
        # Lines are filled from the first on, so that a longer text begins with the lines of a shorter one.
        whole = Text("\n").join(self._text.wrap(self._console, width))
        self._console.print(whole[self._shown :], end="", soft_wrap=True)
        self._shown = len(whole)

    def close(self) -> None:
        """End the last line."""
        if self.begun:
            self._console.print()
