"""Confluence by its REST API: what may be read is, each text once; what is restricted never is, from that moment on."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.sources.confluence.confluence_api import ConfluenceAddress, is_cloud
from ingest.sources.confluence.confluence_source import ConfluenceScope, ConfluenceSource
from ingest.sources.filters import SelectionRules
from ingest.types import ChangedDocument, DeletedDocument, SourceUnavailable
from ingest.web.web_client import RequestPolicy, WebClient
from tests.ingest.servers import confluence, web
from tests.ingest.servers.web import Answer
from tests.ingest.sources.mirrors import Mirror
from tests.thorough import sample

BOTH = pytest.mark.parametrize("cloud", [False, True], ids=["data-center", "cloud"])


def source(house, *, password=None, largest=64 << 20, **said):
    password = house.password if password is None else password
    bearer = {} if house.cloud or not password else {"Authorization": f"Bearer {password}"}
    line = WebClient(
        RequestPolicy("Footnote's tests", gap=0, largest=largest), transport=web.transport(house.answer),
        wait=lambda _: False, headers=bearer, auth=("ann@acme.test", password) if house.cloud else None,
        credential="TOKEN",
    )  # fmt: skip
    given = ConfluenceScope(
        ConfluenceAddress(f"http://house.test{house.context}", house.cloud), credential="TOKEN", spaces=("HR",)
    )
    return ConfluenceSource(replace(given, **said), line, now=lambda: house.now)


def handbook(cloud=False):  # noqa: FBT002 - parametrised by it
    house = confluence.Confluence(cloud=cloud)
    house.write("1", "Home", "<p>Welcome, all of you.</p>")
    house.write("2", "Holidays", "<p>Everyone has thirty days.</p>", parent="1", labels=("leave",))
    house.write("3", "Illness", "<p>Call before nine.</p>", parent="1")
    house.write("4", "Notes", "<h2>On call</h2><p>Phones are handed over on Mondays.</p>", parent="3")
    house.write("5", "Pay", "<p>Paid on the 25th.</p>", parent="1", readers=("group:board", "user:cfo"))
    house.write("6", "Bonus", "<p>Ten per cent.</p>", parent="5")
    house.write("7", "Runbook", "<p>Restart it.</p>", space="OPS")
    return house


@BOTH
def test_every_page_comes_once_but_for_those_that_are_restricted_or_stand_below_one(cloud):
    house = handbook(cloud)

    mirror = Mirror().sync(source(house))

    assert mirror.titles() == ["Holidays", "Home", "Illness", "Notes"]
    assert mirror.says("Notes") == "Phones are handed over on Mondays."
    page = mirror.pages["2"]
    assert (page.revision, page.date, page.language) == ("1", house.contents["2"].when, "en")
    assert page.url == f"http://house.test{house.context}" + (
        "/spaces/HR/pages/2" if cloud else "/pages/viewpage.action?pageId=2"
    )
    assert house.rejected == []
    assert sorted(house.fetched) == ["1", "2", "3", "4"]


@BOTH
def test_only_what_changed_is_fetched_again(cloud):
    house = handbook(cloud)
    mirror = Mirror().sync(source(house))
    house.fetched.clear()

    assert mirror.sync(source(house)).loaded == []
    house.write("3", "Illness", "<p>Call before eight.</p>")
    house.write("8", "Parking", "<p>Behind the house.</p>")
    house.write("2", "Vacation", "<p>Everyone has thirty days.</p>")
    del house.contents["4"]
    mirror.sync(source(house))

    assert sorted(mirror.loaded) == ["Illness", "Parking", "Vacation"]
    assert mirror.titles() == ["Home", "Illness", "Parking", "Vacation"]
    assert sorted(house.fetched) == ["2", "3", "8"]


@BOTH
def test_a_page_that_is_restricted_later_is_gone_at_once_and_all_below_it(cloud):
    """A restriction is no new version, nor does it count as a change."""
    house = handbook(cloud)
    mirror = Mirror().sync(source(house))

    house.contents["3"].readers = ("user:jane",)

    assert mirror.sync(source(house)).titles() == ["Holidays", "Home"]
    house.contents["3"].readers = ()
    assert mirror.sync(source(house)).titles() == ["Holidays", "Home", "Illness", "Notes"]


@BOTH
def test_moving_below_a_restricted_page_hides_too(cloud):
    house = handbook(cloud)
    mirror = Mirror().sync(source(house))

    house.contents["2"].parent = "5"

    assert "Holidays" not in mirror.sync(source(house)).titles()


@BOTH
@pytest.mark.parametrize("allowed", [("group:board",), ("user:CFO",)])
def test_settings_let_in_whom_they_name_on_every_level(cloud, allowed):
    house = handbook(cloud)
    house.contents["6"].readers = ("group:board", "user:cfo")
    assert {"Pay", "Bonus"} <= set(Mirror().sync(source(house, allowed=allowed)).titles())

    house.contents["6"].readers = ("user:ceo",)
    titles = Mirror().sync(source(house, allowed=allowed)).titles()
    assert "Pay" in titles
    assert "Bonus" not in titles


def test_a_folder_above_counts_and_one_that_nobody_can_tell_of_hides_what_is_below():
    house = handbook(cloud=True)
    house.write("20", "Drawer", "", kind="folder")
    house.write("21", "In a drawer", "<p>Text in a drawer.</p>", parent="20")
    assert "In a drawer" in Mirror().sync(source(house)).titles()

    house.contents["20"].readers = ("user:jane",)
    assert "In a drawer" not in Mirror().sync(source(house)).titles()

    house.contents["21"].parent = "99"
    mirror = Mirror().sync(source(house))
    assert "In a drawer" not in mirror.titles()
    assert mirror.failures == {"99 (restrictions)": "its readers are unknown: 1 pages below it are skipped"}


@BOTH
def test_rules_choose_by_path_label_and_age(cloud):
    house = handbook(cloud)
    house.contents["4"].labels = ("draft",)
    assert Mirror().sync(source(house, rules=SelectionRules(labels=("LEAVE",)))).titles() == ["Holidays"]
    below = SelectionRules(include=("HR/Home/Illness/**",))
    assert Mirror().sync(source(house, rules=below)).titles() == ["Illness", "Notes"]
    undrafted = SelectionRules(include=("HR/Home/Illness/**",), without_labels=("draft",))
    assert Mirror().sync(source(house, rules=undrafted)).titles() == ["Illness"]
    assert Mirror().sync(source(house, rules=SelectionRules(newest_days=0.0001))).titles() == []


def test_archived_pages_are_read_where_settings_say_so_and_never_drafts():
    house = handbook(cloud=True)
    house.contents["2"].status = "archived"
    house.contents["3"].status = "draft"
    house.contents["4"].status = "trashed"

    assert Mirror().sync(source(house)).titles() == ["Home"]
    assert Mirror().sync(source(house, statuses=("current", "archived"))).titles() == ["Holidays", "Home"]


@BOTH
def test_blog_posts_and_other_spaces_by_setting(cloud):
    house = handbook(cloud)
    house.write("30", "We moved", "<p>To the third floor.</p>", kind="blogpost")

    titles = Mirror().sync(source(house, spaces=("HR", "OPS"), blog_posts=True)).titles()

    assert {"We moved", "Runbook"} <= set(titles)
    assert "We moved" not in Mirror().sync(source(house)).titles()
    assert "Runbook" in Mirror().sync(source(house, spaces=())).titles()


@BOTH
def test_a_mention_has_the_name_of_whoever_ever_edited_something(cloud):
    house = handbook(cloud)
    house.write("3", "Illness", '<p>Call <ac:link><ri:user ri:account-id="5b:1" /></ac:link>.</p>')

    assert Mirror().sync(source(house)).says("Illness") == "Call @Ann Lee."


class TestAttachments:
    def house(self, cloud=False):  # noqa: FBT002 - parametrised by it
        house = handbook(cloud)
        house.write("att1", "rota.md", "# Rota\n\nAnn on Mondays.", kind="attachment", container="2")
        house.write("att2", "floor.png", "PNG", kind="attachment", container="2")
        house.write("att3", "salaries.csv", "who,what\nann,1\n", kind="attachment", container="6")
        return house

    @BOTH
    def test_what_can_be_read_is_and_what_hangs_on_a_restricted_page_is_not(self, cloud):
        house = self.house(cloud)

        mirror = Mirror().sync(source(house, attachments=True))

        assert "Rota" in mirror.titles()
        assert mirror.says("Rota") == "Ann on Mondays."
        assert not mirror.known.keys() & {"att2", "att3"}
        assert mirror.failures == {}
        assert "Rota" not in Mirror().sync(source(house)).titles()

    @BOTH
    @pytest.mark.parametrize(
        ("media", "hosts", "followed"),
        [
            ("https://169.254.169.254/latest", (), False),
            ("https://files.acme.org/a", (), False),
            ("https://files.acme.org/a", ("files.acme.org",), True),
            ("http://files.acme.org/a", ("files.acme.org",), False),
            ("https://files.acme.org:8443/a", ("files.acme.org",), False),
            ("https://api.media.atlassian.com.evil.org/a", (), False),
        ],
    )
    def test_a_download_is_redirected_to_hosts_that_are_allowed_alone(self, cloud, media, hosts, followed):
        """Whoever attaches a file could else have any server read that stands within reach."""
        house = self.house(cloud)
        house.media = media
        place = ConfluenceAddress(f"http://house.test{house.context}", cloud, hosts)

        mirror = Mirror().sync(source(house, site=place, attachments=True))

        assert ("Rota" in mirror.titles(), bool(house.hosts)) == (followed, followed)
        assert followed or "HTTP 302" in mirror.failures["att1"]

    def test_one_that_fails_is_told_and_many_in_a_row_end_it(self):
        house = self.house()
        house.before = lambda path: house.faults.append(Answer(404, b"")) if "/download/" in path else None
        mirror = Mirror().sync(source(house, attachments=True))
        assert "HTTP 404" in mirror.failures["att1"]
        assert "Holidays" in mirror.titles()

        for number in range(10, 16):
            house.write(f"att{number}", f"{number}.md", "Text.", kind="attachment", container="2")
        with pytest.raises(SourceUnavailable, match="HTTP 404"):
            mirror.sync(source(house, attachments=True))
        assert "Holidays" in mirror.titles()

    def test_it_is_gone_with_its_page(self):
        house = self.house()
        mirror = Mirror().sync(source(house, attachments=True))
        house.contents["2"].readers = ("user:jane",)

        assert "att1" not in mirror.sync(source(house, attachments=True)).known


class TestNotLettingIn:
    """Confluence shows less to whom it does not know: that must never look like pages that are gone."""

    @pytest.mark.parametrize(("cloud", "said"), [(False, "denies us access"), (True, "treats us as anonymous")])
    def test_a_wrong_token_removes_nothing(self, cloud, said):
        house = handbook(cloud)
        mirror = Mirror().sync(source(house))

        with pytest.raises(SourceUnavailable, match=said) as caught:
            mirror.sync(source(house, password="wr0ng"))
        assert "TOKEN" in caught.value.hint
        assert "wr0ng" not in f"{caught.value}{caught.value.hint}"
        assert len(mirror.pages) == 4

    @BOTH
    def test_a_space_that_is_no_longer_shown_removes_nothing(self, cloud):
        house = handbook(cloud)
        mirror = Mirror().sync(source(house))
        house.spaces.discard("HR")

        with pytest.raises(SourceUnavailable, match="shows no space HR"):
            mirror.sync(source(house))
        assert len(mirror.pages) == 4

    @pytest.mark.parametrize(
        ("fault", "said"),
        [
            (Answer(403, b""), "denies us access"),
            (Answer(404, b""), "HTTP 404"),
            (Answer(200, b"<html>Log in</html>"), "not answer with JSON"),
            (Answer(500, b""), "HTTP 500"),
        ],
    )
    def test_a_server_that_fails_is_one_line(self, fault, said):
        house = handbook()
        house.faults = [fault] * 9

        with pytest.raises(SourceUnavailable, match=said) as caught:
            Mirror().sync(source(house))
        assert "?" not in str(caught.value)

    def test_throttling_is_waited_for(self):
        house = handbook()
        house.faults = [Answer(429, b"", {"Retry-After": "3"}), Answer(503, b"")]

        assert len(Mirror().sync(source(house)).pages) == 4


def test_a_page_that_goes_while_data_center_lists_lets_no_other_slip_through():
    """By offset, the fourth page becomes the third, and is on no answer."""
    house = handbook()
    mirror = Mirror().sync(source(house))

    def before(path):
        if "start=3" in path:
            house.contents.pop("1", None)

    house.contents["2"].parent = house.contents["3"].parent = ""
    house.before = before
    mirror.sync(source(house))

    assert "Notes" in mirror.titles()


def test_a_page_that_the_search_does_not_know_yet_is_read_all_the_same():
    house = handbook()
    house.unindexed = {"4"}

    assert "Notes" in Mirror().sync(source(house)).titles()


@BOTH
def test_a_page_too_large_to_be_read_takes_no_other_with_it(cloud):
    house = handbook(cloud)
    house.most = 50
    house.write("3", "Illness", f"<p>{'long ' * 20_000}</p>")

    mirror = Mirror().sync(source(house, largest=50_000))

    assert mirror.titles() == ["Holidays", "Home", "Notes"]
    assert mirror.failures == {"3": "is larger than the largest page that is read"}


@BOTH
def test_one_page_is_had_by_its_address_or_id(cloud):
    house = handbook(cloud)
    known = Mirror().sync(source(house)).known
    address = f"http://house.test{house.context}" + (
        "/spaces/HR/pages/3/Illness" if cloud else "/pages/viewpage.action?pageId=3"
    )

    for name in (address, "3"):
        found = source(house).one(name, known)
        assert isinstance(found, ChangedDocument)
        assert (found.key, found.fingerprint, found.load().title) == ("3", known["3"], "Illness")
    house.contents["3"].readers = ("user:jane",)
    assert source(house).one(address, known) == DeletedDocument("3")
    assert source(house).one("4", known) == DeletedDocument("4")
    assert source(house).one("7", known) is None
    assert source(house).one("http://other.test/pages/3", known) is None


def test_clouds_are_told_by_their_address():
    assert is_cloud("https://acme.atlassian.net/wiki")
    assert not is_cloud("https://wiki.acme.test/atlassian.net")


IDS = st.sampled_from(["1", "2", "3", "4", "5"])
DEEDS = st.one_of(
    st.tuples(st.just("write"), IDS, st.sampled_from(["One", "Two"]), st.sampled_from(["", "1", "2", "3"])),
    st.tuples(st.just("restrict"), IDS, st.sampled_from([(), ("user:jane",), ("group:staff",)])),
    st.tuples(st.just("remove"), IDS),
    st.tuples(st.just("status"), IDS, st.sampled_from(["current", "trashed", "draft"])),
    st.tuples(st.just("sync")),
)


def do(house, deed):
    page = house.contents.get(deed[1])
    match deed:
        case ("write", number, title, parent) if parent < number:
            house.write(number, title, f"<p>{title} of {number}.</p>", parent=parent)
        case ("restrict", _, readers) if page:
            page.readers = readers
        case ("remove", number) if not any(content.parent == number for content in house.contents.values()):
            house.contents.pop(number, None)
        case ("status", _, status) if page:
            page.status = status


@settings(max_examples=sample(25), deadline=None)
@given(st.booleans(), st.lists(DEEDS, max_size=20))
def test_whatever_happens_the_index_becomes_what_a_fresh_one_would_be_and_holds_nothing_restricted(cloud, deeds):
    house = confluence.Confluence(cloud=cloud)
    house.write("1", "One", "<p>One.</p>")
    mirror = Mirror()
    for deed in [*deeds, ("sync",)]:
        if deed != ("sync",):
            do(house, deed)
            continue
        mirror.sync(source(house, allowed=("group:staff",)))
        fresh = Mirror().sync(source(house, allowed=("group:staff",)))
        assert (mirror.known, mirror.pages) == (fresh.known, fresh.pages)
        for key in mirror.known:
            line = [house.contents[key], *(house.contents[one] for one in house._above(house.contents[key]))]
            assert all("user:jane" not in one.readers for one in line)
            assert line[0].status == "current"
    assert house.rejected == []
