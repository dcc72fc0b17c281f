"""Slack's limits, as data.

Calls a minute are the tiers of the methods' documentation (slack_kit's JSON of it, autumn 2026), taken as exact:
Slack promises at least as many. [K] is from memory, [M] was measured by others, as the comment says.
"""

from collections.abc import Mapping
from types import MappingProxyType

TIER_2, TIER_3, TIER_4 = 20, 50, 100
SPECIAL = 600
"""[K] "Special rate limits" of methods that may be called much more often."""

PER_MINUTE: Mapping[str, int] = MappingProxyType(
    {
        "apps.connections.open": TIER_3,
        "assistant.threads.setStatus": SPECIAL,
        "assistant.threads.setSuggestedPrompts": TIER_3,
        "auth.test": SPECIAL,
        "chat.appendStream": TIER_4,
        "chat.delete": TIER_3,
        "chat.postEphemeral": TIER_4,
        "chat.postMessage": 300,  # [K] "several hundred a minute" for the workspace, and one a second a channel
        "chat.startStream": TIER_2,
        "chat.stopStream": TIER_2,
        "chat.update": TIER_3,
        "conversations.history": TIER_3,
        "conversations.info": TIER_3,
        "conversations.list": TIER_2,
        "conversations.replies": TIER_3,
        "users.conversations": TIER_3,
        "users.info": TIER_4,
        "views.open": TIER_4,
        "views.publish": TIER_4,
        "views.update": TIER_4,
    }
)

POSTS_BURST = 4
"""[K] "Short bursts of more than one message a second" in a channel: so many at once, then one a second."""

TEXT = 40_000
"""Characters of `text` in a post: above, Slack truncates or refuses [K]; here it refuses."""
UPDATED_TEXT = 4_000
"""Of `text` in chat.update, by its documentation of msg_too_long."""
MARKDOWN = 12_000
"""Of a streamed chunk of text."""
BLOCKS_SIZE, BLOCK_SIZE = 13_422, 125
"""[M] What all blocks of a message may weigh: their text, and each block's container. Undocumented: "12,000 text
characters with a buffer for block containers", and 13,297 characters of Markdown were taken but 13,172 beside a divider
(slackapi/bolt-js#2509); above, msg_blocks_too_long. A response_url knows no such limit (#2867)."""
STREAM_BYTES = 10_600
"""[M] UTF-8 bytes that one streamed message holds once it has text: text and titles once, details and output twice
(openclaw/openclaw#143882: refused from 10,600 to 11,300 on, with msg_too_long). Undocumented."""
STREAM_SECONDS = 300
"""[M] How long a message can stream, whatever is appended (slackapi/python-slack-sdk#1859)."""
TASK_FIELD = 256
"""Characters of a task's title, details and output, by the documentation; in practice more was taken."""
STATUS_SECONDS = 120
LOADING_MESSAGES = 10
PROMPTS = 4
"""[K] Suggested prompts."""
METADATA_BYTES = 8_000
"""[K] 8 KB of metadata."""
MESSAGE_BLOCKS, VIEW_BLOCKS = 50, 100
VIEW_BYTES = 250_000
TRIGGER_SECONDS = 3
RESPONSES, RESPONSE_SECONDS = 5, 30 * 60
"""Uses of a response_url, and how long it lives."""
ACK_SECONDS = 3
RETRY_AFTER = (0, 60, 300)
"""How long after an attempt failed the next one is made."""
TICKET_SECONDS = 30
"""[K] How long a websocket's address may be used."""
PAGE = 1_000
