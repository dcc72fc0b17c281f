"""Draft a candidate, rate it, write feedback, and send the best candidate.

The utility of a candidate is its Knowledge F1 with the notes that it cites, or the model's own criticism. It is
multiplied by the share of the candidate's sentences that would pass the gate. The gate is asked only about candidates
that are good enough without that factor.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import starmap

from pipeline.errors import ModelRefused, UnreadableReply
from pipeline.kit import Kit
from pipeline.replies.cited_sentences import MarkedSentence, format_draft
from pipeline.replies.stage_replies import PERFECT_SCORE, criticism_format, query_format
from pipeline.stages.augmentation.working_memory import Candidate, WorkingMemory
from pipeline.stages.concurrency import gather_all
from pipeline.stages.draft.answer_draft import SentenceAnnotator, collect_draft, say_collected
from pipeline.stages.findings import SourcedFinding
from storage.language.words import content_terms

LEAST_KF1 = 0.2
LEAST_CRITICISM = 0.7
MAX_NAMED = 8  # words, or sentences, that feedback names
_FOREIGN = "These words stand in none of the notes that it cites: {}. Say what the notes say, in their words."
_THIN = "It says little of what the notes say that it cites. Answer with what they say."
_UNSUPPORTED = "The notes that it cites do not say this: {}"


async def ask_itself(memory: WorkingMemory, kit: Kit) -> WorkingMemory:
    """Ask the model whether the evidence is enough, and for a query if it is not. Raises any `PipelineError`."""
    context = memory.context
    facts = {"talk": context.talk, "findings": memory.evidence, "reading": context.reading}
    try:
        lacking = await kit.ask("need", query_format(), stage="query", **facts)
    except (UnreadableReply, ModelRefused):
        lacking = None
    return replace(memory, asked_itself=True, lacking=lacking)


async def propose(memory: WorkingMemory, kit: Kit) -> WorkingMemory:
    """Have the model write a candidate over the evidence, with feedback on the previous one.

    Raises any `PipelineError`.
    """
    earlier = memory.latest if memory.latest and memory.latest.sentences else None
    refused, feedback = (format_draft(earlier.sentences), earlier.feedback) if earlier else ("", "")
    notes, context = memory.evidence, memory.context
    drafted = await collect_draft(context, notes, kit, refined=True, refused=refused, feedback=feedback)
    candidate = Candidate(drafted, notes)
    return replace(memory, candidates=(*memory.candidates, candidate))


async def rate(memory: WorkingMemory, kit: Kit) -> WorkingMemory:
    """Give the last candidate its utility, and feedback unless it is good enough. Raises any `PipelineError`."""
    *before, latest = memory.candidates
    if not latest.sentences:
        return memory
    judged = await (_criticise if kit.limits.utility == "criticism" else _measure)(memory, latest, kit)
    if judged.passed:
        judged = await _ask_gate(memory, judged, kit)
    return replace(memory, candidates=(*before, judged))


async def _measure(memory: WorkingMemory, latest: Candidate, _: Kit) -> Candidate:
    """Rate a candidate by Knowledge F1.

    If its notes are in another language, they share no words with it; then the utility is 1, and the gate decides.
    """
    if memory.context.reading:
        return replace(latest, utility=1.0)
    cited = cite_notes(latest.sentences, latest.notes)
    reply = " ".join(sentence.text for sentence in latest.sentences)
    utility = knowledge_f1(reply, " ".join(cited))
    return replace(latest, utility=utility, feedback="" if utility >= LEAST_KF1 else write_feedback(reply, cited))


async def _criticise(memory: WorkingMemory, latest: Candidate, kit: Kit) -> Candidate:
    """Rate a candidate by the model's own criticism.

    If that is unreadable, the utility is just enough, and the gate decides.
    """
    draft = format_draft(latest.sentences)
    facts = {"talk": memory.context.talk, "findings": latest.notes, "draft": draft}
    try:
        criticism = await kit.ask("criticism", criticism_format(), stage="refine", **facts)
    except (UnreadableReply, ModelRefused):
        return replace(latest, utility=LEAST_CRITICISM)
    utility = min(point.score for point in criticism.points) / PERFECT_SCORE
    remarks = " ".join(point.remark for point in criticism.points if point.score / PERFECT_SCORE < LEAST_CRITICISM)
    return replace(latest, utility=utility, feedback="" if utility >= LEAST_CRITICISM else remarks or _THIN)


async def _ask_gate(memory: WorkingMemory, candidate: Candidate, kit: Kit) -> Candidate:
    """Multiply the utility by the share of sentences that the gate would pass, or replace by a quotation; show none."""
    annotator = SentenceAnnotator(memory.context, candidate.notes)
    cited = [annotator.cite(sentence) for sentence in candidate.sentences]
    kit.end_draft()
    before = ["", *(sentence.text for sentence in cited)]
    judged = await gather_all(starmap(kit.judge, zip(cited, before, strict=False)))
    passed = [good or kit.replaced_by(one) == "quotation" for one, good in zip(cited, judged, strict=True)]
    refused = [one.text for one, good in zip(candidate.sentences, passed, strict=True) if not good][:MAX_NAMED]
    least = LEAST_CRITICISM if kit.limits.utility == "criticism" else LEAST_KF1
    utility = candidate.utility * sum(passed) / len(passed)
    good = passed[0] and utility >= least
    complaint = "" if good else _UNSUPPORTED.format(" ".join(f"“{text}”" for text in refused))
    return replace(candidate, utility=utility, feedback=complaint, let_out=any(passed))


def knowledge_f1(reply: str, knowledge: str) -> float:
    """Return the F1 of a reply and the knowledge over their stemmed content words, with repetitions."""
    said, known = Counter(content_terms(reply)), Counter(content_terms(knowledge))
    shared = (said & known).total()
    return 2 * shared / (said.total() + known.total()) if shared else 0.0


def cite_notes(sentences: Sequence[MarkedSentence], notes: Sequence[SourcedFinding]) -> tuple[str, ...]:
    """Return the texts of the notes that sentences cite, each once."""
    numbers = sorted({number for sentence in sentences for number in sentence.numbers})
    return tuple(notes[number - 1].text for number in numbers)


def write_feedback(reply: str, cited: Sequence[str]) -> str:
    """Return feedback in words on a reply that is not grounded in the notes that it cites."""
    known = set(content_terms(" ".join(cited)))
    foreign = [word for word in reply.split() if (terms := content_terms(word)) and not known.intersection(terms)]
    named = list(dict.fromkeys(word.strip(".,;:!?()[]\"'“”") for word in foreign))[:MAX_NAMED]
    return _FOREIGN.format(", ".join(named)) if named else _THIN


async def send(memory: WorkingMemory, kit: Kit) -> bool:
    """Say the best candidate, and return whether a sentence passed.

    If none did, raise the error that ended the loop, if any.
    """
    best = memory.best
    passed = False
    if best and best.let_out is None:
        best = await _ask_gate(memory, best, kit)
    if best and best.let_out:
        passed = await say_collected(memory.context, best.sentences, best.notes, kit)
    if memory.fault and not passed:
        raise memory.fault
    return passed
