"""List the kinds of model calls to examine, with their gold cases, and grade a model's replies. Pure.

There is a kind for each template that our systems call by default; a stage of the settings may have two. Gold cases
were written for this alone and never appear in a prompt; they are formatted like the prompts' worked examples, with
dates relative to today. Terms match case-insensitively; `a|b` matches either.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from pipeline.prompts.demonstrations import WorkedExample
from pipeline.prompts.prompt_templates import PromptMode, load_examples
from pipeline.prompts.prompter import Prompter
from pipeline.replies.cited_sentences import MarkedSentence
from pipeline.replies.reply_format import ReplyFormat, ReplySplitter
from pipeline.replies.stage_replies import (
    GOOD_SCORE,
    Bullet,
    ClaimSplitter,
    DraftSplitter,
    Feedback,
    TimedClaim,
    bullets_format,
    claims_format,
    feedback_format,
    parse_time,
    query_format,
)
from pipeline.replies.verdict_replies import ClaimRuling, VerdictSplitter, verification_format
from pipeline.support.verdict_look import Verification
from pipeline.systems import find_system
from storage.language.detection import detect_language, english_name
from storage.language.lazy_pattern import lazy_compile
from storage.types import Evidence, SearchQuery, Verdict

GOLD_FOLDER = Path(__file__).parent / "gold"


@dataclass(frozen=True, slots=True)
class GoldCase:
    name: str
    facts: Mapping[str, Any]  # the variables of the stage's template
    expected: Any  # properties of a right reply; None if there is none
    reply: str = ""  # a right reply, for stages whose replies are free text


def read_cases(file: str, day: date) -> tuple[GoldCase, ...]:
    """Return the gold cases of a file, with dates relative to `day`."""
    return tuple(_build_case(example) for example in load_examples(GOLD_FOLDER / f"{file}.json", day, "expected"))


def _build_case(example: WorkedExample) -> GoldCase:
    facts = {name: value for name, value in example.facts.items() if name not in {"name", "reply"}}
    if "claim" in facts:
        facts["claims"] = (facts["claim"],)  # some calls take several
    return GoldCase(example.facts["name"], facts, example.reply, example.facts.get("reply", ""))


_NUMBER = lazy_compile(r"\d+(?:[.,]\d+)*")
_PRONOUN = lazy_compile(
    r"(?:he|she|it|they|his|her|its|their|this|er|sie|ihre?|seine?|elle|ils|elles|il(?! y a\b)|ella|él|ellos|ellas)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Grade:
    wrong: str = ""  # why the reply is wrong; empty if it is right
    cited: int = 0
    valid: int = 0  # how many citations are relevant
    verdicts: tuple[Verdict, Verdict] | None = None  # the expected verdict, and the given one


def grade_query(case: GoldCase, reply: SearchQuery | None) -> Grade:
    """Grade whether the query has the expected words and the right time."""
    expected = case.expected
    if reply is None:
        return Grade("nothing is searched for" if expected["search"] else "")
    if not expected["search"]:
        return Grade(f"“{reply.text}” is searched for")
    if missing := find_missing_terms(reply.text, expected["terms"]):
        return Grade(f"“{reply.text}” lacks {missing[0]}")
    right = expected["time"] == "any" or reply.time == parse_time(expected["time"])
    return Grade("" if right else f"its time is {reply.time or 'none'} and not {expected['time']}")


def grade_summary(case: GoldCase, reply: Sequence[Bullet]) -> Grade:
    """Grade whether bullets rest on the relevant sentences, and on no others."""
    sentences: Sequence[Evidence] = case.facts["sentences"]
    cited = [number for bullet in reply for number in bullet.sentences]
    wrong = _find_citation_fault(case, cited)
    for bullet in reply:
        cited_sentences = (sentences[number - 1] for number in bullet.sentences)
        source = " ".join(f"{each.document.title} {each.passage.section} {each.text}" for each in cited_sentences)
        if strange := find_foreign_numbers(bullet.text, source):
            wrong = wrong or f"{strange[0]} is not in the sentences behind “{bullet.text}”"
    return Grade(wrong, len(cited), _count_valid(case, cited))


def grade_reply(case: GoldCase, reply: str) -> Grade:
    """Grade whether free text is one paragraph; its content cannot be graded before it is verified."""
    del case
    return Grade("" if len([line for line in reply.splitlines() if line.strip()]) == 1 else "it is not a paragraph")


def grade_claims(case: GoldCase, reply: Sequence[TimedClaim]) -> Grade:
    """Grade whether every fact became a self-contained claim, and nothing else did."""
    facts, avoid = case.expected["claims"], case.expected["avoid"]
    if not facts:
        return Grade(f"“{reply[0].text}” is not a fact" if reply else "")
    if lost := next((fact for fact in facts if not any(_states_fact(claim, fact) for claim in reply)), None):
        return Grade(f"no claim states, for its time: {lost['text']}")
    text = " ".join(claim.text for claim in reply)
    if strange := [term for term in avoid if not find_missing_terms(text, [term])]:
        return Grade(f"a claim mentions “{strange[0]}”")
    vague = next((claim.text for claim in reply if _PRONOUN.match(claim.text)), "")
    return Grade(f"“{vague}” does not name its subject" if vague else "")


def grade_verification(case: GoldCase, reply: Verification) -> Grade:
    """Grade a verdict, and the sentences that it names as evidence."""
    expected = Verdict(case.expected["verdict"])
    wrong = "" if reply.verdict is expected else f"{reply.verdict} and not {expected}"
    if wrong or expected is Verdict.NOT_ENOUGH_INFO:
        return Grade(wrong, verdicts=(expected, reply.verdict))
    valid = set(case.expected["sentences"]) | set(case.expected["may"])
    return Grade("", len(reply.sentences), len(valid & set(reply.sentences)), (expected, reply.verdict))


def grade_rulings(case: GoldCase, reply: Sequence[ClaimRuling]) -> Grade:
    """Grade the verdict on the single claim."""
    return grade_verification(case, reply[0].found)


def grade_draft(case: GoldCase, reply: Sequence[MarkedSentence]) -> Grade:
    """Grade whether a draft states what its notes state, completely, and in the user's language."""
    sources = {
        number: f"{place.document.title} {place.passage.section} {finding.text}"
        for number, finding in enumerate(case.facts["findings"], start=1)
        for place in finding.evidence[:1]
    }
    judged = _grade_sentences(case, reply, sources)
    spoken = english_name(detect_language(_join_text(reply)))
    if judged.wrong or not reply or spoken in {"", case.facts["language"]}:
        return judged
    return Grade(f"it is in {spoken}", judged.cited, judged.valid)


def grade_feedback(case: GoldCase, reply: Feedback) -> Grade:
    """Grade whether the critic finds the faults of a draft, and none in a good one."""
    scores = {point.criterion: point.score for point in reply.points}
    faults = [point.criterion for point in case.facts["feedback"].points if point.score < GOOD_SCORE]
    if unseen := [name for name in faults if scores[name] >= GOOD_SCORE]:
        return Grade(f"it finds nothing to fix about: {unseen[0]}")
    low = [name for name, score in scores.items() if score < GOOD_SCORE]
    return Grade(f"the critic denies that it is {low[0]}" if low and not faults else "")


def grade_refinement(case: GoldCase, reply: Sequence[MarkedSentence]) -> Grade:
    """Grade whether a revision fixes its draft, and adds nothing to it."""
    draft = case.facts["draft"]
    return _grade_sentences(case, reply, dict.fromkeys(range(1, count_sources(draft) + 1), draft))


def count_sources(draft: str) -> int:
    """Return how many notes a draft cites, by the highest number in brackets."""
    return max(int(number) for number in re.findall(r"\[(\d+)\]", draft))


def find_missing_terms(text: str, terms: Iterable[str]) -> list[str]:
    folded = text.casefold()
    return [term for term in terms if not any(word.casefold() in folded for word in term.split("|"))]


def find_foreign_numbers(text: str, source: str) -> list[str]:
    """Return the numbers of a text that its source lacks, regardless of digit grouping."""
    known = {re.sub(r"[.,]", "", number) for number in _NUMBER.findall(source)}
    return [number for number in _NUMBER.findall(text) if re.sub(r"[.,]", "", number) not in known]


def _grade_sentences(case: GoldCase, reply: Sequence[MarkedSentence], sources: Mapping[int, str]) -> Grade:
    cited = [number for sentence in reply for number in sentence.numbers]
    wrong = _find_citation_fault(case, cited) or _find_term_fault(case, reply)
    for sentence in reply:
        source = " ".join(sources[number] for number in sentence.numbers)
        if not sentence.numbers:
            wrong = wrong or f"“{sentence.text}” cites nothing"
        elif strange := find_foreign_numbers(sentence.text, source):
            wrong = wrong or f"{strange[0]} is not in the source of “{sentence.text}”"
    return Grade(wrong, len(cited), _count_valid(case, cited))


def _find_citation_fault(case: GoldCase, cited: Sequence[int]) -> str:
    must, may = case.expected["must"], case.expected["may"]
    if stray := [number for number in cited if number not in {*must, *may}]:
        return f"[{stray[0]}] is irrelevant"
    if missing := [number for number in must if number not in cited]:
        return f"[{missing[0]}] is missing"
    return "it is empty" if may and not cited else ""


def _find_term_fault(case: GoldCase, reply: Sequence[MarkedSentence]) -> str:
    text = _join_text(reply)
    if missing := find_missing_terms(text, case.expected["has"]):
        return f"it does not say {missing[0]}"
    strange = [term for term in case.expected["avoid"] if not find_missing_terms(text, [term])]
    return f"it says “{strange[0]}”" if strange else ""


def _count_valid(case: GoldCase, cited: Iterable[int]) -> int:
    bearing = {*case.expected["must"], *case.expected["may"]}
    return sum(number in bearing for number in cited)


def _states_fact(claim: TimedClaim, fact: Mapping[str, str | list[str]]) -> bool:
    in_time = "time" not in fact or claim.time == parse_time(str(fact["time"]))
    return in_time and not find_missing_terms(claim.text, fact["terms"])


def _join_text(reply: Iterable[MarkedSentence]) -> str:
    return " ".join(sentence.text for sentence in reply)


_PLAIN: ReplyFormat[str] = ReplyFormat(None, from_json=str, from_text=str.strip)

ReplyReader = Callable[[GoldCase, PromptMode], ReplyFormat[Any] | ReplySplitter[Any]]


@dataclass(frozen=True, slots=True)
class CallKind:
    """A kind of call, named for its template."""

    name: str
    stage: str
    file: str  # the file of its cases
    facts: str  # the facts of a case that its template takes, separated by blanks
    reader: ReplyReader  # builds the parser of a reply
    judge: Callable[[GoldCase, Any], Grade]
    structured: bool = True  # whether a server can hold its replies to a schema

    async def request(self, case: GoldCase, prompter: Prompter, *, student: bool) -> Any:
        """Return a model's reply to a case. Raises as `pipeline.kit.Ask` does."""
        template = "answer" if student and self.name == "draft" else self.name
        facts = {name: case.facts[name] for name in self.facts.split()}
        reader = self.reader(case, PromptMode(student=student))
        if isinstance(reader, ReplyFormat):
            return await prompter.ask(template, reader, stage=self.stage, **facts)
        return tuple([item async for item in prompter.stream(template, reader, stage=self.stage, **facts)])


def list_call_kinds(*, student: bool, system: str, stages: Sequence[str] = ()) -> tuple[CallKind, ...]:
    """Return the kinds of calls that a system makes at these stages, or at all stages if none is named.

    With the `student`'s prompts, the model is never asked to refine.
    """
    calls = find_system(system).calls
    own = (kind for kind in CALL_KINDS if kind.name in calls and (not stages or kind.stage in stages))
    return tuple(kind for kind in own if not (student and kind.stage == "refine"))


def _read_bullets(case: GoldCase, _: PromptMode) -> ReplyFormat[Any]:
    return bullets_format(len(case.facts["sentences"]))


def _read_verdict(case: GoldCase, mode: PromptMode) -> ReplyFormat[Any]:
    return verification_format(len(case.facts["sentences"]), reasoned=not mode.student)


def _read_verdicts(case: GoldCase, _: PromptMode) -> VerdictSplitter:
    return VerdictSplitter(1, len(case.facts["sentences"]))


def _read_draft(case: GoldCase, _: PromptMode) -> DraftSplitter:
    return DraftSplitter(len(case.facts["findings"]))


def _read_refined(case: GoldCase, _: PromptMode) -> DraftSplitter:
    return DraftSplitter(count_sources(case.facts["draft"]))


CALL_KINDS = (
    CallKind("query", "query", "query", "talk reading", lambda *_: query_format(), grade_query),
    CallKind("web_query", "query", "query", "talk reading", lambda *_: query_format(), grade_query),
    CallKind("summarise", "summarise", "summarise", "query sentences", _read_bullets, grade_summary),
    CallKind("bullets", "summarise", "summarise", "query sentences", _read_bullets, grade_summary),
    CallKind("generate", "generate", "query", "talk reading", lambda *_: _PLAIN, grade_reply, structured=False),
    CallKind("split", "split", "split", "talk reply_text", lambda *_: claims_format(), grade_claims),
    CallKind(
        "claims", "generate", "claims", "talk reading", lambda *_: ClaimSplitter(), grade_claims, structured=False
    ),
    CallKind("verify", "verify", "verify", "talk sentences claim", _read_verdict, grade_verification),
    CallKind("verdicts", "verify", "verify", "talk sentences claims", _read_verdicts, grade_rulings, structured=False),
    CallKind("draft", "draft", "draft", "talk findings language", _read_draft, grade_draft, structured=False),
    CallKind("answer", "draft", "draft", "talk findings language", _read_draft, grade_draft, structured=False),
    CallKind("feedback", "refine", "refine", "talk draft", lambda *_: feedback_format(), grade_feedback),
    CallKind("refine", "refine", "refine", "talk draft feedback", _read_refined, grade_refinement, structured=False),
)
