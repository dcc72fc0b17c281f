"""Finds documents by what a person calls them: an address as a browser shows it, a key, or an exact title."""

from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from sqlalchemy import ColumnElement, Connection, Table, and_, or_, select

from storage.refresh_types import Listed
from storage.schema import corpora, documents

_REVISIONS = frozenset({"oldid", "diff", "rev", "revision", "version", "pageversion", "curid_revision"})
"""Parameters that name a revision of a page and not another page, as wikis use them."""
_LAST = chr(0x10FFFF)
_SAFE = "/:@!$&'()*+,;=~-._"


def canonical(address: str) -> str:
    """Return an address without what leads to the same page: a fragment, a revision, a slash at its end. Pure.

    What is no address comes back as it is.
    """
    parts = _split(address)
    if parts is None:
        return address
    scheme, host, path, query = parts
    return f"{scheme}://{host}{unquote(path)}" + (f"?{query}" if query else "")


def _split(address: str) -> tuple[str, str, str, str] | None:
    try:
        parts = urlsplit(address.strip())
    except ValueError:  # such as half an IPv6 address
        return None
    if not parts.scheme or not parts.netloc:
        return None
    named = [(name, value) for name, value in parse_qsl(parts.query, keep_blank_values=True)]
    kept = sorted(pair for pair in named if pair[0].lower() not in _REVISIONS)
    return parts.scheme.lower(), parts.netloc.lower(), parts.path.rstrip("/"), urlencode(kept)


def find(connection: Connection, address: str, among: Table = documents) -> tuple[Listed, ...]:
    """Return the documents that an address, a key or a title names, by corpus and key.

    They are sought among what is listed, or among what was `forgotten`.
    """
    wanted = address.strip()
    if not wanted:
        return ()
    named = among.c.corpus, among.c.key, among.c.title, among.c.url
    # Corpora are named one by one because the index over keys begins with them.
    by_key = and_(among.c.corpus.in_(select(corpora.c.name)), among.c.key == wanted)
    query = select(*named).where(or_(by_key, among.c.title == wanted))
    rows = {(row.corpus, row.key): Listed(*row) for row in connection.execute(query)}
    for condition in _like(wanted, among.c.url, ranges=connection.dialect.name == "sqlite"):
        found = (Listed(*row) for row in connection.execute(select(*named).where(condition)))
        rows |= {(row.corpus, row.key): row for row in found if canonical(row.url) == canonical(wanted)}
    return tuple(rows[name] for name in sorted(rows))


def _like(address: str, url: ColumnElement[str], *, ranges: bool) -> list[ColumnElement[bool]]:
    """Return conditions that each use the index over addresses; together they meet all that may be the same."""
    parts = _split(address)
    if parts is None:
        return []
    scheme, host, path, _ = parts
    spelled = {path, unquote(path), quote(unquote(path), safe=_SAFE), quote(unquote(path), safe="/")}
    bases = sorted(f"{scheme}://{host}{spelling}" for spelling in spelled)
    same = url.in_([*bases, *(f"{base}/" for base in bases)])
    starts = [f"{base}{then}" for base in bases for then in ("?", "/?", "#", "/#")]
    # SQLite asks no index for LIKE, and PostgreSQL's order of letters is no order of bytes.
    within = (and_(url >= start, url < start + _LAST) for start in starts)
    prefixed = (url.startswith(start, autoescape=True) for start in starts)
    return [same, *(within if ranges else prefixed)]
