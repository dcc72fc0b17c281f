"""Pages are cut into passages."""

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest import chunking
from ingest.types import Block, Page, Section
from storage.language.sentences import sentence_spans
from storage.language.words import count_words
from storage.types import PassageKind
from tests.thorough import sample

WORDS = st.sampled_from([
    "a", "of", "leave", "employees", "3.5", "e.g.", "Dr.", "(see", "below),", "however;", "work:", "“quoted”", "end.",
    "Why?", "Ärzte", "日本語の文です。", "東京", "https://x.org/a?b=c&d=e", "don't", "well-known",
    "Donaudampfschifffahrt", "สวัสดีครับ", "नमस्ते", "🙂",
])  # fmt: skip
LINES = st.lists(WORDS, min_size=1, max_size=160).map(" ".join)
BLOCKS = st.one_of(
    LINES.map(Block),
    st.lists(LINES, min_size=1, max_size=6).map(lambda lines: Block("\n".join(f"- {line}" for line in lines))),
    LINES.map(lambda line: Block(line, PassageKind.TABLE)),
    st.lists(LINES, min_size=1, max_size=4).map(lambda lines: Block("\n    ".join(lines), PassageKind.CODE)),
)
SECTIONS = st.builds(
    Section,
    st.lists(WORDS, max_size=4).map(tuple),
    st.lists(BLOCKS, min_size=1, max_size=5).map(tuple),
)
PAGES = st.builds(
    Page, st.lists(WORDS, min_size=1, max_size=30).map(" ".join), st.lists(SECTIONS, max_size=4).map(tuple)
)


def cut(*blocks, title="Leave", path=()):
    """Cut a page of one section."""
    return chunking.split_page("handbook", "leave.md", Page(title, (Section(path, tuple(blocks)),)))


def sentence(words, number=0):
    """Make a sentence of so many words."""
    return f"Sentence {number} " + "word " * (words - 3) + "ends."


def squeezed(text):
    """Remove spaces and cut marks."""
    return re.sub(r"[\s…]+", "", text)


@given(PAGES)
def test_passages_contain_the_whole_text_in_order(page):
    made = chunking.split_page("c", "k", page)

    assert squeezed("".join(passage.text for passage in made)) == squeezed(
        "".join(block.text for section in page.sections for block in section.blocks)
    )
    assert [passage.position for passage in made] == list(range(len(made)))


@given(PAGES)
def test_passages_fit_their_limit(page):
    for passage in chunking.split_page("c", "k", page):
        assert count_words(passage.text) <= chunking.available_words(page.title, passage.section)
        assert chunking.available_words(page.title, passage.section) >= 40


@given(PAGES)
def test_words_are_not_split(page):
    words = {word for section in page.sections for block in section.blocks for word in block.text.split()}

    for passage in chunking.split_page("c", "k", page):
        for word in passage.text.split():
            assert word in words or not word.isascii()


@given(PAGES)
@settings(max_examples=sample(50))
def test_ids_are_unique_and_stable(page):
    made = chunking.split_page("c", "k", page)

    assert made == chunking.split_page("c", "k", page)
    assert len({passage.id for passage in made}) == len(made)


@given(PAGES, SECTIONS)
@settings(max_examples=sample(50))
def test_adding_a_section_keeps_other_passages(page, section):
    path = ("A section of its own",)
    before = chunking.split_page("c", "k", page)
    after = chunking.split_page("c", "k", replace(page, sections=(*page.sections, replace(section, path=path))))

    assert after[: len(before)] == before


@pytest.mark.parametrize("words", [5, 60, 119, 121, 300])
def test_passages_end_at_sentences(words):
    sentences = [sentence(10, number) for number in range(words // 10 + 1)]

    made = cut(Block(" ".join(sentences)))

    found_sentences = [passage.text[a:b] for passage in made for a, b in sentence_spans(passage.text)]
    assert found_sentences == sentences


def test_fitting_paragraphs_stay_whole():
    assert [count_words(passage.text) for passage in cut(*(Block(sentence(60, n)) for n in range(3)))] == [60, 60, 60]


def test_short_leftovers_are_avoided():
    text = " ".join(sentence(10, n) for n in range(11))

    sizes = [count_words(passage.text) for passage in cut(Block(text), Block(sentence(12)))]

    assert len(sizes) == 2
    assert min(sizes) > 20


def test_paragraphs_and_items_are_separated():
    [passage] = cut(Block("Opening hours"), Block("We open at nine:\n- every day\n- in summer"))

    assert [passage.text[a:b] for a, b in sentence_spans(passage.text)] == [
        "Opening hours",
        "We open at nine:",
        "- every day",
        "- in summer",
    ]


def test_passage_has_one_kind_and_its_introduction():
    made = cut(
        Block("Prices change in May."),
        Block("Our prices:"),
        Block("Plan: Basic; Price: 5", PassageKind.TABLE),
        Block("Plan: Team; Price: 9", PassageKind.TABLE),
        Block("make test", PassageKind.CODE),
    )

    assert [(passage.kind, passage.text) for passage in made] == [
        (PassageKind.PROSE, "Prices change in May."),
        (PassageKind.TABLE, "Our prices:\nPlan: Basic; Price: 5\nPlan: Team; Price: 9"),
        (PassageKind.CODE, "make test"),
    ]


def test_long_code_is_cut_above_unindented_lines():
    code = "\n".join(f"def f{n}():\n    return {'x ' * 20}" for n in range(12))

    made = cut(Block(code, PassageKind.CODE))

    assert len(made) > 1
    assert all(passage.text.startswith("def f") for passage in made)


def test_long_sentence_is_cut_at_clauses():
    clause = "word " * 19 + "word, "

    *made, last = cut(Block(clause * 10))

    assert made
    assert all(passage.text.endswith(", …") for passage in made)
    assert last.text.endswith("word,")


def test_long_word_without_spaces_is_cut():
    made = cut(Block("x" * 10_000))

    assert squeezed("".join(passage.text for passage in made)) == "x" * 10_000
    assert max(len(passage.text) for passage in made) < 2000


def test_chinese_is_cut_at_clauses():
    made = cut(Block("我们在五月开门，" * 80))

    assert all(count_words(passage.text) <= 119 for passage in made)
    assert all(passage.text.removesuffix(" …").endswith("，") for passage in made)


def test_title_and_section_count_towards_the_passage_limit():
    text = " ".join(sentence(10, n) for n in range(30))

    assert all(count_words(p.text) <= 110 for p in cut(Block(text), path=("one two three", "four five six seven")))
    assert all(count_words(p.text) <= 40 for p in cut(Block(text), title="title " * 200))
    assert cut(Block(text), path=("A", "B"))[0].section == "A › B"


def test_title_changes_hash_but_not_id():
    passage, other = cut(Block("Text."))[0], cut(Block("Text."), title="Holidays")[0]

    assert passage.id == other.id
    assert passage.hash != other.hash


def test_pieces_join_to_the_block():
    block = Block("First line. It has two sentences.\n  - second\n\n  - third")

    assert "".join(piece.glue + piece.text for piece in chunking.split_block(block, 3)).strip() == block.text
