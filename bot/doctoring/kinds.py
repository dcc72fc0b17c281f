"""The kinds of calls that are examined: which template, which facts, how a reply is read and judged.

One for each call that `wikichat` and `wikichat-fast` make; a model is tried on those of the system that asks it. A row
of the report is a kind; settings know stages, of which some have two.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bot.doctoring import judging
from bot.doctoring.cases import Case
from bot.doctoring.judging import Judgement
from pipeline.asking import Prompter
from pipeline.forms import Form, Splitter
from pipeline.parsing.bullets import bullets
from pipeline.parsing.claims import CLAIMS, ClaimSplitter
from pipeline.parsing.draft import DraftSplitter
from pipeline.parsing.feedback import FEEDBACK
from pipeline.parsing.query import QUERY
from pipeline.parsing.verdict import verification
from pipeline.parsing.verdicts import VerdictSplitter
from pipeline.prompting import Manner

_PLAIN: Form[str] = Form(None, from_json=str, from_text=str.strip)


Reader = Callable[[Case, Manner], Form[Any] | Splitter[Any]]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of call, named for its template."""

    name: str
    facts: tuple[str, ...]
    """What of a case its template is given."""
    reader: Reader
    """What reads a reply to a case that was asked in a manner."""
    judge: Callable[[Case, Any], Judgement]
    stage: str
    file: str
    """Where its cases stand."""
    structured: bool
    """Whether a server can hold its replies to a schema."""
    system: str
    """The system that makes this call; empty where both do."""

    async def asked(self, case: Case, prompter: Prompter, *, student: bool) -> Any:
        """Return what a model replies to a case. Raises as `pipeline.kit.Ask` does."""
        template = "answer" if student and self.name == "draft" else self.name
        facts = {name: case.facts[name] for name in self.facts}
        reader = self.reader(case, Manner(student=student))
        if isinstance(reader, Form):
            return await prompter.ask(template, reader, stage=self.stage, **facts)
        return tuple([one async for one in prompter.stream(template, reader, stage=self.stage, **facts)])


def kinds(*, student: bool, system: str, stages: Sequence[str] = ()) -> tuple[Kind, ...]:
    """Return a system's kinds of calls of some stages, of all where none is named; a student refines nothing."""
    own = (kind for kind in KINDS if kind.system in {"", system})
    wanted = (kind for kind in own if not stages or kind.stage in stages)
    return tuple(kind for kind in wanted if not (student and kind.stage == "refine"))


def _kind(
    name: str,
    facts: str,
    reader: Reader,
    judge: Callable[[Case, Any], Judgement],
    *,
    stage: str = "",
    file: str = "",
    structured: bool = True,
    system: str = "",
) -> Kind:
    return Kind(name, tuple(facts.split()), reader, judge, stage or name, file or name, structured, system)


def _sentences(case: Case) -> int:
    return len(case.facts["sentences"])


def _drafted(case: Case, _: Manner) -> DraftSplitter:
    return DraftSplitter(len(case.facts["findings"]))


_SEVEN, _FAST = "wikichat", "wikichat-fast"
KINDS = (
    _kind("query", "talk reading", lambda _, __: QUERY, judging.of_query),
    _kind("summarise", "query sentences", lambda case, _: bullets(_sentences(case)), judging.of_summary, system=_SEVEN),
    _kind(
        "bullets",
        "query sentences",
        lambda case, _: bullets(_sentences(case)),
        judging.of_summary,
        stage="summarise",
        file="summarise",
        system=_FAST,
    ),
    _kind(
        "generate",
        "talk reading",
        lambda _, __: _PLAIN,
        judging.of_reply,
        file="query",
        structured=False,
        system=_SEVEN,
    ),
    _kind("split", "talk reply_text", lambda _, __: CLAIMS, judging.of_claims, system=_SEVEN),
    _kind(
        "claims",
        "talk reading",
        lambda _, __: ClaimSplitter(),
        judging.of_claims,
        stage="generate",
        structured=False,
        system=_FAST,
    ),
    _kind(
        "verify",
        "talk sentences claim",
        lambda case, manner: verification(_sentences(case), reasoned=not manner.student),
        judging.of_verification,
    ),
    _kind(
        "verdicts",
        "talk sentences claims",
        lambda case, manner: VerdictSplitter(1, _sentences(case), reasoned=not manner.student),
        judging.of_rulings,
        stage="verify",
        file="verify",
        structured=False,
        system=_FAST,
    ),
    _kind("draft", "talk findings language", _drafted, judging.of_draft, structured=False, system=_SEVEN),
    _kind(
        "answer",
        "talk findings language",
        _drafted,
        judging.of_draft,
        stage="draft",
        file="draft",
        structured=False,
        system=_FAST,
    ),
    _kind(
        "feedback",
        "talk draft",
        lambda _, __: FEEDBACK,
        judging.of_feedback,
        stage="refine",
        file="refine",
        system=_SEVEN,
    ),
    _kind(
        "refine",
        "talk draft feedback",
        lambda case, _: DraftSplitter(judging.count_of(case.facts["draft"])),
        judging.of_refinement,
        structured=False,
        system=_SEVEN,
    ),
)
"""All of them, in the order of a turn."""
