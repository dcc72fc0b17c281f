"""The Web API over HTTP: checks token, arguments and rate limits of a call, and injects faults."""

import json
import math
from typing import Any

from aiohttp import web

from tests.platforms.fake_server import Fault, Refused
from tests.platforms.slack.calls import Call, Refusal, Token, check
from tests.platforms.slack.methods import METHODS


async def answer(slack: Any, request: web.Request) -> web.StreamResponse:
    """Answer a call, or fail it as a test requested."""
    name, arguments = request.match_info["method"], await _arguments(request)
    secret = _secret(request, arguments)
    fault = slack.log(name, arguments)
    if fault:
        await fault.wait(slack.clock)
        if not fault.done and (failed := failure(slack, request, fault, name)):
            return failed
    done = _do(slack, name, arguments, secret)
    return (fault and fault.done and failure(slack, request, fault, name)) or done


def _do(slack: Any, name: str, arguments: dict[str, Any], secret: str) -> web.StreamResponse:
    try:
        call = _called(slack, name, arguments, secret)
        if wait := slack.rates.wait(name, str(arguments.get("channel", ""))):
            slack.limited.append(slack.received[-1])
            return limited(wait)
        check(call, METHODS[name])
        headers = {"X-OAuth-Scopes": ",".join(sorted(call.token.scopes))}
        return web.json_response({"ok": True, **METHODS[name].do(slack, call)}, headers=headers)
    except Refusal as refusal:
        return refuse(slack, name, refusal)
    except Exception as error:
        slack.errors.append(error)
        raise
    finally:
        slack.notify()


def _called(slack: Any, name: str, arguments: dict[str, Any], secret: str) -> Call:
    token = _token(slack, secret)
    if name not in METHODS:
        raise Refusal("unknown_method", req_method=name)
    if token.kind not in METHODS[name].token.split():
        raise Refusal("not_allowed_token_type")
    return Call(name, arguments, token)


def refuse(slack: Any, name: str, refusal: Refusal, status: int = 200) -> web.Response:
    messages = refusal.more.get("response_metadata", {}).get("messages", ()) or refusal.more.get("errors", ())
    slack.refused.append(Refused(name, str(refusal), status, tuple(messages)))
    return web.json_response(refusal.body(), status=status)


def limited(seconds: float) -> web.Response:
    headers = {"Retry-After": str(max(1, math.ceil(seconds)))}
    return web.json_response({"ok": False, "error": "ratelimited"}, status=429, headers=headers)


def failure(slack: Any, request: web.Request, fault: Fault, name: str) -> web.Response | None:
    """Return the response of a fault; None if the call is to succeed."""
    if fault.code is not None:
        return refuse(slack, name, Refusal(str(fault.code)))
    if fault.status is None:
        return None
    if fault.status == 429 and not fault.page:
        return limited(fault.retry_after)
    return fault.respond_with_page(request)


async def _arguments(request: web.Request) -> dict[str, Any]:
    """Return the arguments of a call: of the query, of a form, or of JSON."""
    found: dict[str, Any] = dict(request.query)
    if request.content_type == "application/json":
        text = await request.text()
        found |= json.loads(text) if text else {}
    elif request.method == "POST":
        found |= dict(await request.post())
    return found


def _secret(request: web.Request, arguments: dict[str, Any]) -> str:
    """Return the token, which is never stored with the arguments."""
    given = str(arguments.pop("token", ""))
    return request.headers.get("Authorization", "").removeprefix("Bearer ").strip() or given


def _token(slack: Any, secret: str) -> Token:
    if not secret:
        raise Refusal("not_authed")
    token = slack.state.tokens.get(secret)
    if token is None:
        raise Refusal("invalid_auth")
    if token.error:
        raise Refusal(token.error)
    return token
