"""A bot with three corpora, two users, three channels and their DMs, to test who may read what where.

Its system reveals everything: it cites every found page, and makes claims of every passage, earlier answer and example;
for one question it shows only the nearest pages.
"""

import itertools
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from bot.access import Asker, Exclusion, find_forgotten_documents
from bot.answering.example_pool import approve_turn
from bot.app import App
from bot.desk.answer_actions import AnswerActions
from bot.desk.authorized_turn import ActionDenied
from bot.desk.jobs.job import encode_question as kept_question
from bot.desk.turn_policy import open_desk
from bot.settings.tables.settings_tables import Settings
from bot.types import IntakeStatus, Question
from ingest.refresh.corpus_refresh import refresh_corpus
from ingest.refresh.document_refresh import forget_documents
from pipeline.types import CitedSentence, ClaimChecked, Status
from storage.types import CheckedClaim, Claim, EntryKind, Evidence, SearchQuery, Verdict
from tests.pipeline.world import registered
from tests.platforms.example_app import LinkedPages
from tests.platforms.memory_platform import Dialect, MemoryPlatform
from tests.storage.stores import kept, opened
from tests.thorough import THOROUGH

CORPORA = ("zebra", "walrus", "ocelot")
"""The name of a corpus is in all its titles, passages and addresses, and nowhere else."""
CHANNELS, USERS = ("C1", "C2", "C3"), ("U1", "U2")
GROUP = "S1"
"""A user group, or a role."""
PLACES = (*CHANNELS, *USERS, GROUP)
STANDINGS: Sequence[Mapping[str, str]] = ({"U2": "grouped"}, {"U1": "guest", "U2": "denied"}, {"U1": "grouped"})
"""The users who are not ordinary members, by round."""
WHO = (*itertools.product(CHANNELS, USERS), *(("", user) for user in USERS))
"""Channel and user of each asker; a DM has no channel."""
NEAREST = "Which vaults are near?"
FOUND = "Where are the vaults?"
HELD = "What do the vaults hold?"
FOLLOW_UP = "And what else do they hold?"
CHECKED = "The vaults hold maps."


async def reveal_everything(talk, kit):
    """Search, and say everything that can be said; check no claims if the question is `FOUND`."""
    hits = await kit.search(SearchQuery(talk.question.text), 9)
    for text in [demo.demo.answer for demo in await kit.demos(talk.question.text, 9) if demo.demo.corpora]:
        kit.tell(ClaimChecked(CheckedClaim(Claim(text, "model"), Verdict.SUPPORTS, (), "as an example")))
    heard = [turn.text for turn in talk.earlier if turn.speaker == "bot"]
    for verdict, text in zip(itertools.cycle((Verdict.SUPPORTS, Verdict.REFUTES)), heard, strict=False):
        kit.tell(ClaimChecked(CheckedClaim(Claim(text, "model"), verdict, (), f"because {text}")))
    for hit in () if talk.question.text == FOUND else hits:
        claim = Claim(hit.passage.text, "model")
        kit.tell(
            ClaimChecked(CheckedClaim(claim, Verdict.SUPPORTS, (hit.passage.id,), f"as {hit.document.title} says"))
        )
    if talk.question.text in {NEAREST, FOUND} or not hits:
        return Status.ABSTAINED
    for hit in hits:
        text = hit.passage.text
        await kit.say(CitedSentence(text, (Evidence(text, hit.passage, hit.document, (0, len(text))),)))
    return Status.ANSWERED


async def fill(home: Path) -> None:
    with opened(home) as store:
        for name in CORPORA:
            pages = {f"{name}.md": {"title": f"Vault {name}", "": f"The vaults of {name} hold maps."}}
            source = LinkedPages(pages, urls={f"{name}.md": f"https://{name}.example/vault"})
            await refresh_corpus(source, name, store, progress=lambda _: None)


@asynccontextmanager
async def open_rights_matrix(home: Path, dialect: Dialect) -> AsyncIterator["RightsMatrix"]:
    """Serve a platform with a bot whose home has the three corpora."""
    with opened(home) as store:
        app = App(Settings(home=home), store, systems=registered(extractive=reveal_everything), **kept(store))
        platform = MemoryPlatform(dialect)
        yield RightsMatrix(app, platform, platform)


@dataclass
class RightsMatrix:
    """The bot, its platform, and its current rights."""

    app: App
    server: MemoryPlatform
    platform: MemoryPlatform
    readers: Mapping[str, Sequence[str]] = field(default_factory=dict)
    narrowed: dict[str, tuple[str, ...]] = field(default_factory=dict)
    foreign: frozenset[str] = frozenset()
    """The places outside the team."""
    standing: Mapping[str, str] = field(default_factory=dict)
    """By user: guest, grouped or denied."""
    gone: frozenset[str] = frozenset()
    """The corpora whose page was forgotten."""
    _looked: int = 0

    @property
    def helper(self) -> str:
        return "U9" if self.platform.name == "slack" else "9"

    async def allow(
        self, readers: Mapping[str, Sequence[str]], foreign: frozenset[str], standing: Mapping[str, str] | None = None
    ) -> None:
        """Replace the settings: the places that may read each corpus, or `*`."""
        name, self.standing = self.platform.name, standing or {}
        corpus = [
            {"name": one, "readers": [who if who == "*" else f"{name}:T1/{who}" for who in readers[one]]}
            for one in CORPORA
        ]
        channel = [{"id": f"{name}:T1/{channel_id}", "ask": [f"{name}:T1/{self.helper}"]} for channel_id in CHANNELS]
        settings = Settings(home=self.app.settings.home, corpus=corpus, channel=channel)
        self.app, self.readers, self.foreign = replace(self.app, settings_source=settings), readers, foreign
        for one in list(self.narrowed):
            await self.narrow(one, None)

    async def forget(self, corpus: str) -> None:
        await forget_documents(self.app.passages, corpus, [f"{corpus}.md"])
        self.gone |= {corpus}

    async def approve(self, question: Question) -> None:
        row = await self.app.queue.by_key(question.key)
        forgotten = partial(find_forgotten_documents, self.app.manifest)
        assert await approve_turn(await self.app.audit.turn(row.turn_id), self.app.examples, "admin", forgotten)

    async def narrow(self, channel: str, corpora: tuple[str, ...] | None) -> None:
        where = f"{self.platform.name}:T1/{channel}"
        await self.app.overrides.set(where, "corpora", corpora and list(corpora), by="admin", was=None)
        if corpora is None:
            self.narrowed.pop(channel)
        else:
            self.narrowed[channel] = corpora

    def asker(self, channel: str, user: str) -> Asker:
        kind, place = ("channel", channel) if channel else ("dm", f"D-{user}")
        own = place not in self.foreign
        flags = {"shared_with_other_organisations": not own, "listed_server": own}
        standing = self.standing.get(user)
        asker = Asker(self.platform.name, kind, "T1", place, user, **flags, guest=standing == "guest")
        if standing == "grouped" and not channel:
            asker = replace(asker, principals=(f"{self.platform.name}:T1/{GROUP}",))
        return replace(asker, exclusion=Exclusion.DENIED) if standing == "denied" else asker

    def may(self, channel: str, user: str) -> frozenset[str]:
        """Return the corpora that a user may read, computed independently of `bot.access`."""
        own, standing = (channel or f"D-{user}") not in self.foreign, self.standing.get(user)
        if standing == "denied":
            return frozenset()
        called = {channel} if channel else {user, GROUP} if standing == "grouped" else {user}
        called |= {"*"} if own and standing != "guest" else set()
        readable = {name for name in CORPORA if called & set(self.readers[name])}
        return frozenset(readable & set(self.narrowed.get(channel, CORPORA)) - self.gone)

    async def ask(
        self, texts: Mapping[tuple[str, str], str], *, before: Mapping[Any, Question] | None = None, **more: Any
    ):
        """Ask questions at once, each in its own thread or in that of an earlier question; return them."""
        desk = open_desk(self.app, {self.platform.name: self.platform})
        questions = {}
        async with desk.running():
            for (channel, user), text in texts.items():
                who = self.asker(channel, user)
                thread = before[channel, user].place.thread if before else ""
                message = self.server.write(text, user=user, channel=who.channel, thread=thread)
                facts = {"message": message, "text": text, "user": user, "channel": who.channel, "thread": thread}
                alone = (channel, user) == ("C2", "U2")
                event = facts | {"workspace": "T1", "dm": not channel, "only_asker": alone} | more
                question = replace(self.platform.question(event), asker=who)
                assert await desk.take(question) is IntakeStatus.NEW
                questions[channel, user] = question
        return questions

    async def resume(self, question: Question) -> Question:
        """Start after a crash between answering a question like this one and posting the answer; return it."""
        row = await self.app.queue.by_key(question.key)
        entries = [entry for entry in await self.app.audit.turn(row.turn_id) if entry.kind is not EntryKind.DELIVERED]
        await self.app.audit.append(*(replace(entry, turn_id=f"{entry.turn_id}-left") for entry in entries))
        left = replace(question, key=f"{question.key}-left")
        kept_row, _ = await self.app.queue.put(kept_question(left))
        await self.app.queue.note(kept_row.ticket, turn_id=f"{row.turn_id}-left")
        async with open_desk(self.app, {self.platform.name: self.platform}).running():
            pass
        assert await self.ticket(left)
        return left

    async def retract(self, question: Question) -> None:
        desk = open_desk(self.app, {self.platform.name: self.platform})
        async with desk.running():
            await desk.retract(await self.ticket(question), question.asker)

    async def ticket(self, question: Question) -> int:
        row = await self.app.queue.by_key(question.key)
        assert (row.state, row.outcome) == ("done", "delivered")
        return row.ticket

    async def act(self, name: str, what: Any, who: tuple[str, str], *more: Any) -> Any:
        """Run an action, and check that its result and its posts contain only readable corpora."""
        acting = AnswerActions(self.app, {self.platform.name: self.platform})
        try:
            result = await getattr(acting, name)(what, self.asker(*who), *more)
        except ActionDenied as denied:
            result = denied.words
        assert not find_corpora(result) - self.may(*who), (name, who, result)
        self.look()
        return result

    def look(self) -> None:
        """Check that everything the platform has received since the last check may be read where it was posted."""
        received = self.server.received[self._looked :]
        self._looked = len(self.server.received)
        for name, facts in received:
            if name not in {"post", "edit"}:
                continue
            posted = self.server.messages.get(facts.get("message", ""))
            place = facts.get("channel") or (posted.channel if posted else "")
            only = facts.get("only", "") or place.removeprefix("D-")
            may = self.may("" if place.startswith("D-") else place, only)
            assert not find_corpora(facts) - may, (name, facts)

    async def earlier(self, question: Question) -> str:
        row = await self.app.queue.by_key(question.key)
        entries = await self.app.audit.turn(row.turn_id)
        return next(str(entry.body["earlier"]) for entry in entries if entry.kind is EntryKind.TURN_OPENED)


def find_corpora(value: Any) -> frozenset[str]:
    return frozenset(name for name in CORPORA if name in repr(value).lower())


def combinations() -> Iterator[dict[str, tuple[str, ...]]]:
    """Return readers for the three corpora, such that one of them has each of the 128 sets of places and `*`."""
    sets = [combination for size in range(8) for combination in itertools.combinations((*PLACES, "*"), size)]
    for start in range(0, len(sets), len(CORPORA)):
        yield {name: sets[(start + place) % len(sets)] for place, name in enumerate(CORPORA)}


def rounds(platform: str) -> list[dict[str, tuple[str, ...]]]:
    """Return the readers that a platform is tested with: one in sixteen, or all with more time."""
    found = list(combinations())
    return found if THOROUGH else found[("slack", "discord").index(platform) :: 16]
