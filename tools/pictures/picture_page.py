"""What is around messages on any platform: the page, faces, what somebody does; pure."""

from dataclasses import dataclass

from tools.pictures.markup import plain

BOT = "footnote"
_COLOURS = ("#7a4b8f", "#2f6f8f", "#a8552d", "#4b7a3a")


@dataclass(frozen=True, slots=True)
class Done:
    """What the reader does, such as typing a command. It leaves no trace on the platform."""

    how: str
    what: str


def done(one: Done) -> str:
    """Return what somebody does."""
    return f'<div class="done"><span class="faint">{plain(one.how)}</span> <span>{plain(one.what)}</span></div>'


def face(author: str) -> str:
    """Return the face of a person, or of the bot."""
    if author.casefold() == BOT:
        return '<span class="face bot">f<sup>1</sup></span>'
    colour = _COLOURS[sum(map(ord, author)) % len(_COLOURS)]
    return f'<span class="face" style="background:{colour}">{plain(author[:1].upper())}</span>'


def page(body: str, looks: str) -> str:
    """Return a whole page with its style sheet. It runs no script and asks nobody for anything."""
    policy = "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
    head = f'<meta charset="utf-8">{policy}<title>Footnote</title><style>{looks}</style>'
    return f"<!doctype html><html lang=en><head>{head}</head><body><main>{body}</main></body></html>"
