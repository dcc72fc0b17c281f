"""Hold a claim to what a model copied from sentences before it called the claim supported. Pure.

The model names who, how many, under which condition, and when. Code compares these values with the sentences and with
the claim, so that accepting a claim takes more than the word SUPPORTS.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product

from pipeline.replies.reply_format import is_nothing
from pipeline.support.analysis.date_parser import Date
from pipeline.support.analysis.parsed_sentence import (
    ParsedSentence,
    choose_language,
    detect_language,
    find_clauses,
    parse_passage,
    parse_sentence,
)
from pipeline.support.analysis.quantity_parser import Number
from pipeline.support.comparison.polarity import count_negations
from pipeline.support.passage_facts import is_same_value
from storage.language.lazy_pattern import lazy_compile
from storage.language.words import content_terms
from storage.types import Evidence, Verdict

LOOK = ("who", "how many", "if", "when")  # the labels of what a model copies before its verdict
LOOK_FIELDS = ("who", "how_many", "condition", "when")  # the same in JSON
_FIELD = lazy_compile(rf"(?:^|(?<=[;|,.\])\s]))\s*({'|'.join(LOOK)})[ \t]*[:=][ \t]*", re.IGNORECASE)
_DIGITS = lazy_compile(r"\d+(?:[.,]\d+)*")
_DOZEN = 12
_VAGUE = frozenset({"following", "several", "other", "different", "various", "such"})  # these name no kind of a thing
_UNCOUNTED = {(1.0,), (0.5,), (0.0,)}  # "one", "first" and "half" are too common to be compared
_SETTING_BOUNDS = frozenset({"after", "before", "beyond", "from", "must", "once", "outside", "until", "when"}) | {
    *("although", "but", "though", "whereas", "while", ";")
}
"""Words with which a claim may state a limit that the sentences state with "not", "only" or "unless"."""


@dataclass(frozen=True, slots=True)
class Verification:
    """A model's verdict on a claim."""

    verdict: Verdict
    sentences: tuple[int, ...] = ()
    reasoning: str = ""  # begins with what was copied
    look: tuple[str, ...] = ()  # what was copied, by `LOOK`, each "" if the sentences do not say it; or nothing at all


def parse_look(text: str) -> tuple[str, ...]:
    _, *parts = _FIELD.split(text)  # label, value, label, value
    fields = dict(reversed([*zip(map(str.lower, parts[::2]), parts[1::2], strict=True)]))
    return build_look(fields.get(label, "") for label in LOOK)


def build_look(values: Iterable[str]) -> tuple[str, ...]:
    plain = tuple(" ".join(value.split()).strip(' ;,.|*_–—-"“”') for value in values)
    look = tuple("" if is_nothing(value) else value for value in plain)
    return look if any(look) else ()


def describe_look(look: Sequence[str], reasoning: str = "") -> str:
    copied = "; ".join(f"{label}: {value}" for label, value in zip(LOOK, look, strict=False) if value)
    return " ".join(filter(None, (f"{copied}." if copied else "", reasoning)))


def hold_to_look(
    claim: str, sentences: Sequence[Evidence], found: Verification, asked: Sequence[str] = ()
) -> Verification:
    """Return a verification; NOT ENOUGH INFO if the model supports the claim by values that do not support it.

    `asked` are the texts of the conversation, whose values the claim may repeat.
    """
    if found.verdict is not Verdict.SUPPORTS or not found.look:
        return found
    fault = find_look_fault(claim, found.look, [sentences[number - 1] for number in found.sentences], sentences, asked)
    reasoning = f"{found.reasoning} {fault}"
    return replace(found, verdict=Verdict.NOT_ENOUGH_INFO, reasoning=reasoning) if fault else found


def find_look_fault(
    claim: str, look: Sequence[str], cited: Sequence[Evidence], shown: Sequence[Evidence], asked: Sequence[str] = ()
) -> str:
    """Return why copied values do not support a claim; empty if they may.

    `shown` are all sentences that the model had; it copied from those `cited`.
    """
    passages = {piece.passage.id for piece in cited}
    near = [piece.text for piece in shown if piece.passage.id in passages]
    pages = [f"{piece.document.title} {piece.passage.section}" for piece in cited]
    texts = [piece.text for piece in cited]
    known = {term for text in (*pages, *near) for term in content_terms(text)}
    read = parse_sentence(claim, choose_language(claim, (parse_passage(piece.passage.text) for piece in cited)))
    same_language = read.language == detect_language(cited[0].passage.text) if cited else False
    for copied_text in filter(None, look):
        terms = content_terms(copied_text)
        new = [term for term in terms if term not in known]
        if any(map(str.isdigit, "".join(new))) or (same_language and 2 * len(new) > len(terms)):
            return f"The sentences do not say “{copied_text}”."
    amounts, digits = _find_values((*pages, *texts)), {*_DIGITS.findall(" ".join(texts))}
    for value in _find_counted([look[1]]):
        if not (_is_among(value, amounts) or digits.issuperset(_DIGITS.findall(value.said) or [""])):
            return f"The cited sentences do not say “{value.said}”."
    said, values = _find_values(asked), _find_values(look)
    own = [
        value for value in _find_counted([claim]) if not (_is_among(value, said) or _is_in_name(value, claim, texts))
    ]
    if own and not any(_is_among(value, values) or _is_among(other, [value]) for value in own for other in values):
        reckoned = values and not any(_is_among(value, _find_values(near)) for value in own)
        own = own if values else [value for value in own if not _is_among(value, amounts)]  # the rules compare those
        instead = f", but the sentences say “{values[0].said}”" if values else " of which nothing was copied"
        counted = not values and all(
            isinstance(value, Number) and not value.units and value.values[0] <= _DOZEN for value in own
        )
        if not (reckoned or counted):  # "six cities" may count a list
            return f"It says “{own[0].said}”{instead}."
    if not same_language:
        return ""
    copied = [parse_sentence(value, read.language) for value in look]
    dropped = next((value for value, one in zip(look, copied, strict=True) if _is_dropped(one, read)), "")
    if dropped:
        return f"It leaves out “{dropped}”."
    sibling = _find_sibling(copied, read, near)
    return f"It speaks of “{sibling[0]}”, but “{sibling[1]}” was copied." if sibling else ""


def _find_values(texts: Iterable[str]) -> list[Number | Date]:
    return [value for text in texts if text for value in parse_sentence(text, detect_language(text)).values]


def _find_counted(texts: Iterable[str]) -> list[Number | Date]:
    """Return the numbers and dates of texts, without numbers that are parts of names or too common."""
    return [value for value in _find_values(texts) if isinstance(value, Date) or not _is_uncounted(value)]


def _is_uncounted(number: Number) -> bool:
    return number.named or number.label or number.values in _UNCOUNTED


def _is_in_name(value: Number | Date, claim: str, texts: Iterable[str]) -> bool:
    """Return whether a capitalised word precedes a value in a claim and in the texts: "Form 199"."""
    name = re.search(rf"[A-Z]\w*[ -]{re.escape(value.said)}(?!\w)", claim)
    return name is not None and any(name[0] in text for text in texts)


def _is_among(value: Number | Date, known: Sequence[Number | Date]) -> bool:
    return any(is_same_value(other, value) or other.said == value.said for other in known)


def _is_dropped(copied: ParsedSentence, claim: ParsedSentence) -> bool:
    """Return whether copied words exclude or limit something, and the claim has no such word."""
    excludes = bool(count_negations(copied) or find_clauses(copied).excepted)
    if not (excludes or find_clauses(copied).limited):
        return False
    clauses = find_clauses(claim)
    if count_negations(claim) or clauses.hedged or clauses.limited or not _SETTING_BOUNDS.isdisjoint(claim.text.low):
        return False
    return excludes or 2 * len(copied.content & claim.content) < len(copied.content)


def _find_sibling(
    copied: Sequence[ParsedSentence], claim: ParsedSentence, near: Sequence[str]
) -> tuple[str, str] | None:
    """Return two kinds of one thing if the claim speaks of one, and `copied` of another: temporary, permanent staff.

    Both must be in the passages, as other words may mean the same.
    """
    who, known = copied[0], frozenset[str]().union(*(one.content for one in copied))
    kinds = {pair for text in near for pair in pairwise(parse_sentence(text, claim.language).stems)}
    for (at, theirs), (place, ours) in product(enumerate(pairwise(who.stems)), enumerate(pairwise(claim.stems))):
        apart = theirs[0] not in claim.content and ours[0] not in known and ours in kinds
        apart = apart and who.text.low[at] not in _VAGUE
        if theirs[1] == ours[1] and apart and known.issuperset(theirs) and ours[0] in claim.content:
            return claim.text.said(place, place + 2), who.text.said(at, at + 2)
    return None
