"""The Web API over HTTP: who calls, with what, whether too soon, and whether the call is to fail."""

import json
from typing import Any

from aiohttp import web

from tests.platforms.slack.calls import Call, Received, Refusal, Refused, Token, check
from tests.platforms.slack.faults import Fault
from tests.platforms.slack.methods import METHODS


async def answer(slack: Any, request: web.Request) -> web.StreamResponse:
    """Answer a call, or fail it as told."""
    name, arguments = request.match_info["method"], await _arguments(request)
    secret = _secret(request, arguments)
    fault = slack.faults[name].pop(0) if slack.faults.get(name) else None
    slack.received.append(Received(name, arguments, slack.clock.now()))
    slack.notify()
    if fault:
        await _wait(slack, fault)
        if not fault.done and (failed := failure(slack, request, fault, name)):
            return failed
    done = await _do(slack, name, arguments, secret)
    if fault and fault.done and (failed := failure(slack, request, fault, name)):
        return failed
    return done


async def _do(slack: Any, name: str, arguments: dict[str, Any], secret: str) -> web.StreamResponse:
    try:
        call = _called(slack, name, arguments, secret)
        if wait := slack.rates.wait(name, str(arguments.get("channel", ""))):
            slack.limited.append(slack.received[-1])
            return limited(wait)
        check(call, METHODS[name])
        body = METHODS[name].do(slack, call)
        headers = {"X-OAuth-Scopes": ",".join(sorted(call.token.scopes))}
        return web.json_response({"ok": True, **body}, headers=headers)
    except Refusal as refusal:
        return _refuse(slack, name, refusal)
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


def _refuse(slack: Any, name: str, refusal: Refusal) -> web.Response:
    messages = refusal.more.get("response_metadata", {}).get("messages", ())
    slack.refused.append(Refused(name, str(refusal), tuple(messages)))
    return web.json_response(refusal.body())


def limited(seconds: int) -> web.Response:
    """Return what Slack answers to calls that come too soon."""
    return web.json_response({"ok": False, "error": "ratelimited"}, status=429, headers={"Retry-After": str(seconds)})


def failure(slack: Any, request: web.Request, fault: Fault, name: str) -> web.Response | None:
    """Return how a call fails; None if it does not."""
    if fault.error:
        return _refuse(slack, name, Refusal(fault.error))
    if fault.status is None:
        return None
    if fault.status == 429 and not fault.page:
        return limited(fault.retry_after)
    if fault.status == 0 and request.transport:
        request.transport.abort()
    return web.Response(status=fault.status or 500, body=fault.text.encode("latin-1"), content_type=fault.form)


async def _wait(slack: Any, fault: Fault) -> None:
    if fault.until:
        await fault.until.wait()
    if fault.seconds:
        await slack.clock.sleep(fault.seconds)


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
    """Return the token, which is never kept with the arguments."""
    given = str(arguments.pop("token", ""))
    return request.headers.get("Authorization", "").removeprefix("Bearer ").strip() or given


def _token(slack: Any, secret: str) -> Token:
    if not secret:
        raise Refusal("not_authed")
    token = slack.world.tokens.get(secret)
    if token is None:
        raise Refusal("invalid_auth")
    if token.error:
        raise Refusal(token.error)
    return token
