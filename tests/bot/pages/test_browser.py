"""The pages in a browser: no serious finding of axe-core, light and dark, on a phone, by keyboard, without scripts."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bot.pages.pages_server import serve_pages
from bot.settings.tables.settings_tables import Settings
from tests.bot.fake_services import FakeServices
from tests.bot.pages.made_record import READER, Texts, make_turn, opened_records

playwright = pytest.importorskip("playwright.async_api", reason="playwright is not installed: pip install playwright")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here: apt-get install chromium")
VIEWS = (
    *("/", "/answers?words=quay", "/answers/told", "/documents", "/documents/show?corpus=handbook&document=harbour.md"),
    *("/corpora", "/unanswered?since=2026-10-01&until=2026-10-31", "/figures?since=2026-10-01&until=2026-10-31"),
    *("/answers/nothing", "/answers/not-there", "/answers?since=never"),
)
SAID = ("The quay opens at seven.", "handbook", "harbour.md", "Harbour rules", "Hours", "a1b2c3", "slack", "U1")


@asynccontextmanager
async def served(home: Path, **pages: Any) -> AsyncIterator[str]:
    with opened_records(home) as (records, history):
        await records.audit.append(*make_turn("told", Texts(*SAID), url="https://example.com/harbour.md"))
        await records.audit.append(*make_turn("nothing", Texts("Is there a gym?"), status="abstained"))
        settings = Settings.model_validate({"pages": {"port": 0, **pages}})
        async with serve_pages(
            settings, records, history, lambda: FakeServices().build().open_home(settings)
        ) as address:
            yield address


@asynccontextmanager
async def browsing(address: str, **context: Any) -> AsyncIterator[Any]:
    async with playwright.async_playwright() as started:
        browser = await started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = await (await browser.new_context(base_url=address, **context)).new_page()
        page.set_default_timeout(10_000)
        yield page
        await browser.close()


async def ask(page: Any) -> None:
    await page.goto("/")
    await page.get_by_label("Question").fill("When does the quay open?")
    await page.get_by_role("button", name="Ask").click()


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_finds_no_serious_problem_on_any_page(tmp_path: Path, scheme: str) -> None:
    bundle = pytest.importorskip("axe_playwright_python", reason="pip install axe-playwright-python brings axe-core")
    axe = (Path(bundle.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
    faults = list[str]()
    async with served(tmp_path, tokens=[READER]) as address, browsing(address, color_scheme=scheme) as page:

        async def examine(view: str) -> None:
            await page.evaluate("() => document.querySelectorAll('details').forEach((one) => { one.open = true })")
            await page.evaluate(axe)
            report = await page.evaluate("() => axe.run()")
            faults.extend(
                f"{view}: {violation['id']} ({violation['impact']}) {violation['nodes'][0]['target']}"
                for violation in report["violations"]
                if violation["impact"] in {"serious", "critical"}
            )

        await page.goto("/")
        await examine("/sign-in")
        await page.get_by_label("Your token").fill(READER.split()[2])
        await page.get_by_role("button", name="Sign in").click()
        for view in VIEWS:
            await page.goto(view)
            await examine(view)
        await ask(page)
        await examine("/ask")
    assert not faults


async def test_no_page_is_wider_than_a_phone(tmp_path: Path) -> None:
    async with served(tmp_path) as address, browsing(address, viewport={"width": 360, "height": 740}) as page:
        await ask(page)
        for view in ("", *VIEWS):
            if view:
                await page.goto(view)
            width = await page.evaluate("() => document.documentElement.scrollWidth")
            assert width <= 360, view


async def test_question_can_be_asked_by_keyboard_without_script(tmp_path: Path) -> None:
    async with served(tmp_path) as address, browsing(address, java_script_enabled=False) as page:
        await page.goto("/answers")
        await page.keyboard.press("Tab")
        await playwright.expect(page.get_by_text("Skip to the page")).to_be_focused()
        await page.goto("/")
        await playwright.expect(page.get_by_label("Question")).to_be_focused()
        await page.keyboard.type("When does the quay open?")
        for _ in range(3):
            await page.keyboard.press("Tab")
        await page.keyboard.press("Enter")
        await playwright.expect(page.get_by_role("heading", name="Answer")).to_be_visible()
        await playwright.expect(page.locator(".progress")).to_be_hidden()
        await page.get_by_role("link", name="[1]").press("Enter")
        assert page.url.endswith("#source-1")
