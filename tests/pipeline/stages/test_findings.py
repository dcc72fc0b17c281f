"""Findings: duplicates, contradictions and order."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from pipeline.stages.findings import (
    SourcedFinding,
    bind_finding,
    bind_subjects,
    collect_sentences,
    deduplicate_findings,
    find_disagreeing,
    order_rivals_by_date,
    quote_evidence,
    select_context,
)
from pipeline.types import Support
from storage.types import Hit, PassageKind
from tests.pipeline.world import hit

OLD = hit("The ferry to Skarholm costs 12 crowns.", key="old.md", date=datetime(2021, 1, 1, tzinfo=UTC))
NEW = hit("The ferry to Skarholm costs 15 crowns.", key="new.md", date=datetime(2026, 1, 1))  # noqa: DTZ001 - as some have it
UNDATED = hit("The ferry to Skarholm costs 9 crowns.", key="undated.md")
PIER = hit("The pier is made of oak. It is long.", key="pier.md")


def finding(found, text: str = "") -> SourcedFinding:
    evidence = collect_sentences([found])[:1]
    return SourcedFinding(text or evidence[0].text, evidence)


def test_sentences_of_a_passage_are_collected_once() -> None:
    sentences = collect_sentences([PIER, *collect_sentences([PIER]), OLD])
    assert [sentence.text for sentence in sentences] == ["The pier is made of oak.", "It is long.", OLD.passage.text]
    assert all(sentence.passage.text[slice(*sentence.span)] == sentence.text for sentence in sentences)


ROOMS = hit(
    "Rooms are on the second floor. They open at eight. Ask the desk for a key. The desk is by the door. "
    "Lunch is at noon. Dogs may come along. The lift is slow. Bring a key for each room.",
    key="rooms.md",
)


@pytest.mark.parametrize(
    ("statement", "cited", "shown"),
    [
        ("The desk has a key.", [2], [1, 2]),
        ("At the desk you get a key for each room.", [2], [1, 2, 6, 7]),
        ("Der Schlüssel liegt am Empfang bei der Tür.", [2], [*range(8)]),
        ("Rooms are upstairs.", [0], [0]),
    ],
)
def test_context_of_a_statement_is_its_related_sentences(statement: str, cited: list[int], shown: list[int]) -> None:
    sentences = collect_sentences([ROOMS])
    assert select_context(statement, [sentences[place] for place in cited]) == tuple(
        sentences[place] for place in shown
    )


def test_context_includes_all_rows_of_a_table() -> None:
    rows = hit("Room: 1; floor: 2\nRoom: 2; floor: 3\nRoom: 4; floor: 4", kind=PassageKind.TABLE)
    sentences = collect_sentences([rows])
    assert len(sentences) > 1
    assert select_context("Room 1 is on floor 2.", sentences[:1]) == sentences


def test_same_words_from_the_same_passage_are_one_finding() -> None:
    one, same, other = (
        finding(OLD),
        finding(OLD, "the ferry to Skarholm  costs 12 crowns."),
        finding(NEW, OLD.passage.text),
    )
    assert deduplicate_findings([one, same, other]) == (one, other)


@pytest.mark.parametrize(
    ("one", "other", "kept"),
    [
        ("The ferry to Skarholm costs 12 crowns.", "It costs 12 crowns to take the Skarholm ferry.", [1]),
        ("The ferry costs 12 crowns.", "The ferry to Skarholm costs 12 crowns.", [1]),
        ("The ferry to Skarholm costs 12 crowns.", "Skarholm's ferry costs 12.", [0]),
        ("The ferry to Skarholm costs 12 crowns.", "The ferry to Skarholm costs 13 crowns.", [0, 1]),
        ("The ferry to Skarholm costs 12 crowns.", "Children travel to Skarholm for nothing.", [0, 1]),
    ],
)
def test_same_statement_in_other_words_is_one_finding(one: str, other: str, kept: list[int]) -> None:
    both = [finding(OLD, one), finding(OLD, other)]
    assert deduplicate_findings(both) == tuple(both[place] for place in kept)


@pytest.mark.parametrize(
    ("claim", "kept"),
    [
        ("Dogs may enter the kiosk.", ["Dogs are not allowed in the kiosk."]),
        ("Dogs are allowed in the kiosk.", ["Dogs are not allowed in the kiosk."]),
        ("The kiosk takes no dogs and serves nobody who brings one.", None),
    ],
)
def test_finding_negated_by_its_quotation_is_dropped(claim: str, kept: list[str] | None) -> None:
    page = hit("Dogs are not allowed in the kiosk. Cats may sit by the stove.")
    (dogs, cats), both = collect_sentences([page]), collect_sentences([page])
    quotation, other = SourcedFinding(dogs.text, (dogs,)), SourcedFinding(claim, (dogs,))
    for order in ([quotation, other], [other, quotation]):
        assert quoted(*deduplicate_findings(order)) == (kept or quoted(*order))
    for whole in (SourcedFinding(claim, both), SourcedFinding(claim, (cats,))):
        assert whole in deduplicate_findings([whole, quotation])


def test_same_words_from_different_sentences_are_two_findings() -> None:
    first, second = collect_sentences([PIER])
    both = (SourcedFinding("The pier is of oak.", (first,)), SourcedFinding("The pier is of oak.", (second,)))
    assert deduplicate_findings(both) == both


def test_items_of_one_list_are_separate_findings() -> None:
    page = hit(
        "Messages in Slack are kept as follows:\n- DMs: 18 months retention\n- Private channels: 18 months retention"
    )
    lead, first, second = collect_sentences([page])
    both = (
        SourcedFinding("Messages that we keep as DMs: 18 months retention.", (lead, first)),
        SourcedFinding("Messages that we keep in private channels: 18 months retention.", (lead, second)),
    )
    assert deduplicate_findings(both) == both


def test_disagreeing_findings_are_ordered_newest_first() -> None:
    findings = [finding(UNDATED), finding(PIER), finding(OLD), finding(NEW)]
    assert find_disagreeing(findings) == (0, 2, 3)
    assert order_rivals_by_date(findings) == (findings[3], findings[1], findings[2], findings[0])


def test_findings_of_the_same_day_keep_their_order() -> None:
    new = replace(NEW, document=replace(NEW.document, date=datetime(2026, 3, 1, 10, 0, 5, tzinfo=UTC)))
    old = replace(OLD, document=replace(OLD.document, date=datetime(2026, 3, 1, 10, 0, 4, tzinfo=UTC)))
    findings = (finding(old), finding(new))
    assert order_rivals_by_date(findings) == findings


def test_one_document_does_not_disagree_with_itself() -> None:
    assert find_disagreeing([finding(OLD), finding(OLD, "The ferry to Skarholm costs 13 crowns.")]) == ()


HAGEN = hit("Oda Hagen comes from Bergen. She built the yard. It has two cranes.", key="hagen.md", title="The yard")
ORPHAN = hit("She built the yard of Skarholm.", key="orphan.md", title="Oda Hagen")
FARES = hit(
    "Distance: Up to 10 km; Fare: 4 crowns\nDistance: Up to 25 km; Fare: 9 crowns",
    key="fares.md",
    kind=PassageKind.TABLE,
)


def quoted(*findings: SourcedFinding) -> list[str]:
    return [finding.text for finding in findings]


def test_opening_pronoun_is_extended_to_its_antecedent() -> None:
    named, she, it = collect_sentences([HAGEN])
    for asked in ([she], [named, she]):
        assert [subject.text for subject in bind_subjects(asked)] == [
            "Oda Hagen comes from Bergen. She built the yard."
        ]
    (whole,) = bind_subjects([it])
    assert whole.text == HAGEN.passage.text == HAGEN.passage.text[slice(*whole.span)]


def test_title_replaces_a_missing_subject() -> None:
    assert quoted(*quote_evidence(collect_sentences([ORPHAN]))) == ["Oda Hagen: She built the yard of Skarholm."]
    assert quoted(*quote_evidence(collect_sentences([PIER])[1:])) == [PIER.passage.text]


def answers(**verdict: bool):
    async def supports(*_: object, **__: object) -> Support:
        return Support(0.5, **{"holds": False, **verdict})

    return supports


async def test_statement_with_a_resolved_pronoun_is_used_unless_surely_unsupported() -> None:
    she = collect_sentences([HAGEN])[1:2]
    statement = "Oda Hagen built the yard."
    (kept,) = await bind_finding(statement, she, answers(appealable=True))
    assert (kept.text, kept.evidence[0].text) == (statement, "Oda Hagen comes from Bergen. She built the yard.")
    assert quoted(*await bind_finding(statement, she, answers())) == [kept.evidence[0].text]
    assert quoted(*await bind_finding(statement, collect_sentences([PIER])[:1], answers(appealable=True))) == [
        "The pier is made of oak."
    ]


@pytest.mark.parametrize(
    ("statement", "place", "more", "expected"),
    [
        ("The pier is made of old oak.", (PIER, 0), {"better_quoted": True}, "The pier is made of oak."),
        ("She built the yard.", (HAGEN, 1), {}, "Oda Hagen comes from Bergen. She built the yard."),
        ("Up to 10 km cost 4 crowns.", (FARES, 0), {}, "Up to 10 km cost 4 crowns."),
        ("The fare is 4 crowns.", (FARES, 0), {}, "Distance: Up to 10 km; Fare: 4 crowns"),
    ],
    ids=["changed copy", "no subject", "names its row", "no row"],
)
async def test_statement_with_changed_words_or_a_missing_subject_or_row_is_quoted(
    statement: str, place: tuple[Hit, int], more: dict[str, bool], expected: str
) -> None:
    source, index = place
    evidence = [collect_sentences([source])[index]]
    for checked in (False, True):
        findings = await bind_finding(statement, evidence, answers(holds=True, **more), checked=checked)
        assert quoted(*findings) == [expected]


DESK = hit(
    "The desk money must not go to things of the home: Decor: Pictures and plants. Kitchen: Kettles and cups.\n\n"
    "Note: Ask first.",
    key="desk.md",
)
TRIPS = hit("We travel together. Next year there are two trips:\n- in spring\n- in autumn", key="trips.md")
ORBIT = hit("Object: Moon\nOrbits: 10\nArrival: Monday", key="orbit.md", title="Kestrel", kind=PassageKind.TABLE)


DUTIES = hit(
    "The keepers will:\n- Light the lamp at dusk.\n\nYou should:\n- Lock the gate.\n\nThe years that counted most:\n"
    "- In 1984 the tower burned.\n\nIn each room:\n- a lamp",
    key="duties.md",
)


async def test_item_turned_into_an_instruction_is_quoted_with_its_lead_in() -> None:
    _, lamp, _, gate, _, fire, _, room = collect_sentences([DUTIES])
    supports = answers(holds=True)
    for statement, item, quote in (
        ("Light the lamp at dusk.", lamp, "The keepers will: Light the lamp at dusk."),
        ("Bring a lamp.", room, "In each room: a lamp"),
    ):
        assert quoted(*await bind_finding(statement, [item], supports)) == [quote]
    kept = (("A keeper lights the lamp at dusk.", lamp), ("Lock the gate.", gate), ("The tower burned in 1984.", fire))
    for statement, item in kept:
        assert quoted(*await bind_finding(statement, [item], supports)) == [statement]
    assert quoted(*await bind_finding("The lamp is lit at dusk.", [lamp], supports, checked=True)) == [
        "The lamp is lit at dusk."
    ]


async def test_unsupported_statement_becomes_one_quotation_of_its_sentences() -> None:
    first, _, last = collect_sentences([hit("Dogs stay out. The yard opens at six. Cats may enter.")])
    (kept,) = await bind_finding("Dogs and cats may enter.", [last, first], answers())
    assert (kept.text, kept.evidence) == ("Dogs stay out. Cats may enter.", (first, last))


def test_item_is_quoted_with_its_lists_lead_in() -> None:
    lead, kettles, note = collect_sentences([DESK])
    quote = DESK.passage.text.partition("\n")[0]
    assert [piece.text for piece in bind_subjects([kettles])] == [quote] == quoted(*quote_evidence([kettles]))
    assert [piece.text for piece in bind_subjects([kettles, lead])] == [quote]
    assert [subject.text for subject in bind_subjects([note])] == [note.text]
    assert quoted(*quote_evidence(collect_sentences([TRIPS])[2:])) == [
        "Next year there are two trips: in spring, in autumn"
    ]


def test_row_of_one_cell_is_prefixed_with_its_page_title() -> None:
    assert quoted(*quote_evidence(collect_sentences([ORBIT])))[0] == "Kestrel: Object: Moon"
