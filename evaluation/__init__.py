"""Measure how well and how fast Footnote answers. This is an extra, which the container image leaves out."""


class EvaluationError(Exception):
    """A failure that the user can fix. `str()` is one plain line; `hint` says what to do."""

    kind = "evaluation"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint
