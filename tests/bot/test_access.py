"""Who may read what."""

from typing import Any

import pytest

from bot.access import Asker, Exclusion, find_exclusion, mark_unplaced, select_readable

CORPORA = {
    "nobody": (), "everyone": ("*",), "channel": ("slack:T1/C1",), "person": ("slack:T1/U1",),
    "group": ("slack:T1/S1",), "server": ("discord:G1/C1", "discord:G1/U1"), "role": ("discord:G1/R1",),
}  # fmt: skip
SLACK = {"platform": "slack", "kind": "channel", "workspace": "T1", "channel": "C9", "user": "U9"}
DISCORD = {"platform": "discord", "kind": "channel", "workspace": "G1", "channel": "C9", "user": "U9"}
OWN: dict[str, Any] = {"shared_with_other_organisations": False}
LISTED = {"listed_server": True}


@pytest.mark.parametrize(("asker", "expected"), [
    ({"platform": "terminal", "kind": "terminal"}, set(CORPORA)),
    ({"platform": "slack", "kind": "terminal"} | OWN, {"everyone"}),
    (SLACK, set()),
    (SLACK | OWN, {"everyone"}),
    (SLACK | {"channel": "C1"}, {"channel"}),
    (SLACK | {"channel": "C1", "workspace": "T2"}, set()),
    (SLACK | {"user": "U1"} | OWN, {"everyone"}),
    (SLACK | {"kind": "dm", "user": "U1"} | OWN, {"everyone", "person"}),
    (SLACK | {"kind": "dm", "user": "U1"}, {"person"}),
    (SLACK | {"kind": "dm", "user": "U1", "workspace": "T2"}, set()),
    (SLACK | {"kind": "dm", "channel": "C1"}, set()),
    (SLACK | {"kind": "dm", "channel": "", "user": ""}, set()),
    (DISCORD, set()),
    (DISCORD | OWN, set()),
    (DISCORD | LISTED, {"everyone"}),
    (DISCORD | {"channel": "C1"}, {"server"}),
    (DISCORD | {"channel": "C1", "workspace": "G2"}, set()),
    (SLACK | {"guest": True} | OWN, set()),
    (SLACK | {"channel": "C1", "guest": True} | OWN, {"channel"}),
    (SLACK | {"kind": "dm", "user": "U1", "guest": True} | OWN, {"person"}),
    (SLACK | {"kind": "dm", "principals": ("slack:T1/S1",)}, {"group"}),
    (SLACK | {"principals": ("slack:T1/S1",)}, set()),
    (DISCORD | {"kind": "dm", "workspace": "", "user": "U1"}, set()),
    (DISCORD | {"kind": "dm", "workspace": "", "user": "U1", "principals": ("discord:G1/U1",)}, {"server"}),
    (DISCORD | {"kind": "dm", "workspace": "", "principals": ("discord:G1/R1",)}, {"role"}),
    (DISCORD | LISTED | {"channel": "C1", "exclusion": Exclusion.DENIED}, set()),
    (DISCORD | {"kind": "dm", "workspace": "", "user": "U9"}, set()),
    (SLACK | {"workspace": "G1", "channel": "C1"}, set()),
])  # fmt: skip
def test_asker_reads_exactly_the_corpora_of_the_place(asker: dict[str, object], expected: set[str]) -> None:
    assert set(select_readable(CORPORA, Asker(**asker))) == expected


def test_readable_corpora_keep_their_order() -> None:
    assert select_readable({"b": ("*",), "a": ("*",)}, Asker("slack", "channel", **OWN)) == ("b", "a")


@pytest.mark.parametrize(
    ("place", "ids", "found"),
    [("own", {"U1"}, ""), ("other", {"U1"}, "elsewhere"), ("own", {"U9"}, "denied"), ("own", {"U1", "R9"}, "denied")],
)
def test_denied_or_unlisted_asker_is_excluded(place: str, ids: set[str], found: str) -> None:
    assert find_exclusion(listed=place == "own", ids=ids, deny=("U9", "R9")) == found


def test_unplaced_asker_reads_only_corpora_that_name_them() -> None:
    known = Asker("slack", "dm", "T1", "D1", "U1", principals=("slack:T1/S1",), **OWN)

    assert set(select_readable(CORPORA, known)) == {"everyone", "person", "group"}
    assert select_readable(CORPORA, mark_unplaced(known)) == ("person",)
