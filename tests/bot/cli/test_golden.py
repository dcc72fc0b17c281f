"""What commands print: each case is compared with its file in `golden/`.

`UPDATE_GOLDEN=1 pytest tests/bot/cli/test_golden.py` writes the files; review their changes.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.server.refresh.document_lookup import NoSuchDocument
from ingest.types import RefreshRefused, RefreshReport
from pipeline.types import Answer, AnsweredSentence, Status
from storage.errors import HomeLocked
from storage.types import (
    CheckedClaim,
    Claim,
    CorpusInfo,
    DocumentRef,
    EntryKind,
    LogEntry,
    NightRecord,
    RefreshRun,
    RunState,
    Verdict,
    VerdictReason,
)
from tests.bot.cli.commands import SOURCES, make_record, run
from tests.bot.fake_services import (
    DAY,
    FakeServices,
    abstained,
    answered,
    citation,
    document,
    hit,
    logged,
    passage,
    refused,
)

GOLDEN = Path(__file__).parent / "golden"
CLAIM = "The quay opens at eight."
FORGOTTEN = DocumentRef("handbook", "old.md", "Old rules", "https://example.com/old.md")
HANDBOOK = FakeServices().corpora[0]
PICTURES = tuple((f"{number}.png", "pictures are not read") for number in range(9))
RUN = RefreshRun(
    RunState.RUNNING, id=7, corpus="handbook", begun=DAY, seen=DAY + timedelta(minutes=2), ended=None, done=250,
    total=1_000, passages=2_100, doing="", owner="box:4711:ab", night=DAY,
)  # fmt: skip
FAILED = replace(RUN, id=6, ended=RUN.seen, state=RunState.FAILED, fault="The mirror is away.", edition="2026-02-20")
NIGHT = NightRecord(DAY, DAY, RUN.seen, "box:4711:ab", "failed", ("handbook: not brought up to date.",))
CHANGE = {"key": "paused", "was": False, "now": True, "by": "slack:T1/U1"}
CHANNELS = tuple(LogEntry(f"slack:T1/C1{more}", EntryKind.SETTING, CHANGE, 9, DAY) for more in ("", "2"))
LONG = "Reasoning: " + "the sentence says so, " * 30 + "\nVerdict: SUPPORTS"
QUAY = {"passage_id": "p1", "title": "Harbour\x1b[2J hours", "passage_text": "It opens at seven."}
LOST = {"text": "It opens\nat ten.", "title": "Quay", "corpus": "a", "document": "q", "was": "", "now": "x"}
PLACE = {"platform": "slack", "workspace": "T1", "channel": "C1", "thread": "17.1", "ticket": 7}
BY = {"by": "slack:T1/U1"}
STORY: tuple[tuple[EntryKind, dict[str, Any]], ...] = (
    (EntryKind.TURN_OPENED, {"question": "Why?", "asker": {**PLACE, "user": "U1", "name": "Ada\x1b[2J"}, "ticket": 7,
     "corpora": {"handbook": DAY.isoformat(), "wiki": None}, "system": "wikichat", "earlier": ["Hello.", "Hi."]}),
    (EntryKind.STEP, {"stage": "search", "query": "quay", "time": 2026, "milliseconds": 3.0,
     "hits": [[f"p{number}", 1.25, "handbook", "harbour.md"] for number in range(1, 8)]}),
    (EntryKind.STEP, {"stage": "verify", "template": "verify", "model": "small-model", "milliseconds": 438.2,
     "prompt_tokens": 1272, "completion_tokens": 31, "attempts": 2, "format": "text", "finish": "stopped",
     "facts": {"claim": "The quay\x1b[2J opens at eight.", "sentences": ["p1:0-24"], "talk": 1},
     "reply": LONG, "reasoning": "Let me think."}),
    (EntryKind.STEP, {"stage": "refine", "template": "feedback", "milliseconds": 9.0, "error": "ModelRefused: no"}),
    (EntryKind.TURN_CLOSED, {"status": "answered", "system": "wikichat", "text": "The quay opens at seven. [1]",
     "usage": {"llm_calls": 2, "llm_rounds": 1, "prompt_tokens": 1272, "completion_tokens": 31, "cost": 0.00125},
     "claims": [{"claim": {"text": "The quay opens at eight.", "origin": "model"}, "verdict": "REFUTES",
                 "evidence": ["p1", "p2", "p9"], "reasoning": "It opens at seven."}],
     "withheld": [{"text": "It is lovely.", "reason": "too little of its meaning is in the passages"}],
     "spoken": [{"text": "The quay opens at seven."}], "nearest": [QUAY], "citations": [QUAY]}),
    (EntryKind.DELIVERED, {**PLACE, "outcome": "delivered", "messages": ["17.2", "17.3"], "only_asker": False,
     "text": "The quay opens at seven. [1]\n\n[1] Harbour", "left_out": "2 sentences were left out.", "why": ""}),
    (EntryKind.DELIVERED, {**PLACE, "thread": "", "outcome": "undeliverable", "only_asker": True, "why": "archived"}),
    (EntryKind.EDITED, {"retracted": True, "removed": ["17.2"], "why": "asked", **BY}),
    (EntryKind.EDITED, {"stopped": True, **BY}),
    (EntryKind.FEEDBACK, {"what": "down", "where": "slack:T1/C1", "comment": "It opens at\neight.", **BY}),
    (EntryKind.FEEDBACK, {"what": "share", "state": "done", **BY}),
    (EntryKind.RECHECK, {"lost": [LOST]}),
    (EntryKind.RECHECK, {"told": "note", "state": "done"}),
    (EntryKind.SETTING, {"key": "corpora", "was": ["a", "b"], "now": ["a"], **BY}),
    (EntryKind.SETTING, {"key": "corpora", "was": None, "now": [], **BY}),
)  # fmt: skip
STORIED = {
    "record": tuple(LogEntry("abc123", kind, body, number, DAY) for number, (kind, body) in enumerate(STORY, start=1)),
    "passages": {"p2": (passage(number=2), document())},
}
RECORD = {"record": make_record(DAY + timedelta(days=2))}
TWO_TURNS = tuple(replace(entry, turn_id=name) for name in ("abc123", "abd456") for entry in logged())


def check_claim(*because: VerdictReason, reasoning: str = "says “eight”; the passage says “seven”") -> Any:
    checked = CheckedClaim(Claim(CLAIM, origin="user"), Verdict.REFUTES, ("p1",), reasoning, because=because)
    sentence = AnsweredSentence("The quay opens at seven.", (1,))
    answer = Answer(Status.ANSWERED, (sentence,), (citation(),), claims=(checked,))
    return answered(answer=answer, text=f"REFUTES: {reasoning}")


@dataclass(frozen=True)
class Case:
    arguments: Sequence[str]
    services: Mapping[str, Any] = field(default_factory=dict)
    settings: str = ""
    as_json: bool = True  # whether the same is printed with --json, too


GREETING = answered(answer=replace(answered().answer, status=Status.CHATTED, sentences=(), citations=()), text="Hello!")
WITH_NOTE = AnsweredSentence("The quay opens at eight.", (1,), note="Harbour, 2026")
NOTED = answered(
    answer=Answer(Status.ANSWERED, (WITH_NOTE,), (citation(),)), text="(Harbour, 2026) The quay opens at eight. [1]"
)
OTHER_WORDS = NoSuchDocument("No document of handbook is “Od rules”.", hint="Similar: handbook: Old rules (old.md).")
REASONS = RefreshReport("docs", failures=(*PICTURES, ("a.md", "is empty")), left_out=(("configuration", 4),))
FOLDER = ["ingest", "folder", "docs", "--corpus"]
CASES = {
    "ask": Case(["ask", "When?"], {"answer": answered(effort="quick")}),
    "ask-abstained": Case(["ask", "Why?"], {"answer": abstained()}),
    "ask-controls": Case(["ask", "x"], {"answer": answered(text="\x9b2J\x1b[2J 港")}),
    "ask-failed": Case(["ask", "Why?"], {"answer": HomeLocked("The home is in use.", hint="Wait until it is done.")}),
    "ask-greeting": Case(["ask", "hi"], {"answer": GREETING}, as_json=False),
    "ask-interrupted": Case(["ask", "Why?"], {"answer": KeyboardInterrupt()}, as_json=False),
    "ask-nothing-ingested": Case(["ask", "x"], {"answer": abstained(), "corpora": ()}, as_json=False),
    "ask-nothing-ingested-yet": Case(["ask", "x"], {"answer": abstained(), "corpora": ()}, SOURCES, as_json=False),
    "ask-refused": Case(["ask", "🎉"], {"answer": refused()}),
    "ask-wrong-settings": Case(["ask", "Why?"], settings="timezon = 'UTC'"),
    "ask-german": Case(["ask", "Warum öffnet der Kai erst um sieben Uhr?"], {"answer": abstained()}, as_json=False),
    "ask-note": Case(["ask", "When?"], {"answer": NOTED}, as_json=False),
    "ask-withheld": Case(["ask", "When?"], {"answer": answered(answer=replace(answered().answer, withheld=2))}),
    "audit-export": Case(["audit", "export"], RECORD),
    "audit-feedback": Case(["audit", "feedback"], RECORD),
    "audit-list": Case(["audit", "list"], {"record": (*logged(), *CHANNELS)}),
    "audit-list-page": Case(["audit", "list", "-n", "3"], RECORD),
    "audit-list-rated": Case(["audit", "list"], RECORD),
    "audit-show": Case(["audit", "show", "abc"]),
    "audit-show-story": Case(["audit", "show", "abc"], STORIED),
    "audit-show-story-full": Case(["audit", "show", "abc", "--full"], STORIED, as_json=False),
    "audit-show-channel": Case(["audit", "show", "slack:T1/C1"], {"record": (*logged(), *CHANNELS)}),
    "audit-show-several": Case(["audit", "show", "ab"], {"record": TWO_TURNS}),
    "audit-show-unknown": Case(["audit", "show", "zzz"], {"record": TWO_TURNS}),
    "audit-stats": Case(["audit", "stats", "--until", "2026-03-04", "--step", "day"], RECORD),
    "audit-unanswered": Case(["audit", "unanswered", "--since", "2026-03"], RECORD),
    "check": Case(["check", CLAIM], {"answer": check_claim(VerdictReason("contradicted", ("eight", "seven")))}),
    "check-model-reasoning": Case(
        ["check", CLAIM], {"answer": check_claim(reasoning="\x1b[2JAsk @channel, see https://evil.example [1]")}
    ),
    "corpora": Case(["corpora"], {"corpora": (HANDBOOK, CorpusInfo("other", 1, 2, None))}, SOURCES),
    "corpora-empty": Case(["corpora"], {"corpora": ()}, as_json=False),
    "corpora-failed-run": Case(["corpora"], {"corpora": (replace(HANDBOOK, edition="2026-02-20", last_run=FAILED),)}),
    "corpora-forgotten": Case(["corpora", "--forgotten"], {"away": (FORGOTTEN,)}),
    "corpora-forgotten-count": Case(["corpora"], {"corpora": (replace(HANDBOOK, forgotten=1),)}, as_json=False),
    "corpora-none-forgotten": Case(["corpora", "--forgotten"], as_json=False),
    "forget": Case(["forget", "Old rules"]),
    "forget-source": Case(["forget", "Old rules"], settings=SOURCES, as_json=False),
    "forget-unknown": Case(["forget", "Od rules"], {"forgotten": OTHER_WORDS}),
    "ingest-all-fails": Case(
        ["ingest", "all"], {"report": RefreshRefused("The folder is empty.", hint="Check its path.")}, SOURCES
    ),
    "ingest-all-without-source": Case(["ingest", "all"]),
    "ingest-folder": Case([*FOLDER, "handbook"]),
    "ingest-folder-forgotten": Case(
        [*FOLDER, "handbook"], {"report": RefreshReport("handbook", unchanged=9, forgotten=1)}, as_json=False
    ),
    "ingest-folder-reasons": Case([*FOLDER, "docs"], {"report": REASONS}, as_json=False),
    "ingest-remove": Case(
        ["ingest", "remove", "handbook", "--yes"],
        {"report": RefreshReport("handbook", removed=2, passages_removed=9)},
        SOURCES,
    ),
    "ingest-remove-unconfirmed": Case(["ingest", "remove", "handbook"], as_json=False),
    "ingest-status": Case(["ingest", "status"], {"runs": (RUN, FAILED), "nights": (NIGHT,)}),
    "ingest-status-empty": Case(["ingest", "status"]),
    "search": Case(["search", "quay"], {"hits": (hit(),)}),
    "search-no-words": Case(["search", "🎉"]),
    "search-nothing-ingested": Case(["search", "x"], {"corpora": ()}),
    "search-too-long": Case(["search", "x" * 100_000]),
    "search-unknown-corpus": Case(["search", "x", "--corpus", "nope"]),
}


@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
@pytest.mark.parametrize("name", CASES)
def test_command_prints_the_golden_output(name: str, *, as_json: bool) -> None:
    case = CASES[name]
    if as_json and not case.as_json:
        return
    if case.settings:
        Path("footnote.toml").write_text(case.settings, encoding="utf-8")
    result = run(*case.arguments, *(["--json"] if as_json else []), services=FakeServices(**case.services))
    printed = f"exit status {result.exit_code}\n-- stdout\n{result.stdout}-- stderr\n{result.stderr}"
    printed = re.sub(r"\d[\d,]* (days|h \d+ min) ago", "AGE ago", printed.replace(str(Path.cwd()), "HERE"))
    printed = re.sub(r'("per_second"|"seconds_left"): [\d.]+', r"\1: N", printed)
    printed = re.sub(r"[\d.,]+ documents/(s|min), .*? left", "RATE", printed)
    file = GOLDEN / f"{name}{'.json' if as_json else ''}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        file.write_text(printed, encoding="utf-8")
    assert printed == file.read_text(encoding="utf-8")
