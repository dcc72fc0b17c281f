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
from pipeline.replies.verdict_replies import ClaimRuling, VerdictSplitter, Verification, verification_format
from pipeline.stages.question_analysis import english_name
from pipeline.systems import find_system
from storage.language.detection import detect_language
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
    """Read the cases of a file, as of a day."""
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
    valid: int = 0  # how many citations bear on the matter
    verdicts: tuple[Verdict, Verdict] | None = None  # the expected verdict, and the given one


def grade_query(case: GoldCase, found: SearchQuery | None) -> Grade:
    """Grade whether the query has the expected words and the right time."""
    expected = case.expected
    if found is None:
        return Grade("nothing is searched for" if expected["search"] else "")
    if not expected["search"]:
        return Grade(f"“{found.text}” is searched for")
    if missing := find_missing_terms(found.text, expected["terms"]):
        return Grade(f"“{found.text}” lacks {missing[0]}")
    right = expected["time"] == "any" or found.time == parse_time(expected["time"])
    return Grade("" if right else f"its time is {found.time or 'none'} and not {expected['time']}")


def grade_summary(case: GoldCase, found: Sequence[Bullet]) -> Grade:
    """Grade whether bullets rest on the relevant sentences, and on no others."""
    sentences: Sequence[Evidence] = case.facts["sentences"]
    cited = [number for bullet in found for number in bullet.sentences]
    wrong = _find_citation_fault(case, cited)
    for bullet in found:
        cited_sentences = (sentences[number - 1] for number in bullet.sentences)
        source = " ".join(f"{each.document.title} {each.passage.section} {each.text}" for each in cited_sentences)
        if strange := find_foreign_numbers(bullet.text, source):
            wrong = wrong or f"{strange[0]} is not in the sentences behind “{bullet.text}”"
    return Grade(wrong, len(cited), _count_valid(case, cited))


def grade_reply(case: GoldCase, found: str) -> Grade:
    """Grade whether free text is one paragraph; its content cannot be graded before it is verified."""
    del case
    return Grade("" if len([line for line in found.splitlines() if line.strip()]) == 1 else "it is not a paragraph")


def grade_claims(case: GoldCase, found: Sequence[TimedClaim]) -> Grade:
    """Grade whether every fact became a self-contained claim, and nothing else did."""
    facts, avoid = case.expected["claims"], case.expected["avoid"]
    if not facts:
        return Grade(f"“{found[0].text}” is not a fact" if found else "")
    if lost := next((fact for fact in facts if not any(_states_fact(claim, fact) for claim in found)), None):
        return Grade(f"no claim states, for its time: {lost['text']}")
    text = " ".join(claim.text for claim in found)
    if strange := [term for term in avoid if not find_missing_terms(text, [term])]:
        return Grade(f"a claim mentions “{strange[0]}”")
    vague = next((claim.text for claim in found if _PRONOUN.match(claim.text)), "")
    return Grade(f"“{vague}” does not name its subject" if vague else "")


def grade_verification(case: GoldCase, found: Verification) -> Grade:
    """Grade a verdict, and the sentences that it names as evidence."""
    expected = Verdict(case.expected["verdict"])
    wrong = "" if found.verdict is expected else f"{found.verdict} and not {expected}"
    if wrong or expected is Verdict.NOT_ENOUGH_INFO:
        return Grade(wrong, verdicts=(expected, found.verdict))
    valid = set(case.expected["sentences"]) | set(case.expected["may"])
    return Grade("", len(found.sentences), len(valid & set(found.sentences)), (expected, found.verdict))


def grade_rulings(case: GoldCase, found: Sequence[ClaimRuling]) -> Grade:
    """Grade the verdict on the single claim."""
    return grade_verification(case, found[0].found)


def grade_draft(case: GoldCase, found: Sequence[MarkedSentence]) -> Grade:
    """Grade whether a draft states what its notes state, completely, and in the user's language."""
    sources = {
        number: f"{place.document.title} {place.passage.section} {finding.text}"
        for number, finding in enumerate(case.facts["findings"], start=1)
        for place in finding.evidence[:1]
    }
    judged = _grade_sentences(case, found, sources)
    spoken = english_name(detect_language(_join_text(found)))
    if judged.wrong or not found or spoken in {"", case.facts["language"]}:
        return judged
    return Grade(f"it is in {spoken}", judged.cited, judged.valid)


def grade_feedback(case: GoldCase, found: Feedback) -> Grade:
    """Grade whether the critic finds the faults of a draft, and none in a good one."""
    given = {point.criterion: point.score for point in found.points}
    faults = [point.criterion for point in case.facts["feedback"].points if point.score < GOOD_SCORE]
    if unseen := [name for name in faults if given[name] >= GOOD_SCORE]:
        return Grade(f"it finds nothing to fix about: {unseen[0]}")
    low = [name for name, score in given.items() if score < GOOD_SCORE]
    return Grade(f"the critic denies that it is {low[0]}" if low and not faults else "")


def grade_refinement(case: GoldCase, found: Sequence[MarkedSentence]) -> Grade:
    """Grade whether a reply was fixed, and nothing added."""
    draft = case.facts["draft"]
    return _grade_sentences(case, found, dict.fromkeys(range(1, count_sources(draft) + 1), draft))


def count_sources(draft: str) -> int:
    """Return how many notes a draft cites, by the highest number in brackets."""
    return max(int(number) for number in re.findall(r"\[(\d+)\]", draft))


def find_missing_terms(text: str, terms: Iterable[str]) -> list[str]:
    folded = text.casefold()
    return [term for term in terms if not any(word.casefold() in folded for word in term.split("|"))]


def find_foreign_numbers(text: str, source: str) -> list[str]:
    """Return the numbers of a text that its source lacks, regardless of digit grouping."""
    known = {_strip_separators(number) for number in _NUMBER.findall(source)}
    return [number for number in _NUMBER.findall(text) if _strip_separators(number) not in known]


def _grade_sentences(case: GoldCase, found: Sequence[MarkedSentence], sources: Mapping[int, str]) -> Grade:
    cited = [number for sentence in found for number in sentence.numbers]
    wrong = _find_citation_fault(case, cited) or _find_term_fault(case, found)
    for sentence in found:
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


def _find_term_fault(case: GoldCase, found: Sequence[MarkedSentence]) -> str:
    text = _join_text(found)
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


def _join_text(found: Iterable[MarkedSentence]) -> str:
    return " ".join(sentence.text for sentence in found)


def _strip_separators(number: str) -> str:
    return re.sub(r"[.,]", "", number)


_PLAIN: ReplyFormat[str] = ReplyFormat(None, from_json=str, from_text=str.strip)

ReplyReader = Callable[[GoldCase, PromptMode], ReplyFormat[Any] | ReplySplitter[Any]]


@dataclass(frozen=True, slots=True)
class CallKind:
    """A kind of call, named for its template."""

    name: str
    facts: tuple[str, ...]  # the facts of a case that its template takes
    reader: ReplyReader  # builds the parser of a reply
    judge: Callable[[GoldCase, Any], Grade]
    stage: str
    file: str  # the file of its cases
    structured: bool  # whether a server can hold its replies to a schema

    async def asked(self, case: GoldCase, prompter: Prompter, *, student: bool) -> Any:
        """Return a model's reply to a case. Raises as `pipeline.kit.Ask` does."""
        template = "answer" if student and self.name == "draft" else self.name
        facts = {name: case.facts[name] for name in self.facts}
        reader = self.reader(case, PromptMode(student=student))
        if isinstance(reader, ReplyFormat):
            return await prompter.ask(template, reader, stage=self.stage, **facts)
        return tuple([item async for item in prompter.stream(template, reader, stage=self.stage, **facts)])


def list_call_kinds(*, student: bool, system: str, stages: Sequence[str] = ()) -> tuple[CallKind, ...]:
    """List a system's kinds of calls of some stages, or of all if none is named; a student refines nothing."""
    calls = find_system(system).calls
    own = (kind for kind in CALL_KINDS if kind.name in calls)
    wanted = (kind for kind in own if not stages or kind.stage in stages)
    return tuple(kind for kind in wanted if not (student and kind.stage == "refine"))


def _build_kind(
    name: str,
    facts: str,
    reader: ReplyReader,
    judge: Callable[[GoldCase, Any], Grade],
    *,
    stage: str = "",
    file: str = "",
    structured: bool = True,
) -> CallKind:
    return CallKind(name, tuple(facts.split()), reader, judge, stage or name, file or name, structured)


def _count_sentences(case: GoldCase) -> int:
    return len(case.facts["sentences"])


def _read_draft(case: GoldCase, _: PromptMode) -> DraftSplitter:
    return DraftSplitter(len(case.facts["findings"]))


CALL_KINDS = (
    _build_kind("query", "talk reading", lambda _, __: query_format(), grade_query),
    _build_kind("web_query", "talk reading", lambda _, __: query_format(), grade_query, stage="query", file="query"),
    _build_kind("summarise", "query sentences", lambda case, _: bullets_format(_count_sentences(case)), grade_summary),
    _build_kind(
        "bullets",
        "query sentences",
        lambda case, _: bullets_format(_count_sentences(case)),
        grade_summary,
        stage="summarise",
        file="summarise",
    ),
    _build_kind("generate", "talk reading", lambda _, __: _PLAIN, grade_reply, file="query", structured=False),
    _build_kind("split", "talk reply_text", lambda _, __: claims_format(), grade_claims),
    _build_kind(
        "claims",
        "talk reading",
        lambda _, __: ClaimSplitter(),
        grade_claims,
        stage="generate",
        structured=False,
    ),
    _build_kind(
        "verify",
        "talk sentences claim",
        lambda case, manner: verification_format(_count_sentences(case), reasoned=not manner.student),
        grade_verification,
    ),
    _build_kind(
        "verdicts",
        "talk sentences claims",
        lambda case, manner: VerdictSplitter(1, _count_sentences(case), reasoned=not manner.student),
        grade_rulings,
        stage="verify",
        file="verify",
        structured=False,
    ),
    _build_kind("draft", "talk findings language", _read_draft, grade_draft, structured=False),
    _build_kind(
        "answer",
        "talk findings language",
        _read_draft,
        grade_draft,
        stage="draft",
        file="draft",
        structured=False,
    ),
    _build_kind(
        "feedback", "talk draft", lambda _, __: feedback_format(), grade_feedback, stage="refine", file="refine"
    ),
    _build_kind(
        "refine",
        "talk draft feedback",
        lambda case, _: DraftSplitter(count_sources(case.facts["draft"])),
        grade_refinement,
        structured=False,
    ),
)
