"""Small dumps as MediaWiki exports them."""

import bz2

HEADER = (
    '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.10/" version="0.10" xml:lang="en">\n<siteinfo>'
    "<sitename>Wikipedia</sitename><dbname>enwiki</dbname><base>https://en.wikipedia.org/wiki/Main_Page</base>"
    '<case>first-letter</case><namespaces><namespace key="0" /><namespace key="1">Talk</namespace>'
    '<namespace key="6">File</namespace><namespace key="14">Category</namespace></namespaces></siteinfo>\n'
)
END = "</mediawiki>\n"


def page(number, title, text, *, ns=0, revision=None, redirect=None, saved="2016-04-22T10:19:33Z"):
    """Write one page; `ns` None omits the namespace, as old schemas do; an empty `redirect` has no target."""
    target = "" if redirect is None else f'<redirect title="{redirect}" />' if redirect else "<redirect />"
    namespace = "" if ns is None else f"<ns>{ns}</ns>"
    return (
        f"<page>\n<title>{title}</title>{namespace}<id>{number}</id>{target}\n"
        f"<revision><id>{revision or number * 100}</id><timestamp>{saved}</timestamp>"
        "<contributor><id>7</id></contributor>"
        f'<model>wikitext</model><text xml:space="preserve">{text}</text></revision>\n</page>\n'
    )


def pack_streams(*streams):
    """Pack a multistream dump; return its content, its index, and where its streams start."""
    content, lines, starts = bz2.compress(HEADER.encode()), "", []
    for stream in streams:
        starts.append(len(content))
        lines += "".join(f"{len(content)}:{page.split('<id>')[1].split('<')[0]}:x\n" for page in stream)
        content += bz2.compress("".join(stream).encode())
    return content + bz2.compress(END.encode()), lines, starts


def dump(*pages, header=HEADER, end=END):
    return (header + "".join(pages) + end).encode()
