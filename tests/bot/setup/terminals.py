"""A terminal with scripted answers."""

from collections.abc import Sequence
from dataclasses import dataclass, field

STOP = "\x03"  # Ctrl-C


@dataclass
class ScriptedTerminal:
    """Types the answers in their order; `lines` are those of the screen, without hidden input."""

    answers: Sequence[str] = ()
    lines: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def say(self, text: str = "", *, indent: int = 0, hang: int = 0) -> None:
        del indent, hang
        self.lines.append(text)

    def ask(self, prompt: str, *, secret: bool = False) -> str:
        self.asked.append(prompt)
        answer = self.answers[len(self.asked) - 1] if len(self.asked) <= len(self.answers) else STOP
        self.lines.append(f"{prompt} {'' if secret else answer}")
        if answer == STOP:
            raise KeyboardInterrupt(self.screen)
        return answer

    @property
    def screen(self) -> str:
        return "\n".join(self.lines)
