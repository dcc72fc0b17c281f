"""What a chat client could make pings or links of, taken from text: for every platform's escaping."""

import pytest
from hypothesis import example, given

from bot.platforms.discord import messages as discord
from bot.platforms.slack import markup as slack
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
def test_no_text_pings_or_links_wherever_it_is_cut(way: str, pieces: list[str]) -> None:
    """Each piece is escaped by itself, as a stream does, and the reader is stricter than any client."""
    escape, _, read = WAYS[way]
    payload = "".join(map(escape, pieces))

    assert pings(payload) == []
    assert links(payload) == []
    assert read(payload).pings == read(payload).links == ()


@pytest.mark.parametrize("way", WAYS)
@given(text=texts)
def test_a_person_reads_the_same_words(way: str, text: str) -> None:
    """All that is seen is seen, each character once, whatever was put between."""
    escape, words, _ = WAYS[way]
    assert words(escape(text)) == strip_invisible(text)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("token", TOKENS)
def test_each_nasty_text_is_read_as_it_is_written(way: str, token: str) -> None:
    """None of the known ones is lost on the way, or changed by it."""
    escape, words, _ = WAYS[way]
    assert words(escape(token)) == token
    assert not pings(escape(token)) + links(escape(token))


def test_the_reader_finds_what_the_tokens_try() -> None:
    """Unescaped, what pings or links is found: the tests above are not green because it is blind."""
    dangerous = [token for token in TOKENS if token[0] in "<\\&@" or "evil" in token]
    assert [token for token in dangerous if not pings(token) + links(token) + own_links(token)] == []


@pytest.mark.parametrize("text", ["Plain words, and more.\nA second line: 3.14 at 10:30, 50% - fine; “so” (or so)!"])
def test_plain_text_has_nothing_put_into_it_but_at_its_ends(text: str) -> None:
    """Numbers, times and ends of sentences are left alone."""
    assert defang_text(text) == text
    assert defang_text("It ends.") == f"It ends.{WORD_JOINER}"


def test_what_hides_or_reorders_text_is_gone() -> None:
    """Controls, overrides of direction, zero-width spaces and tag characters; emoji and Persian keep their joiners."""
    assert strip_invisible("a\u202eb\u200bc\x1b[2Jd\x00e\U000e0041f\u2066g") == "abc[2Jdefg"
    assert strip_invisible("a\x98b\r\nc\u2028d") == "ab\nc\nd"
    assert strip_invisible("👩\u200d🚒 می\u200cخواهم") == "👩\u200d🚒 می\u200cخواهم"


@pytest.mark.parametrize("way", LINKS)
@given(title=texts, rest=texts)
def test_a_link_leads_where_it_should_and_nothing_breaks_out_of_it(way: str, title: str, rest: str) -> None:
    """Whatever stands in the title and the address, there is one link, to that host."""
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
def test_what_is_no_web_address_is_shown_as_text(way: str, url: str) -> None:
    """Only http and https lead anywhere, and never with a name before the host."""
    made = LINKS[way]("The page", url)
    assert own_links(made) == []
    assert not pings(made) + links(made)
    assert "The page" in made


@pytest.mark.parametrize(
    ("url", "made"),
    [
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
    ],
)
def test_addresses_are_written_in_ascii_or_not_at_all(url: str, made: str) -> None:
    """What could end a link early or name somebody stands in percents."""
    assert sanitize_url(url) == made
