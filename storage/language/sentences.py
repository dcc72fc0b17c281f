"""Split text of any script into blocks (paragraphs, list items, headings, table rows) and into sentences.

A line break ends a block if there is a blank line, list item, row or heading; any other break is a soft wrap. In a
block, one pattern finds every mark that could end a sentence, and the text around the mark decides.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

from storage.language.lazy_pattern import lazy_compile
from storage.language.scripts import UNSPACED_CLASS
from storage.language.words import load_word_lists

Span = tuple[int, int]

_PARAGRAPH_END = lazy_compile(r"\n[^\S\n]*\n|\u2029")
_LINE = lazy_compile(r"[^\n\u2028]+")
_ITEM = lazy_compile(r"\s*(?:[-*+•‣◦▪●○–]\s|\(?\d{1,3}[.)]\s|\(?[a-zA-Z]\)\s|>|#{1,6}\s|```|~~~)")
_MARKED_ALONE = lazy_compile(r"\s*(?:#{1,6}\s|```|~~~|[-=*_~^]{3,}\s*$)")
_OPEN_ENDED = lazy_compile(r"(?:[,;\-–—(]|\b(?![A-Z])\w{1,3})\s*$")
_NEXT_WORD = lazy_compile(r"\s*([^\W_a-zß-öø-ÿ]\S*)")
_LONGEST_HEADING = 60
_CELL_ENDS = 2


def block_spans(text: str) -> Iterator[Span]:
    """Yield the start and end of each block, in order; together they cover all characters except line breaks."""
    start = 0
    for gap in _PARAGRAPH_END.finditer(text):
        yield from _blocks_of_paragraph(text, start, gap.start())
        start = gap.end()
    yield from _blocks_of_paragraph(text, start, len(text))


def is_row(line: str) -> bool:
    """Return whether a line is a row of a table, which has cells and no sentences."""
    bare = line.strip()
    return bare.startswith("|") or bare.count(" | ") >= _CELL_ENDS or bare.count("\t") >= _CELL_ENDS


def _blocks_of_paragraph(text: str, start: int, end: int) -> Iterator[Span]:
    lines = [match.span() for match in _LINE.finditer(text, start, end)]
    if not lines:
        return
    width = max(last - first for first, last in lines)
    begin = lines[0][0]
    for (first, last), (next_first, next_last) in pairwise(lines):
        if _is_separate(text[first:last], text[next_first:next_last], width):
            yield begin, last
            begin = next_first
    yield begin, lines[-1][1]


def _is_separate(line: str, following: str, width: int) -> bool:
    """Return whether the break between two lines ends a block. `width` is the length of the longest nearby line."""
    if _ITEM.match(following) or _MARKED_ALONE.match(line) or _MARKED_ALONE.match(following):
        return True
    return is_row(line) or is_row(following) or _is_heading(line, following, width)


def _is_heading(line: str, following: str, width: int) -> bool:
    """Return whether a short line is a heading: the first word of the next line would have fitted into it."""
    next_word = _NEXT_WORD.match(following)
    if next_word is None or len(line) > _LONGEST_HEADING or _OPEN_ENDED.search(line):
        return False
    return len(line) + 1 + len(next_word[1]) < width


_LONG_UNPUNCTUATED = 120  # characters of Thai, Lao, Khmer or Burmese after which a space ends a piece

_ORDINAL_DIGITS = 2  # days and centuries have two
_READ_BACK = 60  # characters before a period that decide its kind
_FOOTNOTE = r"\[[^\[\]\n]{1,30}\]|[¹²³⁰-⁹†‡]"
_MARK = lazy_compile(
    # Marks that always end a sentence: no abbreviation or number uses them.
    rf"(?P<hard>[。！？｡।॥۔؟։።፧፨។៕။༎᠃෴‼⁇⁈⁉]++|．(?!\d))(?:[”’»)\]}}」』】〉》〕）］｝｣]|{_FOOTNOTE})*+"
    rf"|(?<![.!?…])(?P<soft>[.!?…]++)"
    rf"(?:[\"'”’“‘»«)\]}}*_`]|{_FOOTNOTE})*+(?:[ \u00a0\u202f]»(?=[\s,.;:)]|\Z))?"
    r"(?: \[\d{1,3}\]|\s\[[^\[\]\n]{1,30}\](?=\s*\Z))*+"
    rf"(?:(?=\s|\Z)|(?<=[!?])(?=[{UNSPACED_CLASS}])|(?<=\])(?=[^\W\d_])"
    # Arabic names and addresses have no inner periods, so a missing space is a slip.
    r"|(?<=[\u0621-\u064a]{2}\.)(?=[\u0621-\u064a]{2}))"
    r"|(?<=[\u0370-\u03ff\u1f00-\u1fff])(?P<greek>[;\u037e])(?=\s+[^\Wa-zα-ώ])"
)
_ENCLOSED = lazy_compile(
    r"\([^()]{0,200}\)|\[[^\[\]]{0,200}\]|（[^（）]{0,200}）|「[^「」]{0,200}」|『[^『』]{0,200}』|《[^《》]{0,100}》|〈[^〈〉]{0,100}〉"
    r"|“[^“”]{0,200}”|„[^„“”]{0,200}[“”]|«[^«»]{0,200}»|»[^«»]{0,200}«"
    r"|(?<![^\s(\[])\"(?=\S)[^\"]{1,200}(?<=\S)\"(?!\w)"
)
_MAY_END = lazy_compile("[。！？｡।॥۔؟։།።፧፨។៕။༎᠃෴‼⁇⁈⁉．.!?…;\u037e]")
_OPENS = lazy_compile('[(\\[（「『《〈“„«»"]')  # the characters that begin a match of `_ENCLOSED`
_CONTINUING = frozenset(",;:.…!?)，、；：。！？")
_OPENING = lazy_compile(r"[\s\"'“‘„«»¿¡(\[{*_`—–-]*")
_NEXT = lazy_compile(r"\w+(?:['\u2019]\w+)?")
_BEFORE_TOKEN = lazy_compile(r".*[\s(\[{\"“‘«„/—–-]", re.DOTALL)
_ROMAN = lazy_compile(r"[IVXLCDM]{2,}\b|[VX]\b")
_LETTER = lazy_compile(r"[A-Z]\d*\b(?:(?=([.,;:)\]]|\Z))|(?=\s))")
_COUNT_AHEAD = lazy_compile(r"\.\s*[\dIVX]")
_ACRONYM = lazy_compile(r"(?:[^\W\d_]{1,2}\.)+[^\W\d_]{1,2}")
_CAPITAL = lazy_compile(r"[A-ZÀ-ÖØ-ÞΑ-ΩА-ЯЁ]")
_SOUTHEAST_SPACE = lazy_compile(
    r"(?<=[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]) +(?=[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff])"
)


def sentence_spans(text: str) -> tuple[Span, ...]:
    """Return the start and end of each sentence of `text`, in order, without the white space around them."""
    return tuple(
        trimmed
        for start, end in block_spans(text)
        for span in _sentences(text, start, end)
        for trimmed in _trim_span(text, *span)
    )


def _trim_span(text: str, start: int, end: int) -> Iterator[Span]:
    piece = text[start:end]
    if bare := piece.strip():
        begin = end - len(piece.lstrip())
        yield begin, begin + len(bare)


def _sentences(text: str, start: int, end: int) -> Iterator[Span]:
    block = text[start:end]
    if is_row(block):
        yield start, end
        return
    begin = 0
    for cut in [*_find_cuts(block), len(block)]:
        for piece_start, piece_end in _split_at_spaces(block, begin, cut):
            yield start + piece_start, start + piece_end
        begin = cut


def _split_at_spaces(block: str, start: int, end: int) -> Iterator[Span]:
    """Yield a sentence as one span, or in parts split at spaces if it is long and its script has no full stops."""
    if end - start > _LONG_UNPUNCTUATED:
        for space in _SOUTHEAST_SPACE.finditer(block, start, end):
            if space.start() - start >= _LONG_UNPUNCTUATED:
                yield start, space.start()
                start = space.end()
    yield start, end


def _find_cuts(block: str) -> Iterator[int]:
    """Yield the ends of the sentences of a block, except the last one."""
    enclosed = [match.span() for match in _find_matches(_ENCLOSED, _OPENS, block)]
    cased = _CAPITAL.search(block) is not None
    begin = place = 0
    for mark in _find_matches(_MARK, _MAY_END, block):
        end = mark.end()
        while place < len(enclosed) and enclosed[place][1] <= mark.start():
            place += 1
        if place < len(enclosed) and enclosed[place][0] < mark.start():
            if mark["hard"] and enclosed[place][1] == end + 1:
                end += 1
            if end < enclosed[place][1]:
                continue
        if _is_end(block, begin, mark, end, cased=cased):
            yield end
            begin = end


def _find_matches(sought: re.Pattern[str], begins: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Yield the matches of `sought`. `begins` matches their first characters, so this is faster than `finditer`."""
    begin = begins.search(text)
    while begin:
        match = sought.match(text, begin.start())
        if match:
            yield match
        begin = begins.search(text, (match or begin).end())


def _is_end(block: str, begin: int, mark: re.Match[str], end: int, *, cased: bool) -> bool:
    """Return whether the sentence that starts at `begin` ends at `end`, which is after a mark and closing quotes."""
    following = _OPENING.match(block, end)
    place = following.end() if following else end
    next_char = block[place : place + 1]
    if next_char in _CONTINUING and block[place - 1] not in "[(":
        return False
    if mark["hard"]:
        closed = end > mark.end("hard")
        return not (closed and "\u3041" <= block[end : end + 1] <= "\u309f")
    if mark["soft"] and _is_continued(block, mark.start(), place, cased=cased):
        return False
    before = block[max(begin, mark.start() - _READ_BACK) : mark.start()]
    return mark["soft"] != "." or _is_period_end(before, block, place)


def _is_continued(block: str, start: int, place: int, *, cased: bool) -> bool:
    """Return whether the sentence continues after the mark at `start`.

    It does if a bracket opens directly before the mark, or if a lower-case word begins at `place`.
    """
    if start and block[start - 1] in "([":
        return True
    return cased and block[place : place + 1].islower() and not block[place + 1 : place + 2].isupper()


def _is_period_end(before: str, block: str, place: int) -> bool:
    """Return whether the full stop after `before` ends the sentence; the next word is at `place` in the block."""
    lead = _BEFORE_TOKEN.match(before)
    token = before[lead.end() if lead else 0 :].lstrip("'")
    head = before[: len(before) - len(token)].rstrip()
    if not head and (token.isdigit() or len(token) == 1):
        return False  # the number of a list item
    known = load_word_lists("abbreviations")
    following = _NEXT.match(block, place)
    word = following[0].casefold().replace("\u2019", "'") if following else ""
    initial = len(word) == 1 and block[place + 1 : place + 2] == "."
    shortened = block[place + len(word) : place + len(word) + 1] == "." and (word in known["open"] | known["title"])
    starts = word in known["starter"] and not (initial or shortened)
    if token.isdecimal():
        return starts or not _is_ordinal(head, token, word)
    if head[-1:].isdecimal() and token in known["unit"]:
        return True
    if token in known["letter"] and word != "chr" and not initial:
        return not word[:1].isdecimal()
    if token.isalpha() and token.isupper() and len(token) > 1 and following and following[0][1:2].islower():
        return token.casefold() not in known["open"] or starts  # HR. is no "Hr. Weber"
    short, weekdays = token.casefold(), known["weekday"]
    numbered = (short in known["number"] or short in weekdays) and _is_counted(block, place, word)
    day = short in weekdays and token[:1].isupper() and (numbered or word in weekdays)
    return not day and (_is_label(head, token) or _is_word_end(token, starts=starts, numbered=numbered))


def _is_label(head: str, token: str) -> bool:
    """Return whether a single letter is a label, such as "B" in "see app. B", and not an initial."""
    lead = head[:-1].rsplit(None, 1)[-1:] if len(token) == 1 and head.endswith(".") else []
    return bool(lead) and lead[0].casefold() in load_word_lists("abbreviations")["number"]


def _is_counted(block: str, place: int, word: str) -> bool:
    """Return whether a number, a label, or an abbreviation before a number begins at `place`, as after "No."."""
    if word[:1].isdecimal() or _ROMAN.match(block, place):
        return True
    known = load_word_lists("abbreviations")
    if word in known["number"]:
        return _COUNT_AHEAD.match(block, place + len(word)) is not None
    letter = _LETTER.match(block, place)
    return letter is not None and (letter[1] is not None or word not in known["starter"])


def _is_word_end(token: str, *, starts: bool, numbered: bool) -> bool:
    """Return whether the full stop after a word ends the sentence.

    `starts`: the next word often starts sentences. `numbered`: a number follows.
    """
    known, word = load_word_lists("abbreviations"), token.casefold()
    if word in known["last"]:
        return True
    if word in known["bound"] or (numbered and word in known["number"]):
        return False
    titled = token[:1].isupper() and word in known["title"]
    if titled or word in known["open"] or _ACRONYM.fullmatch(token) or (len(token) == 1 and token.isalpha()):
        return starts
    return True


def _is_ordinal(head: str, number: str, word: str) -> bool:
    """Return whether a number with a full stop is an ordinal, part of a date, or comes after a colon."""
    if len(number) > _ORDINAL_DIGITS:
        return False
    lead = head.rsplit(None, 1)[-1].casefold() if head else ""
    dated = lead[:-1].isdecimal() and lead.endswith(".")
    known = load_word_lists("abbreviations")
    return dated or lead.endswith(":") or lead in known["ordinal"] or word in known["month"]
