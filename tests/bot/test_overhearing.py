"""Whom a message is for: the bot, anybody, or the people talking among themselves."""

from dataclasses import replace

import pytest

from bot.platforms.shared.message_intake import (
    Audience,
    IncomingMessage,
    classify_audience,
    find_audience,
    is_edit_addressed,
)

PLAIN = IncomingMessage(addressed=False, to_others=False, within=False)
IN_THREAD = replace(PLAIN, within=True)


@pytest.mark.parametrize(("remark", "known", "expected"), [
    (replace(PLAIN, addressed=True), {}, Audience.OURS),
    (replace(IN_THREAD, addressed=True, to_others=True), {"joined": False}, Audience.OURS),
    (PLAIN, {}, Audience.THEIRS),
    (PLAIN, {"every": True}, Audience.ANYBODYS),
    (replace(PLAIN, edited=True), {"every": True}, Audience.THEIRS),
    (replace(PLAIN, to_others=True), {"every": True}, Audience.THEIRS),
    (IN_THREAD, {"joined": False, "every": True}, Audience.THEIRS),
    (IN_THREAD, {"joined": True}, Audience.ANYBODYS),
    (IN_THREAD, {"joined": True, "follows": True}, Audience.OURS),
    (replace(IN_THREAD, edited=True), {"joined": True, "follows": True}, Audience.OURS),
    (IN_THREAD, {"joined": True, "follows": True, "every": True}, Audience.ANYBODYS),
    (replace(IN_THREAD, to_others=True), {"joined": True, "follows": True}, Audience.THEIRS),
])  # fmt: skip
async def test_audience_of_a_message_needs_only_necessary_lookups(
    remark: IncomingMessage, known: dict[str, bool], expected: Audience
) -> None:
    facts = {"joined": False, "follows": False, "every": False, **known}
    looked = list[bool]()

    async def joined(by_author: bool) -> bool:  # noqa: FBT001 - see `Joined`
        looked.append(by_author)
        return facts["follows" if by_author else "joined"]

    assert classify_audience(remark, **facts) is expected
    assert await find_audience(remark, joined, every=facts["every"]) is expected
    assert bool(looked) is (remark.within and not (remark.addressed or remark.to_others))


@pytest.mark.parametrize(
    ("unasked", "remark", "counts"),
    [(False, PLAIN, True), (True, PLAIN, False), (True, IN_THREAD, True), (True, replace(PLAIN, addressed=True), True)],
)
def test_edit_must_address_the_bot(remark: IncomingMessage, *, unasked: bool, counts: bool) -> None:
    assert is_edit_addressed(remark, unasked=unasked) is counts
