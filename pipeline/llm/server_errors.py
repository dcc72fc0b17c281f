"""Interpret a server's error: change the request, retry after a wait, or give up. Pure.

Errors are shown as one short line, without anything that looks like a key.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from itertools import groupby
from random import Random
from typing import Any

from pipeline.errors import ModelRefused, ModelUnavailable, PipelineError, PromptTooLong, SchemaNotOffered
from pipeline.llm.chat_request import (
    CACHE_ARGUMENTS,
    OPTIONAL_ARGUMENTS,
    SCHEMA_ARGUMENT,
    SHORTEN_HINT,
    ModelRequest,
    ServerQuirks,
    find_bounds,
)
from pipeline.llm.model_settings import ModelSettings
from storage.language.lazy_pattern import lazy_compile

_FIRST_BACKOFF = 0.5
_MAX_BACKOFF = 8.0
MAX_WAIT_SECONDS = 120.0  # a server that asks for a longer wait is not retried


class TransientError(Exception):
    """A fault worth retrying. `str()` is the message of the error that it becomes if it persists."""

    def __init__(
        self, message: str, *, hint: str = "", after: float | None = None, tries: int | None = None, taken: bool = True
    ) -> None:
        super().__init__(message)
        self.hint = hint
        self.after = after  # how many seconds the server asks to wait; None: unspecified
        self.tries = tries  # maximum number of retries; None: by the settings
        self.taken = taken  # whether the server may have processed the call


def backoff_seconds(tried: int, random: Random) -> float:
    """Return the seconds to wait after the `tried`th try (1 is the first): exponential, half of it jitter."""
    longest = min(_MAX_BACKOFF, _FIRST_BACKOFF * 2.0 ** min(tried - 1, 10))
    return longest * (0.5 + 0.5 * random.random())


def parse_retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds that a server asks to wait, by its lower-case headers; `now` has a time zone."""
    milliseconds = _parse_number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    wait = headers.get("retry-after", "")
    if (seconds := _parse_number(wait)) is not None:
        return seconds
    try:
        then = parsedate_to_datetime(wait)
    except ValueError:
        return None
    return max(0.0, ((then if then.tzinfo else then.replace(tzinfo=UTC)) - now).total_seconds())


def _parse_number(text: str) -> float | None:
    """Return a finite number that is not negative, else None."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None


_MAX_SHOWN = 240
_MAX_READ = 4_000
_KEYS = lazy_compile(
    r"\b(?:sk|pk|rk|gsk|xai|hf|key)[-_][\w*.\-]{6,}"
    r"|(?i:bearer)\s+[^\s\"',;]+"
    r"|(?i:api[-_]?key|authorization|token|secret|password)\b[\"']?\s*[=:]\s*[\"']?(?:(?i:bearer|basic)\s+)?[^\s\"',;&]+"
    r"|(?<=//)[^/\s@]+(?=@)"
)
_MIN_SECRET_RUN = 6  # characters of a secret that reveal it
_MAX_DEPTH = 8
_ERROR_FIELDS = ("code", "type", "param", "message", "msg", "loc", "detail", "error")


def error_words(body: bytes) -> str:
    """Return the words of an error in lower case, without the input that a server echoes."""
    return " ".join(_collect_strings(_parse_body(body))).lower()


def describe_error(body: bytes, secrets: Iterable[str]) -> str:
    content = _parse_body(body)
    if isinstance(content, str) and content.lstrip().startswith("<"):
        return "it sent a web page"
    message = next(_collect_strings(content, ("error", "message", "detail", "msg")), "")
    return redact_text(message, secrets) or "it sent no message"


def redact_text(text: str, secrets: Iterable[str]) -> str:
    """Return a text as one line without keys, shortened if it is long."""
    line = _KEYS.sub("***", _mask_secret(" ".join(text.split())[:_MAX_READ], secrets))
    return line if len(line) <= _MAX_SHOWN else line[:_MAX_SHOWN].rstrip() + "…"


def _mask_secret(line: str, secrets: Iterable[str]) -> str:
    """Mask secrets in a line, and any `_MIN_SECRET_RUN` characters of one, in any case."""
    lowered = [_lower_same_length(secret) for secret in secrets if secret]
    # A secret is recognised by each run of it; a shorter one as a whole.
    parts = {
        secret[start : start + _MIN_SECRET_RUN]
        for secret in lowered
        for start in range(max(1, len(secret) - _MIN_SECRET_RUN + 1))
    }
    low, hidden = _lower_same_length(line), bytearray(len(line))
    for size in {len(part) for part in parts}:
        for start in range(len(low) - size + 1):
            if low[start : start + size] in parts:
                hidden[start : start + size] = b"\1" * size
    runs = groupby(zip(line, hidden, strict=True), key=lambda pair: pair[1])
    return "".join("***" if hide else "".join(char for char, _ in run) for hide, run in runs)


def _lower_same_length(text: str) -> str:
    return "".join(low if len(low := char.lower()) == 1 else char for char in text)


def _parse_body(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return body.decode("utf-8", "replace")


def _collect_strings(content: Any, keys: tuple[str, ...] = _ERROR_FIELDS, depth: int = 0) -> Iterator[str]:
    if depth > _MAX_DEPTH:
        return
    if isinstance(content, dict):
        for key in keys:
            yield from _collect_strings(content.get(key), keys, depth + 1)
    elif isinstance(content, list):
        for item in content:
            yield from _collect_strings(item, keys, depth + 1)
    elif isinstance(content, str | int) and not isinstance(content, bool):
        yield str(content)


_TOO_LONG = lazy_compile(
    r"context[_ ](?:length|size|window)|exceed_context|num_ctx|context the overflows|maximum model length"
    r"|(?:prompt|input|request)s? (?:is |are )?too (?:long|large)|longer than the model|maximum allowed length"
    r"|max_new_tokens. must be|input token count|input tokens exceed|must have less than \d+ tokens"
    r"|max_tokens must be at least 1, got -|reduce the length"
)
_FILTERED = lazy_compile(
    r"content_filter|content management policy|responsibleaipolicy|data_inspection|moderation|flagged"
)
_UNPAID = lazy_compile(
    r"insufficient_quota|billing_hard_limit|insufficient (?:account )?(?:balance|credit|funds)|credit balance"
)
_SCHEMA = lazy_compile(r"response_format|json_schema|json_object|structured output|guided|grammar|schema")
_ROLES = lazy_compile(
    r"system role|role.{0,80}\bsystem\b|system message|roles? must alternate|alternat\w+ (?:between )?user"
)
_MODEL = lazy_compile(
    r"model_not_found|deploymentnotfound|unknown model|invalid model|no such model|not a valid model"
    r"|model.{0,160}(?:not exist|not found|not available|not supported by any)"
)
_OBJECTED = lazy_compile(
    r"unsupported|not support|unrecogni[sz]ed|unknown|unexpected|extra_forbidden|not permitted|not allowed|only allowed"
    r"|invalid (?:argument|parameter|field)|deprecated|cannot be used"
)
REFUSED_HINT = "ask in other words, or set another model"
_MENDABLE_STATUSES = frozenset({400, 404, 415, 422, 500, 501})
"""Statuses by which servers reject unsupported arguments."""
_BUSY_STATUSES = frozenset({408, 409, 425, 429})


class ServerRefusal(Exception):
    def __init__(self, status: int, body: bytes, *, after: float | None = None, final: bool = False) -> None:
        super().__init__(status)
        self.status = status
        self.body = body  # as far as read
        self.after = after  # how many seconds the server asks to wait; None: unspecified
        self.final = final  # whether the server rules out a retry


def interpret_refusal(
    refusal: ServerRefusal, request: ModelRequest, settings: ModelSettings
) -> ServerQuirks | TransientError | PipelineError:
    """Return what to do after a refusal: try again with other quirks, treat it as transient, or raise an error."""
    words = error_words(refusal.body)
    return (
        _permanent_error(refusal, words, request, settings)
        or (_quirks_from_error(words, request) if refusal.status in _MENDABLE_STATUSES else None)
        or _interpret_status(refusal, words, request, settings)
    )


def _permanent_error(
    refusal: ServerRefusal, words: str, request: ModelRequest, settings: ModelSettings
) -> PipelineError | None:
    known = refusal.status not in {HTTPStatus.UNAUTHORIZED, HTTPStatus.PROXY_AUTHENTICATION_REQUIRED}
    if known and (refusal.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE or _TOO_LONG.search(words)):
        message = f"the call does not fit the context window of {request.plan.model}"
        return PromptTooLong(message, hint=f"set context_tokens of the model to its window, or {SHORTEN_HINT}")
    if known and _FILTERED.search(words):
        message = f"a content filter of the model server at {settings.server} stopped the call"
        return ModelRefused(message, hint=REFUSED_HINT)
    if refusal.status == HTTPStatus.PAYMENT_REQUIRED or _UNPAID.search(words):
        message = f"the account at the model server {settings.server} has no credit left"
        return ModelUnavailable(message, hint="add credit to the account, or set another model")
    return None


def _quirks_from_error(words: str, request: ModelRequest) -> ServerQuirks | PipelineError | None:
    if SCHEMA_ARGUMENT in request.arguments and _SCHEMA.search(words):
        return _loosen_schema(words, request)
    if not request.quirks.plain_roles and _ROLES.search(words):
        return replace(request.quirks, plain_roles=True)
    if not _OBJECTED.search(words):
        return None
    if "prompt_cache" in words and not CACHE_ARGUMENTS.isdisjoint(request.arguments):
        return replace(request.quirks, left_out=request.quirks.left_out | CACHE_ARGUMENTS)
    named = next((name for name in sorted(OPTIONAL_ARGUMENTS) if name in request.arguments and name in words), None)
    if named == "max_tokens":
        return replace(request.quirks.without(named), thinks=True, unopened=False)
    return request.quirks.without(named) if named else None


def _loosen_schema(words: str, request: ModelRequest) -> ServerQuirks | SchemaNotOffered:
    """Return quirks without the bounds that an error names, or without any; an error if none are left."""
    bounds = set(find_bounds(request.arguments[SCHEMA_ARGUMENT]))
    if not bounds:
        return SchemaNotOffered(f"the server does not support a JSON schema for {request.plan.model}")
    refused = {bound for bound in bounds if bound.lower() in words} or bounds
    return replace(request.quirks, left_out=request.quirks.left_out | refused)


def _interpret_status(
    refusal: ServerRefusal, words: str, request: ModelRequest, settings: ModelSettings
) -> TransientError | PipelineError:
    said, server = describe_error(refusal.body, settings.unspoken), settings.server
    if refusal.status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        message = f"the model server at {server} does not accept the key ({refusal.status}): {said}"
        variable = "AZURE_OPENAI_API_KEY" if settings.api == "azure" else "OPENAI_API_KEY"
        act = "check" if settings.secrets else "set"
        return ModelUnavailable(message, hint=f"{act} api_key of the model, or {variable}")
    busy = refusal.status in _BUSY_STATUSES or refusal.status >= HTTPStatus.INTERNAL_SERVER_ERROR
    if busy and not refusal.final:
        message = f"the model server at {server} is overloaded or faulty ({refusal.status}): {said}"
        return TransientError(message, hint="try again later", after=refusal.after)
    if _MODEL.search(words):
        message = f"the model server at {server} does not know the model {request.plan.model!r}: {said}"
        return ModelUnavailable(message, hint=_name_hint(request, settings))
    if refusal.status == HTTPStatus.NOT_FOUND or refusal.status < HTTPStatus.BAD_REQUEST:
        message = f"no chat API at the address of the model server {server} ({refusal.status}): {said}"
        return ModelUnavailable(
            message, hint=f"check base_url, which often ends in /v1, and {_name_hint(request, settings)}"
        )
    message = f"the model server at {server} rejected the call ({refusal.status}): {said}"
    return ModelUnavailable(message, hint="`footnote doctor --model` shows which settings suit this model")


def _name_hint(request: ModelRequest, settings: ModelSettings) -> str:
    own = settings.stages.get(request.plan.stage)
    if own and own.name:
        return f"check name of the model for stage {request.plan.stage!r}"
    return "check name of the model, or OPENAI_MODEL"
