"""The screenshots of the pages in the guides."""

import re

import pytest

from tools.pictures.__main__ import PICTURES
from tools.pictures.pages_scenes import SCENES
from tools.pictures.screenshot import NoBrowser, find_browser

GUIDES = sorted(PICTURES.parent.glob("*.md"))
PICTURE = re.compile(r"!\[([^\]]*)\]\(pictures/([\w-]+)\.png\)")
MOST_BYTES = 120_000


def test_each_screenshot_is_shown_in_a_guide_with_a_description() -> None:
    shown = {name: words for guide in GUIDES for words, name in PICTURE.findall(guide.read_text(encoding="utf-8"))}

    assert set(shown) == set(SCENES)
    assert all(shown.values())
    assert all((PICTURES / f"{name}.png").stat().st_size < MOST_BYTES for name in shown)


def test_missing_browser_is_reported_with_the_package_to_install() -> None:
    with pytest.raises(NoBrowser, match="apt-get install chromium"):
        find_browser("")
