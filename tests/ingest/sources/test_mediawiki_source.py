"""A wiki by its API: all pages once, then changes. After any events, the index equals the wiki."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.sources.filters import SelectionRules
from ingest.sources.mediawiki.mediawiki_api import WikiLogin
from ingest.sources.mediawiki.mediawiki_source import MediaWikiSource, WikiScope
from ingest.types import ChangedDocument, DeletedDocument, SourceUnavailable
from ingest.web.web_client import RequestPolicy, WebClient
from tests.ingest.servers import mediawiki, web
from tests.ingest.servers.web import Answer
from tests.ingest.sources.mirrors import Mirror
from tests.thorough import sample

API = "http://wiki.test/w/api.php"
MANNERS = RequestPolicy("Footnote's tests", gap=0)


class Rests:
    """Records waits without waiting."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def __call__(self, seconds: float) -> bool:
        self.seconds.append(seconds)
        return False


def source(wiki, *, rests=None, web_headers=None, **options):
    web_client = WebClient(
        MANNERS, transport=web.transport(wiki.answer), wait=rests or Rests(),
        headers=web_headers or {}, clock=lambda: 0.0,
    )  # fmt: skip
    return MediaWikiSource(replace(WikiScope(API), **options), web_client, now=lambda: wiki.now)


def make_handbook(**options):
    wiki = mediawiki.Wiki(**options)
    for title, text in (
        ("Holidays", "Everyone has '''thirty''' days of leave."),
        ("Illness", "Call before nine.\n\n== Doctors ==\nA note is due on day three."),
        ("Lunch", "Lunch is served at noon."),
        ("Vault", "The vault opens at ten."),
        ("Travel/Trains", "First class from four hours on."),
    ):
        wiki.edit(title, text)
    wiki.edit("Vacation", "#REDIRECT [[Holidays]]")
    wiki.edit("Leave", "#REDIRECT [[Holidays]]")
    wiki.edit("Help:Editing", "How to edit.")
    wiki.tick()
    return wiki


def test_pages_are_listed_once_with_aliases():
    wiki = make_handbook()

    mirror = Mirror().sync(source(wiki))

    assert mirror.titles() == ["Holidays", "Illness", "Lunch", "Travel/Trains", "Vault"]
    page = mirror.pages[str(wiki.titled("Holidays").id)]
    assert page.aliases == ("Leave", "Vacation")
    assert page.url == "http://wiki.test/wiki/Holidays"
    assert (page.language, page.date, page.revision) == (
        "en", wiki.titled("Holidays").changed, str(wiki.titled("Holidays").revision),
    )  # fmt: skip
    assert mirror.says("Holidays") == "Everyone has thirty days of leave."
    assert [section.path for section in mirror.pages[str(wiki.titled("Illness").id)].sections] == [(), ("Doctors",)]
    assert wiki.rejected == []
    assert sorted(wiki.fetched) == sorted(int(key) for key in mirror.pages)


def test_unchanged_wiki_is_not_fetched_again():
    wiki = make_handbook()
    mirror = Mirror().sync(source(wiki))
    before = list(wiki.fetched)

    wiki.tick(hours=5)
    mirror.sync(source(wiki))
    assert (mirror.whole, mirror.loaded) == (False, [])
    mirror.mark = ""
    mirror.sync(source(wiki))
    assert (mirror.whole, mirror.loaded) == (True, [])
    assert wiki.fetched == before


def test_texts_are_fetched_in_batches():
    wiki = mediawiki.Wiki(most=500, contents=50)
    for number in range(120):
        wiki.edit(f"Page {number:03}", f"Text number {number}.")

    mirror = Mirror().sync(source(wiki))

    assert len(mirror.pages) == 120
    assert sum("content" in query.get("rvprop", "") for query in wiki.requests) == 3


def test_refresh_lists_only_changes_since_the_stored_mark():
    wiki = make_handbook()
    wiki.edit("Attic", "Old things.")
    wiki.delete("Attic")
    mirror = Mirror().sync(source(wiki))
    moved = str(wiki.titled("Lunch").id)
    wiki.tick(hours=3)
    wiki.edit("Illness", "Call before eight.")
    wiki.edit("Parking", "Park behind the office.")
    wiki.move("Lunch", "Meals")
    wiki.delete("Vault")
    wiki.restore("Attic")
    wiki.tick(hours=3)

    mirror.sync(source(wiki))

    assert not mirror.whole
    assert sorted(mirror.loaded) == ["Attic", "Illness", "Meals", "Parking"]
    assert mirror.titles() == ["Attic", "Holidays", "Illness", "Meals", "Parking", "Travel/Trains"]
    assert (mirror.pages[moved].title, mirror.pages[moved].aliases) == ("Meals", ("Lunch",))
    assert wiki.rejected == []


@pytest.mark.parametrize("days", [4, 8])
def test_listing_mark_older_than_a_week_or_the_wikis_history_lists_all_pages(days):
    wiki = make_handbook()
    mirror = Mirror().sync(source(wiki))
    wiki.tick(hours=24 * days)
    wiki.edit("Lunch", "Lunch is served at one.")
    if days < 7:
        wiki.expire(days=3)

    mirror.sync(source(wiki))

    assert (mirror.whole, mirror.loaded) == (True, ["Lunch"])


@pytest.mark.parametrize(
    "mark", ["", "{}", "nonsense", '{"until": 3}', '{"until": "2031-01-01", "whole": "2031-01-01"}', "other version"]
)
def test_invalid_listing_mark_lists_all_pages(mark):
    wiki = make_handbook()
    mirror = Mirror().sync(source(wiki))
    mirror.mark = mirror.mark.replace('"reader": "', '"reader": "0.') if mark == "other version" else mark

    assert mirror.sync(source(wiki)).whole


def test_rules_select_by_title_category_and_age():
    wiki = make_handbook()
    wiki.edit("Minutes/May", "We met.", "Public")
    wiki.edit("Minutes/June", "We met again.", "Public", "Draft")
    rules = SelectionRules(include=("Minutes/**",), labels=("public",), without_labels=("draft",), newest_days=30)
    mirror = Mirror().sync(source(wiki, rules=rules))
    assert mirror.titles() == ["Minutes/May"]

    wiki.tick()
    wiki.edit("Minutes/May", "We met.", "Public", "Draft")
    wiki.edit("Minutes/June", "We met again.", "Public")
    wiki.tick()

    assert mirror.sync(source(wiki, rules=rules)).titles() == ["Minutes/June"]
    assert not mirror.whole


def test_page_moved_out_of_the_namespaces_is_deleted():
    wiki = make_handbook()
    mirror = Mirror().sync(source(wiki, namespaces=(0, 12)))
    assert "Help:Editing" in mirror.titles()

    wiki.tick(hours=2)
    wiki.move("Help:Editing", "Project:Editing", redirect=False)

    assert "Help:Editing" not in mirror.sync(source(wiki, namespaces=(0, 12))).titles()
    assert not mirror.whole


def test_pages_of_other_content_models_are_unreadable():
    wiki = make_handbook(model="javascript")
    mirror = Mirror().sync(source(wiki))

    assert set(mirror.failures.values()) == {"it is not wikitext but javascript"}
    assert mirror.pages == {}


def test_page_deleted_meanwhile_is_unreadable():
    wiki = make_handbook()

    def before(query):
        if "content" in query.get("rvprop", ""):
            wiki.delete("Lunch")

    wiki.before = before
    mirror = Mirror().sync(source(wiki))

    assert set(mirror.failures.values()) == {"was deleted while the wiki was read"}
    wiki.tick()
    assert "Lunch" not in mirror.sync(source(wiki)).titles()


class TestLogin:
    def test_private_wiki_is_reported_with_a_hint(self):
        with pytest.raises(SourceUnavailable, match=r"denies access \(readapidenied\)") as caught:
            source(make_handbook(user="Ann@bot", password="s3")).documents({})
        assert "configure a user and a password" in caught.value.hint

    @pytest.mark.parametrize(
        ("access", "login", "headers"),
        [
            ({"user": "Ann@bot", "password": "s3"}, WikiLogin("Ann@bot", "s3"), {}),
            ({"bearer": "t0k3n"}, WikiLogin(token="t0k3n"), {"Authorization": "Bearer t0k3n"}),
        ],
        ids=["bot password", "token"],
    )
    def test_login_is_asserted_in_every_request(self, access, login, headers):
        wiki = make_handbook(**access)

        mirror = Mirror().sync(source(wiki, login=login, web_headers=headers))

        assert (len(mirror.pages), wiki.rejected) == (5, [])

    def test_wrong_password_is_reported_without_it(self):
        wiki = make_handbook(user="Ann@bot", password="s3")
        login = WikiLogin("Ann@bot", "wrong-one", credential="WIKI_PASSWORD")

        with pytest.raises(SourceUnavailable, match=r"denies access to Ann@bot \(Failed\)") as caught:
            source(wiki, login=login).documents({})
        assert "WIKI_PASSWORD" in caught.value.hint
        assert "wrong-one" not in f"{caught.value}{caught.value.hint}{login}"

    def test_expired_session_deletes_no_pages(self):
        wiki = make_handbook(user="Ann@bot", password="s3")
        login = WikiLogin("Ann@bot", "s3")
        mirror = Mirror().sync(source(wiki, login=login))
        lapsing = iter(range(100))

        def before(query):
            if query.get("list") == "logevents" and next(lapsing) in {1, 3}:
                wiki.sessions.clear()

        wiki.before = before
        wiki.tick()
        mirror.sync(source(wiki, login=login))
        assert (len(mirror.pages), mirror.gone) == (5, [])

        wiki.before = lambda query: wiki.sessions.clear() if query.get("generator") else None
        mirror.mark = ""
        with pytest.raises(SourceUnavailable, match="assertuserfailed"):
            mirror.sync(source(wiki, login=login))
        assert (len(mirror.pages), mirror.gone) == (5, [])


class TestFaults:
    def test_busy_wiki_is_retried_after_the_requested_time(self):
        wiki, rests = make_handbook(), Rests()
        wiki.faults = [
            mediawiki.busy("maxlag", "7"), mediawiki.busy("ratelimited"), Answer(503, b"", {"Retry-After": "9"}),
            Answer(429, b"", {"Retry-After": "11"}), mediawiki.busy("readonly", "3"),
        ]  # fmt: skip

        mirror = Mirror().sync(source(wiki, rests=rests))

        assert len(mirror.pages) == 5
        assert rests.seconds == [7, 10, 9, 11, 3]

    @pytest.mark.parametrize(
        ("fault", "message"),
        [
            (mediawiki.busy("maxlag", "5"), r"is too busy \(maxlag\)"),
            (mediawiki.busy("maxlag", "4000"), r"is too busy \(maxlag\)"),
            (mediawiki.busy("internal_api_error_DBQueryError"), "failed to answer a query"),
            (Answer(404, b"gone"), "answers HTTP 404"),
            (Answer(200, b"<!doctype html>"), "is not a wiki's API"),
            (Answer(200, b"[1]"), "is not a wiki's API"),
            (Answer(500, b""), "answers HTTP 500"),
        ],
    )
    def test_failing_wiki_is_reported_in_one_line(self, fault, message):
        wiki = make_handbook()
        wiki.faults = [fault] * 30

        with pytest.raises(SourceUnavailable, match=message) as caught:
            source(wiki).documents({})
        assert "?" not in str(caught.value)
        assert caught.value.hint

    def test_stop_ends_waiting(self):
        wiki = make_handbook()
        wiki.faults = [mediawiki.busy("maxlag", "5")]
        stopped = source(wiki)
        stopped.stop()

        with pytest.raises(SourceUnavailable, match="stopped"):
            stopped.documents({})


class TestSinglePage:
    @pytest.mark.parametrize(
        "address",
        [
            "Holidays", "holidays", "Vacation", "http://wiki.test/wiki/Holidays", "http://wiki.test/wiki/Vacation#Rest",
            "http://wiki.test/w/index.php?title=Holidays&oldid=3", "http://wiki.test/w/index.php?curid=1", "1",
        ],
    )  # fmt: skip
    def test_page_is_read_by_address_title_alias_or_id(self, address):
        wiki = make_handbook()
        address = "Holidays" if address == "holidays" else address

        item = source(wiki).one(address, {"1": "old"})

        assert isinstance(item, ChangedDocument)
        assert (item.key, item.load().title) == ("1", "Holidays")
        assert wiki.rejected == []

    def test_single_page_has_the_listed_fingerprint(self):
        wiki = make_handbook()
        mirror = Mirror().sync(source(wiki))

        assert source(wiki).one("Holidays", mirror.known).fingerprint == mirror.known["1"]

    def test_deleted_page_is_reported_and_foreign_address_is_not(self):
        wiki = make_handbook()
        wiki.delete("Holidays")

        assert source(wiki).one("1", {"1": "old"}) == DeletedDocument("1")
        assert source(wiki).one("http://other.test/wiki/Holidays", {"1": "old"}) is None
        assert source(wiki).one("Nowhere", {"1": "old"}) is None


TITLES = st.sampled_from(["A", "B", "C", "D", "E", "Help:A"])
EVENTS = st.one_of(
    st.tuples(st.just("edit"), TITLES, st.sampled_from(["One.", "Two.", "#REDIRECT [[A]]", "#REDIRECT [[B]]"])),
    st.tuples(st.just("move"), TITLES, TITLES, st.booleans()),
    st.tuples(st.just("delete"), TITLES),
    st.tuples(st.just("restore"), TITLES, st.booleans()),
    st.tuples(st.just("protect"), TITLES),
    st.tuples(st.just("sync")),
)


def apply_event(wiki, event):
    match event:
        case ("edit", title, text):
            wiki.edit(title, text)
        case ("move", title, new, redirect):
            wiki.move(title, new, redirect=redirect)
        case ("delete", title):
            wiki.delete(title)
        case ("restore", title, same):
            wiki.restore(title, same_id=same)
        case ("protect", title):
            wiki.protect(title)


@settings(max_examples=sample(40), deadline=None)
@given(st.lists(EVENTS, max_size=25))
def test_refreshes_equal_a_new_listing(events):
    wiki = mediawiki.Wiki()
    for title, text in (("A", "One."), ("B", "#REDIRECT [[A]]"), ("C", "#REDIRECT [[B]]"), ("D", "Two.")):
        wiki.edit(title, text)
    wiki.tick(hours=2)
    mirror = Mirror().sync(source(wiki))
    for event in [*events, ("sync",)]:
        wiki.tick(hours=0.4)
        if event == ("sync",):
            wiki.tick(hours=1.5)
            mirror.sync(source(wiki))
            fresh = Mirror().sync(source(wiki))
            assert (mirror.known, mirror.pages) == (fresh.known, fresh.pages)
        else:
            apply_event(wiki, event)
    assert wiki.rejected == []
