"""Which conversation somebody means who asks for its sources: that of a thread or a DM, else their own newest."""

from collections.abc import Iterable

from bot.desk.types import DeliveryOutcome
from bot.discord.happening import Channel
from bot.wiring import App
from storage.types import QueuedQuestion

LOOKED_AT = 20
"""How many questions of a channel are looked at."""


async def of_thread(app: App, channel_id: str, thread: Channel) -> str:
    """Return a thread's conversation: that of the message on which it was opened, which has its id."""
    begun = await app.queue.by_message(channel_id, thread.id)
    return begun.conversation if begun else f"discord:{thread.guild}/{thread.id}"


async def meant_by(app: App, channel: Channel, user: str, *, direct: bool) -> str:
    """Return the conversation that somebody means where they stand; empty where there is none. Raises `StorageError`.

    In a channel it is the one in which they asked last, else the last one that everybody there can see. Where the bot
    itself is not, all that is known is what they asked. `direct`: they are in their DM with us.
    """
    if direct:
        return f"discord:/{channel.id}"
    where = f"discord:{channel.guild}/{channel.parent if channel.is_thread else channel.id}"
    if channel.is_thread:
        return await of_thread(app, where, channel)
    person = f"discord:{channel.guild}/{user}"
    own = await app.queue.recent(where, user=person, limit=LOOKED_AT)
    return newest([*own, *await app.queue.recent(where, limit=LOOKED_AT)], person)


def newest(rows: Iterable[QueuedQuestion], person: str) -> str:
    """Return the conversation of the first question whose answer somebody can see; empty where there is none. Pure."""
    seen = (row for row in rows if row.user == person or not row.body.get("only_asker"))
    answered = (row for row in seen if row.outcome == DeliveryOutcome.DELIVERED)
    return next((row.conversation for row in answered), "")
