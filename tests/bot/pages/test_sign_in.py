"""Who may read the pages, by settings alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from bot.pages.page_rendering import mark_quote
from bot.pages.page_router import _stay_here
from bot.pages.sign_in import SESSION_SECONDS, Sessions, Visitor, identify, is_host_known
from bot.settings.tables.network_settings import PagesSettings

SECRET = "s" * 20
TOKENED = PagesSettings(tokens=f"anna reader {SECRET}\n\nbob admin {SECRET}2")


@pytest.mark.parametrize("lines", [
    "anna reader short", f"anna king {SECRET}", f"anna {SECRET}", f"a reader {SECRET}\na reader {SECRET}2",
    f"a reader {SECRET}\nb reader {SECRET}", f"a reader {SECRET} more",
])  # fmt: skip
def test_invalid_tokens_are_refused_without_showing_them(lines: str) -> None:
    with pytest.raises(ValidationError) as caught:
        PagesSettings(tokens=lines)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(("given", "open_"), [
    ({}, True), ({"host": "localhost"}, True), ({"host": "::1"}, True),
    ({"host": "0.0.0.0"}, False), ({"host": "192.168.1.7"}, False), ({"hosts": ["pages.example"]}, False),
    ({"host": "0.0.0.0", "tokens": f"a reader {SECRET}"}, True), ({"proxy_header": "X-Email"}, False),
    ({"host": "0.0.0.0", "proxy_header": "X-Email", "proxies": ["10.0.0.7"]}, True),
])  # fmt: skip
def test_pages_beyond_this_machine_require_tokens_or_a_proxy(given: dict[str, object], open_: bool) -> None:  # noqa: FBT001
    assert (not PagesSettings.model_validate(given).fault) is open_


def test_session_identifies_its_visitor_until_it_expires() -> None:
    now = [0.0]
    sessions = Sessions(clock=lambda: now[0])
    token = TOKENED.match_token(f" {SECRET}2 ")
    assert token is not None
    cookie = sessions.open(token)
    assert identify(TOKENED, sessions, {}, "10.0.0.9", cookie) == Visitor("bob", "admin", cookie)
    assert identify(TOKENED, sessions, {}, "10.0.0.9", cookie + "x") is None
    now[0] = SESSION_SECONDS + 1.0
    assert identify(TOKENED, sessions, {}, "10.0.0.9", cookie) is None


@given(st.text())
def test_arbitrary_text_is_no_token_form_token_or_host(text: str) -> None:
    assert TOKENED.match_token(text) is None
    assert not Sessions().is_form_token(Visitor("anna", "reader", "cookie"), text)
    is_host_known(PagesSettings(), text)


@given(st.one_of(st.text(), st.text(alphabet="/\\@:.%?#a ")))
def test_sign_in_redirects_only_to_own_pages(wanted: str) -> None:
    assert _stay_here(wanted).startswith("/")
    assert not _stay_here(wanted).startswith(("//", "/\\"))


@given(st.text(), st.text(alphabet="ab …"))
def test_marking_a_quotation_changes_no_character_of_the_passage(text: str, quotation: str) -> None:
    assert "".join(piece for piece, _ in mark_quote(text, quotation)) == text
