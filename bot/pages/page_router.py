"""Route requests to pages: access is decided here, and only here, before a page is made."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bot.app import SettingsSource
from bot.pages.page_rendering import STYLE, render_page
from bot.pages.sign_in import SESSION_SECONDS, Sessions, Visitor, identify, is_host_known, is_proxy
from bot.server.http_server import RequestLog
from bot.settings.tables.network_settings import PagesSettings, Role
from bot.settings.tables.settings_tables import Settings
from bot.views.error_messages import ReportableError, explain_error

COOKIE = "footnote"
MAX_FORM_BYTES = 64 * 1024
_MAX_FIELDS = 50
_FORM = "application/x-www-form-urlencoded"
SIGN_IN, STYLE_PATH = "/sign-in", "/style.css"
PUBLIC = (SIGN_IN, STYLE_PATH)
"""Paths that need no sign-in."""
HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Visit:
    """A request for a page, by a visitor who may see it."""

    request: Request
    visitor: Visitor
    settings: Settings
    form_token: str
    form: Mapping[str, str] = field(default_factory=dict)  # the filled-in fields, by name; the last one of several

    def asked(self, name: str) -> str:
        """Return a query parameter of the address; empty if it is missing."""
        return self.request.query_params.get(name, "").strip()

    def render(self, template: str, **facts: Any) -> str:
        common = {"visitor": self.visitor, "form_token": self.form_token, "here": self.request.url.path}
        return render_page(template, self.settings.zone, {**common, "open": self.settings.pages.is_open, **facts})

    def page(self, template: str, *, status: int = 200, **facts: Any) -> Response:
        return HTMLResponse(self.render(template, **facts), status)


@dataclass(frozen=True, slots=True)
class Page:
    """A page: its path, and the role that may see it."""

    path: str
    make: Callable[[Visit], Awaitable[Response]]
    role: Role = "reader"
    method: str = "GET"


def build_pages_app(source: SettingsSource, pages: Sequence[Page]) -> Starlette:
    """Build the application that serves these pages, the style sheet, and signing in and out."""
    gate = _Gate(source, Sessions())
    public = [
        Route(STYLE_PATH, _style),
        Route(SIGN_IN, gate.show_sign_in, methods=["GET"]),
        Route(SIGN_IN, gate.sign_in, methods=["POST"]),
    ]
    own = [*pages, Page("/sign-out", gate.sign_out, method="POST")]
    routes = [Route(page.path, gate.admit(page), methods=[page.method]) for page in own]
    return Starlette(
        routes=[*public, *routes],
        middleware=[Middleware(RequestLog), Middleware(_Headers, settings=gate.settings.pages)],
        exception_handlers={HTTPException: gate.show_error},
        max_body_size=MAX_FORM_BYTES,
    )


class NotFound(HTTPException):
    def __init__(self, what: str) -> None:
        super().__init__(404, what)


@dataclass(frozen=True)
class _Gate:
    source: SettingsSource
    sessions: Sessions

    @property
    def settings(self) -> Settings:
        return self.source.current

    def admit(self, page: Page) -> Callable[[Request], Awaitable[Response]]:
        """Return the handler of a page, which checks access first."""

        async def answer(request: Request) -> Response:
            visitor = self._identify(request)
            if visitor is None:
                return self._turn_away(request)
            if not visitor.may(page.role):
                raise HTTPException(403, f"This needs the role {page.role}, and yours is {visitor.role}.")
            form = {} if page.method == "GET" else await self._read_form(request, visitor)
            visit = Visit(request, visitor, self.settings, self.sessions.form_token(visitor), form)
            try:
                response = await page.make(visit)
            except Exception as error:
                if isinstance(error, HTTPException) or not isinstance(error, ReportableError):
                    raise
                fault = explain_error(error)
                log.warning("page failed", extra={"cause": fault.line()})
                return visit.page("error.html", status=503, message=fault.message, hint=fault.hint)
            if request.cookies.get(COOKIE) != visitor.cookie and "set-cookie" not in response.headers:
                self._set_cookie(request, response, visitor.cookie)
            return response

        return answer

    def _identify(self, request: Request) -> Visitor | None:
        peer = request.client.host if request.client else ""
        cookie = request.cookies.get(COOKIE, "")
        return identify(self.settings.pages, self.sessions, request.headers, peer, cookie)

    def _turn_away(self, request: Request) -> Response:
        if self.settings.pages.is_open or not self.settings.pages.tokens:
            raise HTTPException(403, "Access is not allowed this way.")
        if request.method != "GET":
            raise HTTPException(403, "Sign in first.")
        path, query = request.url.path, request.url.query
        target = f"{path}?{query}" if query else path
        return RedirectResponse(f"{SIGN_IN}?next={quote(target, safe='')}", 303)

    async def _read_form(self, request: Request, visitor: Visitor) -> Mapping[str, str]:
        """Return a form's fields. Raises `HTTPException` if it cannot come from one of our pages."""
        form = await _parse_form(request)
        if not _is_same_site(request) or not self.sessions.is_form_token(visitor, form.get("form_token", "")):
            raise HTTPException(
                403, "This form was not sent from Footnote's own pages. Load the page again, and send the form again."
            )
        return form

    def _set_cookie(self, request: Request, response: Response, value: str) -> None:
        peer = request.client.host if request.client else ""
        scheme = request.headers.get("x-forwarded-proto", "") if is_proxy(self.settings.pages, peer) else ""
        secure = (scheme or request.url.scheme) == "https"
        response.set_cookie(
            COOKIE, value, max_age=SESSION_SECONDS, httponly=True, samesite="lax", secure=secure, path="/"
        )

    async def show_sign_in(self, request: Request) -> Response:
        return self._sign_in_page(request.query_params.get("next", "/"))

    async def sign_in(self, request: Request) -> Response:
        form = await _parse_form(request)
        token = self.settings.pages.match_token(form.get("token", ""))
        if not _is_same_site(request):
            raise HTTPException(403, "This form was not sent from Footnote's own pages.")
        if token is None:
            log.warning("sign-in with unknown token")
            return self._sign_in_page(form.get("next", "/"), wrong=True)
        response = RedirectResponse(_stay_here(form.get("next", "")), 303)
        self._set_cookie(request, response, self.sessions.open(token))
        return response

    async def sign_out(self, visit: Visit) -> Response:
        self.sessions.close(visit.visitor.cookie)
        response = RedirectResponse(SIGN_IN, 303)
        response.delete_cookie(COOKIE, path="/")
        return response

    def _sign_in_page(self, wanted: str, *, wrong: bool = False) -> Response:
        facts = {"wanted": _stay_here(wanted), "wrong": wrong, "visitor": None}
        return HTMLResponse(render_page("sign_in.html", self.settings.zone, facts), 403 if wrong else 200)

    async def show_error(self, request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        detail = error.detail if isinstance(error, HTTPException) else ""
        visitor = self._identify(request)
        if visitor is None:
            return PlainTextResponse(detail, status)
        visit = Visit(request, visitor, self.settings, self.sessions.form_token(visitor))
        return visit.page("error.html", status=status, message=detail, hint="")


async def _parse_form(request: Request) -> Mapping[str, str]:
    if request.headers.get("content-type", "").partition(";")[0].strip() != _FORM:
        raise HTTPException(415, "A form was expected.")
    body = (await request.body()).decode("utf-8", "replace")
    try:
        return dict(parse_qsl(body, keep_blank_values=True, max_num_fields=_MAX_FIELDS, errors="replace"))
    except ValueError as error:
        raise HTTPException(400, "The form has too many fields.") from error


def _is_same_site(request: Request) -> bool:
    """Return whether the browser's headers show that one of our pages sent a request; true without such headers."""
    if request.headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
        return False
    origin = request.headers.get("origin")
    return origin is None or urlsplit(origin).netloc.lower() == request.headers.get("host", "").lower()


def _stay_here(wanted: str) -> str:
    """Return `wanted` if it is a path of our own pages, otherwise `/`."""
    parts = urlsplit(wanted)
    safe = wanted.startswith("/") and not wanted.startswith(("//", "/\\")) and not parts.netloc and wanted.isprintable()
    return wanted if safe else "/"


async def _style(_: Request) -> Response:
    return FileResponse(STYLE, media_type="text/css", headers={"cache-control": "public, max-age=86400"})


@dataclass(frozen=True, slots=True)
class _Headers:
    """Refuses requests for other host names, and adds security headers to each response."""

    app: ASGIApp
    settings: PagesSettings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers.setdefault("cache-control", "no-store")
            await send(message)

        host = Request(scope).headers.get("host", "") if scope["type"] == "http" else ""
        if scope["type"] == "http" and not is_host_known(self.settings, host):
            refused = PlainTextResponse("These pages are not served under this name.", 421)
            await refused(scope, receive, send_with_headers)
            return
        await self.app(scope, receive, send_with_headers)
