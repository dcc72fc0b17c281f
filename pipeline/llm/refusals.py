"""What it means when a server answers with an error: another way to ask, a fault that may pass, or the end. Pure.

Servers agree on little but the status; the words are those of OpenAI, Azure, vLLM, SGLang, TGI, llama.cpp, Ollama,
LM Studio, Mistral, DeepSeek, Groq and OpenRouter.
"""

import re
from dataclasses import replace
from http import HTTPStatus

from pipeline.errors import ModelRefused, ModelUnavailable, PipelineError, PromptTooLong, SchemaNotOffered
from pipeline.llm.composing import LESS, Asked
from pipeline.llm.manners import MODEST, SCHEMA, Manners
from pipeline.llm.retrying import Passing
from pipeline.llm.saying import said_by, words_of
from pipeline.llm.settings import ModelSettings

_TOO_LONG = re.compile(
    r"context[_ ](?:length|size|window)|exceed_context|num_ctx|context the overflows|maximum model length"
    r"|(?:prompt|input|request)s? (?:is |are )?too (?:long|large)|longer than the model|maximum allowed length"
    r"|max_new_tokens. must be|input token count|input tokens exceed|must have less than \d+ tokens"
    r"|max_tokens must be at least 1, got -|reduce the length"
)
_FILTERED = re.compile(
    r"content_filter|content management policy|responsibleaipolicy|data_inspection|moderation|flagged"
)
_UNPAID = re.compile(
    r"insufficient_quota|billing_hard_limit|insufficient (?:account )?(?:balance|credit|funds)|credit balance"
)
_SCHEMA = re.compile(r"response_format|json_schema|json_object|structured output|guided|grammar|schema")
_ROLES = re.compile(
    r"system role|role.{0,80}\bsystem\b|system message|roles? must alternate|alternat\w+ (?:between )?user"
)
_MODEL = re.compile(
    r"model_not_found|deploymentnotfound|unknown model|invalid model|no such model|not a valid model"
    r"|model.{0,160}(?:not exist|not found|not available|not supported by any)"
)
_OBJECTED = re.compile(
    r"unsupported|not support|unrecogni[sz]ed|unknown|unexpected|extra_forbidden|not permitted|not allowed|only allowed"
    r"|invalid (?:argument|parameter|field)|deprecated|cannot be used"
)
REFUSED_HINT = "ask in other words, or set another model"
_MENDABLE = frozenset({400, 404, 415, 422, 500, 501})
"""Statuses under which servers object to how they were asked."""
_BUSY = frozenset({408, 409, 425, 429})


class Refusal(Exception):
    """A server's answer that is no reply."""

    def __init__(self, status: int, body: bytes, *, after: float | None = None, final: bool = False) -> None:
        super().__init__(status)
        self.status = status
        self.body = body
        """As far as it was read."""
        self.after = after
        """How many seconds the server asks to wait; None: it does not say."""
        self.final = final
        """Whether the server says that asking again is of no use."""


def meaning(refusal: Refusal, asked: Asked, settings: ModelSettings) -> Manners | Passing | PipelineError:
    """Return what follows: manners to ask again with at once, a fault that may pass, or the error to raise."""
    words = words_of(refusal.body)
    return (
        _for_good(refusal, words, asked, settings)
        or (_mended(words, asked) if refusal.status in _MENDABLE else None)
        or _by_status(refusal, words, asked, settings)
    )


def _for_good(refusal: Refusal, words: str, asked: Asked, settings: ModelSettings) -> PipelineError | None:
    known = refusal.status not in {HTTPStatus.UNAUTHORIZED, HTTPStatus.PROXY_AUTHENTICATION_REQUIRED}
    if known and (refusal.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE or _TOO_LONG.search(words)):
        message = f"the call does not fit the context window of {asked.plan.model}"
        return PromptTooLong(message, hint=f"set context_tokens of the model to its window, or {LESS}")
    if known and _FILTERED.search(words):
        message = f"a content filter of the model server at {settings.server} stopped the call"
        return ModelRefused(message, hint=REFUSED_HINT)
    if refusal.status == HTTPStatus.PAYMENT_REQUIRED or _UNPAID.search(words):
        message = f"the account at the model server {settings.server} has nothing left to spend"
        return ModelUnavailable(message, hint="add credit to the account, or set another model")
    return None


def _mended(words: str, asked: Asked) -> Manners | PipelineError | None:
    """Return how to ask so that the server takes it, where its words tell."""
    if SCHEMA in asked.arguments and _SCHEMA.search(words):
        return SchemaNotOffered(f"the server keeps no JSON schema for {asked.plan.model}")
    if not asked.manners.plain_roles and _ROLES.search(words):
        return replace(asked.manners, plain_roles=True)
    if not _OBJECTED.search(words):
        return None
    named = next((name for name in sorted(MODEST) if name in asked.arguments and name in words), None)
    if named == "max_tokens":
        return replace(asked.manners.without(named), thinks=True, unopened=False)
    return asked.manners.without(named) if named else None


def _by_status(refusal: Refusal, words: str, asked: Asked, settings: ModelSettings) -> Passing | PipelineError:
    said, server = said_by(refusal.body, settings.unspoken), settings.server
    if refusal.status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        message = f"the model server at {server} does not accept the key ({refusal.status}): {said}"
        return ModelUnavailable(message, hint=_key_hint(settings))
    busy = refusal.status in _BUSY or refusal.status >= HTTPStatus.INTERNAL_SERVER_ERROR
    if busy and not refusal.final:
        message = f"the model server at {server} is overloaded or faulty ({refusal.status}): {said}"
        return Passing(message, hint="try again later", after=refusal.after)
    if _MODEL.search(words):
        message = f"the model server at {server} does not know the model {asked.plan.model!r}: {said}"
        return ModelUnavailable(message, hint=_name_hint(asked, settings))
    if refusal.status == HTTPStatus.NOT_FOUND or refusal.status < HTTPStatus.BAD_REQUEST:
        message = f"there is no chat at the address of the model server {server} ({refusal.status}): {said}"
        return ModelUnavailable(
            message, hint=f"check base_url, which often ends in /v1, and {_name_hint(asked, settings)}"
        )
    message = f"the model server at {server} does not take the call ({refusal.status}): {said}"
    return ModelUnavailable(message, hint="`footnote doctor --model` tells which settings suit this model")


def _key_hint(settings: ModelSettings) -> str:
    variable = "AZURE_OPENAI_API_KEY" if settings.api == "azure" else "OPENAI_API_KEY"
    return (
        f"check api_key of the model, or {variable}" if settings.secrets else f"set api_key of the model, or {variable}"
    )


def _name_hint(asked: Asked, settings: ModelSettings) -> str:
    own = settings.stages.get(asked.plan.stage)
    where = (
        f"name of the model for stage {asked.plan.stage!r}"
        if own and own.name
        else "name of the model, or OPENAI_MODEL"
    )
    return f"check {where}"
