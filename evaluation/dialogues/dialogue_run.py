"""Hold dialogues between a simulated user and systems, and store each turn as soon as it ends."""

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from datetime import datetime
from random import Random
from typing import Any

from bot.answering.question_answering import answer
from bot.app import App
from bot.types import TurnRequest, TurnResult
from evaluation import EvaluationError
from evaluation.answers.model_alone import ask_alone
from evaluation.claims.verifiers import build_evidence
from evaluation.dialogues.dialogue_types import (
    Dialogue,
    DialogueTurn,
    RepliedSentence,
    RunManifest,
    ShownPassage,
    TurnClaim,
)
from evaluation.dialogues.judging.judge import UNCHECKED
from evaluation.dialogues.models.call_cache import CachingModel
from evaluation.dialogues.models.simulated_user import choose_persona, write_message
from evaluation.dialogues.prompts import PROMPTS
from evaluation.dialogues.run_folder import RunFolder
from evaluation.system_variants import MODEL_ALONE, parse_variant
from evaluation.workbench import TERMINAL, gather_limited
from pipeline.errors import ModelUnavailable, SearchUnavailable, UnreadableReply
from pipeline.llm.model import LLM, BudgetMeter
from pipeline.prompts.prompter import Prompter
from pipeline.replies.reply_format import is_nothing, split_items
from pipeline.types import Conversation, Event, SentencePassed, Turn
from storage.errors import StorageError
from storage.types import EntryKind

NO_MODEL = "none"
_OUTAGES = {ModelUnavailable.kind, SearchUnavailable.kind}
_BULLET_CALLS = {"summarise", "bullets"}

OpenTurnModel = Callable[[Dialogue, str], LLM]
"""Returns the model for a dialogue's next turn, from the dialogue and the user's message."""


def plan_dialogues(manifest: RunManifest) -> tuple[Dialogue, ...]:
    """Return the dialogues of a run, without turns: one for each system, model and topic.

    A system without a model has one for each topic. Topic follows topic, so that a stopped run compares all systems.
    """
    return tuple(
        Dialogue(f"{label}/{model}/{number:03}", topic, label, model, manifest.simulator)
        for model in (NO_MODEL, *manifest.models)
        for number, topic in enumerate(manifest.topics, start=1)
        for label in manifest.systems
        if parse_variant(label).asks_model == (model != NO_MODEL)
    )


@dataclass(frozen=True, slots=True)
class DialogueRun:
    """Conducts the dialogues of a run: a model plays the user, a system replies, and each turn is stored."""

    app: App
    folder: RunFolder
    manifest: RunManifest
    open_model: OpenTurnModel
    simulator: LLM  # the model that plays the user
    report: Callable[[DialogueTurn], None]  # receives each turn
    at_once: int = 4

    async def hold(self) -> None:
        """Hold every dialogue to its end; those that were started before are continued.

        Raises:
            EvaluationError: A model or the search cannot be reached; the turns so far are stored.
        """
        started = {dialogue.id: dialogue for dialogue in await asyncio.to_thread(self.folder.read_dialogues)}
        planned = [started.get(dialogue.id, dialogue) for dialogue in plan_dialogues(self.manifest)]
        if any(len(dialogue.turns) < self.manifest.turns for dialogue in planned):
            await warm_up(self.app, self.manifest)
        await gather_limited(self.at_once, self._hold_dialogue, planned)

    async def _hold_dialogue(self, dialogue: Dialogue) -> None:
        while len(dialogue.turns) < self.manifest.turns:
            dialogue = await self._add_turn(dialogue)
            self.report(dialogue.turns[-1])

    async def _add_turn(self, dialogue: Dialogue) -> Dialogue:
        seed = f"{self.manifest.seed} {dialogue.id} {len(dialogue.turns) + 1}"
        talk = Conversation(build_history(dialogue))
        try:
            user = await self._write_user(dialogue, talk, seed)
            turn = await self._reply(dialogue, talk, user, seed)
        except ModelUnavailable as error:
            raise stop_run(error) from error
        await asyncio.to_thread(self.folder.append_turn, dialogue, turn)
        return replace(dialogue, turns=(*dialogue.turns, turn))

    async def _write_user(self, dialogue: Dialogue, talk: Conversation, seed: str) -> str:
        prompter = Prompter(
            self.simulator,
            BudgetMeter(),
            note=lambda *_: None,
            now=datetime.now(self.app.settings.zone),
            random=Random(f"{seed} user"),
            folder=PROMPTS,
        )
        persona = choose_persona(f"{self.manifest.seed} {dialogue.topic.title}")
        try:
            return await write_message(dialogue.topic, persona, talk, prompter.ask)
        except UnreadableReply as error:
            raise EvaluationError(f"No usable message of the user: {error}", hint="See --user.") from error

    async def _reply(self, dialogue: Dialogue, talk: Conversation, user: str, seed: str) -> DialogueTurn:
        variant = parse_variant(dialogue.system)
        model = self.open_model(dialogue, user) if variant.asks_model else None
        if variant.name == MODEL_ALONE and model:
            return await self._reply_alone(talk, user, model)
        app = replace(variant.apply(self.app), llm=model)
        return await ask_system(app, variant.name, talk, user, self.manifest, seed)

    async def _reply_alone(self, talk: Conversation, user: str, model: LLM) -> DialogueTurn:
        began = time.perf_counter()
        conversation = Conversation((*talk.turns, Turn("user", user)))
        reply = await ask_alone(conversation, model, now=datetime.now(self.app.settings.zone))
        calls = reply.calls  # one after another
        turn = DialogueTurn(user, reply.unchecked, UNCHECKED, calls=calls, rounds=calls, cost=reply.cost)
        turn = replace(turn, prompt_tokens=reply.prompt_tokens, completion_tokens=reply.reply_tokens)
        return replace(turn, seconds=time.perf_counter() - began, from_cache=_count_reused(model))


async def warm_up(app: App, manifest: RunManifest) -> None:
    """Search, rerank and check once, so that no turn's seconds include loading. Raises `EvaluationError`."""
    title = manifest.topics[0].title
    try:
        hits = await app.passages.search(title, [corpus.name for corpus in manifest.corpora], 1)
    except StorageError as error:
        raise stop_run(error) from error
    sentence = manifest.topics[0].first_sentence
    evidence = build_evidence([hit.passage.text for hit in hits] or [sentence])
    await app.rerank(title, [sentence])
    await app.supports(" ".join(reversed(sentence.split())), evidence)  # a verbatim sentence would skip the scorer


def build_history(dialogue: Dialogue) -> tuple[Turn, ...]:
    """Return the messages of a dialogue as a system gets them."""
    messages = list[Turn]()
    for turn in dialogue.turns:
        documents = sorted({(passage.corpus, passage.document) for passage in turn.passages})
        titles = tuple(dict.fromkeys(passage.title for passage in turn.passages))
        reply = Turn("bot", turn.reply, titles=titles, documents=tuple(documents), query=turn.query)
        messages += (Turn("user", turn.user), reply)
    return tuple(messages)


async def ask_system(
    app: App, system: str, talk: Conversation, user: str, manifest: RunManifest, seed: str
) -> DialogueTurn:
    """Let a system answer as for any user, and record it. Raises `EvaluationError` if a model or the search fails."""
    sentence_times, began = list[float](), time.perf_counter()

    def report(event: Event) -> None:
        if isinstance(event, SentencePassed):
            sentence_times.append(time.perf_counter() - began)

    request = TurnRequest(
        user,
        TERMINAL,
        earlier=talk.turns,
        corpora=tuple(corpus.name for corpus in manifest.corpora),
        system=system,
        id=secrets.token_hex(6),
        because=f"evaluation {manifest.id}",
        seed=seed,
    )
    done = await answer(app, request, report)
    if done.fault and done.fault.kind in _OUTAGES:
        raise stop_run(done.fault.message)
    entries = await app.audit.turn(request.id)
    steps = [entry.body for entry in entries if entry.kind is EntryKind.STEP]
    withheld = sum(len(entry.body["withheld"]) for entry in entries if entry.kind is EntryKind.TURN_CLOSED)
    hits = [hit for step in steps for hit in step.get("hits", ())]
    known = await app.manifest.recall({hit[0] for hit in hits}, {(hit[2], hit[3]) for hit in hits})
    texts = tuple(sorted(passage.text for passage, _ in known.values()))
    turn = build_turn(user, done, steps, texts)
    first = sentence_times[0] if sentence_times else None
    return replace(turn, withheld=withheld, first_sentence_seconds=first, from_cache=_count_reused(app.llm))


def _count_reused(model: LLM | None) -> int:
    return model.reused if isinstance(model, CachingModel) else 0


def build_turn(
    user: str, done: TurnResult, steps: Sequence[Mapping[str, Any]], knowledge: tuple[str, ...]
) -> DialogueTurn:
    """Return a turn in the form that a dialogue stores. Pure.

    Args:
        user: The user's message.
        done: The result of the system.
        steps: The bodies of the turn's steps in the record.
        knowledge: The texts of all passages that were found.
    """
    answered, usage = done.answer, done.usage
    versions = [str(step["facts"]["draft"]) for step in steps if step.get("template") == "feedback"]
    versions += [step["reply"] for step in steps if step.get("template") == "refine" and not step.get("error")]
    claims = [TurnClaim(claim.claim.text, claim.claim.origin, claim.verdict) for claim in answered.claims]
    return DialogueTurn(
        user,
        done.text,
        answered.status.value,
        tuple(RepliedSentence(sentence.text, sentence.citations) for sentence in answered.sentences),
        tuple(
            ShownPassage(
                cited.number,
                cited.passage_id,
                cited.corpus,
                cited.document,
                cited.title,
                cited.passage_text,
                cited.quote,
            )
            for cited in answered.citations
        ),
        knowledge,
        tuple(sorted(claims, key=astuple)),
        bullets=sum(_count_bullets(step) for step in steps if step.get("template") in _BULLET_CALLS),
        draft=versions[0] if versions else "",
        refined=versions[-1] if versions else "",
        candidates=sum(step["stage"] == "draft" for step in steps),
        calls=usage.llm_calls,
        rounds=usage.llm_rounds,
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        cost=usage.cost,
        seconds=done.seconds,
        failure=done.fault.message if done.fault else "",
        query=done.query,
    )


def _count_bullets(step: Mapping[str, Any]) -> int:
    reply = str(step.get("reply", ""))
    if step.get("format") == "schema":
        return reply.count('"sentences"')
    return 0 if is_nothing(reply) else len(split_items(reply))


def stop_run(why: object) -> EvaluationError:
    return EvaluationError(f"The run has stopped: {why}", hint="The same command continues the run.")
