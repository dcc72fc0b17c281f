"""What can go wrong in a turn, shaped by what the caller will do.

PipelineError                say it in one line, with what to do
├── SearchUnavailable        the search failed: say so aloud, an outage never looks like "I don't know"
├── QuestionTooLong          refuse: longer than the limit, and no person wrote it
└── QuestionWithoutWords     refuse: nothing in it can be looked up
"""


class PipelineError(Exception):
    """A failure that a person can understand. `str()` is one plain line; `hint` says what to do."""

    kind = "pipeline"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class SearchUnavailable(PipelineError):
    """The passages cannot be searched now."""

    kind = "search_unavailable"


class QuestionTooLong(PipelineError):
    """The question has more characters than `Limits.question_characters`."""

    kind = "question_too_long"


class QuestionWithoutWords(PipelineError):
    """The question is empty, or has no letter and no digit in it."""

    kind = "question_without_words"
