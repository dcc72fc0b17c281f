"""What a kit holds in place of a language model where none is configured: asking says so."""

from collections.abc import AsyncIterator

from pipeline.errors import ModelUnavailable
from pipeline.forms import Form, Splitter, T


async def ask(template: str, form: Form[T], *, stage: str, **facts: object) -> T:
    """Raise `ModelUnavailable`."""
    del template, form, facts
    raise _fault(stage)


async def stream(template: str, splitter: Splitter[T], *, stage: str, **facts: object) -> AsyncIterator[T]:
    """Raise `ModelUnavailable` when the first piece is waited for."""
    del template, facts
    raise _fault(stage)
    yield splitter.close()[0]  # never reached: it makes this a generator


def _fault(stage: str) -> ModelUnavailable:
    return ModelUnavailable(
        f"No language model is configured, and the step “{stage}” needs one.",
        hint="Set OPENAI_API_KEY, or [model] base_url and name in footnote.toml, or ask with --system extractive.",
    )
