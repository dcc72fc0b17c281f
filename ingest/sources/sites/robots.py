"""What a site's robots.txt asks of us, as RFC 9309 has it. Pure.

The group of our own name holds, else that of everybody; of the rules that fit a path the longest one, and of two that
are as long the one that allows.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes, urlsplit

OURS = "footnote"
LARGEST = 512 << 10
"""Bytes that are looked at; the RFC asks for 500 kibibytes at least."""


@dataclass(frozen=True, slots=True)
class Robots:
    """What is asked of us."""

    rules: tuple[tuple[bool, str], ...] = ()
    """Whether a path is allowed, and the pattern that it begins with."""
    delay: float = 0.0
    """Seconds between two requests."""
    sitemaps: tuple[str, ...] = ()

    def checker(self) -> Callable[[str], bool]:
        """Return what tells whether an address may be read."""
        ordered = sorted(self.rules, key=lambda rule: (len(rule[1]), rule[0]), reverse=True)
        cut = [(allowed, _plain(said.removesuffix("$")).split("*"), said.endswith("$")) for allowed, said in ordered]

        def may_read(url: str) -> bool:
            if not cut:
                return True
            parts = urlsplit(url)
            path = _plain(parts.path or "/") + (f"?{_plain(parts.query)}" if parts.query else "")
            return next((allowed for allowed, parts, ends in cut if _fits(path, parts, ends=ends)), True)

        return may_read


def parsed(content: bytes) -> Robots:
    """Read a robots.txt, however odd."""
    groups: dict[str, list[tuple[str, str]]] = {}
    sitemaps: list[str] = []
    names: list[str] = []
    naming = False
    for key, value in _lines(content):
        if key == "user-agent":
            names = [*names, value.lower()] if naming else [value.lower()]
            groups.setdefault(names[-1], [])
        elif key == "sitemap":
            sitemaps.append(value)
        elif key in {"allow", "disallow", "crawl-delay"}:
            for name in names:
                groups[name].append((key, value))
        naming = key == "user-agent" or (naming and key == "sitemap")
    mine = groups.get(_ours(groups), [])
    rules = tuple((key == "allow", value) for key, value in mine if key != "crawl-delay" and value)
    delays = [float(value) for key, value in mine if key == "crawl-delay" and re.fullmatch(r"\d{1,4}(\.\d+)?", value)]
    return Robots(rules, max(delays, default=0.0), tuple(sitemaps))


def _lines(content: bytes) -> list[tuple[str, str]]:
    text = content[:LARGEST].decode("utf-8-sig", "replace")
    pairs = (line.partition("#")[0].partition(":") for line in text.splitlines())
    return [(key.strip().lower(), value.strip()) for key, colon, value in pairs if colon]


def _ours(groups: dict[str, list[tuple[str, str]]]) -> str:
    """Return the name of the group that is ours; agents are named by their product, with or without a version."""
    return next((name for name in groups if name.partition("/")[0].strip() == OURS), "*")


def _fits(path: str, parts: list[str], *, ends: bool) -> bool:
    """Whether a path begins with a pattern that was cut at its stars; in one way through it, as it is a stranger's."""
    first, *others = parts
    if not others:
        return path == first if ends else path.startswith(first)
    if not path.startswith(first):
        return False
    at = len(first)
    for part in others[:-1] if ends else others:
        found = path.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return not ends or (path.endswith(others[-1]) and len(path) - len(others[-1]) >= at)


def _plain(path: str) -> str:
    return unquote_to_bytes(path).decode("utf-8", "replace")
