"""What a browser makes of the HTML that pictures are drawn from."""

from html.parser import HTMLParser

from tests.platforms import markup

NASTY = """<script>alert(1)</script><img src=x onerror="alert(1)">'"&amp;</main> [x](javascript:alert(1))"""
TAGS = {"a", "b", "blockquote", "br", "code", "div", "hr", "i", "s", "span", "sup", "svg", "path", "circle"}
MARKDOWN_TAGS = {"p", "em", "strong", "pre", "ol", "ul", "li", *(f"h{n}" for n in range(1, 7))}
DRAWING = {"viewbox", "width", "height", "fill", "stroke", "stroke-width", "stroke-linejoin", "d", "cx", "cy", "r"}


class Read(HTMLParser):
    """What a browser makes of a piece of HTML."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.names: set[str] = set()
        self.links: list[str] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.names |= {name for name, _ in attrs}
        self.links += [str(value) for name, value in attrs if name == "href"]

    def handle_data(self, data):
        self.text += data

    @property
    def harmless(self) -> bool:
        drawn_here = self.tags <= TAGS | MARKDOWN_TAGS and self.names <= {"class", "style", "href", "start"} | DRAWING
        return drawn_here and all(one.startswith(("http://", "https://")) for one in self.links)


def words(text: str) -> str:
    """Return what is to be seen of a text, without its blanks."""
    return "".join(markup.UNSEEN.sub("", text).split())
