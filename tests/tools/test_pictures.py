"""What pictures have in common on all platforms, and that each guide shows its own."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.thorough import sample
from tests.tools.page_reading import NASTY, Read
from tools.pictures.__main__ import PICTURES, SCENES
from tools.pictures.discord import discord_page as discord
from tools.pictures.discord.discord_scenes import SCENES as DISCORD
from tools.pictures.markup import link, mention, plain
from tools.pictures.picture_page import Done, done, face
from tools.pictures.scene import at
from tools.pictures.screenshot import NoBrowser, browser
from tools.pictures.slack import slack_page as slack
from tools.pictures.slack.slack_scenes import SCENES as SLACK

GUIDES = sorted(PICTURES.parent.glob("*.md"))
PICTURE = re.compile(r"!\[([^\]]*)\]\(pictures/([\w-]+)\.png\)")
MOST_BYTES = 120_000


def test_a_page_runs_nothing_and_asks_nobody() -> None:
    """Neither a script nor a font nor a picture from elsewhere."""
    for made in (slack.page(""), discord.page("")):
        assert "default-src 'none'" in made
        assert not re.search(r"url\(|@import|<script|src=|https?://", made)


def test_scenes_play_at_different_times_and_have_different_names() -> None:
    """A message's time is its name, and pictures lie side by side."""
    for scenes in (SLACK, DISCORD):
        assert len({at(scene) for scene in scenes}) == len(scenes)
    assert len({scene.name for scene in SCENES}) == len(SCENES)


def test_each_picture_that_a_guide_shows_is_a_scene_and_small() -> None:
    """And each scene's picture is shown, with words for who cannot see it."""
    shown = {name: words for guide in GUIDES for words, name in PICTURE.findall(guide.read_text(encoding="utf-8"))}

    assert set(shown) == {scene.name for scene in SCENES}
    assert all(shown.values())
    assert all((PICTURES / f"{name}.png").stat().st_size < MOST_BYTES for name in shown)


def test_only_an_address_of_the_web_is_linked_to() -> None:
    """Of anything else the label is shown."""
    assert link("javascript:alert(1)", "Page") == "Page"


@settings(max_examples=sample(20))
@given(text=st.one_of(st.text(max_size=60), st.just(NASTY)))
def test_whatever_is_written_around_stays_text(text: str) -> None:
    """As an address, a name, what somebody does."""
    for made in (plain(text), link(text, text), mention("U1", {"U1": text}), face(text), done(Done(text, text))):
        assert Read(made).harmless


def test_without_a_browser_it_says_what_to_install() -> None:
    """In one line."""
    with pytest.raises(NoBrowser, match="apt-get install chromium"):
        browser("")
