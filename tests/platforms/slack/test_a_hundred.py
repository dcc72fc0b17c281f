"""Many questions at once, to a model that takes 20 s, inside Slack's limits: each is answered, whole and once.

There are a hundred where there is time. `pytest -s` prints how many answers streamed, how many stood in one message
that was updated, and how long it took by Slack's clock.
"""

from pathlib import Path
from typing import Any

from pipeline.kit import Kit
from pipeline.systems import extractive
from pipeline.types import Conversation, Status
from tests.platforms.bots import Bot, bot_in
from tests.platforms.example_app import ANSWERS, BUILT
from tests.platforms.slack.workspace import workspaces
from tests.thorough import THOROUGH

AT_ONCE, MODEL_SECONDS = 100 if THOROUGH else 40, 20


async def test_many_questions_at_once_are_answered_within_the_limits(filled: Path, tmp_path: Path) -> None:
    async with bot_in(workspaces()(), filled, tmp_path / "home", every=False) as bot:
        bot.system.inner = _slow(bot)
        await bot.start(desk={"at_once": AT_ONCE, "per_channel": AT_ONCE})
        began = bot.server.clock.now()
        asked = [
            await bot.people.mention(BUILT, user=f"U{number % 3 + 1}", channel=f"C{number % 3 + 1}")
            for number in range(AT_ONCE)
        ]
        await bot.server.until(lambda: all(_whole(bot, one) for one in asked), seconds=60)
        minutes = (bot.server.clock.now() - began) / 60
        await bot.workspace.settled()
        streamed = len(bot.server.calls("chat.startStream"))
        took = sorted(delivery.took for delivery in bot.server.courier.done)
        late = took[int(len(took) * 0.99)]
        print(f"\nstreamed {streamed}, updated {AT_ONCE - streamed}, {minutes:.1f} minutes to the last")  # noqa: T201
        print(f"acknowledged within {late:.3f} s (p99 of {len(took)}, all at once)")  # noqa: T201

        assert bot.server.refused == bot.server.courier.lost == []
        assert all(len(bot.people.answers(one)) == 1 for one in asked)
        assert streamed > 0


def _slow(bot: Bot) -> Any:
    async def answer(conversation: Conversation, kit: Kit) -> Status:
        await bot.server.clock.sleep(MODEL_SECONDS)
        return await extractive.answer(conversation, kit)

    return answer


def _whole(bot: Bot, asked: str) -> bool:
    """Return whether an answer stands there with its buttons."""
    shown = [f"{one.text} {one.blocks}" for one in bot.people.answers(asked)]
    return any(ANSWERS[BUILT] in one and "footnote:evidence" in one for one in shown)
