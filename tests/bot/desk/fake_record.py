"""A record and a platform in memory, for tests of the actions on an answer."""

import asyncio
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from bot.access import Asker
from bot.answering.turn_record import build_closing_entries, build_opening
from bot.desk.answer_actions import AnswerActions
from bot.desk.authorized_turn import ActionDenied
from bot.desk.jobs.job import encode_question
from bot.settings.tables.settings_tables import Settings
from bot.types import DeliveryCapabilities, Place, PostedMessages, Question, TurnRequest, TurnResult
from pipeline.gate import WithheldSentence
from pipeline.types import Answer, AnsweredSentence, Conversation, Status, Turn, Usage
from storage.database.engine import to_json_value
from storage.errors import StorageError
from storage.record.proof.receipts import RecordPosition
from storage.types import (
    ApprovedExample,
    CheckedClaim,
    Citation,
    Claim,
    Corpus,
    Document,
    EntryKind,
    Hit,
    LogEntry,
    Passage,
    QueuedQuestion,
    Step,
    Verdict,
)

DAY = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
CORPORA = ("alpha", "beta", "gamma")
"""The name of a corpus is in all its texts, and in everything made from it."""
NOTHING = "I cannot show you any of this here."
ASKED = "When does it open?"


def in_channel(channel: str = "C1", user: str = "U1", **flags: Any) -> Asker:
    return Asker("slack", "channel", "T1", channel, user, **{"shared_with_other_organisations": False} | flags)


def in_dm(user: str = "U1", **flags: Any) -> Asker:
    return Asker("slack", "dm", "T1", f"D-{user}", user, **{"shared_with_other_organisations": False} | flags)


def passage(corpus: str) -> Passage:
    return Passage(f"{corpus}-p", corpus, f"{corpus}.md", "", f"{corpus}text opens at ten.", 0, f"{corpus}-hash")


def document(corpus: str) -> Document:
    return Document(corpus, f"{corpus}.md", f"{corpus}title", f"https://example.com/{corpus}title", "r1", DAY)


def citation(number: int, corpus: str) -> Citation:
    part, page = passage(corpus), document(corpus)
    facts = (page.title, part.section, page.url, page.revision, page.date, part.text, part.id, part.text, part.hash)
    return Citation(number, corpus, page.key, *facts)


@dataclass(frozen=True)
class RecordedTurn:
    """A turn as the test describes it."""

    asker: Asker = field(default_factory=in_channel)
    cited: tuple[str, ...] = ("alpha",)
    found: tuple[str, ...] = ()
    """Corpora that were found but are not cited; claims and nearest pages are based on them."""
    earlier: tuple[str, ...] = ()
    """What the conversation was made from."""
    only_asker: bool = False
    task: str = "ask"
    status: Status = Status.ANSWERED
    thread: str = "1.0"
    language: str = "en"
    closed: bool = True

    def question(self, number: int) -> Question:
        place = Place(self.asker.platform, self.asker.workspace, self.asker.channel, self.thread)
        conversation = f"{place.channel_id}/{place.thread}"
        more = {"message": f"{number}.0", "only_asker": self.only_asker, "handle": "xoxb-secret-handle"}
        return Question(f"key-{number}", self.task, ASKED, self.asker, place, conversation, DAY, **more)

    def answered(self, turn_id: str) -> TurnResult:
        sentences = [AnsweredSentence(f"{name}text opens at ten.", (n,)) for n, name in enumerate(self.cited, 1)]
        if self.task == "check":
            sentences = []
        claims = [_claim(name, Verdict.SUPPORTS) for name in self.cited]
        claims += [_claim(name, Verdict.REFUTES) for name in self.found]
        notes = "".join(f" {name}verdict" for name in (*self.cited, *self.found)) if self.task == "check" else ""
        if self.task == "check":
            claims = [CheckedClaim(Claim(ASKED, "user"), Verdict.REFUTES, (), notes), *claims]
        nearest = tuple(Hit(passage(name), document(name), 1.0) for name in self.found)
        answer = Answer(
            self.status,
            tuple(sentences),
            tuple(citation(n, name) for n, name in enumerate(self.cited, 1)),
            tuple(claims),
            nearest if self.status is Status.ABSTAINED else (),
            len(self.found),
        )
        text = " ".join(sentence.text for sentence in sentences) or f"I do not know.{notes}"
        return TurnResult(turn_id, answer, text, "wikichat", "model", Usage(), 1.0)

    def entries(self, number: int) -> tuple[LogEntry, ...]:
        turn_id = f"turn{number}"
        earlier = Turn("bot", "It was said.", corpora=self.earlier)
        talk = Conversation((earlier, Turn("user", ASKED, at=DAY, language=self.language)))
        asked = TurnRequest(ASKED, self.asker, self.thread, talk.earlier, ticket=number)
        opened = LogEntry(
            turn_id, EntryKind.TURN_OPENED, build_opening(asked, talk, dict.fromkeys(CORPORA), {"task": self.task})
        )
        if not self.closed:
            return (opened,)
        done = self.answered(turn_id)
        hits = tuple((passage(name).id, 1.0, name, document(name).key) for name in (*self.cited, *self.found))
        step = Step("search", {"query": "it", "k": 3, "time": None, "hits": hits}, 1.0)
        withheld = tuple(WithheldSentence(f"{name}claim", "no") for name in self.found)
        return (opened, *build_closing_entries(done, (step,), withheld, ()))


def _claim(corpus: str, verdict: Verdict) -> CheckedClaim:
    claim = Claim(f"{corpus}claim", "model")
    return CheckedClaim(claim, verdict, (passage(corpus).id,), f"{corpus}reason")


@dataclass
class FakeExamples:
    """The approved answers and their log entries."""

    record: "FakeRecord"
    kept: list[ApprovedExample] = field(default_factory=list)

    async def all(self) -> tuple[ApprovedExample, ...]:
        return tuple(self.kept)

    async def add(self, example: ApprovedExample, entry: LogEntry) -> bool:
        new = example.turn_id not in {kept.turn_id for kept in self.kept}
        if new:
            await self.record.append(entry)
            self.kept.append(example)
        return new


@dataclass
class FakeRecord:
    """The parts of an app that the actions use."""

    settings: Settings
    rows: dict[int, QueuedQuestion] = field(default_factory=dict)
    log: list[LogEntry] = field(default_factory=list)
    narrowed: dict[str, dict[str, Any]] = field(default_factory=dict)
    corpora: tuple[str, ...] = CORPORA
    forgot: frozenset[str] = frozenset()
    """The corpora whose page was forgotten."""
    positions: dict[str, RecordPosition] = field(default_factory=dict)
    broken: StorageError | None = None
    """Raised by every write."""
    unreadable: StorageError | None = None
    """Raised by every read."""

    def __post_init__(self) -> None:
        self.examples = FakeExamples(self)

    @property
    def queue(self) -> "FakeRecord":
        return self

    audit = manifest = overrides = queue

    def snapshot(self) -> "FakeRecord":
        return self

    def add(self, recorded_turn: RecordedTurn) -> int:
        number = len(self.rows) + 1
        new = replace(encode_question(recorded_turn.question(number)), sending=True)
        self.rows[number] = QueuedQuestion(
            ticket=number,
            **{name: getattr(new, name) for name in new.__dataclass_fields__},
            state="done",
            outcome="delivered",
            taken_at=DAY,
            turn_id=f"turn{number}",
            posted=(f"m{number}",),
            owner="",
            lease_until=None,
        )
        self.log += [replace(entry, body=to_json_value(entry.body)) for entry in recorded_turn.entries(number)]
        return number

    async def get(self, ticket: int) -> QueuedQuestion | None:
        if self.unreadable:
            raise self.unreadable
        return self.rows.get(ticket)

    async def conversation(self, conversation: str, *, limit: int) -> tuple[QueuedQuestion, ...]:
        return tuple(row for row in self.rows.values() if row.conversation == conversation)[-limit:]

    async def turn(self, turn_id: str) -> tuple[LogEntry, ...]:
        await asyncio.sleep(0)
        return tuple(entry for entry in self.log if entry.turn_id == turn_id)

    async def find_position(self, turn_id: str) -> RecordPosition | None:
        return self.positions.get(turn_id)

    async def append(self, *entries: LogEntry) -> None:
        await asyncio.sleep(0)  # like a real one, lets other tasks run
        if self.broken:
            raise self.broken
        self.log += [replace(entry, body=to_json_value(entry.body)) for entry in entries]

    async def catalogue(self) -> tuple[Corpus, ...]:
        return tuple(Corpus(name, DAY, reference=False) for name in self.corpora)

    async def forgotten(self, corpus: str) -> frozenset[str]:
        return frozenset({document(corpus).key} & {document(name).key for name in self.forgot})

    async def recall(self, ids: Any, among: Any) -> dict[str, tuple[Passage, Document]]:
        readable = {corpus: (corpus, document(corpus).key) in among for corpus in self.corpora}
        return {
            f"{corpus}-p": (passage(corpus), document(corpus))
            for corpus in readable
            if f"{corpus}-p" in ids and readable[corpus]
        }

    async def of(self, channel: str) -> dict[str, Any]:
        return self.narrowed.get(channel, {})

    def acts(self, what: str) -> list[Any]:
        return [entry.body for entry in self.log if entry.kind is EntryKind.FEEDBACK and entry.body["what"] == what]


@dataclass
class FakePlatform:
    """A platform that records its calls. `faults` are raised one after the other instead of posting."""

    faults: list[Exception] = field(default_factory=list)
    late_faults: list[Exception] = field(default_factory=list)
    """Raised after something was posted."""
    reads_back: bool = True
    posts: dict[str, Any] = field(default_factory=dict)
    """The posted views, by message."""
    called: list[tuple[Place, str, tuple[str, ...]]] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)

    async def asker(self, question: Question) -> Asker:
        return question.asker

    def ways(self, question: Question) -> DeliveryCapabilities:
        return DeliveryCapabilities(reads_back=self.reads_back and not question.only_asker)

    async def show(self, question: Question, view: Any, posted: PostedMessages) -> PostedMessages:
        if self.faults:
            raise self.faults.pop(0)
        messages = posted.messages or (f"{question.key}/{len(self.posts)}",)
        self.posts[messages[0]] = view
        self.questions.append(question)
        if self.late_faults:
            raise self.late_faults.pop(0)
        return PostedMessages(messages)

    async def find(self, question: Question) -> PostedMessages:
        return PostedMessages(tuple(message for message in self.posts if message.startswith(f"{question.key}/")))

    async def remove(self, question: Question, posted: PostedMessages) -> None:
        del question
        for message in posted.messages:
            self.posts.pop(message, None)

    async def call(self, place: Place, text: str, people: Any) -> PostedMessages:
        if self.faults:
            raise self.faults.pop(0)
        self.called.append((place, text, tuple(people)))
        return PostedMessages((f"call{len(self.called)}",))


def make_actions(
    *, ask: tuple[str, ...] = (), admins: tuple[str, ...] = ()
) -> tuple[FakeRecord, FakePlatform, AnswerActions]:
    """Return a record, a platform, and the actions on them; every user may read all corpora."""
    chosen = settings(ask=ask) if ask else settings()
    slack = chosen.slack.model_copy(update={"admins": admins})
    record, platform = FakeRecord(chosen.model_copy(update={"slack": slack})), FakePlatform()
    return record, platform, AnswerActions(record, {"slack": platform})


def settings(readers: dict[str, tuple[str, ...]] | None = None, **channel: Any) -> Settings:
    """Return settings with three corpora and their readers, and one channel's table."""
    named = readers if readers is not None else dict.fromkeys(CORPORA, ("*",))
    corpus = [{"name": name, "readers": named.get(name, ())} for name in CORPORA]
    channels = [{"id": "slack:T1/C1", **channel}] if channel else []
    return Settings(corpus=corpus, channel=channels)


async def read_denial(awaited: Any) -> str:
    try:
        result = await awaited
    except ActionDenied as denied:
        return denied.words
    raise AssertionError(f"not denied: {result}")
