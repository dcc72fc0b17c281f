"""Write the messages of a simulated user who asks about a topic. Each continues the conversation so far."""

import re
from collections.abc import Sequence
from random import Random

from evaluation.dialogues.dialogue_types import Topic
from pipeline.errors import UnreadableReply
from pipeline.kit import Ask
from pipeline.replies.reply_format import ReplyFormat
from pipeline.types import Conversation

PERSONAS: Sequence[str] = (
    "somebody who has just read the name for the first time, and asks plain questions, one after the other",
    "a student who has to give a short talk about it tomorrow, and wants dates, numbers and names",
    "somebody who knows a little of the field, doubts what is too smooth, and asks how it is known",
    "a busy person who types briefly, sometimes without a verb, and wants to know what it means for them",
    "a talkative person who mentions something of their own day before they ask",
    "somebody who wants to understand causes: why it came to be so, and what followed from it",
    "somebody who compares: with what came before, with what is elsewhere, with what one would expect",
)
MAX_MESSAGE = 600  # characters; longer texts are not chat messages
_SPEAKER = re.compile(r"^(?:User|Person|The person|You|Me)\s*:\s*", re.IGNORECASE)


def choose_persona(seed: str) -> str:
    return Random(f"{seed} persona").choice(PERSONAS)


def parse_message(text: str) -> str:
    """Return the message in a model's reply: its first paragraph, without speaker's name and quotation marks."""
    paragraph = text.strip().split("\n\n")[0]
    message = _SPEAKER.sub("", " ".join(paragraph.split())).strip()
    if len(message) > 1 and message[0] in "\"“'" and message[-1] in "\"”'":
        message = message[1:-1].strip()
    if not message:
        raise UnreadableReply("it has no message")
    if len(message) > MAX_MESSAGE:
        raise UnreadableReply(f"the message has more than {MAX_MESSAGE} characters")
    return message


_MESSAGE: ReplyFormat[str] = ReplyFormat(None, from_json=str, from_text=parse_message)


async def write_message(topic: Topic, persona: str, talk: Conversation, ask: Ask) -> str:
    """Return the user's next message. Raises any `PipelineError`."""
    return await ask("simulated_user", _MESSAGE, stage="user", topic=topic, persona=persona, talk=talk)
