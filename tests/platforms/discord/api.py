"""The API over HTTP: checks token, body and rate limits of a request, and injects faults."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from tests.platforms.discord.calls import Answer, Call, Route
from tests.platforms.discord.rates import Wait
from tests.platforms.discord.refusing import Refusal, invalid_at, refusal
from tests.platforms.fake_server import Fault, Refused

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_VIA = {"Via": "1.1 google"}


def answering(discord: Any, route: Route) -> Handler:
    """Return the handler of a route, which also fails requests as a test requested."""

    async def answer(request: web.Request) -> web.StreamResponse:
        text = await request.text()
        call = Call(route, dict(request.match_info), dict(request.query), _lenient(text))
        fault = discord.log(
            route.name, call.body, {name: value for name, value in call.names.items() if name != "token"}
        )
        if fault:
            await fault.wait(discord.clock)
            if not fault.done and (failed := _failure(discord, request, fault, call)):
                return failed
        done = _do(discord, request, call, text)
        return (fault and fault.done and _failure(discord, request, fault, call)) or done

    return answer


async def unknown(_: web.Request) -> web.StreamResponse:
    return web.json_response({"message": "404: Not Found", "code": 0}, status=404)


def _do(discord: Any, request: web.Request, call: Call, text: str) -> web.StreamResponse:
    name = call.route.name
    if discord.rates.banned:
        return _banned()
    if call.route.token and not _known(discord, request):
        discord.notify()
        return _refuse(discord, name, refusal(0))
    if wait := discord.rates.take(call):
        return _limited(discord, call, wait)
    try:
        _body(request, call, text)
        answered = call.route.do(discord, call)
        return _response(answered, discord.rates.headers(call))
    except Refusal as refused:
        return _refuse(discord, name, refused, discord.rates.headers(call))
    except Exception as error:
        discord.errors.append(error)
        raise
    finally:
        discord.notify()


def _known(discord: Any, request: web.Request) -> bool:
    kind, _, token = request.headers.get("Authorization", "").partition(" ")
    return kind == "Bot" and token in discord.state.tokens


def _body(request: web.Request, call: Call, text: str) -> None:
    if not call.route.bodied or not text:
        return
    if request.headers.get("Content-Type") != "application/json":
        raise invalid_at("", "the content type must be application/json")
    try:
        json.loads(text)
    except ValueError:
        raise refusal(50109) from None


def _lenient(text: str) -> Any:
    try:
        return json.loads(text) if text else None
    except ValueError:
        return None


def _response(answer: Answer, headers: dict[str, str]) -> web.Response:
    if answer.status == 204:
        return web.Response(status=204, headers=headers)
    # discord.py reads JSON only where the content type says just that.
    headers = {**headers, "Content-Type": "application/json"}
    return web.Response(body=json.dumps(answer.body).encode(), status=answer.status, headers=headers)


def _refuse(discord: Any, name: str, refused: Refusal, headers: dict[str, str] | None = None) -> web.Response:
    discord.refused.append(Refused(name, refused.code, refused.status, refused.body()))
    if refused.status in {401, 403}:
        discord.rates.invalid.append(discord.clock.now())
    return _response(Answer(refused.body(), refused.status), {**_VIA, **(headers or {})})


def _limited(discord: Any, call: Call, wait: Wait) -> web.Response:
    discord.limited.append(discord.received[-1])
    discord.rates.invalid.append(discord.clock.now())
    return _too_soon(wait.seconds / discord.rates.pace, everywhere=wait.everywhere, headers=discord.rates.headers(call))


def _too_soon(seconds: float, *, everywhere: bool, headers: dict[str, str]) -> web.Response:
    body = {"message": "You are being rate limited.", "retry_after": round(seconds, 3), "global": everywhere}
    more = {"Retry-After": str(max(1, round(seconds))), "X-RateLimit-Scope": "global" if everywhere else "user"}
    more |= {"X-RateLimit-Global": "true"} if everywhere else {}
    return _response(Answer(body, 429), {**headers, **_VIA, **more})


def _banned() -> web.Response:
    return web.Response(status=429, text="error code: 1015", headers={"Retry-After": "3600"})


def _failure(discord: Any, request: web.Request, fault: Fault, call: Call) -> web.Response | None:
    if fault.status is None:
        return None
    if fault.status == 429 and not fault.page:
        headers = discord.rates.headers(call)
        return _too_soon(fault.retry_after, everywhere=fault.everywhere, headers=headers) if fault.via else _banned()
    if fault.code is not None:
        return _response(Answer({"message": "Refused.", "code": fault.code}, fault.status), _VIA)
    return fault.respond_with_page(request)
