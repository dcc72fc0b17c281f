"""The nasty set through the real adapters and their libraries: nobody is pinged, nothing foreign is linked or unfurled.

Everything that a client ever got is read at its worst: posts and their fallback text, each state of a live message and
all of its text joined, cards, modals, and what only one person sees.
"""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from pipeline.kit import Kit
from pipeline.types import CitedSentence, Conversation, Status, Support
from storage.types import Evidence, SearchQuery
from tests.platforms.bots import Bot
from tests.platforms.contract import HOUSES as FAKES
from tests.platforms.contract import Street
from tests.platforms.houses import HOUSES
from tests.platforms.nasty import TOKENS
from tests.platforms.systems import Gated
from tests.platforms.test_nasty import DATA, MEANT, PIECES, corpus
from tests.platforms.world import HOST, fill

PLAIN = "What are the nasty words?"
"""Its answer is held after the first sentence, so that it is seen while it grows."""
ADAPTERS = [name for name in HOUSES if name not in FAKES and "over" not in name]


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


async def met(street: Street, home: Path, questions: Sequence[str], replies: Sequence[str]) -> str:
    """Ask these questions of a model that replies with these things, press all buttons; return all that was read."""
    async with AsyncExitStack() as stack:
        bot = Bot(street, home, Gated(saying(replies)), stack, changes={"supports": agrees, "examines": agrees})
        person, read = street.people[2], list[str]()
        helper = f"{street.name}:{street.workspace}/{person}"
        await bot.start(channel=[{"id": bot.id(), "ask": [helper]}], timezone="UTC")
        bot.system.later.add(PLAIN)
        for number, question in enumerate((PLAIN, *questions)):
            asks = await bot.ask(question, only_asker=number == 1)
            if question in bot.system.later:
                await bot.system.until_said(question)
                await bot.system.open()
            await street.until(lambda asks=asks: any("evidence" in one.buttons for one in street.answer(asks)))
            read += [one.text for one in street.answer(asks)]
            for action in ("evidence", "ask", "up", "share"):
                if any(action in shown.buttons for shown in street.answer(asks)):
                    await bot.press(action, asks)
                    await street.until(lambda: not street.pending)
        read += [one.text for one in street.seen(street.channels[0], by=street.people[0])]
    assert street.refused == []
    return "\n".join(read)


def harmless(street: Street) -> None:
    """Hold that nobody but the one who is to be asked was pinged, and that stored pages alone were linked to."""
    assert [ping for ping in street.pings if street.people[2] not in ping] == []
    assert [link for link in street.links if not link.startswith(f"{MEANT}/")] == []


@pytest.mark.parametrize("name", ADAPTERS)
async def test_nothing_nasty_pings_or_links_through_an_adapter(name: str, tmp_path: Path) -> None:
    """In questions, titles, sections, addresses, passages and replies, whole and in pieces that join."""
    pages, urls = nasty_pages([*TOKENS, *PIECES[0], *PIECES[1]])
    await fill(tmp_path, pages, **urls)
    halves = [half for pair in zip(*PIECES, strict=True) for half in pair]
    questions = [f"Nasty words? {' '.join(TOKENS[start : start + 20])}" for start in range(0, len(TOKENS), 20)]
    async with HOUSES[name]() as street:
        read = await met(street, tmp_path, questions[:2], [*TOKENS, *halves])

        assert all(token in read for token in ("@everyone", "<!here>", "https://evil.com", "\\u003c!here\\u003e"))
        harmless(street)


@pytest.mark.skipif(not DATA.is_dir(), reason="FOOTNOTE_DATA can name the folder of data sets")
@pytest.mark.parametrize("name", ADAPTERS)
async def test_nothing_of_the_data_sets_pings_or_links_through_an_adapter(name: str, tmp_path: Path) -> None:
    """Naughty strings and injections, as passages that are recited and as replies."""
    found = corpus()
    pages = {f"page{number}.md": {"title": text[:80], text[:60]: text} for number, text in enumerate(found[::16])}
    await fill(tmp_path, pages)
    async with HOUSES[name]() as street:
        await met(street, tmp_path, found[3:300:150], found[1::8])

        harmless(street)
