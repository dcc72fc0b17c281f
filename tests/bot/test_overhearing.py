"""Whose a message is: ours, anybody's, or theirs who talk among themselves."""

from dataclasses import replace

import pytest

from bot.overhearing import Meant, Remark, edit_counts, meant, overheard

PLAIN = Remark(addressed=False, to_others=False, within=False)
IN_THREAD = replace(PLAIN, within=True)


@pytest.mark.parametrize(
    ("remark", "known", "expected"),
    [
        (replace(PLAIN, addressed=True), {}, Meant.OURS),
        (replace(IN_THREAD, addressed=True, to_others=True), {"joined": False}, Meant.OURS),
        (PLAIN, {}, Meant.THEIRS),
        (PLAIN, {"every": True}, Meant.ANYBODYS),
        (replace(PLAIN, edited=True), {"every": True}, Meant.THEIRS),
        (replace(PLAIN, to_others=True), {"every": True}, Meant.THEIRS),
        (IN_THREAD, {"joined": False, "every": True}, Meant.THEIRS),
        (IN_THREAD, {"joined": True}, Meant.ANYBODYS),
        (IN_THREAD, {"joined": True, "follows": True}, Meant.OURS),
        (replace(IN_THREAD, edited=True), {"joined": True, "follows": True}, Meant.OURS),
        (IN_THREAD, {"joined": True, "follows": True, "every": True}, Meant.ANYBODYS),
        (replace(IN_THREAD, to_others=True), {"joined": True, "follows": True}, Meant.THEIRS),
    ],
)
async def test_whose_it_is(remark: Remark, known: dict[str, bool], expected: Meant) -> None:
    """What it depends on is looked up, and it comes to the same."""
    facts = {"joined": False, "follows": False, "every": False, **known}
    looked = list[bool]()

    async def joined(by_author: bool) -> bool:  # noqa: FBT001 - see `Joined`
        looked.append(by_author)
        return facts["follows" if by_author else "joined"]

    assert meant(remark, **facts) is expected
    assert await overheard(remark, joined, every=facts["every"]) is expected
    assert bool(looked) is (remark.within and not (remark.addressed or remark.to_others))


@pytest.mark.parametrize(
    ("unasked", "remark", "counts"),
    [
        (False, PLAIN, True),
        (True, PLAIN, False),
        (True, IN_THREAD, True),
        (True, replace(PLAIN, addressed=True), True),
    ],
)
def test_which_edits_count(remark: Remark, *, unasked: bool, counts: bool) -> None:
    """Of what nobody asked us in a channel none that does not ask us now."""
    assert edit_counts(remark, unasked=unasked) is counts
