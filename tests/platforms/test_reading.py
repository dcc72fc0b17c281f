"""The readers of posted text in the fakes behave as the platforms' documents say."""

import pytest

from tests.platforms.reading import Reading, discord, slack

pytestmark = pytest.mark.fakes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Plain &amp; simple &lt;3", Reading("Plain & simple <3")),
        ("&amp;lt;!here&amp;gt;", Reading("&lt;!here&gt;")),
        ("<!channel> and <@U1|ann>", Reading("!channel and ann", ("<!channel>", "<@U1|ann>"))),
        ("<https://a.example/x|the page>", Reading("the page", (), ("https://a.example/x",))),
        ("see https://a.example/x now", Reading("see https://a.example/x now", (), ("https://a.example/x",))),
        ("&lt;@U1&gt;", Reading("<@U1>")),
        ("`<!here>`", Reading("`!here`", ("<!here>",))),
        ("\\u003c!here\\u003e", Reading("\\u003c!here\\u003e")),
    ],
)
def test_slack_reads_tokens_entities_and_bare_addresses(text: str, expected: Reading) -> None:
    assert slack(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Plain \\*stars\\*", Reading("Plain *stars*")),
        ("@everyone <@1> <@&2> <#3>", Reading("@everyone <@1> <@&2> <#3>", ("@everyone", "<@1>", "<@&2>", "<#3>"))),
        ("\\@everyone", Reading("@everyone", ("@everyone",))),
        ("[the page](<https://a.example/x>)", Reading("the page", (), ("https://a.example/x",))),
        (
            "[https://b.example](<https://a.example>)",
            Reading("https://b.example", (), ("https://a.example", "https://b.example")),
        ),
        ("see <https://a.example>", Reading("see https://a.example", (), ("https://a.example",))),
        ("see www.a.example", Reading("see www.a.example", (), ("www.a.example",))),
    ],
)
def test_discord_reads_mentions_before_all_else(text: str, expected: Reading) -> None:
    assert discord(text) == expected
