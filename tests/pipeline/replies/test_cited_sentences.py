"""Replies as sentences with the numbers that they cite."""

import re
import time
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.replies.cited_sentences import MarkedSentence, SentenceSplitter, cite_sentence, split_sentences
from pipeline.replies.markup import clean_markup
from pipeline.stages.findings import collect_sentences
from storage.types import Evidence
from tests.pipeline.world import hit

Said = list[tuple[str, tuple[int, ...]]]

# A mark cites the sentence before it or around it.
CITED: list[tuple[str, Said]] = [
    ("It opened in 1990 [1]. It closed.", [("It opened in 1990.", (1,)), ("It closed.", ())]),
    ("The year was long. [1] It closed [2].", [("The year was long.", (1,)), ("It closed.", (2,))]),
    ("It opened.[1] Next it closed.[2]", [("It opened.", (1,)), ("Next it closed.", (2,))]),
    ("It opened.[1]It closed.[2]", [("It opened.", (1,)), ("It closed.", (2,))]),
    ("It opened.\n[1]\n\nIt closed.\n\n[2][1]", [("It opened.", (1,)), ("It closed.", (2, 1))]),
    ("The [1] hall is [2] old.", [("The hall is old.", (1, 2))]),
    ("[1] It opened.", [("It opened.", (1,))]),
    ("First.[1]\n\n[2] Second.", [("First.", (1,)), ("Second.", (2,))]),
    ("No. Dogs may not enter [1]. Ask us [2].", [("No. Dogs may not enter.", (1,)), ("Ask us.", (2,))]),
    ("**Yes**. [2] Cats may [1].", [("Yes. Cats may.", (2, 1))]),
    ("Is it [1]? Yes [2]! No… [3]", [("Is it?", (1,)), ("Yes!", (2,)), ("No…", (3,))]),
    ("Read [1](https://a.example) it. [the page](https://a.example) [2]", [("Read it.", (1,)), ("the page", (2,))]),
    ("It opened. https://a.example [1]\n[2]", [("It opened.", ())]),
    ("Write to […] [1]. […] pays ([…]).[2]", [("Write to […].", (1,)), ("[…] pays ([…]).", (2,))]),
    ("[1]", []),
]
# If a mark leads a line, all marks of that line precede their sentences.
FRONTED: list[tuple[str, Said]] = [
    ("[1] The mill closed. [2] It burned down.", [("The mill closed.", (1,)), ("It burned down.", (2,))]),
    ("- [1][2] It closed. It burned. [3] It rose.", [("It closed.", (1, 2)), ("It burned.", ()), ("It rose.", (3,))]),
    (
        "It opened. [1]\n[2] It closed. [3] It burned.",
        [("It opened.", (1,)), ("It closed.", (2,)), ("It burned.", (3,))],
    ),
    ("[1] It closed. [2]", [("It closed.", (1, 2))]),
    ("[1] It closed.[2] It burned.", [("It closed.", (1, 2)), ("It burned.", ())]),
    ("[1] It closed [2]. [3] It burned. [1]", [("It closed.", (1, 2, 3)), ("It burned.", (1,))]),
    ("[1] It closed. [2] It burned.\n\nIt rose. [3]", [("It closed.", (1,)), ("It burned.", (2,)), ("It rose.", (3,))]),
]
# A mark that is part of the grammar is rewritten.
PARTS: list[tuple[str, Said]] = [
    ("According to [1], a kiln is hot.", [("A kiln is hot.", (1,))]),
    ("It is late. As shown in [1] and [2], kilns glow [3].", [("It is late.", ()), ("Kilns glow.", (1, 2, 3))]),
    ("In [2], LaTeX is used. It works [1].", [("LaTeX is used.", (2,)), ("It works.", (1,))]),
    ("The array [1, 2] is sorted [3].", [("The array [1, 2] is sorted.", (3,))]),
    ("Section [3] of the law says so [1].", [("Section 3 of the law says so.", (1,))]),
    ("The article [1] was long.", [("The article was long.", (1,))]),
    ("The site https://a.example is old [1].", [("The site is old.", (1,))]),
    ("He moved to [the hall](https://a.example) late [1].", [("He moved to the hall late.", (1,))]),
    ("The town she lived in [1]. It is old [2].", [("The town she lived in.", (1,)), ("It is old.", (2,))]),
]
INCOMPLETE: list[tuple[str, list[str]]] = [
    ("According to [1] the kiln is hot. [2]\n[3]", ["According to the kiln is hot."]),
    ("It was shown by [1] and others [2]. It glows [1].", ["It was shown by and others."]),
    ("It glows, see http://a.example and www.b.example [1].", ["It glows, see and."]),
    ("[1] also says that it glows.", ["also says that it glows."]),
    ("The site https://a.example is old [1].", []),
]
SPLIT: list[tuple[str, list[str]]] = [
    (
        "Dr. Ito of the U.S. met J. R. Lund, e.g. in No. 5 [1]. He left.",
        ["Dr. Ito of the U.S. met J. R. Lund, e.g. in No. 5.", "He left."],
    ),
    ('She said: "It is done." [1] Then she left.', ['She said: "It is done."', "Then she left."]),
    ("“It is late. We go,” he said. [1] They went.", ["“It is late. We go,” he said.", "They went."]),
    ("Wait... what [1]? It grew to 3.5 million. Done.", ["Wait... what?", "It grew to 3.5 million.", "Done."]),
    ("它很古老[1]。是吗？是！", ["它很古老。", "是吗？", "是！"]),
    ("هل هذا صحيح؟ نعم [١]. انتهى۔", ["هل هذا صحيح؟", "نعم.", "انتهى۔"]),
    ("यह बड़ा है।[१] यह पुराना है।", ["यह बड़ा है।", "यह पुराना है।"]),
    ("Good. [1] 👍 Fine. 🎉", ["Good.", "👍 Fine."]),
    ("Use `a.b. C` now. Then ``x `y. Z` `` too.", ["Use `a.b. C` now.", "Then ``x `y. Z` `` too."]),
    ("It is `a[1]`. So $x_1. Y$ is.", ["It is `a[1]`.", "So $x_1. Y$ is."]),
    ("See [a. B](https://a.example/x.y) now. Next.", ["See a. B now.", "Next."]),
]
LINES: list[tuple[str, list[str]]] = [
    ("- one\n* two\n+ three\n• four\n‣ five\n– six\n· seven", ["one", "two", "three", "four", "five", "six", "seven"]),
    ("1. one\n2) two\n(3) three\n(a) four\nb. five\nc) six", ["one", "two", "three", "four", "five", "six"]),
    ("一、首先\n（二）其次\n① 再次\n1️⃣ 最后", ["首先", "其次", "再次", "最后"]),
    ("١. أول\n٢- ثان\nأ) ثالث", ["أول", "ثان", "ثالث"]),
    ("**1. One**: a\n**2.** b\n- [x] c", ["One: a", "b", "c"]),
    ("- a\n  - b\n\n> c\n> - d", ["a", "b", "c", "d"]),
    ("Some.\n3.5 million people", ["Some.", "3.5 million people"]),
    ("12. Mai 1990 kam er.\n1. Mai auch.\n1990. The end.", ["12. Mai 1990 kam er.", "1. Mai auch.", "1990. The end."]),
    ("-5 degrees\nA. Lund came.", ["-5 degrees", "A. Lund came."]),
    ("# One ##\ntwo\n---\n***\nThree\n=====", ["One", "two", "Three"]),
    ("The hall was\nopened late.", ["The hall was opened late."]),
    ("Name: Ada\nBorn: 1815", ["Name: Ada", "Born: 1815"]),
    ("| City | People |\n|:--|--:|\n| Ulm | two |\n| Ems | |", ["City: Ulm; People: two", "City: Ems"]),
    ("| Ulm | two |\n| Ems | three |", ["Ulm | two", "Ems | three"]),
    ("| City | People |\n|---|---|\n\nDone.", ["City | People", "Done."]),
    ("Run:\n```sh\na[1] = *b*\n\n# c\n```\nDone.", ["Run:", "```sh\na[1] = *b*\n\n# c\n```", "Done."]),
    ("~~~\n```\na\n```\n~~~\nDone.", ["````\n```\na\n```\n````", "Done."]),
    ("```\nleft open", ["```\nleft open\n```"]),
    ("[1]: https://a.example\n[^2]: A page\nText.", ["Text."]),
]
PLAIN: list[tuple[str, str]] = [
    ("It is **very** *old* and _big_ and ***huge***.", "It is very old and big and huge."),
    ("它**很**古老。", "它很古老。"),
    ("Take 2 * 3 * 4 and 2**3**4 and 5*a*b.", "Take 2 * 3 * 4 and 2**3**4 and 5*a*b."),
    (
        "Set max_page_size and __init__ and f(*args, **kwargs).",
        "Set max_page_size and __init__ and f(*args, **kwargs).",
    ),
    (r"Not \*bold\* and ~~old~~ new.", "Not *bold* and old new."),
    ("The `**raw**` text.", "The `**raw**` text."),
    ("Zero\u200b width\ufeff here.", "Zero width here."),
    ("Ask @bob or <@U1> &amp; co.", "Ask bob or & co."),
]


def split(reply: str, count: int = 3) -> Said:
    return [(sentence.text, sentence.numbers) for sentence in split_sentences(reply, count)]


@pytest.mark.parametrize(("reply", "expected"), [*CITED, *FRONTED, *PARTS])
def test_marks_cite_their_sentences(reply: str, expected: Said) -> None:
    assert split(reply) == expected


@pytest.mark.parametrize(("reply", "expected"), INCOMPLETE)
def test_incomplete_sentence_has_no_evidence(reply: str, expected: list[str]) -> None:
    offered = [collect_sentences([hit("It is.")])] * 3
    sentences = split_sentences(reply, 3)
    assert [sentence.text for sentence in sentences if sentence.incomplete] == expected
    assert all(bool(cite_sentence(sentence, offered).evidence) is not sentence.incomplete for sentence in sentences)


@pytest.mark.parametrize(("reply", "expected"), [*SPLIT, *LINES])
def test_sentences_end_in_every_script_and_with_items_rows_and_code(reply: str, expected: list[str]) -> None:
    assert [text for text, _ in split(reply)] == expected


@pytest.mark.parametrize(("reply", "expected"), PLAIN)
def test_emphasis_is_removed_but_arithmetic_and_code_are_unchanged(reply: str, expected: str) -> None:
    assert split(reply) == [(expected, ())]


def test_bold_across_sentences_is_removed() -> None:
    assert [text for text, _ in split("**Note. This is bold.** Next.")] == ["Note.", "This is bold.", "Next."]


def test_items_rows_and_code_begin_paragraphs() -> None:
    reply = "One. Two.\n\nThree. Four.\n- five\n| six | seven |\n```\neight\n```"
    sentences = enumerate(split_sentences(reply, 0))
    assert [place for place, sentence in sentences if sentence.paragraph] == [2, 4, 5, 6]


def test_marks_after_rows_and_code_belong_to_them() -> None:
    reply = "| a | b [1] |\n| c | d | [2]\n\n```\nx[1]\n``` [3]\n\n~~~\ny\n~~~\n[1]"
    assert [sentence.numbers for sentence in split_sentences(reply, 3)] == [(1,), (2,), (3,), (1,)]


def test_endless_sentence_is_cut_at_a_thousand_characters() -> None:
    assert max(len(sentence.text) for sentence in split_sentences("word " * 1_000, 0)) <= 1_000


def test_cited_sentence_gets_the_evidence_of_its_numbers() -> None:
    one, two = (hit("One is first. Two is second.", key=key) for key in ("a.md", "b.md"))
    first, second, other = (
        Evidence(found.passage.text[slice(*span)], found.passage, found.document, span)
        for found, span in [(one, (0, 13)), (one, (14, 28)), (two, (0, 13))]
    )
    cited = cite_sentence(MarkedSentence("It is.", (2, 1, 9), paragraph=True), [[first, second], [other, first]])
    assert cited.text == "It is."
    assert cited.evidence == (other, first, second)
    assert cited.paragraph


CUES = [
    *["\n[1] A. [2] B. ", "[1]", "[2]", "[1, 2]", ". ", ". [1] ", "\n\n", "```\n", "- ", "1. ", "**", "www.a.example"],
    "word " * 30,
]
WRITTEN = [
    piece
    for reply, _ in [*CITED, *FRONTED, *PARTS, *INCOMPLETE, *SPLIT, *LINES, *PLAIN]
    for piece in re.findall(r"\w+|\W", reply)
]
PIECES = st.sampled_from([*WRITTEN, *CUES, *'..!?[](){}<>|`*_~$#"“”\\ \n\r\t'])
REPLIES = st.one_of(st.lists(PIECES, max_size=80).map("".join), st.text(max_size=200))


def streamed(reply: str, cuts: list[int]) -> tuple[MarkedSentence, ...]:
    splitter = SentenceSplitter(3)
    places = sorted({0, len(reply), *(cut % (len(reply) + 1) for cut in cuts)})
    sentences = [marked for start, end in pairwise(places) for marked in splitter.feed(reply[start:end])]
    return (*sentences, *splitter.close())


@given(REPLIES, st.lists(st.integers(0, 3_000), max_size=30))
@example('"2\n\n“ ¹\n[1]and', [8])
def test_streamed_sentences_equal_those_of_the_whole_reply(reply: str, cuts: list[int]) -> None:
    assert streamed(reply, cuts) == split_sentences(reply, 3)


@given(REPLIES)
def test_reply_streamed_by_single_characters_has_the_same_sentences(reply: str) -> None:
    assert streamed(reply, list(range(len(reply)))) == split_sentences(reply, 3)


def test_sentence_is_yielded_before_the_reply_ends() -> None:
    splitter = SentenceSplitter(3)
    sentences = splitter.feed("It opened in May [1]. It was painted green by the town, and later red by a guest, ")
    assert sentences == (MarkedSentence("It opened in May.", (1,), paragraph=False),)


@given(REPLIES, st.integers(0, 12))
def test_sentences_are_clean_and_cite_offered_numbers(reply: str, count: int) -> None:
    for sentence in split_sentences(reply, count):
        assert clean_markup(sentence.text).strip() == sentence.text
        assert re.search(r"[^\W_]", sentence.text)
        assert len(set(sentence.numbers)) == len(sentence.numbers)
        assert all(1 <= number <= count for number in sentence.numbers)


WORDS = st.text(alphabet="bcdfghjklmnpqrstvwxzABCDEFGHßéж", min_size=2, max_size=9)
AROUND = st.sampled_from([
    *[" ", " ", " ", " ", ". ", "! ", "? ", ", ", "; ", ".\n", "\n\n", "\n- ", "\n1. ", "\n> ", "\n# ", " ", "… "],
    *[" [1] ", " [1][2]. ", ".[2] ", " [9], ", ' "', '" ', " (", ") ", " **", "** ", " `", "` ", " 😀 ", "。"],
])  # fmt: skip


@given(st.lists(st.tuples(WORDS, AROUND), max_size=40))
def test_splitting_keeps_every_word_in_order(parts: list[tuple[str, str]]) -> None:
    reply = "".join(word + around for word, around in parts)
    left = " ".join(sentence.text for sentence in split_sentences(reply, 3))
    assert re.findall(r"[^\W\d_]+", left) == [word for word, _ in parts]


@pytest.mark.parametrize(
    "sign", ["[", "]", "*", "`", "<", "(", "** ", "[1] ", "` `` ", "![", "[a](", "<!--", "_a ", "¹"]
)
def test_ten_thousand_repeated_signs_parse_in_time(sign: str) -> None:
    began = time.process_time()
    split_sentences((sign * 10_000)[:10_000], 3)
    assert time.process_time() - began < 2
