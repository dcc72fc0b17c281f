"""What a chat program, a terminal or a browser would make a link of, in running text.

The bare name of a site stays: `Booking.com` and `Node.js` are words, no platform links them in what a bot posts once
its own parsing is off, and a sentence is held against its passages anyway. So does an e-mail address.
"""

import re
from collections.abc import Iterator

from pipeline.citing.verbatim import RESERVED
from storage.language.scripts import UNSPACED_CLASS
from storage.types import Span

_RUN = rf"[^\s<>\"`|{{}}{RESERVED}，。！？；：、（）【】［］「」『』《》“”’{UNSPACED_CLASS}]"
_SCHEMES = "javascript|vbscript|livescript|mailto|callto|skype|magnet|blob|view-source|sips?|xmpp|slack|discord"
_TOP = (
    r"(?:com|org|net|edu|gov|mil|int|info|biz|name|pro|dev|app|xyz|top|site|online|shop|store|club|link|click|page|live"
    r"|cloud|tech|blog|news|wiki|zip|mov|(?!js|ts|py|md|cs)[a-z]{2})"
)
_EVERYWHERE = (
    rf"[a-z][a-z0-9+.-]{{0,30}}+://{_RUN}*+"
    rf"|://{_RUN}*+"
    rf"|h(?:tt|xx)ps?(?:\[:\]|:){_RUN}++"
    rf"|\b(?:{_SCHEMES}):{_RUN}++"
    rf"|\bdata:(?:[\w.+-]{{1,40}}+/[\w.+-]{{1,60}}+)?[;,]{_RUN}*+"
    r"|\b(?:tel|sms):\+?\d[\d()-]*+"
    rf"|\bwww\d?\.(?=\w){_RUN}++"
)
_IN_PROSE = (
    rf"(?<![:\w/.])//(?=[\w-]{{1,63}}+\.){_RUN}++"
    rf"|(?<![\w.-])(?!asp\.net)(?:[a-z0-9-]{{1,63}}+\.){{1,8}}{_TOP}(?::\d{{2,5}}\b|(?=[/?#])){_RUN}*+(?<![?#])"
    rf"|\b\d{{1,3}}(?:\.\d{{1,3}}){{3}}(?::\d{{1,5}})?/(?=[a-z]){_RUN}++"
)
_ADDRESS_IN_CODE = re.compile(_EVERYWHERE, re.IGNORECASE)
_ADDRESS = re.compile(f"{_EVERYWHERE}|{_IN_PROSE}", re.IGNORECASE)
_MAY_BE = re.compile(r"[:/]|www|\.", re.IGNORECASE)
_AFTER = ".,;:!?)]}'*_~»›"
"""What at the end of an address is the sentence's own."""


def address_spans(text: str, *, code: bool = False) -> Iterator[Span]:
    """Yield where addresses stand, without the punctuation behind them; in `code` only those with a scheme or www."""
    if not _MAY_BE.search(text):
        return
    for found in (_ADDRESS_IN_CODE if code else _ADDRESS).finditer(text):
        bare = found[0].rstrip(_AFTER)
        closing = found[0][len(bare) :]
        opened = bare.count("(") - bare.count(")")
        inside = len(closing) - len(closing.lstrip(")")) if opened > 0 else 0
        yield found.start(), found.start() + len(bare) + min(opened, inside)


def without_addresses(text: str, *, code: bool = False) -> str:
    """Return the text with a space in the place of each address."""
    pieces, at = [], 0
    for start, end in address_spans(text, code=code):
        pieces += [text[at:start], " "]
        at = end
    return "".join([*pieces, text[at:]])
