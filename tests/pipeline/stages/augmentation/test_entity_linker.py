"""Linking of names to pages by title, qualifier and context."""

from dataclasses import replace

import pytest

from pipeline.kit import Limits
from pipeline.stages.augmentation.entity_linker import choose_page, find_entity_names, link_entities
from pipeline.types import Conversation, Turn
from storage.types import Hit
from tests.pipeline.world import Shelf, Stage, hit


def page(title: str, text: str, *aliases: str, disambiguation: bool = False, position: int = 0) -> Hit:
    result = hit(text, key=f"{title}.md", title=title, position=position)
    return replace(result, document=replace(result.document, aliases=aliases, disambiguation=disambiguation))


PLANET = page("Mercury (planet)", "Mercury (planet) goes round the sun in 88 days.")
METAL = page("Mercury (metal)", "Mercury (metal) is liquid in thermometers.")
EITHER = page("Mercury", "Mercury (planet)\nMercury (metal)\nHermes, a god of traders", disambiguation=True)
GOD = page("Hermes", "Hermes carries messages of gods and protects traders.", "Hermes of Olympus")
BANK = page("Lindø Bank", "Lindø Bank lends money.", "The Bank of Lindø", "LB")


@pytest.mark.parametrize(
    ("name", "context", "meant"),
    [
        ("Mercury", "How long does Mercury take round the sun?", PLANET),
        ("Mercury", "Is Mercury liquid in a thermometer?", METAL),
        ("Mercury", "Which god of traders is Mercury?", GOD),  # only the disambiguation page leads there
        ("mercury (Metal)", "", METAL),
        ("Lindo Bank", "", BANK),
        ("Bank of Lindø", "", BANK),
        ("LB", "", BANK),
        ("Lindø", "What does Lindø Bank do?", None),  # a part of a title is another name
        ("Venus", "Is Venus liquid?", None),
    ],
)
def test_name_links_to_the_titled_page_that_fits_its_context(name: str, context: str, meant: Hit) -> None:
    assert choose_page(name, context, (EITHER, METAL, PLANET, GOD, BANK)) == meant


def test_linked_passage_is_the_beginning_of_the_page() -> None:
    later = page("Mercury (planet)", "The sun burns Mercury (planet) by day.", position=3)
    assert choose_page("Mercury", "sun by day burns", (later, PLANET)) == PLANET
    assert choose_page("Mercury", "", (EITHER,)) is None


async def test_linking_searches_each_name_and_skips_names_without_a_page() -> None:
    talk = Conversation((Turn("user", "Mercury?"),))
    shelf = Shelf((PLANET, BANK))
    stage = Stage(shelf, talk, Limits(), None, None)
    linked = await link_entities([("Mercury", "the sun"), ("Oda Hagen", "by Oda Hagen")], stage.kit)
    assert [(entity.name, entity.hit.document.title) for entity in linked] == [("Mercury", "Mercury (planet)")]
    assert sorted(shelf.queries) == ["Mercury", "Oda Hagen"]
    assert set(stage.recorder.found) == {PLANET.passage.id}


def test_entity_names_are_returned_as_written() -> None:
    assert find_entity_names("Oda Hagen built the lighthouse of Skarholm for Oda Hagen.") == ("Oda Hagen", "Skarholm")
    assert find_entity_names("who repairs the lathe?") == ()
