"""A continued run repeats no model call that it has already made."""

import pytest

from evaluation.dialogues.models.call_cache import CachingModel
from evaluation.simulated_model.scripted_llm import ScriptedLLM
from pipeline.llm.model import BudgetMeter, ChatMessage, ModelCall, ModelReply


def call(text, **other):
    return ModelCall("draft", (ChatMessage("user", text),), **other)


@pytest.fixture
def asked():
    return []


@pytest.fixture
def open_model(tmp_path, asked):
    async def write(one):
        asked.append(one.messages[-1].text)
        return f"reply {len(asked)}"

    return lambda key="a": CachingModel(ScriptedLLM("m", write), tmp_path, asked=key)


async def listen(model, one):
    return [piece async for piece in model.stream(one, BudgetMeter())]


@pytest.mark.parametrize("streamed", [False, True])
async def test_cached_reply_is_reused(open_model, asked, streamed):
    model, spent = open_model(), BudgetMeter()
    first = (await listen(model, call("a")))[-1] if streamed else await model.complete(call("a"), spent)
    again = open_model()
    assert await again.complete(call("a"), spent) == first
    assert [piece.text for piece in await listen(again, call("a"))] == [first.text, first.text]
    assert (len(asked), model.reused, again.reused) == (1, 0, 2)
    assert spent.tokens == (first.prompt_tokens + first.completion_tokens) * (2 - streamed)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("a", "b", False),
        ("=== bcdfgh begins ===\nx\n=== bcdfgh ends ===", "=== zzz begins ===\nx\n=== zzz ends ===", True),
    ],
)
async def test_cache_ignores_random_delimiters(open_model, asked, one, other, same):
    model = open_model()
    await model.complete(call(one), BudgetMeter())
    await model.complete(call(other), BudgetMeter())
    assert len(asked) == 1 + (not same)


async def test_other_settings_schema_or_length_miss_the_cache(open_model, asked):
    for model, variant in (
        (open_model(), call("a")),
        (open_model("b"), call("a")),
        (open_model(), call("a", max_tokens=9)),
        (open_model(), call("a", schema={"type": "object"})),
    ):
        await model.complete(variant, BudgetMeter())
    assert len(asked) == 4


async def test_damaged_files_and_closed_streams_are_not_reused(open_model, asked, tmp_path):
    stream = open_model().stream(call("a"), BudgetMeter())
    assert not isinstance(await anext(stream), ModelReply)
    await stream.aclose()
    await open_model().complete(call("a"), BudgetMeter())
    (stored,) = tmp_path.rglob("*.json")
    stored.write_text('{"text": ')
    await open_model().complete(call("a"), BudgetMeter())
    assert len(asked) == 3
