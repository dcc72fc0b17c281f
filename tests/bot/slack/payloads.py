"""Finds the texts, links and mentions that a client reads in Slack's JSON."""

from collections.abc import Iterator
from itertools import chain
from typing import Any

from tests.platforms import markup


def elements(blocks: Any, kind: str) -> list[dict[str, Any]]:
    """Return all objects of a type anywhere in blocks, in order."""
    return [one for one in walk(blocks) if one.get("type") == kind]


def walk(value: Any) -> Iterator[dict[str, Any]]:
    """Yield all objects in JSON, in order."""
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ():
        yield from walk(item)


def texts(blocks: Any) -> list[str]:
    """Return all strings that are shown, except addresses of links."""
    shown = ("text", "title", "details")
    return [one[name] for one in walk(blocks) for name in shown if isinstance(one.get(name), str)]


def addresses(blocks: Any) -> list[str]:
    """Return the addresses that are linked to."""
    return [one["url"] for one in walk(blocks) if "url" in one]


def people(blocks: Any) -> list[str]:
    """Return the users that blocks mention."""
    assert not [one for one in walk(blocks) if one.get("type") in {"broadcast", "usergroup", "channel"}]
    return [element["user_id"] for element in elements(blocks, "user")]


def lines(blocks: Any) -> list[str]:
    """Return the text of each section and quote of rich text, and of each card's title."""
    found = []
    for one in walk(blocks):
        if str(one.get("type")).startswith("rich_text_"):
            found.append("".join(item.get("text") or f"@{item.get('user_id')}" for item in one["elements"]))
        elif one.get("type") == "context":
            found += [item["text"] for item in one["elements"]]
        elif one.get("type") == "task_card":
            found.append(one["title"])
    return [markup.UNSEEN.sub("", line) for line in found]


def harmful(strings: Any) -> list[str]:
    """Return all pings and links that any client could make of these strings, each alone and all joined."""
    strings = list(strings)
    return list(chain.from_iterable((*markup.pings(one), *markup.links(one)) for one in (*strings, "".join(strings))))
