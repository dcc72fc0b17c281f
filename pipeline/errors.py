"""The errors of a turn, grouped by what the caller does next.

PipelineError                report it in one line, with what to do
├── SearchUnavailable        the search failed: report it, an outage must never look like "I don't know"
├── ModelUnavailable         the model gave no usable reply, after the adapter's retries
│   ├── ModelRefused         it declined to reply: asking again will not help
│   └── ReplyBroken          a stream broke after its first piece: a caller that has shown none of it may ask again
├── UnreadableReply          a reply was not in the requested format, twice
├── SchemaNotOffered         the server does not support a JSON schema: ask again for the text format
├── PromptTooLong            the call does not fit the model's context window: ask again with less
├── BudgetExceeded           the turn's calls, tokens or seconds are used up
├── QuestionTooLong          refuse: longer than the limit
├── QuestionWithoutWords     refuse: nothing in it can be looked up
├── NotAClaim                refuse: the text to check is not a single statement
└── UnknownSystem            no system has the requested name
"""


class PipelineError(Exception):
    """A failure to show to the user: `str()` is one plain line, and `hint` says what to do."""

    kind = "pipeline"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class SearchUnavailable(PipelineError):
    kind = "search_unavailable"


class QuestionTooLong(PipelineError):
    kind = "question_too_long"


class QuestionWithoutWords(PipelineError):
    kind = "question_without_words"


class NotAClaim(PipelineError):
    """The text to check is not a single statement, or contains no statement."""

    kind = "not_a_claim"


class ModelUnavailable(PipelineError):
    kind = "model_unavailable"


class ModelRefused(ModelUnavailable):
    kind = "model_refused"


class ReplyBroken(ModelUnavailable):
    """A streamed reply broke after some of it was passed on, so it was not retried."""


class UnreadableReply(PipelineError):
    """A reply was not in the requested format. Parsers raise it; callers see it after a second try."""

    kind = "unreadable_reply"


class SchemaNotOffered(PipelineError):
    kind = "schema_not_offered"


class PromptTooLong(PipelineError):
    kind = "prompt_too_long"


class BudgetExceeded(PipelineError):
    kind = "budget_exceeded"


class UnknownSystem(PipelineError):
    kind = "unknown_system"
