"""Query a wiki's api.php: continued queries, errors of the API, and login.

https://www.mediawiki.org/wiki/API:Query, API:Etiquette (maxlag), API:Login and API:Assert describe it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from ingest.types import SourceUnavailable
from ingest.web.http_reply import RETRY_HINT, format_url, parse_json_object, parse_retry_after, refuse_repeated_query
from ingest.web.web_client import WebClient, WebResponse

ApiQuery = Mapping[str, str]
ApiAnswer = dict[str, Any]

BATCH_SIZE = 50  # titles, page ids or contents per request for normal users; the higher limit of bots gains little
_LONGEST = 4000  # characters of titles in one address
_BUSY_CODES = frozenset({"maxlag", "ratelimited", "readonly"})
_DENIED_CODES = frozenset({"readapidenied", "permissiondenied", "mwoauth-invalid-authorization", "blocked"})
_LAPSED_CODE = "assertuserfailed"
_TRIES = 8
_REST = 5.0
_LONGEST_REST = 120.0


@dataclass(frozen=True, slots=True)
class WikiLogin:
    user: str = ""  # as in Special:BotPasswords: `Name@robot`
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    credential: str = ""  # the secret's variable, such as `WIKI_PASSWORD`, for messages

    @property
    def known(self) -> bool:
        """Return whether there is a credential. If so, every request asserts that it is logged in."""
        return bool(self.user or self.token)


class MediaWikiApi:
    def __init__(self, web: WebClient, address: str, login: WikiLogin) -> None:
        self._web = web
        self._address = address
        self._login = login
        self._logged_in = not login.user

    def batches(self, query: ApiQuery) -> Iterator[ApiAnswer]:
        """Send a query and its continuations. Yield an answer once it has all requested properties of its pages."""
        continuation: Mapping[str, str] = {}
        whole: ApiAnswer = {}
        while True:
            answer = self.ask({"action": "query", **query, **continuation})
            _merge(whole, answer.get("query") or {})
            following = answer.get("continue")
            if answer.get("batchcomplete") or not following:
                yield whole
                whole = {}
            if not following:
                return
            refuse_repeated_query(self._address, continuation, following)
            continuation = {name: str(value) for name, value in following.items()}

    def ask(self, query: ApiQuery) -> ApiAnswer:
        tried, logged_in_again = 0, False
        while True:
            self._log_in()
            reply = self._web.get(self._address, self._add_parameters(query), "application/json")
            answer = self._parse(reply)
            error = answer.get("error")
            code = str(error.get("code", "error"))[:60] if isinstance(error, dict) else ""
            if not code:
                return answer
            if code in _BUSY_CODES:
                tried += 1
                self._back_off(code, tried, parse_retry_after(reply.headers))
            elif code == _LAPSED_CODE and self._login.user and not logged_in_again:
                # The session expired; without a login fewer pages are visible.
                self._logged_in, logged_in_again = False, True
            else:
                raise self._make_refusal(code)

    def _add_parameters(self, query: ApiQuery) -> dict[str, str]:
        parameters = {**query, "format": "json", "formatversion": "2", "maxlag": "5"}
        return {**parameters, "assert": "user"} if self._login.known else parameters

    def _log_in(self) -> None:
        if self._logged_in:
            return
        query = {"action": "query", "meta": "tokens", "type": "login", "format": "json", "formatversion": "2"}
        answer = self._parse(self._web.get(self._address, query, "application/json"))
        token = answer.get("query", {}).get("tokens", {}).get("logintoken", "")
        form = {"action": "login", "format": "json", "formatversion": "2"}
        form |= {"lgname": self._login.user, "lgpassword": self._login.password, "lgtoken": token}
        result = self._parse(self._web.post(self._address, form)).get("login", {}).get("result")
        if result != "Success":
            raise SourceUnavailable(
                f"{format_url(self._address)} denies access to {self._login.user} ({result or 'no result'}).",
                hint=f"Check {self._login.credential or 'the password'}: the wiki's Special:BotPasswords creates it.",
            )
        self._logged_in = True

    def _parse(self, reply: WebResponse) -> ApiAnswer:
        hint = "Give the address of the wiki's api.php, shown on its Special:Version."
        if reply.status != 200:  # noqa: PLR2004 - HTTP's own
            raise SourceUnavailable(f"{format_url(self._address)} answers HTTP {reply.status}.", hint=hint)
        answer = parse_json_object(reply.content)
        if answer is None:
            raise SourceUnavailable(f"{format_url(self._address)} is not a wiki's API.", hint=hint)
        return answer

    def _back_off(self, code: str, tried: int, requested: float | None) -> None:
        seconds = _REST * tried if requested is None else requested
        if tried >= _TRIES or seconds > _LONGEST_REST:
            raise SourceUnavailable(f"{format_url(self._address)} is too busy ({code}).", hint=RETRY_HINT)
        self._web.pause(seconds)

    def _make_refusal(self, code: str) -> SourceUnavailable:
        where = format_url(self._address)
        name = self._login.credential or "the credential"
        if code in _DENIED_CODES or code == _LAPSED_CODE:
            if self._login.known:
                hint = f"Check {name}: it may have expired, or lack the right to read."
            else:
                hint = "The wiki is private: configure a user and a password, or a token."
            return SourceUnavailable(f"{where} denies access ({code}).", hint=hint)
        return SourceUnavailable(f"{where} failed to answer a query ({code}).", hint=RETRY_HINT)


def _merge(whole: ApiAnswer, part: ApiAnswer) -> None:
    """Merge an answer into earlier answers about the same pages."""
    for name, value in part.items():
        if name != "pages":
            whole[name] = [*whole.get(name, []), *value] if isinstance(value, list) else value
            continue
        pages = whole.setdefault("pages", {})
        for page in value:
            known = pages.setdefault((page.get("pageid"), page.get("title")), {})
            known |= {
                key: [*known.get(key, []), *values] if isinstance(values, list) else values
                for key, values in page.items()
            }


def get_pages(answer: ApiAnswer) -> list[ApiAnswer]:
    return list(answer.get("pages", {}).values())


def join_batches(values: Iterable[str]) -> Iterator[str]:
    """Join titles or ids with bars. Yield strings, each with as many as one request may contain."""
    batch: list[str] = []
    length = 0
    for value in values:
        size = len(quote(value)) + 3
        if batch and (len(batch) == BATCH_SIZE or length + size > _LONGEST):
            yield "|".join(batch)
            batch, length = [], 0
        batch.append(value)
        length += size
    if batch:
        yield "|".join(batch)
