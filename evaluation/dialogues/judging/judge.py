"""Judge a reply: its claims by passages of the corpora, its citations by their texts, and the whole on five scales.

A claim is compared with the five nearest passages of the corpora, even if the system did not find them. A sentence is
supported if the passages that it cites say it together. A citation of a supported sentence is needed if its passage
says the sentence alone, or if the other passages do not.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from evaluation.dialogues.dialogue_types import (
    CitationCounts,
    DialogueTurn,
    JudgedClaim,
    JudgedTurn,
    RepliedSentence,
    ShownPassage,
)
from evaluation.dialogues.judging.judge_replies import ANSWERED, MAX_REASONING, SCALES, Grade, grade_format
from evaluation.reports.word_measures import drop_marks
from pipeline.errors import ModelRefused, PromptTooLong, UnreadableReply
from pipeline.kit import Ask
from pipeline.replies.stage_replies import claims_format, query_format
from pipeline.stages.claim_check import request_verification
from pipeline.stages.concurrency import gather_all, open_task_group
from pipeline.stages.findings import collect_sentences
from pipeline.support.support_check import find_verbatim_passage
from pipeline.support.verdict_look import Verification
from pipeline.types import Conversation, Status, Turn, Usage
from storage.types import Document, Evidence, Hit, Passage, Verdict

T = TypeVar("T")
FindPassages = Callable[[str, int], Awaitable[tuple[Hit, ...]]]
"""Returns the passages nearest to a text, at most this number."""
EVIDENCE = 5  # passages that a claim is compared with
UNCHECKED = "unchecked"  # the status of a reply of the model alone
_CLAIMING = {Status.ANSWERED.value, UNCHECKED}
_GRADED = {*_CLAIMING, Status.ABSTAINED.value, Status.CHATTED.value}
_UNJUDGED = (UnreadableReply, ModelRefused, PromptTooLong)


@dataclass
class JudgeCalls:
    """The model that judges, its search, and the list of its failed calls."""

    ask: Ask
    find: FindPassages
    failures: list[str]

    async def attempt(self, call: Awaitable[T]) -> T | None:
        """Return the result of a call; None if its reply is unusable, which is added to `failures`."""
        try:
            return await call
        except _UNJUDGED as error:
            self.failures.append(f"{type(error).__name__}: {error}")
            return None


async def judge_turn(earlier: Sequence[Turn], turn: DialogueTurn, calls: JudgeCalls) -> JudgedTurn:
    """Judge a turn that follows `earlier` ones; its usage is 0. Raises `ModelUnavailable` and `SearchUnavailable`."""
    talk = Conversation((*earlier, Turn("user", turn.user)))
    if turn.status not in _GRADED:
        return JudgedTurn(failure=f"the turn {turn.status}, so it has no reply to judge")
    stated = turn.status in _CLAIMING
    reply, draft, refined = map(drop_marks, (turn.reply, turn.draft, turn.refined))
    async with open_task_group() as group:
        claims = group.create_task(_judge_claims(talk, reply, calls)) if stated else None
        citations = group.create_task(_count_citations(talk, turn, calls))
        texts = filter(None, (reply, draft, refined) if stated else (reply,))
        graded = {text: group.create_task(_grade_all(talk, text, calls)) for text in dict.fromkeys(texts)}
        answerable = group.create_task(_judge_answerable(talk, calls)) if turn.status == Status.ABSTAINED else None
    scores = {text: {scale: grade.score for scale, grade in task.result().items()} for text, task in graded.items()}
    return JudgedTurn(
        claims.result() if claims else (),
        **scores[reply],
        reasons={scale: grade.reasoning for scale, grade in graded[reply].result().items()},
        draft_scores=scores.get(draft, {}),
        refined_scores=scores.get(refined, {}),
        citations=citations.result(),
        abstained=turn.status == Status.ABSTAINED,
        answerable=answerable.result() if answerable else None,
        failure="; ".join(calls.failures),
    )


def usage_fields(usage: Usage) -> dict[str, Any]:
    """Return the usage of a judgement as fields of `JudgedTurn`."""
    tokens = {"prompt_tokens": usage.prompt_tokens, "completion_tokens": usage.completion_tokens}
    return {"calls": usage.llm_calls, "cost": usage.cost, **tokens}


async def _judge_claims(talk: Conversation, reply: str, calls: JudgeCalls) -> tuple[JudgedClaim, ...]:
    claims = await calls.attempt(
        calls.ask("split", claims_format(), stage="split", talk=_last_turns(talk), reply_text=reply)
    )
    return await gather_all(_judge_claim(talk, claim.text, calls) for claim in claims or ())


async def _judge_claim(talk: Conversation, claim: str, calls: JudgeCalls) -> JudgedClaim:
    hits = await calls.find(claim, EVIDENCE)
    sentences = collect_sentences(hits)
    if not sentences:
        return JudgedClaim(claim, Verdict.NOT_ENOUGH_INFO, reasoning="no passage was found to check it against")
    verification = await calls.attempt(_verify(claim, sentences, talk, calls))
    ruled = verification or Verification(Verdict.NOT_ENOUGH_INFO, reasoning="the judge's reply could not be used")
    texts = {sentence.passage.id: f"{sentence.document.title}\n{sentence.passage.text}" for sentence in sentences}
    return JudgedClaim(claim, ruled.verdict, (*texts,), ruled.reasoning[:MAX_REASONING], (*texts.values(),))


async def _verify(claim: str, sentences: Sequence[Evidence], talk: Conversation, calls: JudgeCalls) -> Verification:
    return await request_verification(claim, sentences, _last_turns(talk), calls.ask, student=False)


async def _count_citations(talk: Conversation, turn: DialogueTurn, calls: JudgeCalls) -> CitationCounts:
    shown = {passage.number: passage for passage in turn.passages}
    counts = await gather_all(_judge_sentence(talk, sentence, shown.__getitem__, calls) for sentence in turn.sentences)
    return CitationCounts(*(sum(column) for column in zip(*counts, strict=True))) if counts else CitationCounts()


async def _judge_sentence(
    talk: Conversation, sentence: RepliedSentence, shown: Callable[[int], ShownPassage], calls: JudgeCalls
) -> tuple[int, int, int, int]:
    """Return the counts for `CitationCounts` from one sentence, in the order of its fields."""
    passages = tuple(shown(number) for number in sentence.citations)

    async def holds(cited: Sequence[ShownPassage]) -> bool:
        quoted = [_quote_whole(passage) for passage in cited]
        if not quoted or find_verbatim_passage(sentence.text, [evidence.passage for evidence in quoted]):
            return bool(quoted)  # a verbatim sentence needs no judgement
        verification = await calls.attempt(_verify(sentence.text, collect_sentences(quoted), talk, calls))
        return verification is not None and verification.verdict is Verdict.SUPPORTS

    if not await holds(passages):
        return 1, 0, len(passages), 0
    if len(passages) == 1:
        return 1, 1, 1, 1

    async def is_needed(place: int) -> bool:
        others = (*passages[:place], *passages[place + 1 :])
        return await holds(passages[place : place + 1]) or not await holds(others)

    needed = await gather_all(is_needed(place) for place in range(len(passages)))
    return 1, 1, len(passages), sum(needed)


def _quote_whole(passage: ShownPassage) -> Evidence:
    page = Document(passage.corpus, passage.document, passage.title)
    whole = Passage(passage.id, passage.corpus, passage.document, "", passage.text, passage.number, "")
    return Evidence(passage.text, whole, page, (0, len(passage.text)))


async def _grade_all(talk: Conversation, reply: str, calls: JudgeCalls) -> dict[str, Grade]:
    grades = await gather_all(_grade(scale, talk, reply, calls) for scale in SCALES)
    return {scale: grade for scale, grade in zip(SCALES, grades, strict=True) if grade}


async def _grade(scale: str, talk: Conversation, reply: str, calls: JudgeCalls) -> Grade | None:
    return await calls.attempt(calls.ask(scale, grade_format(scale), stage="grade", talk=talk, reply_text=reply))


async def _judge_answerable(talk: Conversation, calls: JudgeCalls) -> bool | None:
    """Return whether the nearest passages answer the user's question; None if the reply is unusable."""
    query = await calls.attempt(calls.ask("query", query_format(), stage="query", talk=_last_turns(talk), reading=""))
    hits = await calls.find(query.text if query else talk.question.text, EVIDENCE)
    sentences = collect_sentences(hits)
    if not sentences:
        return False
    facts = {"talk": _last_turns(talk), "sentences": sentences}
    return await calls.attempt(calls.ask("answerable", ANSWERED, stage="answerable", **facts))


SHOWN_TURNS = 5  # the last turns of a conversation that the judge sees, as many as a system


def _last_turns(talk: Conversation) -> Conversation:
    return Conversation(talk.turns[-SHOWN_TURNS:])
