"""A wiki by its API: all pages once, then what changed; whatever happens there, the index becomes what the wiki is."""

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
    """Notes how long was to be waited, and does not."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def __call__(self, seconds: float) -> bool:
        self.seconds.append(seconds)
        return False


def source(wiki, *, rests=None, web_headers=None, **said):
    line = WebClient(
        MANNERS, transport=web.transport(wiki.answer), wait=rests or Rests(),
        headers=web_headers or {}, clock=lambda: 0.0,
    )  # fmt: skip
    return MediaWikiSource(replace(WikiScope(API), **said), line, now=lambda: wiki.now)


def handbook(**said):
    wiki = mediawiki.Wiki(**said)
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


def test_all_pages_come_once_with_their_aliases_and_nothing_is_refused():
    """Three entries an answer: listings, aliases and texts all come in several."""
    wiki = handbook()

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


def test_an_unchanged_wiki_is_not_fetched_again_neither_by_changes_nor_by_a_whole_listing():
    wiki = handbook()
    mirror = Mirror().sync(source(wiki))
    before = list(wiki.fetched)

    wiki.tick(hours=5)
    mirror.sync(source(wiki))
    assert (mirror.whole, mirror.loaded) == (False, [])
    mirror.mark = ""
    mirror.sync(source(wiki))
    assert (mirror.whole, mirror.loaded) == (True, [])
    assert wiki.fetched == before


def test_texts_are_fetched_fifty_together():
    wiki = mediawiki.Wiki(most=500, contents=50)
    for number in range(120):
        wiki.edit(f"Page {number:03}", f"Text number {number}.")

    mirror = Mirror().sync(source(wiki))

    assert len(mirror.pages) == 120
    assert sum("content" in said.get("rvprop", "") for said in wiki.requests) == 3


def test_what_was_edited_made_moved_deleted_and_restored_is_all_that_is_told():
    wiki = handbook()
    wiki.edit("Attic", "Old things.")
    wiki.delete("Attic")
    mirror = Mirror().sync(source(wiki))
    moved = str(wiki.titled("Lunch").id)
    wiki.tick(hours=3)
    wiki.edit("Illness", "Call before eight.")
    wiki.edit("Parking", "Park behind the house.")
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
def test_a_mark_older_than_the_wikis_memory_or_than_a_week_lists_all(days):
    """Recent changes were dropped, or logs may have kept something to themselves."""
    wiki = handbook()
    mirror = Mirror().sync(source(wiki))
    wiki.tick(hours=24 * days)
    wiki.edit("Lunch", "Lunch is served at one.")
    if days < 7:
        wiki.expire(days=3)

    mirror.sync(source(wiki))

    assert (mirror.whole, mirror.loaded) == (True, ["Lunch"])


@pytest.mark.parametrize(
    "mark", ["", "{}", "nonsense", '{"until": 3}', '{"until": "2031-01-01", "whole": "2031-01-01"}']
)
def test_a_mark_that_makes_no_sense_lists_all(mark):
    wiki = handbook()
    mirror = Mirror().sync(source(wiki))
    mirror.mark = mark

    assert mirror.sync(source(wiki)).whole


def test_a_mark_of_another_way_of_reading_lists_all():
    wiki = handbook()
    mirror = Mirror().sync(source(wiki))
    mirror.mark = mirror.mark.replace('"reader": "', '"reader": "0.')

    assert mirror.sync(source(wiki)).whole


def test_rules_choose_by_title_category_and_age_and_what_no_longer_fits_is_gone():
    wiki = handbook()
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


def test_namespaces_are_chosen_and_moving_out_of_them_is_leaving():
    wiki = handbook()
    mirror = Mirror().sync(source(wiki, namespaces=(0, 12)))
    assert "Help:Editing" in mirror.titles()

    wiki.tick(hours=2)
    wiki.move("Help:Editing", "Project:Editing", redirect=False)

    assert "Help:Editing" not in mirror.sync(source(wiki, namespaces=(0, 12))).titles()
    assert not mirror.whole


def test_what_is_no_wikitext_hidden_or_empty_has_its_reason():
    wiki = handbook(model="javascript")
    mirror = Mirror().sync(source(wiki))

    assert set(mirror.failures.values()) == {"it is not wikitext but javascript"}
    assert mirror.pages == {}


def test_a_page_deleted_while_the_wiki_is_read_is_said_to_be():
    wiki = handbook()

    def before(said):
        if "content" in said.get("rvprop", ""):
            wiki.delete("Lunch")

    wiki.before = before
    mirror = Mirror().sync(source(wiki))

    assert set(mirror.failures.values()) == {"was deleted while the wiki was read"}
    wiki.tick()
    assert "Lunch" not in mirror.sync(source(wiki)).titles()


class TestLettingIn:
    def test_a_private_wiki_says_what_to_do(self):
        with pytest.raises(SourceUnavailable, match=r"denies access \(readapidenied\)") as caught:
            source(handbook(user="Ann@bot", password="s3")).documents({})
        assert "give the source a user and a password" in caught.value.hint

    def test_a_bot_password_lets_in_and_every_request_is_made_as_somebody(self):
        wiki = handbook(user="Ann@bot", password="s3")

        mirror = Mirror().sync(source(wiki, login=WikiLogin("Ann@bot", "s3", credential="WIKI_PASSWORD")))

        assert len(mirror.pages) == 5
        assert wiki.rejected == []

    def test_a_wrong_password_is_one_line_that_does_not_tell_it(self):
        wiki = handbook(user="Ann@bot", password="s3")
        login = WikiLogin("Ann@bot", "wrong-one", credential="WIKI_PASSWORD")

        with pytest.raises(SourceUnavailable, match=r"denies access to Ann@bot \(Failed\)") as caught:
            source(wiki, login=login).documents({})
        assert "WIKI_PASSWORD" in caught.value.hint
        assert "wrong-one" not in f"{caught.value}{caught.value.hint}{login}"

    def test_a_token_is_sent_and_asserted(self):
        wiki = handbook(bearer="t0k3n")
        login = WikiLogin(token="t0k3n", credential="WIKI_TOKEN")

        mirror = Mirror().sync(source(wiki, login=login, web_headers={"Authorization": "Bearer t0k3n"}))

        assert len(mirror.pages) == 5

    def test_a_session_that_lapses_never_looks_like_deleted_pages(self):
        """It logs in again; where that is refused, nothing is gone."""
        wiki = handbook(user="Ann@bot", password="s3")
        login = WikiLogin("Ann@bot", "s3")
        mirror = Mirror().sync(source(wiki, login=login))
        lapsing = iter(range(100))

        def before(said):
            if said.get("list") == "logevents" and next(lapsing) in {1, 3}:
                wiki.sessions.clear()

        wiki.before = before
        wiki.tick()
        mirror.sync(source(wiki, login=login))
        assert (len(mirror.pages), mirror.gone) == (5, [])

        wiki.before = lambda said: wiki.sessions.clear() if said.get("generator") else None
        mirror.mark = ""
        with pytest.raises(SourceUnavailable, match="assertuserfailed"):
            mirror.sync(source(wiki, login=login))
        assert (len(mirror.pages), mirror.gone) == (5, [])


class TestPatience:
    def test_a_wiki_that_lags_or_throttles_is_waited_for_as_it_asks(self):
        wiki, rests = handbook(), Rests()
        wiki.faults = [
            mediawiki.busy("maxlag", "7"), mediawiki.busy("ratelimited"), Answer(503, b"", {"Retry-After": "9"}),
            Answer(429, b"", {"Retry-After": "11"}), mediawiki.busy("readonly", "3"),
        ]  # fmt: skip

        mirror = Mirror().sync(source(wiki, rests=rests))

        assert len(mirror.pages) == 5
        assert rests.seconds == [7, 10, 9, 11, 3]

    @pytest.mark.parametrize(
        ("fault", "said"),
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
    def test_a_wiki_that_fails_is_one_line(self, fault, said):
        wiki = handbook()
        wiki.faults = [fault] * 30

        with pytest.raises(SourceUnavailable, match=said) as caught:
            source(wiki).documents({})
        assert "?" not in str(caught.value)
        assert caught.value.hint

    def test_it_can_be_stopped_while_it_waits(self):
        wiki = handbook()
        wiki.faults = [mediawiki.busy("maxlag", "5")]
        stopped = source(wiki)
        stopped.stop()

        with pytest.raises(SourceUnavailable, match="stopped"):
            stopped.documents({})


class TestOne:
    @pytest.mark.parametrize(
        "address",
        [
            "Holidays", "holidays", "Vacation", "http://wiki.test/wiki/Holidays", "http://wiki.test/wiki/Vacation#Rest",
            "http://wiki.test/w/index.php?title=Holidays&oldid=3", "http://wiki.test/w/index.php?curid=1", "1",
        ],
    )  # fmt: skip
    def test_a_page_is_had_by_address_title_alias_or_id(self, address):
        wiki = handbook()
        address = "Holidays" if address == "holidays" else address

        found = source(wiki).one(address, {"1": "old"})

        assert isinstance(found, ChangedDocument)
        assert (found.key, found.load().title) == ("1", "Holidays")
        assert wiki.rejected == []

    def test_its_fingerprint_is_that_of_a_listing(self):
        wiki = handbook()
        mirror = Mirror().sync(source(wiki))

        assert source(wiki).one("Holidays", mirror.known).fingerprint == mirror.known["1"]

    def test_what_was_deleted_is_gone_and_what_is_elsewhere_is_nothing_of_ours(self):
        wiki = handbook()
        wiki.delete("Holidays")

        assert source(wiki).one("1", {"1": "old"}) == DeletedDocument("1")
        assert source(wiki).one("http://other.test/wiki/Holidays", {"1": "old"}) is None
        assert source(wiki).one("Nowhere", {"1": "old"}) is None


TITLES = st.sampled_from(["A", "B", "C", "D", "E", "Help:A"])
DEEDS = st.one_of(
    st.tuples(st.just("edit"), TITLES, st.sampled_from(["One.", "Two.", "#REDIRECT [[A]]", "#REDIRECT [[B]]"])),
    st.tuples(st.just("move"), TITLES, TITLES, st.booleans()),
    st.tuples(st.just("delete"), TITLES),
    st.tuples(st.just("restore"), TITLES, st.booleans()),
    st.tuples(st.just("protect"), TITLES),
    st.tuples(st.just("sync")),
)


def do(wiki, deed):
    match deed:
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
@given(st.lists(DEEDS, max_size=25))
def test_whatever_happens_the_index_becomes_what_a_fresh_one_would_be(deeds):
    wiki = mediawiki.Wiki()
    for title, text in (("A", "One."), ("B", "#REDIRECT [[A]]"), ("C", "#REDIRECT [[B]]"), ("D", "Two.")):
        wiki.edit(title, text)
    wiki.tick(hours=2)
    mirror = Mirror().sync(source(wiki))
    for deed in [*deeds, ("sync",)]:
        wiki.tick(hours=0.4)
        if deed == ("sync",):
            wiki.tick(hours=1.5)
            mirror.sync(source(wiki))
            fresh = Mirror().sync(source(wiki))
            assert (mirror.known, mirror.pages) == (fresh.known, fresh.pages)
        else:
            do(wiki, deed)
    assert wiki.rejected == []
