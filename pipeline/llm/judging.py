"""Whether what a server sent is a reply, and what it shows of the model. Pure."""

from dataclasses import replace

from pipeline.errors import ModelRefused, ModelUnavailable, PipelineError, SchemaNotOffered
from pipeline.llm.composing import Asked
from pipeline.llm.counting import tokens
from pipeline.llm.manners import SCHEMA, Manners, thinks
from pipeline.llm.pricing import cost
from pipeline.llm.refusals import REFUSED_HINT
from pipeline.llm.replies import Gathering, Usage
from pipeline.llm.retrying import Passing
from pipeline.llm.settings import ModelSettings
from pipeline.model import ModelReply


def objection(got: Gathering, asked: Asked, settings: ModelSettings) -> Manners | Passing | PipelineError | None:
    """Return why what came is no reply: manners to ask again with, a fault that may pass, an error; None if it is."""
    model = asked.plan.model
    if got.text.strip():
        return None
    if got.ending in {"refusal", "filtered"}:
        filtered = f"a content filter of the model server at {settings.server} stopped the reply"
        declined = f"the model {model} declined to reply"
        return ModelRefused(filtered if got.ending == "filtered" else declined, hint=REFUSED_HINT)
    if got.reasoning and got.ending == "length":
        return _out_of_thought(asked, settings)
    if got.reasoning and SCHEMA in asked.arguments:
        return SchemaNotOffered(f"the schema held the thoughts of {model} and not its reply")
    what = "called a tool instead of replying" if got.called_tools else "sent an empty reply"
    hint = "set another model, or context_tokens if calls may be longer than its context window"
    return Passing(f"the model {model} {what}", hint=hint, tries=1)


def seen(got: Gathering, manners: Manners) -> Manners:
    """Return manners with what a reply shows of how its model thinks."""
    if not (got.reasoning or got.filter.unopened):
        return manners if manners.unopened else replace(manners, unopened=False)
    return replace(manners, thinks=True, unopened=got.filter.unopened)


def reply(got: Gathering, asked: Asked, settings: ModelSettings) -> ModelReply:
    """Return what was gathered, with its cost, and with estimates where the server does not count."""
    used = got.usage or Usage(asked.prompt_tokens, got.estimate(), 0)
    names = (asked.plan.model, got.model)
    return ModelReply(
        got.text,
        got.model or asked.plan.model,
        reasoning=got.reasoning,
        finish=got.ending,
        prompt_tokens=used.prompt,
        completion_tokens=used.completion,
        cached_tokens=used.cached,
        estimated=got.usage is None,
        cost=cost(settings.prices, names, used.prompt, used.cached, used.completion),
    )


def used_so_far(got: Gathering, asked: Asked) -> int:
    """Return about how many tokens a call has used that did not come to its end."""
    return asked.prompt_tokens + tokens(got.text) + tokens(got.reasoning)


def _out_of_thought(asked: Asked, settings: ModelSettings) -> Manners | ModelUnavailable:
    """Return manners that leave room for thoughts, or the error that there is not enough of it."""
    if settings.thinks is None and not thinks(settings, asked.plan.model, asked.manners):
        return replace(asked.manners, thinks=True)
    message = f"the model {asked.plan.model} thought for all of its {asked.reply_tokens} tokens and said nothing"
    return ModelUnavailable(message, hint="raise thinking_tokens of the model, or lower its reasoning_effort")
