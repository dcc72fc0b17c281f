"""Ask the model alone, without documents, by a plain prompt as in WikiChat's table 19: a baseline for systems.

The reply is not checked. So this is not a registered system, has no gate, and cannot be delivered or recorded.
"""

from dataclasses import dataclass
from datetime import datetime
from random import Random

from evaluation.dialogues.prompts import PROMPTS
from pipeline.errors import UnreadableReply
from pipeline.kit import Limits
from pipeline.llm.model import LLM, BudgetMeter
from pipeline.prompts.prompter import Prompter
from pipeline.replies.reply_format import ReplyFormat
from pipeline.types import Conversation
from storage.types import Step

NAME = "model alone, unchecked"
_REPLY: ReplyFormat[str] = ReplyFormat(None, from_json=str, from_text=str.strip)


@dataclass(frozen=True, slots=True)
class UncheckedReply:
    unchecked: str
    prompt_tokens: int
    reply_tokens: int
    cost: float | None = None
    calls: int = 1


async def ask_alone(talk: Conversation, llm: LLM, *, now: datetime) -> UncheckedReply:
    """Return a model's reply to the last turns of a conversation. Raises any `PipelineError` but `UnreadableReply`."""
    steps = list[Step]()
    note, random = (lambda step, _: steps.append(step)), Random(0)
    prompter = Prompter(llm, BudgetMeter(), note=note, now=now, random=random, folder=PROMPTS)
    try:
        reply = await prompter.ask("alone", _REPLY, stage="generate", talk=Conversation(talk.turns[-Limits().turns :]))
    except UnreadableReply:
        reply = str(steps[0].facts["reply"]).strip()  # twice unreadable
    read, written = (sum(step.facts.get(name, 0) for step in steps) for name in ("prompt_tokens", "completion_tokens"))
    costs = [step.facts.get("cost") for step in steps]
    return UncheckedReply(reply, read, written, None if None in costs else sum(filter(None, costs)), len(steps))
