"""The kinds of calls that are examined: which template, which facts, how a reply is read and judged.

One for each call that `wikichat` makes. A row of the report is a kind; settings know stages, of which `refine` has two.
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
from pipeline.parsing.claims import CLAIMS
from pipeline.parsing.draft import DraftSplitter
from pipeline.parsing.feedback import FEEDBACK
from pipeline.parsing.query import QUERY
from pipeline.parsing.verdict import verification
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

    async def asked(self, case: Case, prompter: Prompter, *, student: bool) -> Any:
        """Return what a model replies to a case. Raises as `pipeline.kit.Ask` does."""
        template = "answer" if student and self.name == "draft" else self.name
        facts = {name: case.facts[name] for name in self.facts}
        reader = self.reader(case, Manner(student=student))
        if isinstance(reader, Form):
            return await prompter.ask(template, reader, stage=self.stage, **facts)
        return tuple([one async for one in prompter.stream(template, reader, stage=self.stage, **facts)])


def kinds(*, student: bool, stages: Sequence[str] = ()) -> tuple[Kind, ...]:
    """Return the kinds of calls of some stages, of all where none is named; a student refines nothing."""
    wanted = (kind for kind in KINDS if not stages or kind.stage in stages)
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
) -> Kind:
    return Kind(name, tuple(facts.split()), reader, judge, stage or name, file or name, structured)


def _sentences(case: Case) -> int:
    return len(case.facts["sentences"])


KINDS = (
    _kind("query", "talk reading", lambda _, __: QUERY, judging.of_query),
    _kind("summarise", "query sentences", lambda case, _: bullets(_sentences(case)), judging.of_summary),
    _kind("generate", "talk reading", lambda _, __: _PLAIN, judging.of_reply, file="query", structured=False),
    _kind("split", "talk reply_text", lambda _, __: CLAIMS, judging.of_claims),
    _kind(
        "verify",
        "talk sentences claim",
        lambda case, manner: verification(_sentences(case), reasoned=not manner.student),
        judging.of_verification,
    ),
    _kind(
        "draft",
        "talk findings language",
        lambda case, _: DraftSplitter(len(case.facts["findings"])),
        judging.of_draft,
        structured=False,
    ),
    _kind("feedback", "talk draft", lambda _, __: FEEDBACK, judging.of_feedback, stage="refine", file="refine"),
    _kind(
        "refine",
        "talk draft feedback",
        lambda case, _: DraftSplitter(judging.count_of(case.facts["draft"])),
        judging.of_refinement,
        structured=False,
    ),
)
"""All of them, in the order of a turn."""
