"""Replace missing models by rules that reply to the same prompts in the requested format.

Such a run measures no model. It shows that everything works, what it costs, and how systems treat false claims. The
manifest of the run names these stand-ins.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from statistics import fmean

from evaluation.answers.question_sets import ExamQuestion
from evaluation.answers.system_comparison import ScriptedConversation, falsify, open_scripted_model
from evaluation.claims.verifiers import build_evidence, decide_verdict
from evaluation.dialogues.dialogue_types import Topic
from evaluation.dialogues.models.call_cache import drop_delimiters
from evaluation.simulated_model.model_pace import SimulatedModel
from evaluation.simulated_model.model_replies import CLAIM_LINE, SENTENCE_LINE, build_reply, write_verdicts
from evaluation.simulated_model.scripted_llm import WHOLE, ScriptedLLM
from pipeline.kit import Supports
from pipeline.llm.model import LLM, ModelCall
from storage.language.sentences import sentence_spans
from storage.language.words import content_terms
from storage.types import Verdict

STAND_INS: Mapping[str, str] = {
    "scripted": "scripted: rules that copy sentences of the prompt and add a false statement of their own",
    "simulated": "simulated: replies of the right form and length without sense, numbers made up",
}
"""Descriptions of the stand-ins by their names."""
SCRIPTED_USER = "scripted user"
RULE_JUDGE = "rules"
USER_STAND_IN = "the user: seven questions in a fixed order, two of which name something from an earlier reply"
JUDGE_STAND_IN = (
    "the judge: claims are sentences, verdicts those of the local check, which is also at the gate, and scales are "
    "counted from words in common; naturalness and time are not judged: every turn has 3 and 1"
)


def open_stand_in(name: str, topic: Topic, user: str, seed: int) -> LLM:
    """Return the stand-in of this name for one turn of a conversation."""
    return open_simulated(seed) if name == "simulated" else open_scripted(topic, user)


def open_scripted(topic: Topic, user: str) -> LLM:
    posed = ExamQuestion(user, (), frozenset(), "")
    known = ScriptedConversation(posed, (topic.first_sentence,), (falsify(topic.first_sentence),))
    return replace(open_scripted_model(known), pieces=WHOLE)


def open_simulated(seed: int) -> LLM:
    simulated = SimulatedModel(seed=seed)

    async def write(call: ModelCall) -> str:
        messages = [{"role": message.role, "content": drop_delimiters(message.text)} for message in call.messages]
        return build_reply({"messages": messages}, simulated).text

    return ScriptedLLM("simulated", write)


_TOPIC = re.compile(r"^=== \w+ begins ===\n(.*)\n(.*)\n=== \w+ ends ===$", re.MULTILINE)
_SPOKEN = re.compile(r"^(User|Chatbot): (.*)$", re.MULTILINE)
_NAME = re.compile(r"(?<![.!?] )(?<!^)\b[A-Z][\w-]+(?: [A-Z][\w-]+)*")
_MARK = re.compile(r"\s*\[\d+\]|\([^()\n]* › [^()\n]*\) ")  # of a citation, or the place of a quotation


async def _write_user(call: ModelCall) -> str:
    turn = call.messages[-1].text
    topic = _TOPIC.search(turn)
    title = topic[1] if topic else "it"
    replies = [text for speaker, text in _SPOKEN.findall(turn) if speaker == "Chatbot"]
    names = [phrase for phrase in _NAME.findall(_MARK.sub("", replies[-1])) if phrase not in title] if replies else []
    named = names[-1] if names else title
    openings = (
        f"Can you tell me about {title}?",
        f"What has {named} to do with {title}?",
        f"When did {title} begin, and who was there?",
        f"What would I find most surprising about {named}?",
        f"How many people work on {title} on Sundays?",
        f"Is there a rule that holds for {title}?",
        f"What else is known of {title}?",
    )
    return openings[len(replies) % len(openings)]


def open_scripted_user() -> LLM:
    return ScriptedLLM(SCRIPTED_USER, _write_user)


_REPLY = re.compile(r"^Chatbot: (.*)\nWhich facts does", re.MULTILINE)
_GRADED = re.compile(r"^=== \w+ begins ===\n(.*)\n=== \w+ ends ===\s*\Z", re.MULTILINE)
_SCALE = re.compile(r"The criterion is (relevance|information|naturalness|freedom from repetition|time)")
_LEAST_TERMS = 2
_ANSWERED_SHARE = 0.6


def open_rule_judge(supports: Supports) -> LLM:
    """Return a judge that follows rules; `supports` is the local check."""

    async def write(call: ModelCall) -> str:
        turn = call.messages[-1].text
        match call.stage:
            case "split":
                return _split_claims(turn)
            case "verify":
                return await _verify_claim(turn, supports)
            case "query":
                return f"Search: yes\nQuery: {_find_question(turn)}\nTime: none"
            case "answerable":
                return _judge_answerable(turn)
        return _grade(call.messages[0].text, turn)

    return ScriptedLLM(RULE_JUDGE, write)


def _split_claims(turn: str) -> str:
    match = _REPLY.search(turn)
    reply = _MARK.sub("", match[1]) if match else ""
    sentences = [reply[start:end].strip() for start, end in sentence_spans(reply)]
    stated = [
        sentence
        for sentence in sentences
        if len(set(content_terms(sentence))) >= _LEAST_TERMS and not sentence.endswith("?")
    ]
    return "\n".join(f"- {statement} | none" for statement in stated) or "Nothing"


async def _verify_claim(turn: str, supports: Supports) -> str:
    numbered, claim = SENTENCE_LINE.findall(turn), CLAIM_LINE.search(turn)
    if not numbered or not claim:
        return write_verdicts([("", Verdict.NOT_ENOUGH_INFO, "")], turn, "There is nothing to judge by.")
    support = await supports(claim[2], build_evidence([text for _, text in numbered]))
    terms, verdict = set(content_terms(claim[2])), decide_verdict(support)
    nearest, _ = max(numbered, key=lambda sentence: len(terms & set(content_terms(sentence[1]))))
    reasons = " ".join("; ".join(support.reasons).split()) or "by the local check"
    return write_verdicts([("", verdict, "" if verdict is Verdict.NOT_ENOUGH_INFO else nearest)], turn, reasons)


def _find_question(turn: str) -> str:
    questions = [text for speaker, text in _SPOKEN.findall(turn) if speaker == "User"]
    return questions[-1].rstrip("?") if questions else "everything"


def _judge_answerable(turn: str) -> str:
    terms = set(content_terms(_find_question(turn)))
    best = max((len(terms & set(content_terms(text))) for _, text in SENTENCE_LINE.findall(turn)), default=0)
    answered = bool(terms) and best >= _ANSWERED_SHARE * len(terms)
    return f"Reasoning: {best} of {len(terms)} words are in one sentence.\nAnswered: {'yes' if answered else 'no'}"


def _grade(instruction: str, turn: str) -> str:
    scale, reply = _SCALE.search(instruction), _GRADED.search(turn)
    text = _MARK.sub("", reply[1]) if reply else ""
    name = scale[1] if scale else ""
    if name == "time":
        return "Reasoning: Rules do not judge it.\nScore: 1"
    if name == "relevance":
        terms = set(content_terms(_find_question(turn)))
        score = 1 + round(4 * len(terms & set(content_terms(text))) / max(1, len(terms)))
    elif name == "information":
        score = min(5, 1 + len(set(content_terms(text))) // 8)
    elif name == "freedom from repetition":
        score = 5 - round(4 * _share_repeated(text, turn))
    else:
        score = 3
    return f"Reasoning: Counted from words.\nScore: {score}"


def _share_repeated(reply: str, turn: str) -> float:
    """Return the share of a reply's sentences that are repeated: from earlier replies, or within the reply."""
    before = _MARK.sub("", " ".join(text for speaker, text in _SPOKEN.findall(turn) if speaker == "Chatbot"))
    ends = [0, *(end for _, end in sentence_spans(reply))]
    sentences = [(reply[start:end].strip(), reply[:start]) for start, end in pairwise(ends)]
    return fmean(sentence in before or sentence in earlier for sentence, earlier in sentences) if sentences else 0.0
