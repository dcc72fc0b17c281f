"""Text that a model wrote cannot link, load or call anything."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.replies.markup import clean_markup

TAKEN = [
    ("See [the handbook](https://a.example/b_(c)) now.", "See the handbook now."),
    ('See [the handbook](/b "a title") now.', "See the handbook now."),
    ("See [the handbook][ref] now.", "See the handbook now."),
    ("See [`pay()`](https://a.example) now.", "See `pay()` now."),
    ("[x](javascript:alert(1)) y", "x y"),
    ("a ![alt text](https://a.example/p.png) b", "a b"),
    ("[![alt](https://a.example/i)](https://a.example) b", "b"),
    ("[1](https://a.example) b", "[1] b"),
    ("Go to https://a.example/b?c=d. Then", "Go to . Then"),
    ("Go to <https://a.example> then", "Go to then"),
    ("(https://a.example/b)", ""),
    ("www.a.example b", "b"),
    ("hxxps://a.example b hxxp[:]//a.example", "b"),
    ("javascript:alert(1) data:text/html;base64,AAAA mailto:a@b.example tel:+4930123", ""),
    ("a.example.com/login?x=1 b", "b"),
    ("//cdn.example.com/x b", "b"),
    ("请看https://a.example/c。然后", "请看 。然后"),
    ('<a href="https://a.example">here</a> b', "here b"),
    ("<img src=x onerror=alert(1)> b", "b"),
    ("<script>alert('x')</script> b <!-- c --> d", "b d"),
    ("one<br>two <b>three</b> H<sub>2</sub>O 10<sup>5</sup>", "one two three H2O 10⁵"),
    ("<!channel> <!here|here> <!subteam^S1|@team> <@U1> <#C1|general> b", "b"),
    ("<https://a.example|the text> b", "the text b"),
    ("<@&1> <@!1> <#1> <:wave:1> <a:wave:1> <t:1:R> </ask:1> b", "b"),
    ("@everyone @here @channel b", "b"),
    ("a@everyone b", "a b"),
    ("@bob said", "bob said"),
    (r"\u003c!here\u003e &lt;!here&gt; &amp;lt;!here&amp;gt; &#60;!here&#62; b", "b"),
    ("`\\u003c!here\\u003e &lt;@U1&gt; https://a.example`", "` `"),
    ("`&#60;@U1&#62; &lt;&#33;here&gt; https&#58;//a.example &amp;#60;!here&amp;#62;`", "` `"),
    ("@every\u200bone ht\u2060tps://a.example b", "b"),
    ("ht<b></b>tps://a.example b", "b"),
    ("<<!here>!here> b", "< !here> b"),
    ("[ref]: https://a.example 'title'", ""),
    ("[^1]: A page of the handbook", ""),
]
KEPT = [
    "Write to pay@example.com.",
    "Booking.com and Node.js/Express and I/O, 3/4 and/or km/h.",
    "The data: five items. JavaScript: a language. Note: see http.",
    "x<y and y>z; a <b and c> d; 5 < 6 > 4; <name>",
    "f[x](y) = 3 and great![1]",
    "call foo() with [] or () there",
    "`<div>` and `a[1](x)` and `&lt;` and `@Override`",
    "Is it example.com?",
    "R&D at AT&T, 10.0.0.0/8, C++ // D",
    "می‌خواهم 👩‍💻 क्‍ष",
]


@pytest.mark.parametrize(("text", "left"), TAKEN)
def test_links_tags_and_mentions_are_removed_and_their_words_remain(text: str, left: str) -> None:
    assert " ".join(clean_markup(text).split()) == left


@pytest.mark.parametrize("text", KEPT)
def test_plain_text_and_code_are_unchanged(text: str) -> None:
    assert clean_markup(text) == text


SIGNS = ("<b>", "</b>", "http", "://", "@everyone", "here", "&lt;", "&amp;", r"\u003c", "www.", "![", "](", "\u200b")
PIECES = [piece for text, _ in TAKEN for piece in re.findall(r"\w+|\W", text)]
HOSTILE = st.sampled_from([*PIECES, *SIGNS, *"<>@!&;[]()`|\\/:#.$ \n"])
LEFT_OVER = re.compile(
    r"://\w|\bwww\.\w|@(?:everyone|here|channel)\b(?!\.\w)|<[!@#][^<>\n]*>|(?:&lt;|\\u003c)[!@#][\w]*(?:&gt;|\\u003e)"
    r"|\b(?:javascript|mailto):\w",
    re.IGNORECASE,
)


@given(st.lists(HOSTILE, max_size=40).map("".join))
@example("<" * 40 + "!here" + ">" * 40)
@example("&amp;" * 30 + "amp;" * 30 + "lt;!here&gt;")
@example("".join("ht<b" * 30) + "tp://x" + ">" * 30)
@example("$`a`$ `$`$")
def test_cleaning_is_complete_and_idempotent(text: str) -> None:
    once = clean_markup(text)
    assert clean_markup(once) == once
    assert not LEFT_OVER.search(once)


@given(st.text())
def test_any_text_can_be_cleaned(text: str) -> None:
    assert clean_markup(clean_markup(text)) == clean_markup(text)
