"""Tests of sentence boundaries."""

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from storage.language.sentences import sentence_spans
from storage.language.words import load_word_lists


def cut(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


def check(marked: str) -> None:
    """Check that sentences end at each `‖`; white space after it belongs to none."""
    expected = [piece.strip() for piece in marked.split("‖") if piece.strip()]

    assert cut(marked.replace("‖", "")) == expected


SENTENCES = [
    "Dr. Ahmed saw Mrs. Lee at 9 a.m. on Monday.‖ Prof. Ito did not come.",
    "J. R. R. Tolkien wrote it.‖ So did C. S. Lewis and J.K. Rowling.",
    "They sold it to ACME INC. Walker paid.‖ So did she.",
    "The U.S. Senate met in Washington, D.C. on Jan. 5 and left.‖ The House stayed.",
    "She was born in the U.S.‖ In 1990 she left.‖ He stayed in the U.K.‖ They met again.",
    "It grew to 3.5 million, or 12.75 %, in version 1.2.3.‖ Version 2.0 follows.",
    "See https://example.org/a.b?c=d. for more, or read setup.cfg.‖ Then run main.py.‖ Done.",
    "Use e.g. Python, i.e. CPython, vs. PyPy, cf. Fig. 3 and Eq. 4.‖ See p. 12, pp. 3-5, vol. 2, No. 7.",
    "Is it allowed?‖ No.‖ The answer is no.",
    "Acme Inc. was bought by Foo Ltd.‖ The price was high.‖ Acme Corp. Germany sued.",
    "Pens, paper, etc.‖ Nothing else.‖ Pens, paper, etc. are here.",
    '"Why?" he asked.‖ "Because!" she said.‖ "I see."‖ They left.',
    "“It is late. We should go,” he said.‖ They went.",
    "He stopped (it was late. It rained.) and slept.‖ (He was tired.)‖ Nobody came.",
    "Wait... what is it?‖ Well...‖ Nobody knows.‖ Hm. . . maybe.",
    'The quote […] goes on.‖ He said "[...] never."‖ True.',
    "It was cited.[1][23]‖ Twice.¹²‖ And here.[citation needed]‖ End.",
    "Really?!‖ Yes!!!‖ No…‖ Good.",
    "Yes (!) The end (?) came.‖ Right.",
    "iPhone sales rose.‖ iPhones fell.‖ pH is a scale.‖ 12 people came.",
    "St. Louis is near Mt. Vernon on Main St.‖ The river is wide.",
    "Martin Luther King Jr. spoke.‖ So did George W. Bush.",
    "Vitamin C.‖ It helps.‖ Brown v. Board of Education decided it.",
    "It is 5 km.‖ Sometimes more.",
    "Steps: 1. Open it.‖ 2. Close it.",
    "**Bold end.**‖ Next `code.`‖ Last _one._",
    "Let n be positive and x < n.‖ Suppose that x is prime.",
    "He holds a Ph.D. in physics and an M.Sc.‖ He teaches.",
    "Ask Yahoo! or us.‖ What?! you say.",
    "On the map Brig. Gen. Ada Stone met Adm. Lee and Vice Adm. Roe, then Lt. Col. Poe.‖ Gen. Poe left.",
    "It takes approx. 30 days, max. 40, see Chap. 5.‖ Ask HR.‖ People in San Francisco, CA.‖ The lab is there.",
    "Ask your GP.‖ Staff may ask our sales rep.‖ Users of the app.‖ Customers too.‖ Keep it in mind.‖ Then go.",
    "He rose to Gen.‖ He left as a Sen.‖ The Gen. Assembly met Salmon P. Chase.",
    "Call ext. 412 or tel. 555.‖ Ask for min. 3 people, see app. B and Sec. C.‖ They are long.‖ App. A, too.",
    "Open Mon. to Fri. from nine.‖ Mon. – Fri. we work, Sat. 9 to 5, Tue. Wed. and Fri. only.‖ He sat.‖ 9 people came.",
    "Install the app.‖ A user did.‖ The sun.‖ It shines.‖ Room no. 5, bldg. 3, rm. 12, attn. Ms. Lee.‖ Fr. Brown came.",
    "no capital here.‖ so what?‖ it goes on.‖ e.g. so",
    "Am 3. Oktober 1990 war es so weit.‖ Im 19. Jahrhundert nicht.‖ Der 2. Weltkrieg begann 1939.",
    "Das gilt z. B. für Hunde, d. h. für Tiere, u. a. Katzen.‖ Vgl. Abb. 3 und S. 12 bzw. Nr. 4.",
    "Er lebte um 50 v. Chr. in Rom.‖ Sie lebte um 750 n. Chr.‖ Das ist lange her.",
    "Es kostet 3,5 Mio. Euro bzw. 1.000.000 Dollar.‖ Viel!",
    "„Komm her. Schnell!“, rief er.‖ »Nein.«‖ Sie blieb.",
    "Am 3. 10. 1990 kam Dr. Müller mit Frau Dipl.-Ing. Schmidt usw.‖ Alle da.",
    "Es waren 12.‖ Dann kamen mehr.",
    "Siehe Anl. 2 und Anl. B.‖ Sie ist lang, gem. Ziff. 3 und Abb. C.‖ Offen Mo. - Fr. ab 9 Uhr, Zi. 12.‖ Sonst zu.",
    "Hptm. Weber traf Hr. Lang und Dr. med. Sommer im Hbf.‖ Der Zug kam mind. 30 Minuten später, inkl. MwSt. Kosten.",
    "« Bonjour ! » dit-il.‖ « Où est M. Dupont ? »‖ Il partit à 5 h. du matin, av. J.-C. sans doute.",
    "¿Dónde está el Sr. García?‖ ¡Aquí!‖ Nació en EE. UU. en 1990.‖ Mide 5 cm.‖ Sin embargo, crece.",
    "Il sig. Rossi e la dott.ssa Bianchi abitano qui, cfr. p. 5.‖ È vero.",
    "De heer drs. Jansen komt, d.w.z. morgen.‖ Het is goed, enz.‖ Ja.",
    "Он родился в 1990 г. в Москве, т.е. давно.‖ Она — нет.‖ А. С. Пушкин жил здесь.",
    "我们去北京。‖你好！‖他说：“我不去。我累了。”‖然后走了？‖好",
    "中文句子。[1]‖另一句！！‖（括号里。还有。）‖3.5万人。",
    "彼は「はい。そうです。」と言った。‖次の文（例。）は短い。‖終わり",
    "他看了《加油！好男儿》节目。‖好看吗?‖是的。",
    "यह पहला वाक्य है।‖ यह दूसरा है॥‖ क्या?‖ हाँ।",
    "هل هذا صحيح؟‖ نعم.‖ لا، ليس كذلك.‖ انتهى الأمر.‖وبدأ غيره.",
    "یہ پہلا جملہ ہے۔‖ یہ دوسرا ہے۔",
    "Սա առաջինն է։‖ Սա երկրորդն է։",
    "ይህ ነው።‖ ያ ነው።",
    "នេះជាប្រយោគ។‖ នោះជាប្រយោគ។",
    "Ποιος είναι;‖ Είναι ο Νίκος.‖ Τέλος",
    "이것은 문장이다.‖ 저것은?‖ 끝.",
    "זה משפט.‖ זה שני!",
    "ეს არის.‖ ის არის.",
    "A soft wrap\ngoes on here.‖ And\nagain.",
    "No stop here‖\n\nA paragraph‖\n \t\n\n\nanother‖",
    "Needed:‖\n- a pen.‖ Blue.‖\n- paper‖\n* glue‖\n1. one‖\n2) two‖\n• three",
    "# Title‖\nText under it.‖\n## Sub‖\nMore.",
    "Opening hours‖\nMonday to Friday we are open from nine to five.",
    "| a. B | c. D |‖\n|---|---|‖\n| Dr. X. Y | z |",
    "Title‖\n=====‖\nText.",
    "One\r\ntwo.‖\r\n\r\nThree.‖",
    "He was born in the year\n1984 in the town of\nLondon and lived there.",
    "name\tage\tcity. Town‖\nBo\t3\tOslo. Bergen",
    "Ende des Absatzes.\u2029‖Neuer Absatz.",
]


@pytest.mark.parametrize("marked", SENTENCES)
def test_texts_are_split_into_the_expected_sentences(marked: str) -> None:
    check(marked)


def test_long_thai_is_cut_at_spaces_only() -> None:
    clause = "ประเทศไทยเป็นประเทศที่ตั้งอยู่ในทวีปเอเชีย"
    short, long = f"{clause} {clause}", " ".join([clause] * 9)

    assert cut(short) == [short]
    assert len(cut(long)) == 3
    assert " ".join(cut(long)) == long


@pytest.mark.parametrize("text", ["", " ", "\n\n", "\u3000\t\u2029 \n"])
def test_empty_text_has_no_sentences(text: str) -> None:
    assert sentence_spans(text) == ()


def listed(*kinds: str) -> st.SearchStrategy[str]:
    known = load_word_lists("abbreviations")
    return st.sampled_from(sorted(word[0].upper() + word[1:] for kind in kinds for word in known[kind] - known["last"]))


BEGINNINGS = load_word_lists("abbreviations")["starter"]
NAMES = st.from_regex(r"[A-ZÉÖ][a-zéöß]{3,9}", fullmatch=True).filter(lambda name: name.casefold() not in BEGINNINGS)
STARTERS = st.sampled_from(["The", "He", "They", "In", "Der", "Sie", "Elle", "Dans", "Los", "Nella", "Quando", "Het"])


@example(["Gen", "Al"], ["Weber"])  # "al" begins sentences, too, but not with a period
@given(st.lists(listed("open", "title", "bound"), min_size=1, max_size=3), st.lists(NAMES, min_size=1, max_size=3))
def test_title_belongs_to_the_name_after_it(titles: list[str], names: list[str]) -> None:
    check(f"In that year {' '.join(f'{title}.' for title in titles)} {' '.join(names)} went home.‖ Nobody else did.")


@given(listed("open", "title"), STARTERS)
def test_title_ends_a_sentence_before_a_typical_first_word(title: str, starter: str) -> None:
    check(f"Later they made her a {title}.‖ {starter} 1990 was the year.")


def test_abbreviations_bound_to_the_next_word_are_in_no_other_list() -> None:
    known = load_word_lists("abbreviations")
    assert not known["bound"] & (known["open"] | known["title"] | known["last"])


@given(listed("number", "bound"), st.integers(1, 2100))
def test_counted_noun_belongs_to_its_number(word: str, number: int) -> None:
    check(f"It says {word.lower()}. {number} there.‖ Nothing more.")


PIECES = st.sampled_from(
    [*".!?…。！？؟।)(\"'“”«»「」[]|-•*#", " ", " ", "\n", "\n\n", "\t", "Dr", "U.S", "e.g", "The", "he", "I", "3", "12",
     "漢", "と", "ไทย", "مرحبا", "Straße", "[1]", "ß", "1.", "- ", "\u00a0", "\r\n", "\u2029"]
)  # fmt: skip
TEXTS = st.one_of(st.text(), st.lists(PIECES, max_size=60).map("".join))


@given(TEXTS)
def test_spans_cover_everything_but_white_space(text: str) -> None:
    spans = sentence_spans(text)
    place = 0
    for start, end in spans:
        assert place <= start < end <= len(text)
        assert not text[place:start].strip()
        assert text[start:end] == text[start:end].strip()
        place = end

    assert not text[place:].strip()


@given(TEXTS)
def test_paragraphs_are_cut_apart(text: str) -> None:
    assert cut(f"{text}\n\nNext one. And more.")[-2:] == ["Next one.", "And more."]


@pytest.mark.parametrize(
    "unit",
    [".", "(", '"', "“", "a. ", "e.g. ", "\n", " ", "- ", "|", ". . ", "[", "!", "「", "\ta", "Dr. J. ", "1. ", "»"],
)
def test_repeated_marks_are_split_quickly(unit: str) -> None:
    began = time.process_time()
    sentence_spans(unit * 25_000 + "x")

    assert time.process_time() - began < 2
