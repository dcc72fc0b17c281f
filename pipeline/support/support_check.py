"""Check whether passages support a sentence, in milliseconds and without a model server.

A sentence that a passage has word for word, or almost, is supported. Two judges must accept any other. The rules look
for each of its numbers, dates, units and names in the passages, and for negations. What they miss decides, unless
the question has it. The scorer weighs how well words and meaning of the rest are covered. A sentence that fails only
there may be judged by a model, if there is one.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal, TypeVar

from pipeline.support.analysis.table_parser import write_row
from pipeline.support.analysis.tokenizer import tokenize
from pipeline.support.comparison.alignment import load_general_words
from pipeline.support.rules import FindingKind, FindingOutcome, RuleFinding, check_rules
from pipeline.support.scorer import EmbedTokens, extract_features, find_content, load_scorer, select_closest
from pipeline.types import Support
from storage.language.detection import detect_language
from storage.language.lazy_pattern import lazy_compile
from storage.language.scripts import is_unspaced
from storage.language.sentences import sentence_spans
from storage.language.words import content_terms, content_words, words
from storage.types import Evidence, Passage, PassageKind, Span, VerdictReason

T = TypeVar("T", str, tuple[str, ...])
_PASSAGE_LINE = lazy_compile(r"\S(?:[^\n]*\S)?")
_LIST_MARK = lazy_compile(r"(?:[-•*✓]|\d{1,3}[.)]|(?:[QA]|Question|Answer)\d{0,3}:|Q\d{0,3}\.)\s+(?=\S)")
_SILENT_MARKS = frozenset(',.;:"!—')
_ABSENCES = frozenset({"absent", "elsewhere", "unnamed"})  # kinds of reasons that say that something is not stated
_CONNECTIVES = tuple(
    tuple(words.split())
    for words in (
        "in addition", "for example", "for instance", "that said", "as well", "also", "and", "but", "however",
        "moreover", "furthermore", "additionally", "besides", "then", "so", "note that", "please note that",
    )
)  # fmt: skip
_LONGEST_CONNECTIVE = max(map(len, _CONNECTIVES))
FENCE = "```"
_CODE_LEAD = lazy_compile(r"\S.*[:：]\n\n")
_MARKED_LINE = lazy_compile(r"[^\S\n]*(?:[-•*✓]|\d{1,3}[.)])\s|[^\S\n]{2,}\S")


def find_quotable_spans(passage: Passage) -> tuple[Span, ...]:
    """Return the spans of a passage that can be quoted by themselves, in order, without list marks."""
    return _find_quotable_spans(passage.text, passage.kind)


@lru_cache(maxsize=512)
def _find_quotable_spans(text: str, kind: PassageKind) -> tuple[Span, ...]:
    if kind is not PassageKind.PROSE:
        return tuple(match.span() for match in _PASSAGE_LINE.finditer(text))
    return tuple((_skip_mark(text, span), span[1]) for span in sentence_spans(text))


def is_in_list(text: str, span: Span) -> bool:
    """Return whether a sentence is on a line that is marked, or indented, as an item of a list."""
    return bool(_MARKED_LINE.match(text, text.rfind("\n", 0, span[0]) + 1))


def _skip_mark(text: str, span: Span) -> int:
    opens_line = not text[text.rfind("\n", 0, span[0]) + 1 : span[0]].strip()
    mark = _LIST_MARK.match(text, *span) if opens_line else None
    return mark.end() if mark else span[0]


Strictness = Literal["loose", "normal", "strict"]
"""How sure the scorer must be; `make train` prints what each level rejects. `loose` ignores wording."""

_FAR, _HALF_SAID, _SCATTERED = 0.35, 0.5, 0.3
"""The cosine of a word with the passages' nearest; two shares of a sentence's words."""
MIN_CONTENT_WORDS = 2  # words with a meaning of their own that a sentence must have: "None of it is true." has one
MOST_UNSAID = 4  # words that a reason names
_MOST_KNOWN = 256  # verdicts that are remembered
MAX_CHARACTERS = 2_000  # characters of a sentence that can be judged: nothing longer is one


@dataclass(frozen=True, slots=True)
class SupportChecker:
    """The local check: `await checker(sentence, evidence)`."""

    read: EmbedTokens
    strictness: Strictness = "normal"
    names: tuple[str, ...] = ()
    """Names that count as stated on every page: the team's own, which its pages seldom mention."""
    _known: dict[Any, Support] = field(default_factory=dict, init=False, repr=False, compare=False)

    async def __call__(self, sentence: str, evidence: Sequence[Evidence], *, asked: Sequence[str] = ()) -> Support:
        """Decide whether the passages of the evidence, read together, support the sentence.

        The titles and other names of their pages count as stated in them, as a page says "she" of its subject. `asked`
        are the question and earlier messages: values from there may be disputed, but are not evidence. Several
        sentences are doubtful if one alone is. Repeated checks, as when a draft repeats a note, return the cached
        result.
        """
        key = (sentence, tuple(evidence), tuple(asked))
        if key not in self._known:
            support = await self._decide(sentence, evidence, asked)
            parts = [sentence[slice(*span)] for span in sentence_spans(sentence)]
            if support.holds and not support.verbatim and len(parts) > 1:
                telling = [part for part in parts if len(set(content_terms(part))) >= MIN_CONTENT_WORDS]
                alone = [await self(part, evidence, asked=asked) for part in telling]
                sure = all(part.holds and not part.doubtful for part in alone)
                support = replace(support, doubtful=support.doubtful or not sure)
            if len(self._known) >= _MOST_KNOWN:
                del self._known[next(iter(self._known))]
            self._known[key] = support
        return self._known[key]

    async def _decide(self, sentence: str, evidence: Sequence[Evidence], asked: Sequence[str]) -> Support:
        passages = tuple({piece.passage.id: piece.passage for piece in evidence}.values())
        unread = _find_unreadable(sentence, passages)
        if unread:
            return Support(0.0, holds=False, reasons=(unread,), because=(VerdictReason("unreadable"),))
        verbatim = find_verbatim_passage(sentence, passages) or _find_nearly_verbatim(sentence, passages)
        if verbatim:
            reasons = (f"Passage {verbatim} says this word for word.",)
            return Support(1.0, holds=True, verbatim=True, reasons=reasons, because=(VerdictReason("verbatim"),))
        if len(set(content_terms(sentence))) < MIN_CONTENT_WORDS:
            little = ("It says too little to be supported by anything.",)
            return Support(0.0, holds=False, reasons=little, because=(VerdictReason("says_little"),))
        analysis = await analyse_sentence(sentence, evidence, self.read, names=self.names, asked=asked)
        scorer, loose = load_scorer(), self.strictness == "loose"
        sure = scorer.thresholds["normal" if loose else "strict"]
        if loose:
            kept = tuple(rule for rule in analysis.found if rule.outcome is not FindingOutcome.CHANGED)
            analysis = replace(analysis, found=kept, strange=False)
        return decide_support(analysis, scorer.score(analysis.features), scorer.thresholds[self.strictness], sure=sure)


@dataclass(frozen=True, slots=True)
class SentenceAnalysis:
    """The findings of both judges about a sentence."""

    features: Mapping[str, float]
    found: tuple[RuleFinding, ...]
    nearest: str  # the passages' sentence that has most of its words
    unsaid: tuple[str, ...] = ()  # its words that no passage and no page's name has
    strange: bool = False  # whether one of these is far in meaning from the passages, which have the rest

    @property
    def against(self) -> tuple[RuleFinding, ...]:
        """Return the findings that decide alone: absent or contradicted, except names that "she" may mean."""
        return tuple(
            rule for rule in self.found if rule.outcome in {FindingOutcome.ABSENT, FindingOutcome.CONTRADICTED}
        )

    @property
    def in_doubt(self) -> tuple[RuleFinding, ...]:
        """Return the findings that only make the sentence doubtful."""
        doubts = {FindingOutcome.UNNAMED, FindingOutcome.ASKED, FindingOutcome.DISPUTED, FindingOutcome.CHANGED}
        return tuple(rule for rule in self.found if rule.outcome in doubts)

    @property
    def scattered(self) -> bool:
        """Return whether many of the sentence's words are in other sentences than the one with most of them."""
        return self.features.get("overlap", 0.0) - self.features.get("overlap_best", 0.0) >= _SCATTERED

    @property
    def grave(self) -> bool:
        """Return whether the passage is better quoted than the sentence said."""
        return any(rule.grave for rule in self.in_doubt)


async def analyse_sentence(
    sentence: str,
    evidence: Sequence[Evidence],
    read: EmbedTokens,
    *,
    names: Sequence[str] = (),
    asked: Sequence[str] = (),
) -> SentenceAnalysis:
    """Look a sentence up in the passages of its evidence, by rule, by words and by meaning.

    `names` count as stated, and so do the titles and other names of the passages' pages, and their corpora's names. A
    leading yes or no only makes the rest doubtful.
    """
    answer = _ANSWER.match(sentence)
    sentence = sentence[answer.end() :] if answer else sentence
    passages = tuple({piece.passage.id: piece.passage for piece in evidence}.values())
    pages = ((piece.document.title, *piece.document.aliases, piece.passage.section) for piece in evidence)
    own = tuple(dict.fromkeys(piece.document.corpus for piece in evidence))
    context = (*dict.fromkeys(name for page in pages for name in page if name), *names)
    findings = check_rules(sentence, [passage.text for passage in passages], context=context, asked=asked, own=own)
    sentences = [[passage.text[start:end] for start, end in find_quotable_spans(passage)] for passage in passages]
    nearest = select_closest(sentence, sentences)
    states, *source = await read([sentence, *nearest])
    features = extract_features(sentence, sentences, states=states, source=source, found=findings)
    if answer:
        findings = (*findings, RuleFinding(FindingKind.WORDING, answer[1], FindingOutcome.CHANGED))
    unsaid = _find_unsaid(sentence, (*context, *asked, *(passage.text for passage in passages)))
    closest = nearest[0] if nearest else ""
    # A sentence in another language shares no word with the passage.
    strange = detect_language(sentence) == detect_language(closest) and _is_strange(unsaid, features)
    return SentenceAnalysis(features, findings, closest, unsaid, strange)


_ANSWER = lazy_compile(r"\s*(yes|no)(?!\.\s*\d)(?:\s*[,.:;!—–]|\s+-(?=\s))[,.:;!\s]*(?=\S)", re.IGNORECASE)


def lead_quotation(sentence: str, quote: str, evidence: Sequence[Evidence]) -> str:
    """Return a quotation led by the yes or no of the sentence that it replaces, as in "Yes: “…”"; empty without one.

    A text that no passage has verbatim gets no quotation marks.
    """
    answer = _ANSWER.match(sentence)
    marked = f"“{quote}”" if find_verbatim_passage(quote, [piece.passage for piece in evidence]) else quote
    return f"{answer[1].capitalize()}: {marked}" if answer else ""


def _is_strange(unsaid: Sequence[str], features: Mapping[str, float]) -> bool:
    new_words = [word for word in unsaid if not any(map(str.isdigit, word))]
    return bool(new_words) and features.get("new_least", 0.0) < _FAR and features["overlap_best"] >= _HALF_SAID


def _find_unsaid(sentence: str, texts: Sequence[str]) -> tuple[str, ...]:
    known = frozenset[str]().union(*map(find_content, texts))
    return tuple(word for word in dict.fromkeys(content_words(sentence)) if known.isdisjoint(content_terms(word)))


def decide_support(examined: SentenceAnalysis, score: float, threshold: float, *, sure: float) -> Support:
    """Combine the rules' findings with the score: below `threshold` it fails, below `sure` it is doubtful. Pure."""
    quoted = (examined.nearest,) if examined.nearest else ()
    nearest = tuple(f"The nearest sentence says “{quote}”" for quote in quoted)
    words = ", ".join(f"“{word}”" for word in examined.unsaid[:MOST_UNSAID])
    against = examined.against
    if against:
        contradicted = any(rule.outcome is FindingOutcome.CONTRADICTED and not rule.elsewhere for rule in against)
        why = tuple(dict.fromkeys(rule.because for rule in against))
        reasons = _list_differences(against, nearest)
        return Support(score, holds=False, reasons=reasons, contradicted=contradicted, because=why)
    doubts = examined.in_doubt
    grave = examined.grave
    disputed = [doubt for doubt in doubts if doubt.outcome is FindingOutcome.DISPUTED]
    if disputed:
        why = tuple(dict.fromkeys(doubt.because for doubt in disputed))
        reasons = _list_differences(disputed, nearest)
        return Support(score, holds=False, appealable=True, reasons=reasons, better_quoted=grave, because=why)
    if score < threshold:
        reason = f"It says {words}, which no passage mentions." if words else "The passages do not say so."
        why = (VerdictReason("not_said"), *(VerdictReason("nearest", (quote,)) for quote in quoted))
        reasons = (*(_list_reasons(doubts) if grave else ()), reason, *nearest)
        return Support(score, holds=False, reasons=reasons, appealable=True, better_quoted=grave, because=why)
    strange = (f"It says {words}, which no passage mentions.",) if examined.strange and not grave else ()
    reasons = (*_list_reasons(doubts if grave else examined.found), *strange, *nearest)
    so = VerdictReason("said", quoted) if quoted else VerdictReason("so")
    altered = tuple(dict.fromkeys(doubt.because for doubt in doubts if doubt.binding))
    replaced = [doubt for doubt in doubts if _is_replaced(doubt, examined.nearest)]
    copied = _explain_copy(replaced, examined) if replaced else ()
    support = Support(
        score, holds=True, reasons=reasons, altered=bool(altered), better_quoted=grave, replaced=bool(replaced)
    )
    unsure = examined.strange or examined.scattered or score < sure
    return replace(support, doubtful=bool(doubts) or unsure, because=altered or copied or (so,))


def _is_replaced(one: RuleFinding, source: str) -> bool:
    """Return whether a copy adds or replaces one word, other than general words ("gets", "costs")."""
    general = (load_general_words("en") | {*content_terms(source)}).issuperset(content_terms(one.said))
    return one.miscopied and bool(one.said) and not general and (not one.instead or one.instead.isalpha())


def _explain_copy(doubts: Sequence[RuleFinding], examined: SentenceAnalysis) -> tuple[VerdictReason, ...]:
    """Return the words that a copy replaces or adds, and the sentence it repeats."""
    plain = [doubt for doubt in doubts if doubt.instead or doubt.said in examined.unsaid]
    why = tuple(dict.fromkeys(doubt.because for doubt in plain)) or (VerdictReason("not_said"),)
    return (*why, *(VerdictReason("nearest", (quote,)) for quote in (examined.nearest,) if quote))


async def check_verbatim(sentence: str, evidence: Sequence[Evidence], *, asked: Sequence[str] = ()) -> Support:
    """Support only verbatim sentences: the check of systems that only quote."""
    del asked
    passage = find_verbatim_passage(sentence, [piece.passage for piece in evidence])
    reason = f"{f'Passage {passage}' if passage else 'No passage that it cites'} says this word for word."
    because = VerdictReason("verbatim" if passage else "not_verbatim")
    return Support(
        float(bool(passage)), holds=bool(passage), verbatim=bool(passage), reasons=(reason,), because=(because,)
    )


def find_verbatim_passage(sentence: str, passages: Sequence[Passage]) -> str:
    """Return the id of the passage with `sentence` as whole sentences, white space aside; else empty.

    The sentence may begin with a list mark, and a table's rows may be written as prose. A part of a sentence is not a
    quotation: "the office closes early" does not quote "Nobody knows whether the office closes early".
    """
    wanted = _normalise_space(sentence)
    runs = (one.id for one in passages if wanted and _has_run(one, wanted, _normalise_space))
    return next(runs, "") or next((one.id for one in passages if _has_items(one, sentence)), "")


def _has_items(passage: Passage, quoted: str) -> bool:
    """Return whether lines are a passage's line that ends in a colon and items of the list below it, in order."""
    text, (lead, *items) = passage.text, quoted.split("\n")
    spans, at = find_quotable_spans(passage), 0
    starts = [place for place, span in enumerate(spans) if items and text[slice(*span)] == lead]
    for start, end in spans[starts[0] + 1 :] if starts and lead.endswith((":", "：")) else ():
        if not is_in_list(text, (start, end)) or at == len(items):
            break
        at += text[text.rfind("\n", 0, start) + 1 : end].strip() == items[at]
    return bool(items) and at == len(items)


def _find_nearly_verbatim(sentence: str, passages: Sequence[Passage]) -> str:
    """Return the passage with a sentence apart from capitals, punctuation and quotation marks; else empty.

    A connective that leads the sentence, or one of the passage's, does not count.
    """
    plain = _list_plain_words(sentence)
    if len(plain) < MIN_CONTENT_WORDS:
        return ""
    likely = (passage for passage in passages if _may_have_words(passage.text, plain))
    return next((passage.id for passage in likely if _has_run(passage, plain, _list_plain_words)), "")


def _may_have_words(text: str, wanted: Sequence[str]) -> bool:
    """Return whether a text may have all of these words: a fast check of its letters."""
    low = text.lower()
    return not low.isascii() or all(word in low for word in wanted if word.isalnum())


def _has_run(passage: Passage, wanted: T, normalise: Callable[[str], T]) -> bool:
    """Return whether neighbouring sentences of a passage, normalised, are `wanted`; rows of a table also as prose."""
    text, spans, before = passage.text, find_quotable_spans(passage), 0
    for place, (start, first_end) in enumerate(spans):
        for opening in (start, before) if text[before:start].strip() else (start,):  # without and with its list mark
            for _, end in spans[place:]:
                run = text[opening:end]
                shown = [normalise(form) for form in dict.fromkeys((run, write_rows(run, passage.kind)))]
                if wanted in shown:
                    return True
                if min(map(len, shown)) > len(wanted) + _LONGEST_CONNECTIVE:
                    break
        before = first_end
    return False


@lru_cache(maxsize=2048)
def _list_plain_words(text: str) -> tuple[str, ...]:
    low = tuple(word for word in tokenize(_normalise_space(text)).low if word not in _SILENT_MARKS)
    return next((low[len(led) :] for led in _CONNECTIVES if low[: len(led)] == led), low)


def _find_unreadable(sentence: str, passages: Sequence[Passage]) -> str:
    if not sentence.strip():
        return "It has no text to support."
    if len(sentence) > MAX_CHARACTERS:
        return f"It has more than {MAX_CHARACTERS:,} characters."
    return "" if passages else "It cites nothing."


def _list_reasons(found: Sequence[RuleFinding]) -> tuple[str, ...]:
    """Return a reason for each difference, once for each value, and one for all findings that are `FOUND`."""
    both = {value for rule in found if rule.said and rule.instead for value in (rule.said, rule.instead)}
    told = (rule for rule in found if (rule.said and rule.instead) or (rule.said or rule.instead) not in both)
    missed = (rule.reason for rule in told if rule.outcome is not FindingOutcome.FOUND)
    quotes = ", ".join(dict.fromkeys(f"“{rule.said}”" for rule in found if rule.outcome is FindingOutcome.FOUND))
    return tuple(dict.fromkeys((*missed, *([f"The passages say {quotes}."] if quotes else []))))


def _list_differences(found: Sequence[RuleFinding], nearest: tuple[str, ...]) -> tuple[str, ...]:
    """Return the findings' reasons, with the nearest sentence unless each names the other value."""
    return (*_list_reasons(found), *(() if all(finding.instead for finding in found) else nearest))


def is_statement(text: str) -> bool:
    """Return whether a text has enough content words: two, or a capitalised one with another word.

    In scripts without spaces, two characters count as one content word.
    """
    tokens, content = words(text), [word for word in content_words(text) if not is_unspaced(word[0])]
    unspaced = sum(len(word) for word in tokens if is_unspaced(word[0]))
    named = any(word[0].isupper() for word in content)
    return len(content) + unspaced // 2 >= MIN_CONTENT_WORDS or (named and len(tokens) > 1)


def drop_false_absences(because: Sequence[VerdictReason], texts: Iterable[str]) -> tuple[VerdictReason, ...]:
    """Return reasons without those that say that the passages lack words that one of these texts has."""
    plain = [f" {' '.join(_list_plain_words(text))} " for text in texts]
    wanted = [f" {' '.join(_list_plain_words(reason.facts[0]))} " if reason.facts else "" for reason in because]
    lacking = [
        reason.kind in _ABSENCES and any(said in text for text in plain)
        for reason, said in zip(because, wanted, strict=True)
    ]
    return tuple(reason for reason, false in zip(because, lacking, strict=True) if not false)


def write_rows(text: str, kind: PassageKind) -> str:
    """Return a quoted text as it is shown: a table's rows with marks between cells, code between fences."""
    if kind is PassageKind.TABLE:
        return "\n".join(map(write_row, text.split("\n")))
    lead = _CODE_LEAD.match(text)
    code = text[lead.end() if lead else 0 :]
    return text if kind is PassageKind.PROSE or FENCE in text else f"{text[: -len(code)]}{FENCE}\n{code}\n{FENCE}"


def _normalise_space(text: str) -> str:
    return " ".join(text.replace("...", "…").split())
