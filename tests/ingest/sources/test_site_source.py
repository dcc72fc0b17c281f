"""A web site by its sitemap: what is listed is read, once; what is broken, elsewhere or a login never is."""

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
    """What one listing brought: texts by path, what is gone and what is unreadable with reasons."""

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


class World:
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

    def asked(self):
        """The pages that were asked for since this was called last."""
        paths = [path for path in self.server.paths() if not path.startswith(("/robots", "/sitemap", "/parts"))]
        self.server.requests.clear()
        return [path for path in paths if len(path) != 25]


@pytest.fixture
def site():
    there = FakeSite()
    there.page("/", "Front", "Welcome to the handbook of Halden.")
    there.page("/docs/leave.html", "Leave", "Leave is 30 days.", date="2026-10-01")
    there.page("/docs/travel/", "Travel", "The allowance is 45 euros.", ETag='"t1"')
    there.page("/news", "News", "We moved to Kaistraße.", Last_Modified="Sun, 01 Nov 2026 10:00:00 GMT")
    return there


@pytest.fixture
def world(site):
    with serve(site) as server:
        yield World(site, server)


def test_pages_are_read_with_all_that_is_known_of_them(world):
    """Their title, sections, language, address and date; keys have no slash at their end, which would be a folder."""
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


def test_what_did_not_change_is_not_read_again(world):
    """By lastmod it is not even asked for; by ETag and Last-Modified it is not sent; by content it is not parsed."""
    world.visit()
    world.asked()
    again = world.visit()
    assert (again.read, again.unread, again.gone) == ({}, {}, [])
    assert again.same == ["/", "/docs/leave.html", "/docs/travel", "/news"]
    conditions = [set(r.headers) & {"if-none-match", "if-modified-since"} for r in world.server.requests]
    assert world.asked() == ["/", "/docs/travel/", "/news"]
    assert conditions[-2:] == [{"if-none-match"}, {"if-modified-since"}]


def test_what_changed_is_read(world):
    world.visit()
    world.site.page("/", "Front", "Welcome anew.")
    world.site.page("/docs/leave.html", "Leave", "Leave is 31 days.", date="2026-11-02")
    world.site.page("/docs/travel/", "Travel", "The allowance is 50 euros.", ETag='"t2"')
    world.site.page("/news", "News", "We moved back.", Last_Modified="Mon, 02 Nov 2026 10:00:00 GMT")
    assert list(world.visit().read) == ["/", "/docs/leave.html", "/docs/travel", "/news"]


@pytest.mark.parametrize(
    ("date", "asked"),
    [
        ("2026-11-10T11:59:00Z", False),
        ("2026-11-09", True),
        ("2026-11-08", False),
        ("2027-01-01T00:00:00Z", True),
        ("yesterday", True),
        ("0001-01-01T00:00:00+14:00", True),
    ],
)
def test_a_date_of_today_may_still_change(world, date, asked):
    """A date without a time is only believed once it is two days old; one that has not come yet is not."""
    world.site.dates["/news"] = date
    world.visit()
    world.asked()
    world.visit()
    assert ("/news" in world.asked()) is asked


def test_pages_that_are_gone_are_told(world):
    world.visit()
    world.site.pages["/"] = Answer(410)
    world.site.pages["/docs/travel/"] = Answer(404, html("Not found", "Nothing."), HTML)
    visit = world.visit()
    assert visit.gone == ["/", "/docs/travel"]
    assert visit.unread == {}


def test_only_the_site_itself_is_read(world):
    """Whatever its sitemap, its redirects or its canonical links say."""
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
        assert visit.unread == {"/away": "answers HTTP 302 to an address that is not read"}
        assert other.requests == []


def test_robots_txt_is_obeyed(world):
    """Disallowed pages are not asked for, also after a redirect, and the delay is kept."""
    world.site.robots = "User-agent: *\nDisallow: /docs/\nAllow: /docs/travel\nDisallow: /secret\nCrawl-delay: 3"
    world.site.pages["/news"] = Answer(301, b"", {"Location": "/secret"})
    world.site.page("/secret", "Secret", "Nobody may know.")
    visit = world.visit()
    assert list(visit.read) == ["/", "/docs/travel"]
    assert "/secret" not in world.asked()
    assert set(world.waits) == {3.0}


def test_our_own_group_and_its_sitemaps_hold(world):
    """Robots.txt names the sitemaps of a site whose front page is given; those of other hosts are not read."""
    world.site.robots = (
        "User-agent: *\nDisallow: /\n\nUser-agent: Footnote\nDisallow: /news\n\n"
        f"Sitemap: {world.origin}/parts/all.xml\nSitemap: http://127.0.0.2:9/other.xml\n"
    )
    world.site.pages["/parts/all.xml"] = Answer(200, sitemap(world.origin, ["/news", "/docs/leave.html"]), XML)
    assert list(world.visit("/").read) == ["/docs/leave.html"]


def test_sitemaps_of_sitemaps_and_packed_ones(world):
    """Indexes may name each other; each is read once; one that names another host is left alone."""
    first, second = f"{world.origin}/parts/1.xml.gz", f"{world.origin}/parts/2.txt"
    index = sitemap_index(first, second, f"{world.origin}/sitemap.xml", "http://127.0.0.2:9/x.xml")
    world.site.pages["/sitemap.xml"] = Answer(200, index, XML)
    world.site.pages["/parts/1.xml.gz"] = Answer(200, gzip.compress(sitemap(world.origin, ["/news"])))
    world.site.pages["/parts/2.txt"] = Answer(200, f"{world.origin}/\n{world.origin}/news\n".encode())
    assert sorted(world.visit().read) == ["/", "/news"]
    assert len([path for path in world.server.paths() if path.startswith(("/sitemap", "/parts"))]) == 3


def test_a_part_that_cannot_be_read_takes_nothing_away(world):
    """What is known and was not listed counts as listed, and the part is told of."""
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
    ("answer", "said"),
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
def test_what_is_no_sitemap_is_told_in_one_line(world, answer, said):
    """And nothing is listed, so that nothing is removed."""
    world.site.pages["/sitemap.xml"] = answer
    with pytest.raises(SourceUnavailable, match=said) as raised:
        world.source().documents(world.known)
    assert "\n" not in str(raised.value)


def test_a_large_sitemap(world):
    """60,000 pages are listed and counted; unchanged, none of them is asked for."""
    paths = [f"/p/{number}" for number in range(60_000)]
    world.site.pages["/sitemap.xml"] = Answer(
        200, sitemap(world.origin, paths, dict.fromkeys(paths, "2026-01-01")), XML
    )
    source = world.source()
    assert source.expected() == 60_000
    world.known = {f"{world.origin}{path}": f"2026-01-01T00:00:00+00:00 lastmod-{READER_VERSION}" for path in paths}
    items = list(source.documents(world.known))
    assert {item.fingerprint for item in items} == {f"2026-01-01T00:00:00+00:00 lastmod-{READER_VERSION}"}
    assert world.asked() == []


def test_pages_are_chosen_by_path_and_age(world):
    assert list(world.visit(rules=SelectionRules(include=("docs/**",), exclude=("**/travel",))).read) == [
        "/docs/leave.html"
    ]
    world.known.clear()
    assert "/docs/leave.html" not in world.visit(rules=SelectionRules(newest_days=20)).read


def test_noindex_is_honoured(world):
    """In the page, in a header, for all or for us; what it says to others is not ours. What was read is removed."""
    world.visit()
    world.site.page("/", "Front", "Welcome.", head="<meta name='ROBOTS' content='noindex, follow'>")
    world.site.page("/news", "News", "Other news.", X_Robots_Tag="footnote: noindex", Last_Modified="x")
    world.site.page("/docs/travel/", "Travel", "The allowance is 50.", X_Robots_Tag="otherbot: none", ETag='"t3"')
    visit = world.visit()
    assert visit.gone == ["/", "/news"]
    assert list(visit.read) == ["/docs/travel"]


def test_a_page_that_is_better_known_by_another_address_is_left_to_it(world):
    """If that is listed; else it is cited by it. A site that calls all its pages the front page is not believed."""
    world.site.page("/a", "A", "One page.", head="<link rel='canonical' href='/news?'>")
    world.site.page("/b", "B", "Another page.", head="<link rel='canonical' href='/docs/b'>")
    world.site.page("/c", "C", "A third page.", head=f"<link rel='canonical' href='{world.origin}/'>")
    visit = world.visit()
    assert visit.gone == ["/a"]
    assert visit.pages["/b"].url == world.origin + "/docs/b"
    assert visit.pages["/c"].url == world.origin + "/c"


def test_a_page_that_moved(world):
    """To a listed page: it is gone. By a slash, its case or an index alone: it is the page. Elsewhere: told."""
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


def _smiles(request):
    return Answer(200, html("Oops", f"We could not find {request.path} at 12:{len(request.path)}."), HTML)


def _same_for_listed(request):
    if len(request.path) == 25:
        return Answer(404)
    return Answer(200, html("Maintenance", f"We are back soon. Request {hash(request.path)}"), HTML)


@pytest.mark.parametrize("broken", [_redirects, _redirects_home, _with_password, _smiles, _same_for_listed])
def test_a_site_that_answers_all_pages_alike_replaces_none(world, broken):
    """A login, an error in the best of manners: no page becomes that, and none is gone."""
    for path, text in (("/docs/leave.html", "Leave is 30 days."), ("/a", "About apples."), ("/b", "About bees.")):
        world.site.page(path, path, text, date="2026-10-01")
    world.visit()
    world.site.dates = dict.fromkeys(world.site.dates, "2026-11-03")
    world.site.everything = broken
    visit = world.visit()
    assert visit.gone == []
    # Where all leads to the front page, nobody can tell what that is to say.
    assert set(visit.read) == ({"/"} if broken is _redirects_home else set())
    assert len(visit.unread) >= 5

    world.site.everything = None
    assert {"/a", "/b"} <= set(world.visit().read)


def test_a_single_page_that_asks_to_log_in_is_told(world):
    """A field for a password and next to no words; a manual about passwords is a page."""
    field = "<form><input type='password'></form>"
    world.site.page("/in", "Log in", "Please log in.", field)
    world.site.page("/manual", "Passwords", "A password is long. " * 90, field)
    visit = world.visit()
    assert visit.unread == {"/in": "asks to log in"}
    assert "/manual" in visit.read


def test_a_single_page_that_is_not_there_is_told_also_where_the_site_smiles(world):
    """What it answers at an address that cannot exist is nobody's page."""
    world.site.everything = lambda request: _smiles(request) if request.path not in world.site.pages else None
    world.site.listed = ["/", "/news", "/lost"]
    visit = world.visit()
    assert list(visit.read) == ["/", "/news"]
    assert visit.unread == {"/lost": "equals the site's response to addresses that do not exist"}


def test_two_pages_that_say_the_same_are_one(world):
    """The first is read, the second told of."""
    world.site.page("/x", "Same", "The same words.")
    world.site.page("/y", "Same", "The same words.")
    visit = world.visit()
    assert "/x" in visit.read
    assert visit.unread == {"/y": f"has the same text as {world.origin}/x, like an error or login page"}


def test_pages_that_differ_in_a_number_alone_are_pages_each(world):
    """As those of a list of prices do."""
    for lot in (7, 8, 12):
        world.site.page(f"/lot-{lot}", "Berths", f"The fee of berth {lot} is {lot * 10} euros.")
    visit = world.visit()
    assert {"/lot-7", "/lot-8", "/lot-12"} <= set(visit.read)
    assert visit.unread == {}


@pytest.mark.parametrize(("answer", "asked"), [(Answer(403), 5), (Answer(503), 10)])
def test_a_site_that_refuses_page_after_page_is_left_alone(world, answer, asked):
    for number in range(20):
        world.site.page(f"/more/{number}", "More", f"Page {number}.")
    world.site.everything = lambda _: answer
    with pytest.raises(SourceUnavailable):
        world.visit()
    assert len(world.asked()) == asked


def test_single_pages_that_cannot_be_had_are_told(world):
    """Refused, broken or too large: the others are read."""
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


def test_other_kinds_are_read_by_what_the_server_says(world):
    """Text, Markdown and tables; pictures are not read; what is broken is told."""
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


def test_one_page_can_be_had_at_once(world):
    """By its address however written, listed or not; what is gone, forbidden, left out or another site's is told."""
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


def test_it_is_polite(world):
    """One connection, one agent with a contact, a gap between all requests, Retry-After obeyed."""
    left = [Answer(503, headers={"Retry-After": "9"})]
    world.site.everything = lambda request: left.pop() if left and request.path == "/news" else None
    visit = world.visit(gap=0.5)
    assert "/news" in visit.read
    assert world.server.most_open == 1
    assert {request.headers["user-agent"] for request in world.server.requests} == {AGENT}
    assert (world.waits.count(0.5), world.waits.count(9.0)) == (len(world.server.requests) - 1, 1)


def test_a_stop_ends_it(world):
    source = world.source()
    items = iter(source.documents())
    next(items)
    source.stop()
    with pytest.raises(SourceUnavailable, match="stopped"):
        list(items)
