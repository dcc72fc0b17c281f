"""Parse verdicts on claims: one after its reasoning, or several as they arrive. Pure.

The word SUPPORTS alone is not a verdict: it does not count if it is denied, hedged or only listed. A streamed verdict
ends its line: `1. [2] who: staff; if: -; SUPPORTS`. Weak models begin with it, and copy nothing: `1. SUPPORTS [2]`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from pipeline.errors import UnreadableReply
from pipeline.replies.reply_format import (
    SENTENCE_NUMBERS,
    ReplyFormat,
    find_labelled,
    get_field,
    object_schema,
    parse_number_list,
    parse_numbers,
    string_schema,
)
from pipeline.support.verdict_look import LOOK, LOOK_FIELDS, Verification, build_look, describe_look, parse_look
from storage.language.lazy_pattern import lazy_compile
from storage.types import Verdict

_WORDINGS = {
    Verdict.SUPPORTS: r"SUPPORTS|SUPPORTED|SUPPORT",
    Verdict.REFUTES: r"REFUTES|REFUTED|REFUTE|CONTRADICTS|CONTRADICTED",
    Verdict.NOT_ENOUGH_INFO: r"NOT[ _-]ENOUGH[ _-](?:INFO(?:RMATION)?|EVIDENCE)|NOT[ _-]ENOUGHINFO|NEI|"
    r"INSUFFICIENT[ _](?:INFO(?:RMATION)?|EVIDENCE)|UNVERIFIABLE|CANNOT BE DETERMINED",
}
ANY_VERDICT = "|".join(_WORDINGS.values())  # the pattern of a verdict in any of its wordings
_SENTENCE_LABELS = ("sentences", "sentence", "evidence")
_VERDICT_LABELS = ("verdict", "result", "fact-checking result", "label", "conclusion", "answer", "final answer")
_CAPITAL_VERDICT = lazy_compile(rf"(?<![\w-])(?:{ANY_VERDICT})(?![\w-])")
_STATED_VERDICT = lazy_compile(
    r"\b(?:claim|statement|it) is (?:therefore |thus |fully |clearly |also )*((?:not )?(?:supported|refuted))\b"
)
_DENIAL = lazy_compile(
    r"(?:\b(?:not|no|never|neither|nor|cannot|hardly|barely|only|part(?:ly|ially)?|mostly|almost|might|may|would|could|"
    r"fails? to|whether|if|or)|n['’]t)(?:\W+\w+){0,3}\W*$",
    re.IGNORECASE,
)
HEDGE = lazy_compile(
    r"\W*(?:only|part(?:ly|ially|s)?|in part|mostly|to some extent|except|excluding|apart|aside|minus|or|nor|/"
    r"|(?:al)?though|however|yet|but|not(?![ _-]enough)|aber|jedoch|mais|sauf|pero|salvo|mas|maar|но)\b",
    re.IGNORECASE,
)
_MENTIONED_SENTENCES = lazy_compile(
    r"\bsentences?\s+((?:\d{1,4}(?:\s*(?:,|and|&|–|-)\s*)?)+)|\[(\d{1,4})\]", re.IGNORECASE
)
MAX_REASONING, MAX_COPIED = 800, 160  # characters


def verification_format(count: int, *, reasoned: bool) -> ReplyFormat[Verification]:
    """Return the format of a verification against `count` numbered sentences, with or without reasoning before it."""
    before = {name: string_schema(MAX_COPIED) for name in LOOK_FIELDS}
    before |= {"reasoning": string_schema(MAX_REASONING)} if reasoned else {}
    return ReplyFormat(
        object_schema(sentences=SENTENCE_NUMBERS, **before, verdict={"type": "string", "enum": [*map(str, Verdict)]}),
        from_json=lambda found: _verification_from_json(found, count, reasoned=reasoned),
        from_text=lambda text: _verification_from_text(text, count),
    )


def _verification_from_json(found: Any, count: int, *, reasoned: bool) -> Verification:
    verdict = _find_single_verdict(get_field(found, "verdict", str).upper())
    sentences = parse_number_list(get_field(found, "sentences", list), count)
    look = build_look(get_field(found, name, str) if name in found else "" for name in LOOK_FIELDS)
    return _build_verification(verdict, sentences, get_field(found, "reasoning", str) if reasoned else "", count, look)


def _verification_from_text(text: str, count: int) -> Verification:
    labels = find_labelled(text, *_VERDICT_LABELS)
    verdict = _find_single_verdict(labels.upper()) if labels is not None else _find_last_verdict(text)
    named = find_labelled(text, *_SENTENCE_LABELS)
    sentences = parse_numbers(named, count) if named is not None else find_mentioned_sentences(text, count)
    labelled = (*_VERDICT_LABELS, *_SENTENCE_LABELS, *LOOK)
    lines = [line for line in text.splitlines() if find_labelled(line, *labelled) is None]
    reasoning = re.sub(r"^\W*reasoning\W*:\W*", "", " ".join(" ".join(lines).split()), flags=re.IGNORECASE)
    look = build_look(find_labelled(text, label) or "" for label in LOOK)
    return _build_verification(verdict, sentences, reasoning, count, look)


def _build_verification(
    verdict: Verdict | None, sentences: tuple[int, ...], reasoning: str, count: int, look: tuple[str, ...]
) -> Verification:
    if verdict is None:
        raise UnreadableReply("it ends in none of SUPPORTS, REFUTES and NOT ENOUGH INFO")
    if verdict is Verdict.SUPPORTS and not sentences:
        sentences = (1,) if count == 1 else find_mentioned_sentences(reasoning, count)
        if not sentences:
            raise UnreadableReply("it does not name the numbers of the sentences that support the claim")
    return Verification(verdict, sentences, describe_look(look, reasoning.strip()), look)


def _find_last_verdict(text: str) -> Verdict | None:
    """Return the verdict at the end of free text: a word in capitals, or a phrase such as "the claim is supported"."""
    stated = list(_STATED_VERDICT.finditer(text))
    shouted = list(_CAPITAL_VERDICT.finditer(text))
    if stated and (not shouted or stated[-1].start() > shouted[-1].start()):
        return _find_single_verdict(stated[-1][1].upper())
    return _read_verdict(text, shouted[-1]) if shouted else None


def _find_single_verdict(text: str) -> Verdict | None:
    """Return the only verdict in capitals in a short text; None if it has none, or different ones."""
    matches = list(_CAPITAL_VERDICT.finditer(text))
    verdicts = {_read_verdict(text, match) for match in matches}
    return verdicts.pop() if len(verdicts) == 1 else None


def _read_verdict(text: str, match: re.Match[str]) -> Verdict:
    verdict = parse_verdict(match[0])
    before = re.split(r"[.;:\n]", text[: match.start()])[-1]
    if _DENIAL.search(before) or HEDGE.match(text, match.end()):
        return Verdict.NOT_ENOUGH_INFO
    return verdict


def parse_verdict(wording: str) -> Verdict:
    return next(verdict for verdict, forms in _WORDINGS.items() if re.fullmatch(forms, wording, re.IGNORECASE))


def find_mentioned_sentences(text: str, count: int) -> tuple[int, ...]:
    return parse_numbers(" ".join(match[1] or match[2] for match in _MENTIONED_SENTENCES.finditer(text)), count)


_SENTENCE_MARKS = lazy_compile(r"[*_: \t]*((?:(?:\[[^\]\n]*\]|\([\d,;& –-]+\))[,; \t]*)*)")
_LINE_LEAD = r"^[ \t*_>#-]*"
_CLAIM_NUMBER = r"[(\[]?(?:claim\s+)?(\d{1,2})\s*[.):\]–-]\s*[*_]*"
# In small letters a verdict may be a word of running text: “Support for it is missing.”
_STREAMED_VERDICT = rf"({ANY_VERDICT})(?=[^\w-])(?:(?-i:(?<=[A-Z]))|(?=[^\S\n]*[\[(.,:;*_–\n-]))"
_COPYING = rf"(?:[\[(][^\n\])]{{0,80}}[\])][ \t:;,–-]*)?(?:{'|'.join(LOOK)})[ \t]*[:=]"
_COPIED = rf"({_COPYING}[^\n]{{0,600}}[;|,.:–-][ \t*_]*)?"  # up to the line's last verdict, as a passage may name one
_VERDICT_LABEL = r"(?:verdict\s*[:=]\s*[*_]*)?"
_HEAD = rf"{_LINE_LEAD}{_CLAIM_NUMBER}{_COPIED}{_VERDICT_LABEL}{_STREAMED_VERDICT}"
_LONE_NUMBER = rf"(?:(?!\[\d[^\n]*?\]\W*(?:{'|'.join(LOOK)})\b){_CLAIM_NUMBER}|[*_]*(?!verdict))"
_LONE_HEAD = rf"{_LINE_LEAD}{_LONE_NUMBER}{_COPIED}{_VERDICT_LABEL}{_STREAMED_VERDICT}"
_WHOLE_WORD = lazy_compile(r"[^\w\[]*\w+[^\w]")
_MAY_HEDGE = lazy_compile(r"\W*(?:in|to|not)\b", re.IGNORECASE)
_HEDGE_WORDS = 4  # words within which “in part”, “to some extent” or “NOT ENOUGH INFO” would be complete
_OTHER_VERDICT = lazy_compile(rf"\W*({ANY_VERDICT})(?![\w-])")
_QUESTIONED = lazy_compile(r"\W*?[?/]")
_NEXT_LINE = lazy_compile(r"\n\s*\S[^\n]{20}")  # enough of it to see whether it has another verdict


@dataclass(frozen=True, slots=True)
class ClaimRuling:
    claim: int  # its number, from 1
    found: Verification  # without its reasoning until that is complete
    whole: bool  # whether its reasoning is complete: each claim gets one ruling before that, and one after


class VerdictSplitter:
    """Splits a reply that judges several claims by numbered sentences. Each ruling is yielded once it is certain."""

    def __init__(self, claims: int, sentences: int) -> None:
        self._claims = claims
        self._sentences = sentences
        self._head = re.compile(_LONE_HEAD if claims == 1 else _HEAD, re.IGNORECASE | re.MULTILINE)
        self._text = ""
        self._ruled: dict[int, Verification] = {}
        self._ended: set[int] = set()

    def feed(self, piece: str) -> tuple[ClaimRuling, ...]:
        self._text += piece
        return tuple(self._news(ended=False))

    def close(self, *, cut: bool = False) -> tuple[ClaimRuling, ...]:
        if not cut:
            self._text += "\n"  # ends the last word
        news = tuple(self._news(ended=not cut))
        return news if self._ruled else self._read_whole()

    def _read_whole(self) -> tuple[ClaimRuling, ...]:
        """Parse a reply on one claim whose verdict is not at the start of a line."""
        if self._claims > 1:
            raise UnreadableReply("no line opens with the number of a claim and its verdict")
        read = _verification_from_text(self._text, self._sentences)
        return ClaimRuling(1, replace(read, reasoning=""), whole=False), ClaimRuling(1, read, whole=True)

    def _news(self, *, ended: bool) -> Iterator[ClaimRuling]:
        heads, seen = list(self._head.finditer(self._text)), set[int]()
        if len({head[1] for head in heads}) > self._claims:  # it repeats the worked examples
            raise UnreadableReply("it has more verdicts than there are claims")
        for place, head in enumerate(heads):
            number, last = int(head[1] or 1), place + 1 == len(heads)
            if not 1 <= number <= self._claims or number in self._ended | seen:
                continue
            seen.add(number)  # of several verdicts on one claim the first counts
            rest, over = self._text[head.end() : None if last else heads[place + 1].start()], ended or not last
            if number not in self._ruled:
                verdict = self._decide(head, rest, over=over, last=number == self._claims)
                if verdict is None:
                    continue
                self._ruled[number] = verdict
                yield ClaimRuling(number, verdict, whole=False)
            if over:
                self._ended.add(number)
                reasoning, ruled = " ".join(_split_marks(rest)[1].split()).strip(" -–—:*_"), self._ruled[number]
                yield ClaimRuling(number, replace(ruled, reasoning=describe_look(ruled.look, reasoning)), whole=True)

    def _decide(self, head: re.Match[str], rest: str, *, over: bool, last: bool) -> Verification | None:
        """Return the verification that a verdict and the text after it make; None while uncertain, or if invalid."""
        verdict, (marks, reason), copied = parse_verdict(head[3]), _split_marks(rest), head[2] or ""
        if not (over or "\n" in rest or (not copied and _WHOLE_WORD.match(reason) and not _may_be_retracted(reason))):
            return None
        look, marks = parse_look(copied), f"{_split_marks(copied)[0]} {marks}"
        others = any(parse_verdict(other[0]) != verdict for other in _CAPITAL_VERDICT.finditer(copied))
        if others or any(_is_retracted(verdict, text.partition("\n")[0]) for text in (rest, reason)):
            verdict = Verdict.NOT_ENOUGH_INFO
        if verdict is Verdict.NOT_ENOUGH_INFO:
            return Verification(verdict, (), describe_look(look), look)
        if last and not over and verdict is Verdict.SUPPORTS and not _NEXT_LINE.search(rest) and not reason.strip():
            return None  # a verdict on one claim too many may follow
        named = parse_numbers(marks, self._sentences)
        if not named and not over:
            return None
        named = named or find_mentioned_sentences(reason, self._sentences) or ((1,) if self._sentences == 1 else ())
        certain = named or verdict is Verdict.REFUTES
        return Verification(verdict, named, describe_look(look), look) if certain else None


def _is_retracted(verdict: Verdict, following: str) -> bool:
    """Return whether the text after a verdict hedges or questions it, or gives another: “SUPPORTS [1] / REFUTES”."""
    another = _OTHER_VERDICT.match(following)
    differs = another and parse_verdict(another[1]) != verdict
    return bool(HEDGE.match(following) or _QUESTIONED.match(following) or differs)


def _may_be_retracted(reason: str) -> bool:
    """Return whether an incomplete reason may still retract its verdict: “in part”, “to some …”."""
    return bool(_MAY_HEDGE.match(reason)) and len(reason.split()) < _HEDGE_WORDS


def _split_marks(rest: str) -> tuple[str, str]:
    marks = _SENTENCE_MARKS.match(rest)
    return (marks[1], rest[marks.end() :]) if marks else ("", rest)
