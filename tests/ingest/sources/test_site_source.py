"""A web site by its sitemap: listed pages are read once; errors, logins and other sites never."""

import gzip
from datetime import UTC, datetime

import pytest

from ingest.readers.file_formats import READER_VERSION
from ingest.sources.filters import SelectionRules
from ingest.sources.sites.site_source import SiteScope, SiteSource
from ingest.types import ChangedDocument, DeletedDocument, SourceUnavailable, Unreadable, UnreadableDocument
from ingest.web.web_client import RequestPolicy, WebClient, build_user_agent
from tests.ingest.servers.site import HTML, XML, FakeSite, html, sitemap, sitemap_index
from tests.ingest.servers.web import Answer, serve

NOW = datetime(2026, 11, 10, 12, tzinfo=UTC)
AGENT = build_user_agent("ops@example.com", "1")


class Visit:
    """The result of one listing: texts, deletions and reasons by path."""

    def __init__(self, origin, items, known):
        self.read, self.unread, self.gone, self.same, self.pages = {}, {}, [], [], {}
        for item in items:
            path = item.key.removeprefix(origin) or "/"
            if isinstance(item, DeletedDocument):
                self.gone.append(path)
                known.pop(item.key, None)
            elif isinstance(item, Unreadable):
                self.unread[path] = item.reason
            elif known.get(item.key) == item.fingerprint:
                self.same.append(path)
            else:
                self._load(path, item, known)

    def _load(self, path, item, known):
        try:
            page = item.load()
        except UnreadableDocument as error:
            self.unread[path] = str(error)
            return
        known[item.key] = item.fingerprint
        self.pages[path] = page
        self.read[path] = " ".join(block.text for section in page.sections for block in section.blocks)


class SiteWorld:
    def __init__(self, site, server):
        self.site, self.server = site, server
        self.origin = site.origin = server.url
        self.known = {}
        self.waits = []

    def source(self, url="/sitemap.xml", rules=None, **manners):
        web = WebClient(RequestPolicy(AGENT, **{"gap": 0.0, "tries": 2, **manners}), wait=self._wait, clock=lambda: 0.0)
        return SiteSource(SiteScope(self.origin + url, rules or SelectionRules()), web, now=lambda: NOW)

    def _wait(self, seconds):
        self.waits.append(seconds)
        return False

    def visit(self, *arguments, **keywords):
        source = self.source(*arguments, **keywords)
        return Visit(self.origin, source.documents(self.known).items, self.known)

    def requested(self):
        """Return the pages requested since the last call."""
        paths = [path for path in self.server.paths() if not path.startswith(("/robots", "/sitemap", "/parts"))]
        self.server.requests.clear()
        return [path for path in paths if len(path) != 25]


@pytest.fixture
def site():
    fake_site = FakeSite()
    fake_site.page("/", "Front", "Welcome to the handbook of Halden.")
    fake_site.page("/docs/leave.html", "Leave", "Leave is 30 days.", date="2026-10-01")
    fake_site.page("/docs/travel/", "Travel", "The allowance is 45 euros.", ETag='"t1"')
    fake_site.page("/news", "News", "We moved to Kaistraße.", Last_Modified="Sun, 01 Nov 2026 10:00:00 GMT")
    return fake_site


@pytest.fixture
def world(site):
    with serve(site) as server:
        yield SiteWorld(site, server)


def test_pages_are_read_with_metadata(world):
    visit = world.visit()
    assert visit.read == {
        "/": "Welcome to the handbook of Halden.",
        "/docs/leave.html": "Leave is 30 days.",
        "/docs/travel": "The allowance is 45 euros.",
        "/news": "We moved to Kaistraße.",
    }
    leave, news = visit.pages["/docs/leave.html"], visit.pages["/news"]
    assert (leave.title, leave.language, leave.url) == ("Leave", "en", world.origin + "/docs/leave.html")
    assert leave.date.isoformat() == "2026-10-01T00:00:00+00:00"
    assert news.date.isoformat() == "2026-11-01T10:00:00+00:00"
    assert visit.pages["/docs/travel"].url == world.origin + "/docs/travel/"


def test_unchanged_pages_keep_their_fingerprints(world):
    world.visit()
    world.requested()
    again = world.visit()
    assert (again.read, again.unread, again.gone) == ({}, {}, [])
    assert again.same == ["/", "/docs/leave.html", "/docs/travel", "/news"]
    conditions = [set(r.headers) & {"if-none-match", "if-modified-since"} for r in world.server.requests]
    assert world.requested() == ["/", "/docs/travel/", "/news"]
    assert conditions[-2:] == [{"if-none-match"}, {"if-modified-since"}]


def test_changed_pages_are_read(world):
    world.visit()
    world.site.page("/", "Front", "Welcome again.")
    world.site.page("/docs/leave.html", "Leave", "Leave is 31 days.", date="2026-11-02")
    world.site.page("/docs/travel/", "Travel", "The allowance is 50 euros.", ETag='"t2"')
    world.site.page("/news", "News", "We moved back.", Last_Modified="Mon, 02 Nov 2026 10:00:00 GMT")
    assert list(world.visit().read) == ["/", "/docs/leave.html", "/docs/travel", "/news"]


@pytest.mark.parametrize(
    ("date", "requested"),
    [
        ("2026-11-10T11:59:00Z", False),
        ("2026-11-09", True),
        ("2026-11-08", False),
        ("2027-01-01T00:00:00Z", True),
        ("yesterday", True),
        ("0001-01-01T00:00:00+14:00", True),
    ],
)
def test_recent_or_future_dates_are_checked_again(world, date, requested):
    world.site.dates["/news"] = date
    world.visit()
    world.requested()
    world.visit()
    assert ("/news" in world.requested()) is requested


def test_removed_pages_are_listed_as_deleted(world):
    world.visit()
    world.site.pages["/"] = Answer(410)
    world.site.pages["/docs/travel/"] = Answer(404, html("Not found", "Nothing."), HTML)
    visit = world.visit()
    assert visit.gone == ["/", "/docs/travel"]
    assert visit.unread == {}


def test_other_sites_are_never_read(world):
    with serve(lambda _: Answer(200, html("Other", "Elsewhere."), HTML)) as other:
        world.site.listed = [
            other.url + "/a",
            "/news",
            "file:///etc/passwd",
            "http://[",
            "/away",
            "javascript:alert(1)",
        ]
        world.site.pages["/away"] = Answer(302, b"", {"Location": other.url + "/secret"})
        world.site.page("/news", "News", "We moved.", head=f"<link rel='canonical' href='{other.url}/news'>")
        visit = world.visit()
        assert list(visit.read) == ["/news"]
        assert visit.pages["/news"].url == world.origin + "/news"
        assert visit.unread == {"/away": "answers HTTP 302, a redirect that is not followed"}
        assert other.requests == []


def test_robots_txt_rules_and_delay_are_respected(world):
    world.site.robots = "User-agent: *\nDisallow: /docs/\nAllow: /docs/travel\nDisallow: /secret\nCrawl-delay: 3"
    world.site.pages["/news"] = Answer(301, b"", {"Location": "/secret"})
    world.site.page("/secret", "Secret", "Confidential.")
    visit = world.visit()
    assert list(visit.read) == ["/", "/docs/travel"]
    assert "/secret" not in world.requested()
    assert set(world.waits) == {3.0}


def test_own_robots_group_and_named_sitemaps_apply(world):
    world.site.robots = (
        "User-agent: *\nDisallow: /\n\nUser-agent: Footnote\nDisallow: /news\n\n"
        f"Sitemap: {world.origin}/parts/all.xml\nSitemap: http://127.0.0.2:9/other.xml\n"
    )
    world.site.pages["/parts/all.xml"] = Answer(200, sitemap(world.origin, ["/news", "/docs/leave.html"]), XML)
    assert list(world.visit("/").read) == ["/docs/leave.html"]


def test_nested_and_compressed_sitemaps_are_read_once(world):
    first, second = f"{world.origin}/parts/1.xml.gz", f"{world.origin}/parts/2.txt"
    index = sitemap_index(first, second, f"{world.origin}/sitemap.xml", "http://127.0.0.2:9/x.xml")
    world.site.pages["/sitemap.xml"] = Answer(200, index, XML)
    world.site.pages["/parts/1.xml.gz"] = Answer(200, gzip.compress(sitemap(world.origin, ["/news"])))
    world.site.pages["/parts/2.txt"] = Answer(200, f"{world.origin}/\n{world.origin}/news\n".encode())
    assert sorted(world.visit().read) == ["/", "/news"]
    assert len([path for path in world.server.paths() if path.startswith(("/sitemap", "/parts"))]) == 3


def test_unreadable_sitemap_part_deletes_nothing(world):
    world.visit()
    world.site.pages["/sitemap.xml"] = Answer(
        200, sitemap_index(f"{world.origin}/parts/1.xml", f"{world.origin}/parts/2.xml"), XML
    )
    world.site.pages["/parts/1.xml"] = Answer(200, sitemap(world.origin, ["/news"]), XML)
    visit = world.visit()
    assert visit.unread == {"/parts/2.xml": "the sitemap answers HTTP 404"}
    assert sorted(visit.same) == ["/", "/docs/leave.html", "/docs/travel", "/news"]
    assert visit.gone == []


BOMB = (
    b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">'
    + b"".join(b'<!ENTITY %c "%s">' % (98 + n, b"&%c;" % (97 + n) * 10) for n in range(9))
    + b"]><urlset><url><loc>&j;</loc></url></urlset>"
)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Answer(404), "answers HTTP 404"),
        (Answer(403), "may not be read"),
        (
            Answer(301, b"", {"Location": "https://www.example.com/s.xml"}),
            "another site, https://www.example.com/s.xml",
        ),
        (Answer(200, html("Log in", "Please log in."), HTML), "is not"),
        (Answer(200, b""), "is not a sitemap"),
        (Answer(200, b"<urlset><url>"), "is not XML"),
        (Answer(200, b"<rss/>"), "is not a sitemap"),
        (Answer(200, BOMB), "is not XML|document type"),
        (Answer(200, b'<!DOCTYPE x SYSTEM "file:///etc/passwd"><urlset/>'), "document type"),
        (Answer(200, gzip.compress(bytes(80 << 20))), "unpacks to more than 64 MB"),
        (Answer(200, gzip.compress(b"<urlset/>")[:-5]), "is truncated"),
        (Answer(500), "answers HTTP 500"),
    ],
)
def test_invalid_sitemap_is_rejected_in_one_line(world, answer, message):
    world.site.pages["/sitemap.xml"] = answer
    with pytest.raises(SourceUnavailable, match=message) as raised:
        world.source().documents(world.known)
    assert "\n" not in str(raised.value)


def test_large_unchanged_sitemap_requests_no_pages(world):
    paths = [f"/p/{number}" for number in range(60_000)]
    world.site.pages["/sitemap.xml"] = Answer(
        200, sitemap(world.origin, paths, dict.fromkeys(paths, "2026-01-01")), XML
    )
    source = world.source()
    assert source.expected() == 60_000
    world.known = {f"{world.origin}{path}": f"2026-01-01T00:00:00+00:00 lastmod-{READER_VERSION}" for path in paths}
    items = list(source.documents(world.known))
    assert {item.fingerprint for item in items} == {f"2026-01-01T00:00:00+00:00 lastmod-{READER_VERSION}"}
    assert world.requested() == []


def test_pages_are_selected_by_path_and_age(world):
    assert list(world.visit(rules=SelectionRules(include=("docs/**",), exclude=("**/travel",))).read) == [
        "/docs/leave.html"
    ]
    world.known.clear()
    assert "/docs/leave.html" not in world.visit(rules=SelectionRules(newest_days=20)).read


def test_noindex_pages_are_deleted(world):
    """Directives in the page or in a header apply, unless they are for other agents."""
    world.visit()
    world.site.page("/", "Front", "Welcome.", head="<meta name='ROBOTS' content='noindex, follow'>")
    world.site.page("/news", "News", "Other news.", X_Robots_Tag="footnote: noindex", Last_Modified="x")
    world.site.page("/docs/travel/", "Travel", "The allowance is 50.", X_Robots_Tag="otherbot: none", ETag='"t3"')
    visit = world.visit()
    assert visit.gone == ["/", "/news"]
    assert list(visit.read) == ["/docs/travel"]


def test_canonical_address_of_a_listed_page_wins(world):
    world.site.page("/a", "A", "One page.", head="<link rel='canonical' href='/news?'>")
    world.site.page("/b", "B", "Another page.", head="<link rel='canonical' href='/docs/b'>")
    world.site.page("/c", "C", "A third page.", head=f"<link rel='canonical' href='{world.origin}/'>")
    visit = world.visit()
    assert visit.gone == ["/a"]
    assert visit.pages["/b"].url == world.origin + "/docs/b"
    assert visit.pages["/c"].url == world.origin + "/c"


def test_redirects_to_listed_pages_delete_the_old_address(world):
    moved = {"/old": "/news", "/Docs/B": "/docs/b/", "/odd": "/unlisted", "/home": "/"}
    for path, target in moved.items():
        world.site.pages[path] = Answer(301, b"", {"Location": target})
    world.site.page("/docs/b/", "B", "Page B.")
    world.site.page("/unlisted", "Unlisted", "Page U.")
    world.site.listed = ["/news", *moved]
    visit = world.visit()
    assert visit.gone == ["/old"]
    assert visit.read["/Docs/B"] == "Page B."
    assert visit.unread == {
        "/odd": "redirects to /unlisted, which is another page",
        "/home": "redirects to /, which is another page",
    }


LOGIN = html("Log in", "Please log in to go on.")


def _redirects(request):
    return Answer(200, LOGIN, HTML) if request.path.startswith("/login") else Answer(302, b"", {"Location": "/login"})


def _redirects_home(request):
    return Answer(200, LOGIN, HTML) if request.path == "/" else Answer(302, b"", {"Location": "/"})


def _with_password(request):
    field = f"<form action='{request.path}'><input type='password'></form>"
    return Answer(200, html("Log in", f"Please log in to see {request.path}", field), HTML)


def _answer_oops(request):
    return Answer(200, html("Oops", f"We could not find {request.path} at 12:{len(request.path)}."), HTML)


def _same_for_listed(request):
    if len(request.path) == 25:
        return Answer(404)
    return Answer(200, html("Maintenance", f"We are back soon. Request {hash(request.path)}"), HTML)


@pytest.mark.parametrize("broken", [_redirects, _redirects_home, _with_password, _answer_oops, _same_for_listed])
def test_identical_responses_for_all_pages_replace_no_page(world, broken):
    for path, text in (("/docs/leave.html", "Leave is 30 days."), ("/a", "About apples."), ("/b", "About bees.")):
        world.site.page(path, path, text, date="2026-10-01")
    world.visit()
    world.site.dates = dict.fromkeys(world.site.dates, "2026-11-03")
    world.site.everything = broken
    visit = world.visit()
    assert visit.gone == []
    # If everything redirects to the front page, a changed front page looks like a login page.
    assert set(visit.read) == ({"/"} if broken is _redirects_home else set())
    assert len(visit.unread) >= 5

    world.site.everything = None
    assert {"/a", "/b"} <= set(world.visit().read)


def test_login_page_is_unreadable(world):
    field = "<form><input type='password'></form>"
    world.site.page("/in", "Log in", "Please log in.", field)
    world.site.page("/manual", "Passwords", "A password is long. " * 90, field)
    visit = world.visit()
    assert visit.unread == {"/in": "asks to log in"}
    assert "/manual" in visit.read


def test_missing_page_is_detected_despite_status_200(world):
    world.site.everything = lambda request: _answer_oops(request) if request.path not in world.site.pages else None
    world.site.listed = ["/", "/news", "/lost"]
    visit = world.visit()
    assert list(visit.read) == ["/", "/news"]
    assert visit.unread == {"/lost": "equals the site's response to addresses that do not exist"}


def test_second_page_with_equal_text_is_unreadable(world):
    world.site.page("/x", "Same", "The same words.")
    world.site.page("/y", "Same", "The same words.")
    visit = world.visit()
    assert "/x" in visit.read
    assert visit.unread == {"/y": f"has the same text as {world.origin}/x, as error and login pages do"}


def test_pages_differing_in_numbers_are_distinct(world):
    for lot in (7, 8, 12):
        world.site.page(f"/lot-{lot}", "Berths", f"The fee of berth {lot} is {lot * 10} euros.")
    visit = world.visit()
    assert {"/lot-7", "/lot-8", "/lot-12"} <= set(visit.read)
    assert visit.unread == {}


@pytest.mark.parametrize(("answer", "requested"), [(Answer(403), 5), (Answer(503), 10)])
def test_repeated_refusals_end_the_listing(world, answer, requested):
    for number in range(20):
        world.site.page(f"/more/{number}", "More", f"Page {number}.")
    world.site.everything = lambda _: answer
    with pytest.raises(SourceUnavailable):
        world.visit()
    assert len(world.requested()) == requested


def test_single_failures_are_unreadable_and_others_are_read(world):
    world.site.pages["/"] = Answer(403)
    world.site.pages["/docs/travel/"] = Answer(500)
    world.site.pages["/news"] = Answer(200, bytes(3 << 20), HTML)
    world.site.pages["/teapot"] = Answer(418)
    visit = world.visit(largest=1 << 20)
    assert list(visit.read) == ["/docs/leave.html"]
    assert visit.unread["/"].startswith("denies access")
    assert visit.unread["/docs/travel"].startswith("cannot be fetched now")
    assert "is larger than 1 MB" in visit.unread["/news"]
    assert visit.unread["/teapot"] == "answers HTTP 418"


def test_formats_follow_the_content_type(world):
    kinds = {
        "/notes": (b"# Notes\n\nWritten in Markdown.", "text/markdown"),
        "/guide.md": (b"# Guide\n\nServed as text.", "text/plain; charset=utf-8"),
        "/plain": (b"Only text.", "text/plain"),
        "/logo": (b"\x89PNG", "image/png"),
        "/report.pdf": (b"no pdf", "application/pdf"),
        "/latin": ("<html><body><p>Gr\xfc\xdfe</p></body></html>".encode("latin-1"), "text/html; charset=latin-1"),
        "/thing": (b"x", "application/x-odd"),
    }
    for path, (content, kind) in kinds.items():
        world.site.pages[path] = Answer(200, content, {"Content-Type": kind})
    visit = world.visit()
    assert visit.pages["/notes"].title == "Notes"
    assert visit.read["/guide.md"] == "Served as text."
    assert visit.pages["/guide.md"].title == "Guide"
    assert visit.read["/plain"] == "Only text."
    assert visit.read["/latin"] == "Grüße"
    assert visit.unread["/logo"] == "pictures are not read"
    assert visit.unread["/report.pdf"].startswith("is broken, or not a valid PDF file")
    assert visit.unread["/thing"] == ".x-odd files are not read"


def test_single_page_is_fetched_by_address(world):
    world.visit()
    world.site.page("/new", "New", "Not yet listed.")
    world.site.listed = []
    source = world.source(rules=SelectionRules(exclude=("drafts/**",)))
    one = source.one(f"{world.origin}/docs/travel#top", world.known)
    assert isinstance(one, ChangedDocument)
    assert one.key in world.known
    new = source.one(f"{world.origin}/new/", world.known)
    assert new.load().title == "New"
    assert source.one("https://elsewhere.example/x", world.known) is None
    assert source.one(f"{world.origin}/none", world.known) is None
    assert source.one(f"{world.origin}/drafts/a", world.known) is None
    del world.site.pages["/news"]
    assert source.one(f"{world.origin}/news", world.known) == DeletedDocument(f"{world.origin}/news")
    world.site.robots = "User-agent: *\nDisallow: /"
    assert source.one(f"{world.origin}/docs/travel", world.known) == DeletedDocument(f"{world.origin}/docs/travel")


def test_requests_are_serial_paced_and_identified(world):
    left = [Answer(503, headers={"Retry-After": "9"})]
    world.site.everything = lambda request: left.pop() if left and request.path == "/news" else None
    visit = world.visit(gap=0.5)
    assert "/news" in visit.read
    assert world.server.most_open == 1
    assert {request.headers["user-agent"] for request in world.server.requests} == {AGENT}
    assert (world.waits.count(0.5), world.waits.count(9.0)) == (len(world.server.requests) - 1, 1)


def test_stop_ends_the_listing(world):
    source = world.source()
    items = iter(source.documents())
    next(items)
    source.stop()
    with pytest.raises(SourceUnavailable, match="stopped"):
        list(items)
