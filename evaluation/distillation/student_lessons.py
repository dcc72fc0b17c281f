"""Make lessons from recorded calls: a student's prompt at each stage, and the reply to learn.

WikiChat's student (Semnani et al. 2023, section 4) gets the instruction without examples, writes no reasoning before a
verdict, and writes the refined draft directly. So a teacher's reply is parsed by the stage's own parser, and written
again in the student's format. A draft and its refinement become one lesson, without the sentences that the gate
withheld.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from random import Random
from typing import Any

from evaluation.distillation.recorded_calls import LostFact, Passages, RecordedCall, RecordedTurn, restore_facts
from pipeline.errors import UnreadableReply
from pipeline.prompts.prompt_templates import MissingFact, PromptMode, render_prompt, render_reply
from pipeline.replies.cited_sentences import format_draft
from pipeline.replies.reply_format import ReplyFormat, ReplySplitter, extract_json_object
from pipeline.replies.stage_replies import (
    NOTHING_REPLY,
    Bullet,
    ClaimSplitter,
    DraftSplitter,
    TimedClaim,
    bullets_format,
    claims_format,
    query_format,
)
from pipeline.replies.verdict_replies import VerdictSplitter, verification_format
from pipeline.support.verdict_look import LOOK_FIELDS, Verification
from storage.types import DocumentId, Evidence, SearchQuery, Verdict

STUDENT = PromptMode(student=True)
DRAFT, ANSWER, REFINE = "draft", "answer", "refine"
Facts = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Lesson:
    """The input of a student, and the output that it should give."""

    turn_id: str
    template: str
    stage: str
    instruction: str
    input: str
    output: str
    counts: Mapping[str, int]  # the numbers of sentences, claims and notes that it shows; they are needed to read it
    quoted: frozenset[DocumentId]  # the documents that it quotes


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A call that gives no lesson, and the reason."""

    turn_id: str
    template: str
    reason: str


class _NoLesson(Exception):
    """A call gives no lesson; `str()` is the reason."""


def make_lessons(turn: RecordedTurn, passages: Passages, seed: int = 0) -> Iterator[Lesson | LeftOut]:
    """Yield the lessons of a turn, in the order of its calls."""
    random, turn_id = Random(f"{seed}:{turn.summary.turn_id}"), turn.summary.turn_id
    for place, call in enumerate(turn.calls):
        if call.template in _MERGED:
            continue
        try:
            yield _make_lesson(_merge_refinement(call, turn.calls[place + 1 :]), turn, passages, random)
        except (LostFact, _NoLesson) as error:
            yield LeftOut(turn_id, call.template, str(error))
        except UnreadableReply:
            yield LeftOut(turn_id, call.template, "its reply cannot be read")


_MERGED = frozenset({"feedback", REFINE})  # templates that have no lesson, because a student writes no draft first


def _merge_refinement(call: RecordedCall, after: Sequence[RecordedCall]) -> RecordedCall:
    """Replace a draft by its refinement, because a student writes the refined draft directly."""
    if call.template != DRAFT:
        return call
    refined = call.reply
    for later in after:
        if later.template == DRAFT:
            break
        refined = later.reply if later.template == REFINE else refined
    return RecordedCall(ANSWER, call.stage, call.facts, refined, structured=False)


def _make_lesson(call: RecordedCall, turn: RecordedTurn, passages: Passages, random: Random) -> Lesson:
    if call.template not in _FORMS:
        raise _NoLesson("a student is not asked for it")
    facts = restore_facts(call, turn, passages)
    counts = _count_shown(facts)
    form = _FORMS[call.template]
    value = _read(form.build_reader(counts, False), call.reply, structured=call.structured)  # noqa: FBT003 - a teacher
    reply = _write_draft(value, turn) if call.template == ANSWER else form.write(value)
    try:
        prompt = render_prompt(call.template, facts, STUDENT, turn.summary.at, random)
    except MissingFact as error:
        raise _NoLesson("its prompt is of another version") from error
    system, user = prompt.messages[0].text, prompt.messages[-1].text
    output = render_reply(call.template, STUDENT, reply).text
    quoted = {(evidence.document.corpus, evidence.document.key) for evidence in _list_evidence(facts)}
    lesson = Lesson(turn.summary.turn_id, call.template, call.stage, system, user, output, counts, frozenset(quoted))
    read_lesson(lesson)
    return lesson


def _count_shown(facts: Facts) -> Mapping[str, int]:
    return {name: len(facts[name]) for name in ("sentences", "claims", "findings") if name in facts}


def _list_evidence(facts: Facts) -> Iterator[Evidence]:
    yield from facts.get("sentences", ())
    for finding in facts.get("findings", ()):
        yield from finding.evidence


def read_lesson(lesson: Lesson) -> Any:
    """Parse a lesson's output as the stage does. Raises `UnreadableReply`."""
    reader = _FORMS[lesson.template].build_reader(lesson.counts, True)  # noqa: FBT003 - as a student
    return _read(reader, lesson.output, structured=False)


def _read(reader: ReplyFormat[Any] | ReplySplitter[Any], reply: str, *, structured: bool) -> Any:
    if isinstance(reader, ReplyFormat):
        return reader.from_json(extract_json_object(reply)) if structured else reader.from_text(reply)
    return (*reader.feed(reply), *reader.close())


def _write_draft(sentences: Sequence[Any], turn: RecordedTurn) -> str:
    """Write the sentences of a draft that passed the gate, or `NOTHING_REPLY` if there are none."""
    if not sentences:
        return NOTHING_REPLY
    delivered = [sentence for sentence in sentences if sentence.numbers and sentence.text in turn.said]
    if not delivered:
        raise _NoLesson("no sentence of the draft passed the gate")
    return format_draft(delivered)


def _write_query(query: SearchQuery | None) -> dict[str, Any]:
    if query is None:
        return {"search": False}
    return {"search": True, "query": query.text, "time": query.time or "none"}


def _write_bullets(bullets: Sequence[Bullet]) -> dict[str, Any]:
    return {"bullets": [{"text": bullet.text, "sentences": bullet.sentences} for bullet in bullets if bullet.sentences]}


def _write_claims(claims: Sequence[TimedClaim]) -> dict[str, Any]:
    return {"claims": [{"text": claim.text, "time": claim.time or "none"} for claim in claims]}


def _write_verification(verification: Verification) -> dict[str, Any]:
    if verification.verdict is Verdict.SUPPORTS and not verification.look:
        raise _NoLesson("a verdict does not show what the sentences say")
    look = dict(zip_longest(LOOK_FIELDS, verification.look, fillvalue=""))
    return {"verdict": verification.verdict, "sentences": verification.sentences, **look}


def _write_rulings(rulings: Sequence[Any]) -> list[dict[str, Any]]:
    final = {ruling.claim: ruling.found for ruling in rulings}
    if [*sorted(final)] != [*range(1, len(final) + 1)]:
        raise _NoLesson("it has verdicts for only some of the claims")
    return [_write_verification(final[claim]) for claim in sorted(final)]


@dataclass(frozen=True, slots=True)
class _Form:
    """The format of a template's replies: a reader, which depends on the prompt and on who replies, and a writer."""

    build_reader: Callable[[Mapping[str, int], bool], ReplyFormat[Any] | ReplySplitter[Any]]
    write: Callable[[Any], Any] = str


_QUERIES = _Form(lambda _, __: query_format(), _write_query)
_SUMMARIES = _Form(lambda counts, _: bullets_format(counts["sentences"]), _write_bullets)
_FORMS: Mapping[str, _Form] = {
    "query": _QUERIES,
    "web_query": _QUERIES,
    "need": _QUERIES,
    "summarise": _SUMMARIES,
    "bullets": _SUMMARIES,
    "generate": _Form(lambda _, __: ReplyFormat(None, from_json=str, from_text=str.strip)),
    "split": _Form(lambda _, __: claims_format(), _write_claims),
    "claims": _Form(lambda _, __: ClaimSplitter(), _write_claims),
    "verify": _Form(
        lambda counts, student: verification_format(counts["sentences"], reasoned=not student), _write_verification
    ),
    "verdicts": _Form(lambda counts, _: VerdictSplitter(counts["claims"], counts["sentences"]), _write_rulings),
    ANSWER: _Form(lambda counts, _: DraftSplitter(counts["findings"])),
}
