"""What is said of a dump's text: sentences kept, markup left over, facts."""

import json

from ingest.types import Block, Page, Section
from tools.benchmarks.box_facts import BoxFact, find_boxes, is_said, read_box
from tools.benchmarks.dump_reading import TableFact, count_kept, find_markup, has_fact, read_extracted, read_facts


def page(*texts):
    """Write a page of one section."""
    return Page("Ada", (Section(("Life",), tuple(Block(text) for text in texts)),))


def test_sentences_are_found_by_letters_and_digits():
    """With what templates say between their words, but not from all over the page."""
    ours = {
        "1": page("Ada (born 1815) was a mathématician. She wrote, at 5 km from London, a long note.", "x " * 200 + "z")
    }
    theirs = {
        "1": "Ada ( born 1815) was a mathematician. She wrote, at from London, a long note.\n"
        "She x x x x z wrote.\n* an item of a list.\nToo short."
    }

    found = count_kept(theirs, ours)

    assert (found.sentences, found.literally, found.kept) == (3, 1, 2)
    assert found.lost == ("She x x x x z wrote.",)


def test_the_other_programs_texts_are_read(tmp_path):
    """By page id, without the title."""
    folder = tmp_path / "AA"
    folder.mkdir()
    (folder / "wiki_00").write_text('<doc id="7" url="u" title="Ada">\nAda\n\nR&amp;D.\n</doc>\n', encoding="utf-8")

    assert read_extracted(tmp_path) == {"7": "\nR&D."}


def test_markup_and_holes_are_shown():
    """With what stands around them."""
    assert find_markup(["all well.", "a {{b}}", "c ( , d)", "e ."]) == ["a {{b}}", "c ( , d)", "e ."]


def test_facts_are_looked_for_as_words(tmp_path):
    """Not as parts of numbers."""
    path = tmp_path / "facts.json"
    path.write_text(json.dumps({"facts": [{"title": "Ada", "label": "born", "value": "1815"}]}), encoding="utf-8")

    assert read_facts(path) == (TableFact("Ada", "born", "1815"),)
    assert has_fact("Born: 1815", TableFact("Ada", "born", "1815"))
    assert not has_fact("Born: 18157", TableFact("Ada", "born", "1815"))


def test_facts_of_boxes_are_read_without_the_reader():
    """Plain values of arguments on lines of their own; a template, a picture and a citation are none."""
    citation = "{{cite x\n|a = 12\n|b = 12\n|c = 12\n|d = 12\n}}"
    page = citation + "{{Box\n|name = [[Ulm|Old Ulm]]<br>x\n|image = a b\n|a = {{b}}\n|c = 12\n}}"
    facts = [fact for body in find_boxes(page) for fact in read_box("1", body)]

    assert facts == [BoxFact("1", "name", "Old Ulm x"), BoxFact("1", "c", "12")]
    assert is_said(facts[0], ["Name: Old Ulm, X"])
    assert not is_said(facts[1], ["Number: 128"])
