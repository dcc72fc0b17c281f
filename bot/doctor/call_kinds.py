"""List the kinds of model calls that are examined: template, facts, parser, and how a reply is graded.

One for each template that our systems call. A row of the report is a kind; settings know stages, of which
some have two.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bot.doctor import gold_cases
from bot.doctor.gold_cases import GoldCase, Grade
from pipeline.prompts.prompt_templates import PromptMode
from pipeline.prompts.prompter import Prompter
from pipeline.replies.reply_format import ReplyFormat, ReplySplitter
from pipeline.replies.stage_replies import CLAIMS, FEEDBACK, QUERY, ClaimSplitter, DraftSplitter, bullets_format
from pipeline.replies.verdict_replies import VerdictSplitter, verification_format
from pipeline.systems import find_system

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
        return tuple([one async for one in prompter.stream(template, reader, stage=self.stage, **facts)])


def list_call_kinds(*, student: bool, system: str, stages: Sequence[str] = ()) -> tuple[CallKind, ...]:
    """List a system's kinds of calls of some stages, of all where none is named; a student refines nothing."""
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
    _build_kind("query", "talk reading", lambda _, __: QUERY, gold_cases.grade_query),
    _build_kind(
        "summarise", "query sentences", lambda case, _: bullets_format(_count_sentences(case)), gold_cases.grade_summary
    ),
    _build_kind(
        "bullets",
        "query sentences",
        lambda case, _: bullets_format(_count_sentences(case)),
        gold_cases.grade_summary,
        stage="summarise",
        file="summarise",
    ),
    _build_kind(
        "generate", "talk reading", lambda _, __: _PLAIN, gold_cases.grade_reply, file="query", structured=False
    ),
    _build_kind("split", "talk reply_text", lambda _, __: CLAIMS, gold_cases.grade_claims),
    _build_kind(
        "claims",
        "talk reading",
        lambda _, __: ClaimSplitter(),
        gold_cases.grade_claims,
        stage="generate",
        structured=False,
    ),
    _build_kind(
        "verify",
        "talk sentences claim",
        lambda case, manner: verification_format(_count_sentences(case), reasoned=not manner.student),
        gold_cases.grade_verification,
    ),
    _build_kind(
        "verdicts",
        "talk sentences claims",
        lambda case, manner: VerdictSplitter(1, _count_sentences(case), reasoned=not manner.student),
        gold_cases.grade_rulings,
        stage="verify",
        file="verify",
        structured=False,
    ),
    _build_kind("draft", "talk findings language", _read_draft, gold_cases.grade_draft, structured=False),
    _build_kind(
        "answer",
        "talk findings language",
        _read_draft,
        gold_cases.grade_draft,
        stage="draft",
        file="draft",
        structured=False,
    ),
    _build_kind(
        "feedback", "talk draft", lambda _, __: FEEDBACK, gold_cases.grade_feedback, stage="refine", file="refine"
    ),
    _build_kind(
        "refine",
        "talk draft feedback",
        lambda case, _: DraftSplitter(gold_cases.count_sources(case.facts["draft"])),
        gold_cases.grade_refinement,
        structured=False,
    ),
)
