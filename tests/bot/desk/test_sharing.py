"""Test that over a failing network, an answer is shared once however often the button is pressed."""

import shutil
from pathlib import Path

import pytest

from bot.views.catalog import translate
from tests.bot.desk.rights_matrix import CORPORA, HELD, find_corpora, open_rights_matrix
from tests.platforms.memory_platform import BROKEN, DIALECTS, LIMITED, LOST

WHO = ("C2", "U2")


@pytest.mark.parametrize("failure", [LIMITED, BROKEN, LOST])
async def test_failed_sharing_leaves_one_copy(vaults, tmp_path, failure):
    async with open_rights_matrix(Path(shutil.copytree(vaults, tmp_path / "home")), DIALECTS["slack"]) as matrix:
        await matrix.allow(dict.fromkeys(CORPORA, ("C2",)), frozenset())
        question = (await matrix.ask({WHO: HELD}))[WHO]
        ticket, key = await matrix.ticket(question), f"{question.key}#shared"
        matrix.server.failures = [failure]

        result = [await matrix.act("share", ticket, WHO) for _ in range(3)]

        shown = [message for message in matrix.server.messages.values() if message.key == key]
        assert result == [translate(name, "en") for name in ("share_failed", "share_done", "share_already")]
        assert (len(shown), matrix.server.posts[key]) == (1, 1)
        assert find_corpora(shown[0].plain) == set(CORPORA)
