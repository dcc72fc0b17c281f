"""A fake web site on 127.0.0.1 with robots.txt, a sitemap, and pages that can be changed, moved and broken."""

from collections.abc import Callable
from dataclasses import dataclass, field

from tests.ingest.servers.web import Answer, Request

HTML = {"Content-Type": "text/html; charset=utf-8"}
XML = {"Content-Type": "application/xml"}
SPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


def html(title: str, *paragraphs: str, head: str = "", lang: str = "en") -> bytes:
    body = "".join(f"<p>{text}</p>" for text in paragraphs)
    body = f"<nav>Home</nav><main><h1>{title}</h1>{body}</main>"
    return f"<html lang='{lang}'><head><title>{title}</title>{head}</head><body>{body}</body></html>".encode()


@dataclass
class FakeSite:
    pages: dict[str, Answer] = field(default_factory=dict)
    dates: dict[str, str] = field(default_factory=dict)  # lastmod by path
    listed: list[str] | None = None  # paths or addresses; None: all pages
    robots: str = ""
    everything: Callable[[Request], Answer | None] | None = None  # answers instead of all pages
    origin: str = ""

    def page(self, path: str, title: str, *paragraphs: str, date: str = "", head: str = "", **headers: str) -> None:
        """Publish a page in the sitemap."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.pages[path] = Answer(200, html(title, *paragraphs, head=head), {**HTML, **named})
        if date:
            self.dates[path] = date

    def __call__(self, request: Request) -> Answer:
        path = request.path
        if path == "/robots.txt":
            return Answer(200, self.robots.encode(), {"Content-Type": "text/plain"}) if self.robots else Answer(404)
        if path.startswith(("/sitemap", "/parts")):
            return self.pages.get(path) or (self._sitemap() if path == "/sitemap.xml" else Answer(404))
        answer = self.pages.get(path, Answer(404, html("Not found", "There is nothing here."), HTML))
        return (self.everything and self.everything(request)) or _unless_known(request, answer)

    def _sitemap(self) -> Answer:
        paths = [path for path in self.pages if not path.startswith(("/sitemap", "/parts"))]
        return Answer(200, sitemap(self.origin, self.listed if self.listed is not None else paths, self.dates), XML)


def _unless_known(request: Request, answer: Answer) -> Answer:
    """Answer 304 if the condition holds."""
    etag, modified = answer.headers.get("ETag"), answer.headers.get("Last-Modified")
    known = (etag and request.headers.get("if-none-match") == etag) or (
        modified and request.headers.get("if-modified-since") == modified
    )
    return Answer(304, b"", {"ETag": etag} if etag else {}) if known else answer


def sitemap(origin: str, paths: list[str], dates: dict[str, str] | None = None) -> bytes:
    entries = []
    for path in paths:
        date = (dates or {}).get(path)
        changed = f"<lastmod>{date}</lastmod>" if date else ""
        entries.append(f"<url><loc>{path if '//' in path else origin + path}</loc>{changed}</url>")
    return f"<?xml version='1.0' encoding='UTF-8'?><urlset {SPACE}>{''.join(entries)}</urlset>".encode()


def sitemap_index(*addresses: str) -> bytes:
    entries = "".join(f"<sitemap><loc>{address}</loc></sitemap>" for address in addresses)
    return f"<sitemapindex {SPACE}>{entries}</sitemapindex>".encode()
