"""Make questions about documents by rules, from headings, sentences and table rows. Pure; for English.

A heading that is a question is used unchanged. In front of a question without a name, the title of its page is added.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, groupby

from evaluation.answers.own.sentence_questions import VAGUE, MadeQuestion, Prose, ask_sentence
from pipeline.support.support_check import find_quotable_spans
from storage.language.words import content_terms
from storage.types import Document, Passage, PassageKind

SECTION_MARK = " › "


def make_questions(passages: Sequence[Passage], document: Document) -> Iterator[MadeQuestion]:
    """Yield questions about a document. A document in another language than English gets none."""
    if document.language and not document.language.startswith("en"):
        return
    for place, (section, group) in enumerate(groupby(passages, lambda passage: passage.section)):
        own = tuple(group)
        first = next((sentence for passage in own for sentence in _split_sentences(passage)), "")
        names = (section.rpartition(SECTION_MARK)[2], "" if place else document.title)
        for made in (*_ask_heading(section, own), *chain.from_iterable(map(_ask_passage, own))):
            is_about = made.kind != "what" or (made.sentence == first and _is_about(made.text, names))
            if is_about and (text := _name_page(made, document.title, section)) and not _has_answer(text, made):
                yield replace(made, text=text, document=document.key)


def _ask_passage(passage: Passage) -> Iterator[MadeQuestion]:
    if passage.kind is PassageKind.TABLE:
        yield from (replace(row, passage=passage.id) for row in ask_rows(passage.text))
    elif passage.kind is PassageKind.PROSE:
        words = Prose.read(passage.text)
        for sentence in _split_sentences(passage):
            yield from (replace(question, passage=passage.id) for question in ask_sentence(sentence, words))


def _split_sentences(passage: Passage) -> tuple[str, ...]:
    return tuple(" ".join(passage.text[start:end].split()) for start, end in find_quotable_spans(passage))


def _is_about(question: str, names: Sequence[str]) -> bool:
    """Return whether a question asks for the definition of its page's or section's subject."""
    subject = re.sub(r"^What (?:is|are) (?:the )?|\?$", "", question).casefold()
    return subject in {_ABOUT.sub("", name.strip(" .:?").casefold()) for name in names}


_ABOUT = re.compile(r"^(?:about|what (?:is|are)|(?:an )?(?:overview|introduction) (?:of|to)) |^the | overview$")


def _has_answer(text: str, made: MadeQuestion) -> bool:
    """Return whether the question's text contains all words of its answer."""
    return bool(made.answer) and set(content_terms(" ".join(made.answer))) <= set(content_terms(text))


_LEAST_HEADING, _MOST_HEADING, _LEAST_BELOW, _LEAST_SENTENCE = 4, 16, 100, 30
_VERBS = "do|does|did|can|could|is|are|was|were|should|would|will|may|must|has|have"
_HEADINGS = (
    (re.compile(r"How to ((?!guide)[a-z]\w+ [^?]+)\??"), "how do I {0}"),
    (re.compile(r"How we ((?!re\b|are\b)[a-z]\w+ [^?]+)"), "how do we {0}"),
    (re.compile(r"What to ((?!expect)[a-z]\w+ [^?]+)\??"), "what should I {0}"),
    (re.compile(r"(When|Where|Who) to ([a-z]\w+ [^?]+)\??"), "{0} should I {1}"),
    (re.compile(r"((?:What|Who|Where|When|Why) (?:is|are|do|does|can|should) [^?]+)"), "{0}"),
    (re.compile(rf"((?:How|Why) (?:{_VERBS}|many|much|long|often|far|soon)\b[^?]+)\?"), "{0}"),
    (re.compile(r"((?:What|When|Who|Where|Which)\b(?! to\b)[^?]+)\?"), "{0}"),
    (re.compile(r"((?:Can|Do|Does|Should|Is|Are|Will|May|Must) [^?]+)\?"), "{0}"),
)
_YES_OR_NO = re.compile(r"(?:Can|Do|Does|Should|Is|Are|Will|May|Must) ")
_YES = re.compile(r"(?:yes|no|not|absolutely|of course|sometimes|never|always|currently not)\b", re.IGNORECASE)
_ASKS_READER = re.compile(
    r"\b(?:are|have|did|is|do) (?:you|your|my)\b(?! (?:do|need|think)\b)|^(?:do|are) users|^what about\b"
    r"|[\[<{]|\bI['’]m\b",
    re.IGNORECASE,
)
"""Headings that ask about the reader, or have a gap to fill in."""
_CONTINUES = re.compile(r":$|\b(?:following|below)\b[^.\n]*[.:]?$", re.IGNORECASE)
"""The end of a section whose answer is in a picture or in its subsections."""
_STEPS = re.compile(
    r"\b(?:steps|instructions) below\b|\bfollowing (?:steps|instructions)\b"
    r"|\b(?:process|steps|instructions|guide)\b[^.\n]* (?:documented|described|outlined|explained|found|listed)"
    r" (?:here|in|on)\b",
    re.IGNORECASE,
)
_POINTS = re.compile(r"\b(?:see|here|refer to|comment|read more|more (?:information|details))\b|https?:", re.IGNORECASE)
_SET_APART = re.compile(r"\b(?:DO|DOES|IS|ARE|CAN|NOT|DON['’]T)\b")
"""Words in capitals that set a heading apart from a similar one."""
_LISTED = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s", re.MULTILINE)
_SAYS_NOTHING = re.compile(
    r"(?:see|please see|here (?:is|are)|refer|tbd|todo|tba|coming soon|work in progress"
    r"|(?:this )?[a-z]+ is (?:deprecated|obsolete))\b",
    re.IGNORECASE,
)


def ask_heading(heading: str) -> str:
    """Make a self-contained question from a heading that asks one, and return it; empty if that is impossible."""
    plain = heading.strip(" .:*").replace(" ?", "?")
    unclear = any(pattern.search(plain) for pattern in (VAGUE, _ASKS_READER, _SET_APART))
    if unclear or not _LEAST_HEADING <= len(plain.split()) <= _MOST_HEADING:
        return ""
    matches = ((words, match) for pattern, words in _HEADINGS if (match := pattern.fullmatch(plain)))
    question = next((_rewrite_for_asker(words.format(*match.groups()), words) for words, match in matches), "")
    return f"{question[0].upper()}{question[1:].strip()}?" if question else ""


_YOU_DO = re.compile(r"\b(if|when|before|after|while|that|which|once|where|what) you(?! are\b)\b")


def _rewrite_for_asker(question: str, words: str) -> str:
    """Replace "you" by "I" in a question whose asker says "I"; empty if a "you" remains."""
    if " I " not in words:
        return question
    changed = re.sub(r"\byour(self)?\b", r"my\1", _YOU_DO.sub(r"\1 I", re.sub(r"\byou(?: a|')re\b", "I am", question)))
    return "" if re.search(r"\byou", changed, re.IGNORECASE) else changed


def _ask_heading(section: str, passages: Sequence[Passage]) -> Iterator[MadeQuestion]:
    if not (question := ask_heading(section.rpartition(SECTION_MARK)[2])):
        return
    sentences = [
        sentence for passage in passages if passage.kind is PassageKind.PROSE for sentence in _split_sentences(passage)
    ]
    # Sections without a long sentence are lists of links.
    has_prose = any(len(sentence) >= _LEAST_SENTENCE and sentence[-1] in ".!?" for sentence in sentences)
    if not has_prose or sum(map(len, sentences)) < _LEAST_BELOW or _SAYS_NOTHING.match(sentences[0]):
        return
    terms = {term for passage in passages for term in content_terms(passage.text)}
    text = "\n".join(passage.text.strip() for passage in passages)
    continues = _CONTINUES.search(text) or (_STEPS.search(text) and not _LISTED.search(text))
    continues = continues or 2 * sum(bool(_POINTS.search(sentence)) for sentence in sentences) >= len(sentences)
    is_clear = not _YES_OR_NO.match(question) or _YES.match(sentences[0]) or _repeats(sentences[0], question)
    if terms & set(content_terms(question)) and is_clear and not continues:
        yield MadeQuestion(question, (), "heading", sentences[0], passages[0].id, quality=0.9)


def _repeats(text: str, asked: str) -> bool:
    """Return whether a text contains most of the content words of a question."""
    terms = set(content_terms(asked))
    return 2 * len(terms & set(content_terms(text))) > len(terms)


_MOST_VALUE, _LONG_HEAD, _ACRONYM = 6, 16, 4
_CELL_HEAD, _CELL_LABEL = re.compile(r"[A-Z]\w{2,}(?: [A-Za-z]{3,})?"), re.compile(r"[A-Za-z][\w '’&/().,-]{2,49}")
_MANY = re.compile(r"(?<![su])s$", re.IGNORECASE)
_NO_HEAD = re.compile(
    r"details?|values?|notes?|groups?|kinds?|examples?|descriptions?|comments?|info|links?|status|type|date|version|total"
    r"|your .+|(?:.* )?id|.* (?:by|to|for|if|in|least|most|top)"
    r"|(?:the|a|an|you|we|i|if|who|what|how|when|where|why|is|has|can) .+"
    r"|(?:.* )?(?:pays?|paid|\w+ed)(?: .*)?",
    re.IGNORECASE,
)
"""Column headings that are not worth asking about."""


def ask_rows(table: str) -> Iterator[MadeQuestion]:
    """Ask for the second cell of each row by the first cell and the column headings. Both cells must be unique."""
    rows = [(row, [cell.partition(": ") for cell in row.split("; ")]) for row in table.splitlines()]
    whole = [(row, cells) for row, cells in rows if len(cells) > 1 and all(mark for _, mark, _ in cells)]
    labels, values = (Counter(cells[at][2] for _, cells in whole) for at in (0, 1))
    for row, ((label_head, _, label), (head, _, value), *_) in whole:
        is_unique = (labels[label], values[value]) == (1, 1)
        if is_unique and _may_ask_cell(label, head, value) and not _MANY.search(label_head):
            is_plain = len(label_head) <= _LONG_HEAD and not _NO_HEAD.fullmatch(label_head)
            thing = f"{label_head.lower()} “{label}”" if is_plain else f"“{label}”"
            are = "are" if _MANY.search(head) else "is"
            named = head if len(head) < _ACRONYM else head.lower()
            text = f"What {are} the {named} of {'the ' if is_plain else ''}{thing}?"
            yield MadeQuestion(text, (value.strip(" .,;"),), "table", row, quality=0.8)


def _may_ask_cell(label: str, head: str, value: str) -> bool:
    named = _CELL_HEAD.fullmatch(head) and _CELL_LABEL.fullmatch(label) and re.search(r"[A-Z\d]", value)
    is_empty = _NO_HEAD.fullmatch(head) or _NO_HEAD.fullmatch(label) or not re.search(r"\w{2}", value)
    is_vague = VAGUE.search(f"{label} {head} {value}")
    return bool(named) and not is_empty and not is_vague and len(value.split()) <= _MOST_VALUE


_GENERIC = re.compile(
    r"\b(?:you|we|your|our|us|my|me|I|employees|staff|managers|contractors|everyone|candidates|teams|teammate)\b",
    re.IGNORECASE,
)
_ALONE, _LONG_TITLE = 3, 50
_NO_TITLE = re.compile(
    r"readme|index|^about$|overview|^(?:faqs?|resources|introduction|goals|welcome|general|process|other|questions|details|notes)$",
    re.IGNORECASE,
)


def _name_page(made: MadeQuestion, title: str, section: str) -> str:
    """Return a question with a name: its own, or the page's title in front; empty if the title is unusable."""
    words = re.findall(r"[\w#&-]+", made.text)
    named = any(re.match(r"[A-Z#]\w", word) for word in words[1:]) and len(words) > _ALONE
    if named and made.kind != "table" and (made.kind == "heading" or not _GENERIC.search(made.text)):
        return made.text
    title = title.strip(" .!?")
    if not re.search(r"\w{4}", title) or len(title) > _LONG_TITLE or _NO_TITLE.search(title):
        return ""
    above = section.split(SECTION_MARK)[-2 if made.kind == "heading" else -1 :][0].strip(" :")
    if re.fullmatch(r"[A-Z]\w{3,}", above) and not _NO_TITLE.search(above) and above not in f"{title} {made.text}":
        title = f"{title}, {above}"  # a page about several things has a section of each
    elif _repeats(made.text, title):
        return made.text
    return f"{title}: {made.text[0].lower()}{made.text[1:]}"
