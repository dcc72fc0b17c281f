"""Replies of models that think first: the thoughts are never part of the reply."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.simulated_model.chat_protocol import Reply
from pipeline.errors import ModelUnavailable, SchemaNotOffered
from pipeline.llm.model_reply import ReasoningFilter
from tests.fake_model_rules import OLLAMA, OPENAI, VLLM
from tests.fake_model_server import in_turn
from tests.pipeline.llm.model_calls import SCHEMA_CALL, open_test_model

THOUGHTS = {
    "<think>It lies low.</think>\n\nIn the Alps.": ("It lies low.", "In the Alps."),
    "\n<THINKING>It lies low.</Thinking> In the Alps.": ("It lies low.", "In the Alps."),
    "It lies low.\n</think>\n\nIn the Alps.": ("It lies low.", "In the Alps."),
    "Low.</think>No, high.</think>In the Alps.": ("Low.No, high.", "In the Alps."),
    "<think>One.</think>In the <think>Two.</think>Alps.": ("One.Two.", "In the Alps."),
    "<think>": ("", ""),
    "a < b, <thin ice>, </p>": ("", "a < b, <thin ice>, </p>"),
    "2 <": ("", "2 <"),
}


@pytest.mark.parametrize(("said", "meant"), THOUGHTS.items())
def test_reasoning_is_separated_from_the_text(said: str, meant: tuple[str, str]) -> None:
    thoughts = ReasoningFilter(hold=True)
    text = thoughts.feed(said) + thoughts.end()
    assert ("".join(thoughts.reasoning).strip(), text) == meant


@given(
    st.lists(
        st.sampled_from(["<think>", "</think>", "</thinking>", "<", "th", "ink>", " ", "a", "\n", "é"]), max_size=12
    ),
    st.data(),
)
def test_reasoning_filter_ignores_piece_boundaries(parts: list[str], data: st.DataObject) -> None:
    said = "".join(parts)
    whole = ReasoningFilter(hold=True)
    expected = whole.feed(said) + whole.end(), "".join("".join(whole.reasoning).split())
    for hold in (True, False):
        cuts = sorted(data.draw(st.lists(st.integers(0, len(said)), max_size=5)))
        pieces = [said[start:end] for start, end in zip([0, *cuts], [*cuts, len(said)], strict=True)]
        cut = ReasoningFilter(hold=hold)
        text = "".join(map(cut.feed, pieces)) + cut.end()
        assert cut.late or (text, "".join("".join(cut.reasoning).split())) == expected


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("profile", [VLLM, OLLAMA], ids=lambda profile: profile.reasoning_field)
async def test_reasoning_in_its_own_field_is_separated(profile, *, streamed: bool) -> None:
    async with open_test_model(lambda _: Reply("In the Alps.", reasoning="It lies low."), profile) as ask:
        reply = (await ask.stream())[1] if streamed else await ask.complete()
    assert (reply.text, reply.reasoning) == ("In the Alps.", "It lies low.")


async def test_reasoning_in_content_parts_is_separated() -> None:
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Low."}]},
        {"type": "text", "text": "In the Alps."},
    ]
    async with open_test_model(lambda _: Reply(None, extra={"content": parts})) as ask:
        reply = await ask.complete()
    assert (reply.text, reply.reasoning) == ("In the Alps.", "Low.")


async def test_reasoning_tags_split_over_pieces_are_detected() -> None:
    pieces = ("<th", "ink>It lies", " low.</", "think>", "\n\nIn ", "the Alps.")
    async with open_test_model(lambda _: Reply("", pieces=pieces)) as ask:
        given, reply = await ask.stream()
    assert (given, reply.text, reply.reasoning) == (["In ", "the Alps."], "In the Alps.", "It lies low.")


UNOPENED = Reply("", pieces=("It lies", " low.", "</think>", "In the ", "Alps."))


async def test_unopened_reasoning_stops_the_first_stream_and_is_held_back_later() -> None:
    async with open_test_model(lambda _: UNOPENED) as ask:
        with pytest.raises(ModelUnavailable, match="reasoning of"):
            await ask.stream()
        given, reply = await ask.stream()
    assert (given, reply.text, reply.reasoning) == (["In the ", "Alps."], "In the Alps.", "It lies low.")


async def test_unopened_reasoning_is_learned_from_a_whole_reply() -> None:
    async with open_test_model(in_turn(Reply("It lies low.</think>In the Alps."), UNOPENED)) as ask:
        assert (await ask.complete()).text == "In the Alps."
        assert (await ask.stream())[0] == ["In the ", "Alps."]


@pytest.mark.parametrize("name", ["qwen3:8b", "deepseek-r1:7b", "QwQ-32B"])
async def test_reasoning_model_by_name_is_held_back_in_its_first_stream(name: str) -> None:
    profile = type(VLLM)(**{**vars(VLLM), "models": (name,)})
    async with open_test_model(lambda _: UNOPENED, profile) as ask:
        assert (await ask.stream())[0] == ["In the ", "Alps."]


async def test_text_is_no_longer_held_back_after_a_reply_without_reasoning() -> None:
    async with open_test_model(lambda _: Reply("In the Alps."), thinks=True) as ask:
        given, reply = await ask.stream()
        assert (given, reply.text, reply.reasoning) == (["In the Alps."], "In the Alps.", "")
        assert (await ask.stream())[0] == ["In ", "the ", "Alps."]


async def test_reasoning_that_is_cut_off_gets_more_tokens_at_once() -> None:
    cut = Reply("<think>It lies low, and so", finish="length")
    async with open_test_model(in_turn(cut, Reply("<think>Low.</think>In the Alps."))) as ask:
        reply = await ask.complete()
    assert (reply.text, reply.attempts, ask.waits) == ("In the Alps.", 2, [])
    assert [request.body["max_tokens"] for request in ask.server.requests] == [1_024, 1_024 + 4_096]
    assert ask.spent.tokens > reply.prompt_tokens + reply.completion_tokens


@pytest.mark.parametrize("streamed", [False, True])
async def test_unfinished_reasoning_is_reported(*, streamed: bool) -> None:
    async with open_test_model(lambda _: Reply("<think>Low, and so", finish="length")) as ask:
        with pytest.raises(ModelUnavailable, match="used all of its 5120 tokens for reasoning") as caught:
            await (ask.stream() if streamed else ask.complete())
    assert "thinking_tokens" in caught.value.hint
    assert len(ask.server.requests) == 2


async def test_reasoning_tokens_shrink_to_fit_a_small_window() -> None:
    async with open_test_model(lambda _: Reply(), thinks=True, context_tokens=2_000) as ask:
        await ask.complete()
    assert 1_900 < ask.server.requests[0].body["max_tokens"] < 2_000


async def test_schema_that_captures_reasoning_is_not_offered_again() -> None:
    async with open_test_model(lambda _: Reply("", reasoning='{"place": "Europe"}'), OPENAI) as ask:
        with pytest.raises(SchemaNotOffered):
            await ask.complete(SCHEMA_CALL)
        assert not ask.model.structured("draft")
    assert ask.spent.calls == 0


async def test_reply_of_reasoning_alone_counts_as_empty() -> None:
    async with open_test_model(lambda _: Reply("<think>Low.</think>")) as ask:
        with pytest.raises(ModelUnavailable, match="empty reply"):
            await ask.complete()


async def test_thinks_false_disables_holding_and_extra_tokens() -> None:
    profile = type(VLLM)(**{**vars(VLLM), "models": ("qwen3:8b",)})
    async with open_test_model(lambda _: Reply("In the Alps."), profile, thinks=False) as ask:
        assert (await ask.stream())[0] == ["In ", "the ", "Alps."]
    assert ask.server.requests[0].body["max_tokens"] == 1_024


def test_only_a_possible_tag_is_held_back() -> None:
    thoughts = ReasoningFilter(hold=False)
    assert thoughts.feed("a <b") == "a <b"
    assert thoughts.feed(" <th") == " "
    assert thoughts.feed("in air") == "<thin air"
