"""Confluence by its REST API: readable pages are read once, restricted ones are removed immediately."""

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


def source(fake, *, password=None, largest=64 << 20, **options):
    password = fake.password if password is None else password
    bearer = {} if fake.cloud or not password else {"Authorization": f"Bearer {password}"}
    web_client = WebClient(
        RequestPolicy("Footnote's tests", gap=0, largest=largest), transport=web.transport(fake.answer),
        wait=lambda _: False, headers=bearer, auth=("ann@acme.test", password) if fake.cloud else None,
        credential="TOKEN",
    )  # fmt: skip
    address = ConfluenceAddress(f"http://confluence.test{fake.context}", fake.cloud)
    scope = replace(ConfluenceScope(address, credential="TOKEN", spaces=("HR",)), **options)
    return ConfluenceSource(scope, web_client, now=lambda: fake.now)


def make_handbook(cloud=False):  # noqa: FBT002 - parametrised by it
    fake = confluence.Confluence(cloud=cloud)
    fake.write("1", "Home", "<p>Welcome, all of you.</p>")
    fake.write("2", "Holidays", "<p>Everyone has thirty days.</p>", parent="1", labels=("leave",))
    fake.write("3", "Illness", "<p>Call before nine.</p>", parent="1")
    fake.write("4", "Notes", "<h2>On call</h2><p>Phones are handed over on Mondays.</p>", parent="3")
    fake.write("5", "Pay", "<p>Paid on the 25th.</p>", parent="1", readers=("group:board", "user:cfo"))
    fake.write("6", "Bonus", "<p>Ten per cent.</p>", parent="5")
    fake.write("7", "Runbook", "<p>Restart it.</p>", space="OPS")
    return fake


@BOTH
def test_unrestricted_pages_are_listed_once(cloud):
    fake = make_handbook(cloud)

    mirror = Mirror().sync(source(fake))

    assert mirror.titles() == ["Holidays", "Home", "Illness", "Notes"]
    assert mirror.says("Notes") == "Phones are handed over on Mondays."
    page = mirror.pages["2"]
    assert (page.revision, page.date, page.language) == ("1", fake.contents["2"].when, "en")
    assert page.url == f"http://confluence.test{fake.context}" + (
        "/spaces/HR/pages/2" if cloud else "/pages/viewpage.action?pageId=2"
    )
    assert fake.rejected == []
    assert sorted(fake.fetched) == ["1", "2", "3", "4"]


@BOTH
def test_only_changed_pages_are_fetched_again(cloud):
    fake = make_handbook(cloud)
    mirror = Mirror().sync(source(fake))
    fake.fetched.clear()

    assert mirror.sync(source(fake)).loaded == []
    fake.write("3", "Illness", "<p>Call before eight.</p>")
    fake.write("8", "Parking", "<p>Behind the office.</p>")
    fake.write("2", "Vacation", "<p>Everyone has thirty days.</p>")
    del fake.contents["4"]
    mirror.sync(source(fake))

    assert sorted(mirror.loaded) == ["Illness", "Parking", "Vacation"]
    assert mirror.titles() == ["Home", "Illness", "Parking", "Vacation"]
    assert sorted(fake.fetched) == ["2", "3", "8"]


@BOTH
def test_later_restriction_removes_the_subtree(cloud):
    fake = make_handbook(cloud)
    mirror = Mirror().sync(source(fake))

    fake.contents["3"].readers = ("user:jane",)

    assert mirror.sync(source(fake)).titles() == ["Holidays", "Home"]
    fake.contents["3"].readers = ()
    assert mirror.sync(source(fake)).titles() == ["Holidays", "Home", "Illness", "Notes"]


@BOTH
def test_page_moved_below_a_restricted_one_is_removed(cloud):
    fake = make_handbook(cloud)
    mirror = Mirror().sync(source(fake))

    fake.contents["2"].parent = "5"

    assert "Holidays" not in mirror.sync(source(fake)).titles()


@BOTH
@pytest.mark.parametrize("allowed", [("group:board",), ("user:CFO",)])
def test_allowed_subjects_need_every_restriction(cloud, allowed):
    fake = make_handbook(cloud)
    fake.contents["6"].readers = ("group:board", "user:cfo")
    assert {"Pay", "Bonus"} <= set(Mirror().sync(source(fake, allowed=allowed)).titles())

    fake.contents["6"].readers = ("user:ceo",)
    titles = Mirror().sync(source(fake, allowed=allowed)).titles()
    assert "Pay" in titles
    assert "Bonus" not in titles


def test_restrictions_of_folders_apply_and_unknown_ones_hide():
    fake = make_handbook(cloud=True)
    fake.write("20", "Drawer", "", kind="folder")
    fake.write("21", "In a drawer", "<p>Text in a drawer.</p>", parent="20")
    assert "In a drawer" in Mirror().sync(source(fake)).titles()

    fake.contents["20"].readers = ("user:jane",)
    assert "In a drawer" not in Mirror().sync(source(fake)).titles()

    fake.contents["21"].parent = "99"
    mirror = Mirror().sync(source(fake))
    assert "In a drawer" not in mirror.titles()
    assert mirror.failures == {"99 (restrictions)": "its readers are unknown: 1 pages below it are skipped"}


@BOTH
def test_rules_select_by_path_label_and_age(cloud):
    fake = make_handbook(cloud)
    fake.contents["4"].labels = ("draft",)
    assert Mirror().sync(source(fake, rules=SelectionRules(labels=("LEAVE",)))).titles() == ["Holidays"]
    below = SelectionRules(include=("HR/Home/Illness/**",))
    assert Mirror().sync(source(fake, rules=below)).titles() == ["Illness", "Notes"]
    undrafted = SelectionRules(include=("HR/Home/Illness/**",), without_labels=("draft",))
    assert Mirror().sync(source(fake, rules=undrafted)).titles() == ["Illness"]
    assert Mirror().sync(source(fake, rules=SelectionRules(newest_days=0.0001))).titles() == []


def test_archived_pages_are_optional_and_drafts_never_read():
    fake = make_handbook(cloud=True)
    fake.contents["2"].status = "archived"
    fake.contents["3"].status = "draft"
    fake.contents["4"].status = "trashed"

    assert Mirror().sync(source(fake)).titles() == ["Home"]
    assert Mirror().sync(source(fake, statuses=("current", "archived"))).titles() == ["Holidays", "Home"]


@BOTH
def test_blog_posts_and_spaces_are_optional(cloud):
    fake = make_handbook(cloud)
    fake.write("30", "We moved", "<p>To the third floor.</p>", kind="blogpost")

    titles = Mirror().sync(source(fake, spaces=("HR", "OPS"), blog_posts=True)).titles()

    assert {"We moved", "Runbook"} <= set(titles)
    assert "We moved" not in Mirror().sync(source(fake)).titles()
    assert "Runbook" in Mirror().sync(source(fake, spaces=())).titles()


@BOTH
def test_mentions_show_names_of_editors(cloud):
    fake = make_handbook(cloud)
    fake.write("3", "Illness", '<p>Call <ac:link><ri:user ri:account-id="5b:1" /></ac:link>.</p>')

    assert Mirror().sync(source(fake)).says("Illness") == "Call @Ann Lee."


class TestAttachments:
    def fake(self, cloud=False):  # noqa: FBT002 - parametrised by it
        fake = make_handbook(cloud)
        fake.write("att1", "rota.md", "# Rota\n\nAnn on Mondays.", kind="attachment", container="2")
        fake.write("att2", "floor.png", "PNG", kind="attachment", container="2")
        fake.write("att3", "salaries.csv", "who,what\nann,1\n", kind="attachment", container="6")
        return fake

    @BOTH
    def test_attachments_of_restricted_pages_are_not_read(self, cloud):
        fake = self.fake(cloud)

        mirror = Mirror().sync(source(fake, attachments=True))

        assert "Rota" in mirror.titles()
        assert mirror.says("Rota") == "Ann on Mondays."
        assert not mirror.known.keys() & {"att2", "att3"}
        assert mirror.failures == {}
        assert "Rota" not in Mirror().sync(source(fake)).titles()

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
    def test_downloads_follow_redirects_to_allowed_hosts_only(self, cloud, media, hosts, followed):
        fake = self.fake(cloud)
        fake.media = media
        place = ConfluenceAddress(f"http://confluence.test{fake.context}", cloud, hosts)

        mirror = Mirror().sync(source(fake, site=place, attachments=True))

        assert ("Rota" in mirror.titles(), bool(fake.hosts)) == (followed, followed)
        assert followed or "HTTP 302" in mirror.failures["att1"]

    def test_repeated_download_failures_end_the_listing(self):
        fake = self.fake()
        fake.before = lambda path: fake.faults.append(Answer(404, b"")) if "/download/" in path else None
        mirror = Mirror().sync(source(fake, attachments=True))
        assert "HTTP 404" in mirror.failures["att1"]
        assert "Holidays" in mirror.titles()

        for number in range(10, 16):
            fake.write(f"att{number}", f"{number}.md", "Text.", kind="attachment", container="2")
        with pytest.raises(SourceUnavailable, match="HTTP 404"):
            mirror.sync(source(fake, attachments=True))
        assert "Holidays" in mirror.titles()

    def test_attachment_is_removed_with_its_page(self):
        fake = self.fake()
        mirror = Mirror().sync(source(fake, attachments=True))
        fake.contents["2"].readers = ("user:jane",)

        assert "att1" not in mirror.sync(source(fake, attachments=True)).known


class TestDeniedAccess:
    """Pages that a denied account does not see must not count as deleted."""

    @pytest.mark.parametrize(("cloud", "message"), [(False, "denies access"), (True, "this account as anonymous")])
    def test_wrong_token_removes_nothing(self, cloud, message):
        fake = make_handbook(cloud)
        mirror = Mirror().sync(source(fake))

        with pytest.raises(SourceUnavailable, match=message) as caught:
            mirror.sync(source(fake, password="wr0ng"))
        assert "TOKEN" in caught.value.hint
        assert "wr0ng" not in f"{caught.value}{caught.value.hint}"
        assert len(mirror.pages) == 4

    @BOTH
    def test_hidden_space_removes_nothing(self, cloud):
        fake = make_handbook(cloud)
        mirror = Mirror().sync(source(fake))
        fake.spaces.discard("HR")

        with pytest.raises(SourceUnavailable, match="shows no space HR"):
            mirror.sync(source(fake))
        assert len(mirror.pages) == 4

    @pytest.mark.parametrize(
        ("fault", "message"),
        [
            (Answer(403, b""), "denies access"),
            (Answer(404, b""), "HTTP 404"),
            (Answer(200, b"<html>Log in</html>"), "not answer with JSON"),
            (Answer(500, b""), "HTTP 500"),
        ],
    )
    def test_failing_server_is_reported_in_one_line(self, fault, message):
        fake = make_handbook()
        fake.faults = [fault] * 9

        with pytest.raises(SourceUnavailable, match=message) as caught:
            Mirror().sync(source(fake))
        assert "?" not in str(caught.value)

    def test_throttled_requests_are_retried(self):
        fake = make_handbook()
        fake.faults = [Answer(429, b"", {"Retry-After": "3"}), Answer(503, b"")]

        assert len(Mirror().sync(source(fake)).pages) == 4


def test_deletion_during_an_offset_listing_skips_no_page():
    fake = make_handbook()
    mirror = Mirror().sync(source(fake))

    def before(path):
        if "start=3" in path:
            fake.contents.pop("1", None)

    fake.contents["2"].parent = fake.contents["3"].parent = ""
    fake.before = before
    mirror.sync(source(fake))

    assert "Notes" in mirror.titles()


def test_unindexed_page_is_read():
    fake = make_handbook()
    fake.unindexed = {"4"}

    assert "Notes" in Mirror().sync(source(fake)).titles()


@BOTH
def test_oversized_page_is_unreadable_and_others_are_read(cloud):
    fake = make_handbook(cloud)
    fake.most = 50
    fake.write("3", "Illness", f"<p>{'long ' * 20_000}</p>")

    mirror = Mirror().sync(source(fake, largest=50_000))

    assert mirror.titles() == ["Holidays", "Home", "Notes"]
    assert mirror.failures == {"3": "is larger than the largest page that is read"}


@BOTH
def test_single_page_is_read_by_address_or_id(cloud):
    fake = make_handbook(cloud)
    known = Mirror().sync(source(fake)).known
    address = f"http://confluence.test{fake.context}" + (
        "/spaces/HR/pages/3/Illness" if cloud else "/pages/viewpage.action?pageId=3"
    )

    for name in (address, "3"):
        item = source(fake).one(name, known)
        assert isinstance(item, ChangedDocument)
        assert (item.key, item.fingerprint, item.load().title) == ("3", known["3"], "Illness")
    fake.contents["3"].readers = ("user:jane",)
    assert source(fake).one(address, known) == DeletedDocument("3")
    assert source(fake).one("4", known) == DeletedDocument("4")
    assert source(fake).one("7", known) is None
    assert source(fake).one("http://other.test/pages/3", known) is None


def test_cloud_is_detected_by_address():
    assert is_cloud("https://acme.atlassian.net/wiki")
    assert not is_cloud("https://wiki.acme.test/atlassian.net")


IDS = st.sampled_from(["1", "2", "3", "4", "5"])
EVENTS = st.one_of(
    st.tuples(st.just("write"), IDS, st.sampled_from(["One", "Two"]), st.sampled_from(["", "1", "2", "3"])),
    st.tuples(st.just("restrict"), IDS, st.sampled_from([(), ("user:jane",), ("group:staff",)])),
    st.tuples(st.just("remove"), IDS),
    st.tuples(st.just("status"), IDS, st.sampled_from(["current", "trashed", "draft"])),
    st.tuples(st.just("sync")),
)


def apply_event(fake, event):
    page = fake.contents.get(event[1])
    match event:
        case ("write", number, title, parent) if parent < number:
            fake.write(number, title, f"<p>{title} of {number}.</p>", parent=parent)
        case ("restrict", _, readers) if page:
            page.readers = readers
        case ("remove", number) if not any(content.parent == number for content in fake.contents.values()):
            fake.contents.pop(number, None)
        case ("status", _, status) if page:
            page.status = status


@settings(max_examples=sample(25), deadline=None)
@given(st.booleans(), st.lists(EVENTS, max_size=20))
def test_refreshes_equal_a_new_listing_without_restricted_pages(cloud, events):
    fake = confluence.Confluence(cloud=cloud)
    fake.write("1", "One", "<p>One.</p>")
    mirror = Mirror()
    for event in [*events, ("sync",)]:
        if event != ("sync",):
            apply_event(fake, event)
            continue
        mirror.sync(source(fake, allowed=("group:staff",)))
        fresh = Mirror().sync(source(fake, allowed=("group:staff",)))
        assert (mirror.known, mirror.pages) == (fresh.known, fresh.pages)
        for key in mirror.known:
            pages = [fake.contents[number] for number in (key, *fake._above(fake.contents[key]))]
            assert all("user:jane" not in page.readers for page in pages)
            assert pages[0].status == "current"
    assert fake.rejected == []
