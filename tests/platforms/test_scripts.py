"""Long answers in scripts with two or three bytes per letter are complete on every platform."""

import re
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.platforms.bots import Bot, text
from tests.platforms.example_app import fill
from tests.platforms.systems import Gated, recite
from tests.platforms.workspaces import WORKSPACES

SCRIPTS = {
    "Cyrillic": "Правило {n} портовой книги гласит, что ни одна лодка рода {n} не причаливает у стены {n}",
    "Chinese": "港口手册第{n}条规定第{n}类船只在第{n}座塔楼的钟为夜雾中归来的船只鸣响时不得停靠第{n}号码头",
    "Arabic": "تنص القاعدة {n} من كتاب الميناء على ألا يرسو أي قارب من النوع {n} عند الرصيف {n}",
}
QUESTIONS = {"Cyrillic": "Что гласит книга?", "Chinese": "港口手册规定什么？", "Arabic": "على ماذا تنص القاعدة؟"}


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("name", ["slack", "discord"])
async def test_long_answer_in_any_script_is_whole(name: str, script: str, tmp_path: Path) -> None:
    rules = [SCRIPTS[script].format(n=number) for number in range(100, 220)]
    home = tmp_path / "home"
    await fill(home, {"book.md": {"title": script, "": " ".join(f"{rule}." for rule in rules)}})
    async with WORKSPACES[name]() as workspace:
        async with AsyncExitStack() as stack:
            bot = Bot(workspace, home, stack, Gated(recite))
            bot.system.later.add(QUESTIONS[script])
            await bot.start()
            asks = await bot.ask(QUESTIONS[script])
            await bot.system.until_said(QUESTIONS[script])
            await bot.system.open()
            await workspace.until(lambda: any("evidence" in message.buttons for message in workspace.answer(asks)))
            answer = workspace.answer(asks)
        said = re.sub(r"\s+", " ", text(answer))
        assert [said.count(rule) for rule in rules] == [1] * len(rules)
        assert sorted(rules, key=said.index) == rules
        assert workspace.refused == []
