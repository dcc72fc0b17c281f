"""The errors of a turn, shaped by what the caller will do.

PipelineError                say it in one line, with what to do
├── SearchUnavailable        the search failed: say so aloud, an outage never looks like "I don't know"
├── ModelUnavailable         the model gave no usable reply, after the adapter's retries
│   ├── ModelRefused         it declined to reply: asking again will not help
│   └── ReplyBroken          a stream broke after its first piece: who has said none of it may ask again
├── UnreadableReply          a reply was not in the format asked for, twice
├── SchemaNotOffered         the server cannot keep a JSON schema: ask again for the text format
├── PromptTooLong            the call does not fit the model's context window: ask again with less
├── BudgetExceeded           the turn's calls, tokens or seconds are used up
├── QuestionTooLong          refuse: longer than the limit, and no person wrote it
├── QuestionWithoutWords     refuse: nothing in it can be looked up
├── NotAClaim                refuse: what is to be checked is no single statement
└── UnknownSystem            a system was asked for by a name that there is not
"""


class PipelineError(Exception):
    """A failure that a person can understand. `str()` is one plain line; `hint` says what to do."""

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
    """What is to be checked is a question, several statements, nothing at all, or too long."""

    kind = "not_a_claim"


class ModelUnavailable(PipelineError):
    kind = "model_unavailable"


class ModelRefused(ModelUnavailable):
    kind = "model_refused"


class ReplyBroken(ModelUnavailable):
    """A streamed reply broke when some of it had been given out already, so that it was not tried again."""


class UnreadableReply(PipelineError):
    """A model's reply was not in the format that was asked for; raised by parsers, and for good after a second try."""

    kind = "unreadable_reply"


class SchemaNotOffered(PipelineError):
    kind = "schema_not_offered"


class PromptTooLong(PipelineError):
    kind = "prompt_too_long"


class BudgetExceeded(PipelineError):
    kind = "budget_exceeded"


class UnknownSystem(PipelineError):
    kind = "unknown_system"
