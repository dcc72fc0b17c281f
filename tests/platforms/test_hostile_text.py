"""Hostile text through the real adapters pings no user, and links only stored pages.

The tests read every text that a client ever got, with all that any client could make of it: posts and their fallback
text, each state of a live message and all of its text joined, cards, modals and private messages.
"""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from bot.platforms.discord.messages import escape_markdown
from bot.platforms.mattermost.messages import escape_markdown as escape_mattermost
from bot.platforms.slack.messages import escape_mrkdwn
from bot.views.catalog import translate
from pipeline.kit import Kit
from pipeline.types import CitedSentence, Conversation, Status, Support
from storage.types import Evidence, SearchQuery
from tests.platforms import markup
from tests.platforms.bots import Bot
from tests.platforms.example_app import HOST, fill
from tests.platforms.hostile_text import DATA, HALVES, TOKENS, read_data_sets
from tests.platforms.systems import Gated
from tests.platforms.workspace import Workspace
from tests.platforms.workspaces import PLATFORMS, WORKSPACES

PLAIN = "What are the nasty words?"
"""Its answer stops after the first sentence, so that it is seen while it grows."""


async def support_all(sentence: str, evidence: Sequence[Evidence], *, asked: Sequence[str] = ()) -> Support:
    """Support everything, as a deceived check would."""
    del sentence, evidence, asked
    return Support(1.0, holds=True)


def system_saying(replies: Sequence[str]) -> Any:
    """Return a system that quotes every passage, and says the replies as if the first passage supported them.

    The support check withholds most of the replies; quotations are shown as they are.
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


def hostile_pages() -> tuple[dict[str, Any], dict[str, str]]:
    """Return pages whose titles, sections and text are hostile, and their addresses, which are too."""
    tokens = [*TOKENS, *HALVES[::2], *HALVES[1::2]]
    groups = [tokens[start : start + 8] for start in range(0, len(tokens), 8)]
    pages = {
        f"page{number}.md": {"title": f"Nasty {' '.join(group)}", " ".join(group): f"Nasty words: {' '.join(group)}."}
        for number, group in enumerate(groups)
    }
    return pages, {key: HOST + key + "".join(group) for key, group in zip(pages, groups, strict=True)}


async def converse(workspace: Workspace, home: Path, questions: Sequence[str], replies: Sequence[str]) -> str:
    """Ask these questions of a system with these replies, press all buttons, and return all that was read."""
    async with AsyncExitStack() as stack:
        system = Gated(system_saying(replies))
        bot = Bot(workspace, home, stack, system, changes={"supports": support_all, "examines": support_all})
        await bot.start(channel=[{"id": bot.id(), "ask": [bot.user_id(2)]}], timezone="UTC")
        system.later.add(PLAIN)
        read = list[str]()
        for number, question in enumerate((PLAIN, *questions)):
            asks = await bot.ask(question, only_asker=number == 1)
            if question in system.later:
                await system.until_said(question)
                await system.open()
            await workspace.until(lambda asks=asks: any("evidence" in one.buttons for one in workspace.answer(asks)))
            read += [one.text for one in workspace.answer(asks)]
            for action in ("evidence", "ask", "up", "share"):
                if any(action in shown.buttons for shown in workspace.answer(asks)):
                    await bot.press(action, asks)
                    await workspace.until(lambda: not workspace.pending)
        read += bot.posted()
    assert workspace.refused == []
    assert [ping for ping in workspace.pings if workspace.users[2] not in ping] == []
    assert [link for link in workspace.links if not link.startswith(HOST)] == []
    return "\n".join(read)


@pytest.mark.parametrize("name", PLATFORMS)
async def test_hostile_text_pings_nobody_and_links_nothing(name: str, tmp_path: Path) -> None:
    """In questions, titles, sections, addresses, passages and replies, whole and in pieces that join."""
    pages, urls = hostile_pages()
    await fill(tmp_path, pages, **urls)
    questions = [f"Nasty words? {' '.join(TOKENS[start : start + 20])}" for start in (0, 20)]
    async with WORKSPACES[name]() as workspace:
        read = await converse(workspace, tmp_path, questions, [*TOKENS, *HALVES])

    assert all(token in read for token in ("@everyone", "<!here>", "https://evil.com", "\\u003c!here\\u003e"))


@pytest.mark.skipif(not DATA.is_dir(), reason="FOOTNOTE_DATA can name the folder of data sets")
@pytest.mark.parametrize("name", PLATFORMS)
async def test_data_sets_ping_nobody_and_link_nothing(name: str, tmp_path: Path) -> None:
    texts = read_data_sets()
    pages = {f"page{number}.md": {"title": text[:80], text[:60]: text} for number, text in enumerate(texts[::16])}
    await fill(tmp_path, pages)
    async with WORKSPACES[name]() as workspace:
        await converse(workspace, tmp_path, texts[3:300:150], texts[1::8])


@pytest.mark.parametrize("escape", [escape_mrkdwn, escape_markdown, escape_mattermost], ids=PLATFORMS)
@pytest.mark.parametrize("occasion", ["channel_unfit", "channel_no_corpus", "channel_set", "channel_wider"])
def test_settings_of_admins_ping_nobody(escape: Any, occasion: str) -> None:
    for value in (*TOKENS, *HALVES):
        names = dict.fromkeys(("value", "key", "known", "fits", "name", "allowed"), value)
        payload = escape(translate(occasion, "en", **names))
        assert markup.pings(payload) == markup.links(payload) == []
