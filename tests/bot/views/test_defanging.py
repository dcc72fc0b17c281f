"""Defanging, on every platform: no text becomes a mention or a link in a chat client."""

import pytest
from hypothesis import example, given

from bot.platforms.discord import messages as discord
from bot.platforms.slack import messages as slack
from bot.views.sanitize import WORD_JOINER, defang_text, sanitize_url, strip_invisible
from tests.platforms import reading
from tests.platforms.hostile_text import TOKENS, cut, texts
from tests.platforms.markup import discord_words, links, markdown_words, own_links, pings, slack_words

WAYS = {
    "mrkdwn": (slack.escape_mrkdwn, slack_words, reading.slack),
    "markdown": (slack.escape_markdown, markdown_words, reading.slack),
    "discord": (discord.escape_markdown, discord_words, reading.discord),
}
LINKS = {"mrkdwn": slack.format_link, "markdown": slack.format_markdown_link, "discord": discord.format_link}


@pytest.mark.parametrize("way", WAYS)
@given(pieces=cut())
@example(pieces=["<", "!here>"])
@example(pieces=["see htt", "ps:/", "/evil", ".com"])
@example(pieces=["[a]", "(https://evil.com)"])
@example(pieces=["“www\\.”"])
@example(pieces=["#\\_it_ &\\#64;ann /\\/evil"])
def test_pieces_of_defanged_text_contain_no_mention_or_link(way: str, pieces: list[str]) -> None:
    escape, _, read = WAYS[way]
    payload = "".join(map(escape, pieces))

    assert pings(payload) == []
    assert links(payload) == []
    assert read(payload).pings == read(payload).links == ()


@pytest.mark.parametrize("way", WAYS)
@given(text=texts)
def test_defanged_text_reads_the_same(way: str, text: str) -> None:
    escape, words, _ = WAYS[way]
    assert words(escape(text)) == strip_invisible(text)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("token", TOKENS)
def test_defanged_attacks_read_the_same(way: str, token: str) -> None:
    escape, words, _ = WAYS[way]
    assert words(escape(token)) == token
    assert not pings(escape(token)) + links(escape(token))


def test_unescaped_attacks_are_detected() -> None:
    dangerous = [token for token in TOKENS if token[0] in "<\\&@" or "evil" in token]
    assert [token for token in dangerous if not pings(token) + links(token) + own_links(token)] == []


@pytest.mark.parametrize("text", ["Plain words, and more.\nA second line: 3.14 at 10:30, 50% - fine; “so” (or so)!"])
def test_defanging_changes_plain_text_only_at_its_ends(text: str) -> None:
    assert defang_text(text) == text
    assert defang_text("It ends.") == f"It ends.{WORD_JOINER}"


def test_hiding_and_reordering_characters_are_removed() -> None:
    assert strip_invisible("a\u202eb\u200bc\x1b[2Jd\x00e\U000e0041f\u2066g") == "abc[2Jdefg"
    assert strip_invisible("a\x98b\r\nc\u2028d") == "ab\nc\nd"
    assert strip_invisible("👩\u200d🚒 می\u200cخواهم") == "👩\u200d🚒 می\u200cخواهم"


@pytest.mark.parametrize("way", LINKS)
@given(title=texts, rest=texts)
def test_link_leads_only_to_its_host(way: str, title: str, rest: str) -> None:
    made = LINKS[way](title, f"https://docs.example.com/{rest}")

    ((target, label),) = own_links(made)
    assert target.startswith("https://docs.example.com/")
    assert pings(label) == links(label) == []
    assert pings(made) == links(made) == []
    assert own_links(f"{made}{made}") == [(target, label)] * 2


@pytest.mark.parametrize("way", LINKS)
@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "ftp://a.com", "//evil.com", "slack://open", "https://a@b.com", ""]
)
def test_addresses_off_the_web_are_shown_as_text(way: str, url: str) -> None:
    made = LINKS[way]("The page", url)
    assert own_links(made) == []
    assert not pings(made) + links(made)
    assert "The page" in made


@pytest.mark.parametrize(("url", "made"), [
    ("https://Example.com/a b", "https://example.com/a%20b"),
    ("http://example.com:8080/x(1)?q=a|b#s", "http://example.com:8080/x%281%29?q=a%7Cb#s"),
    ("https://bücher.example/ä%20", "https://xn--bcher-kva.example/%C3%A4%20"),
    ("https://x.com/@everyone", "https://x.com/%40everyone"),
    ("https://example.com", "https://example.com"),
    ("https://[::1", ""),
    ("https://", ""),
    ("https://a b/c", ""),
    ("https://example.com:99999/", ""),
    ("mailto:a@b.com", ""),
])  # fmt: skip
def test_sanitized_addresses_are_ascii_or_empty(url: str, made: str) -> None:
    assert sanitize_url(url) == made
