"""A student's replies compared with its teacher's."""

from dataclasses import replace

import pytest

from evaluation.distillation.lesson_comparison import StudentReply, agrees, ask_all, summarise
from evaluation.distillation.student_lessons import Lesson, read_lesson
from pipeline.errors import ModelUnavailable
from pipeline.llm.model import ModelReply

_NONE = frozenset()
LESSONS = (
    Lesson("1", "verify", "verify", "Check.", "Claim: …", "Sentences: 1\nVerdict: REFUTES", {"sentences": 2}, _NONE),
    Lesson("1", "query", "query", "Decide.", "User: …", "Search: yes\nQuery: ferry\nTime: recent", {}, _NONE),
    Lesson("2", "answer", "draft", "Write.", "Notes: …", "It leaves at nine [1].", {"findings": 2}, _NONE),
    Lesson("2", "generate", "generate", "Reply.", "User: … ?", "It leaves at nine.", {}, _NONE),
)  # fmt: skip


class Student:
    """A model that gives its replies in order, or fails."""

    def __init__(self, replies):
        self.replies = dict(zip((lesson.input for lesson in LESSONS), replies, strict=True))

    async def complete(self, call, spent):
        spent.calls += 1
        assert [message.role for message in call.messages] == ["system", "user"]
        reply = self.replies[call.messages[1].text]
        if reply is None:
            raise ModelUnavailable("the server is gone")
        return ModelReply(reply, "student", completion_tokens=10, milliseconds=500.0)


async def test_identical_student_agrees_everywhere():
    replies = await ask_all(LESSONS, Student([lesson.output for lesson in LESSONS]), at_once=2)
    *stages, every = summarise(replies)
    assert [stage["template"] for stage in stages] == ["answer", "generate", "query", "verify"]
    assert {stage["agrees"] for stage in stages} == {1.0, None}
    assert (every["format_kept"], every["agrees"], every["words_in_common"]) == (1.0, 1.0, 1.0)
    assert (every["reply_tokens"], every["seconds"], every["no_reply"]) == (10, 0.5, 0)


def test_commonest_decision_is_the_agreement_of_a_constant_student():
    refuted, unknown = LESSONS[0], replace(LESSONS[0], output="Sentences: 1\nVerdict: NOT ENOUGH INFO")
    lessons = (refuted, refuted, unknown, LESSONS[1], LESSONS[3])
    replies = [
        StudentReply(lesson, "", readable=True, agrees=None, overlap=0, tokens=0, seconds=0) for lesson in lessons
    ]
    assert [stage["commonest_decision"] for stage in summarise(replies)] == [None, 1.0, 2 / 3, 3 / 4]


async def test_broken_format_wrong_verdict_and_missing_reply_are_counted_apart():
    replies = ["Sentences: 2\nVerdict: SUPPORTS", "Let me think.", None, "Something else."]
    summary = {stage["template"]: stage for stage in summarise(await ask_all(LESSONS, Student(replies), at_once=1))}
    assert (summary["verify"]["format_kept"], summary["verify"]["agrees"]) == (1.0, 0.0)
    assert (summary["query"]["format_kept"], summary["query"]["agrees"]) == (0.0, 0.0)
    assert (summary["answer"]["no_reply"], summary["answer"]["format_kept"]) == (1, 0.0)
    assert summary["generate"]["agrees"] is None
    assert summary["all"]["agrees"] == 0.0


@pytest.mark.parametrize(
    ("lesson", "reply", "same"),
    [
        (LESSONS[0], "Verdict: REFUTES\nSentences: 2", True),  # by another sentence, but the same verdict
        (LESSONS[1], "Search: yes\nQuery: boats\nTime: 2019", False),
        (LESSONS[1], "Search: yes\nQuery: other words\nTime: recent", True),
        (LESSONS[2], "At nine the ferry goes [1].", True),
        (LESSONS[2], "It leaves at nine [2].", False),
        (LESSONS[2], "NOTHING", False),
        (LESSONS[3], "At ten.", None),
    ],
)
def test_student_and_teacher_agreement(lesson, reply, same):
    assert agrees(lesson, read_lesson(replace(lesson, output=reply)), read_lesson(lesson)) is same
