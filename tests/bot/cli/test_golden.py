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
from tests.bot.cli.commands import SOURCES, run
from tests.bot.fake_services import DAY, FakeServices, abstained, answered, citation, hit, logged, refused

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
    "audit-list": Case(["audit", "list"], {"record": (*logged(), *CHANNELS)}),
    "audit-show": Case(["audit", "show", "abc"]),
    "audit-show-channel": Case(["audit", "show", "slack:T1/C1"], {"record": (*logged(), *CHANNELS)}),
    "audit-show-several": Case(["audit", "show", "ab"], {"record": TWO_TURNS}),
    "audit-show-unknown": Case(["audit", "show", "zzz"], {"record": TWO_TURNS}),
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
    "forget-unknown": Case(
        ["forget", "Od rules"],
        {
            "forgotten": NoSuchDocument(
                "No document of handbook is “Od rules”.", hint="Similar: handbook: Old rules (old.md)."
            )
        },
    ),
    "ingest-all-fails": Case(
        ["ingest", "all"], {"report": RefreshRefused("The folder is empty.", hint="Check its path.")}, SOURCES
    ),
    "ingest-all-without-source": Case(["ingest", "all"]),
    "ingest-folder": Case(["ingest", "folder", "docs", "--corpus", "handbook"]),
    "ingest-folder-forgotten": Case(
        ["ingest", "folder", "docs", "--corpus", "handbook"],
        {"report": RefreshReport("handbook", unchanged=9, forgotten=1)},
        as_json=False,
    ),
    "ingest-folder-reasons": Case(
        ["ingest", "folder", "docs", "--corpus", "docs"],
        {"report": RefreshReport("docs", failures=(*PICTURES, ("a.md", "is empty")), left_out=(("configuration", 4),))},
        as_json=False,
    ),
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
