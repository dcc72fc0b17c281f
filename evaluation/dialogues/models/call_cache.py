"""Cache a model's replies in files, so that a continued run does not repeat calls."""

import asyncio
import hashlib
import json
import re
from collections.abc import AsyncGenerator
from dataclasses import KW_ONLY, asdict, dataclass, field
from pathlib import Path

from evaluation.dialogues.run_folder import replace_file
from pipeline.llm.model import LLM, BudgetMeter, ModelCall, ModelReply, ReplyPiece
from pipeline.stages.concurrency import close_stream

_DELIMITER = re.compile(r"^=== \w+ (begins|ends) ===$", re.MULTILINE)


def drop_delimiters(text: str) -> str:
    """Return a prompt without its delimiters. They are random, and replies must not depend on them."""
    return _DELIMITER.sub(r"=== \1 ===", text)


@dataclass
class CachingModel:
    """An `LLM` that answers from the cache, and passes only new calls to another `LLM`."""

    inner: LLM
    folder: Path
    _: KW_ONLY
    asked: str  # all that replies depend on except prompts: the model's name, its settings, a seed
    reused: int = field(default=0, init=False)  # calls answered by the cache

    def structured(self, stage: str) -> bool:
        return self.inner.structured(stage)

    def busy(self) -> bool:
        return self.inner.busy()

    async def complete(self, call: ModelCall, spent: BudgetMeter) -> ModelReply:
        file = self._locate(call)
        if cached := await self._recall(file, spent):
            return cached
        reply = await self.inner.complete(call, spent)
        await asyncio.to_thread(_keep_reply, file, reply)
        return reply

    async def stream(self, call: ModelCall, spent: BudgetMeter) -> AsyncGenerator[ReplyPiece | ModelReply, None]:
        file = self._locate(call)
        if cached := await self._recall(file, spent):
            yield ReplyPiece(cached.text)
            yield cached
            return
        async with close_stream(self.inner.stream(call, spent)) as pieces:
            async for piece in pieces:
                if isinstance(piece, ModelReply):
                    await asyncio.to_thread(_keep_reply, file, piece)
                yield piece

    def _locate(self, call: ModelCall) -> Path:
        """Return the file of a call. Its name is a digest of everything that the reply depends on."""
        messages = [(message.role, drop_delimiters(message.text)) for message in call.messages]
        parts = [self.asked, call.stage, messages, call.schema, call.max_tokens, *(["varied"] if call.varied else [])]
        whole = json.dumps(parts, sort_keys=True)
        digest = hashlib.sha256(whole.encode("utf-8", "replace")).hexdigest()
        return self.folder / digest[:2] / f"{digest[2:32]}.json"

    async def _recall(self, file: Path, spent: BudgetMeter) -> ModelReply | None:
        cached = await asyncio.to_thread(_read_reply, file)
        if cached:
            self.reused += 1
            spent.calls += 1
            spent.tokens += cached.prompt_tokens + cached.completion_tokens
        return cached


def _keep_reply(file: Path, reply: ModelReply) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    replace_file(file, json.dumps(asdict(reply), ensure_ascii=False))


def _read_reply(file: Path) -> ModelReply | None:
    try:
        return ModelReply(**json.loads(file.read_bytes()))
    except (OSError, ValueError, TypeError):
        return None  # an unreadable file counts as missing
