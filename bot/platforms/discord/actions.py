"""Handle buttons, pages of evidence and comments in Discord."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, tzinfo
from typing import Any, Literal

from bot.access import Asker
from bot.desk.answer_actions import MAX_COMMENT, AnswerActions, Opinion, load_evidence_or_denial
from bot.desk.authorized_turn import ActionDenied
from bot.desk.desk import Desk
from bot.platforms.discord.intake import DiscordIntake, locate_asker
from bot.platforms.discord.interactions import (
    SOURCES,
    DiscordInvocation,
    InteractionReplies,
    build_sentence,
    read_modal_fields,
)
from bot.platforms.discord.messages import (
    EVIDENCE,
    PREFIX,
    ROW,
    SUPPRESS_EMBEDS,
    TEXT,
    V2,
    DoubtPrompt,
    build_button,
    build_buttons,
    build_label,
    is_numeric_id,
    parse_button,
    parse_doubt,
    render_confirmation,
    render_page,
)
from bot.platforms.shared.button_actions import ButtonActions, explain_refusal, list_ratings, parse_opinion
from bot.platforms.shared.payload_text import JsonObject
from bot.views.catalog import translate
from bot.views.message_layout import MessagePage, MessagePart, PartKind, paginate_evidence
from bot.views.turn_view import ButtonAction, EvidenceView
from bot.views.view_reducer import build_confirmation, build_example_button
from storage.errors import StorageError

COMMENT, PAGE = f"{PREFIX}comment", f"{PREFIX}page"
LABEL, SELECT, INPUT, PARAGRAPH = 18, 3, 4, 2
_TITLE = 45
_MOST = 4_000
_ON, _BACK = "on", "back"


def build_evidence_message(view: EvidenceView, source: str, page: int, language: str, zone: tzinfo = UTC) -> JsonObject:
    """Return one page of an answer's evidence as a message's body; the nearest page if `page` does not exist."""
    pages = paginate_evidence(view, EVIDENCE, language, zone)
    page = min(max(page, 0), len(pages) - 1)
    page_buttons = [_page_buttons(source, page, len(pages))] if len(pages) > 1 else []
    shown = render_page(MessagePage(tuple(map(_emphasize_claim, pages[page].parts))))
    nobody = {"parse": list[str]()}
    return {"components": [*shown.components, *page_buttons], "allowed_mentions": nobody, "flags": V2 | SUPPRESS_EMBEDS}


def parse_page_turn(custom_id: str) -> tuple[str, int] | None:
    """Parse a page button into its source (a ticket or `SOURCES`) and the page; None for another button."""
    source, _, page = custom_id.removeprefix(f"{PAGE}:").rpartition(":")
    source = source.partition(":")[2]
    return (source, int(page)) if custom_id.startswith(f"{PAGE}:") and source and is_numeric_id(page) else None


def build_comment_modal(ticket: int, opinion: Literal["up", "down", "rate"], language: str) -> JsonObject:
    """Return the modal that asks for a comment on a rating; `parse_comment` parses its submission.

    With "rate", it asks for a rating from 1 to 5, too.
    """
    field: JsonObject = {"type": INPUT, "custom_id": "text", "style": PARAGRAPH, "required": False}
    field["max_length"] = min(MAX_COMMENT, _MOST)
    label = build_label(translate("discord_comment_label", language), _TITLE)
    comment = {"type": LABEL, "label": label, "component": field}
    title = build_label(translate("comment", language), _TITLE)
    options = [{"label": translate("missed", language), "value": "missed"}]
    choice: JsonObject = {"type": SELECT, "custom_id": "missed", "options": options, "min_values": 0}
    missed = {"type": LABEL, "label": title, "component": {**choice, "required": False}}
    if opinion == "rate":
        ratings = [{"label": label, "value": rating} for rating, label in list_ratings(language)]
        missed["component"] = {"type": SELECT, "custom_id": "rating", "options": ratings, "required": True}
    notice = [{"type": TEXT, "content": translate("study_notice", language)}] if opinion == "rate" else []
    return {"custom_id": f"{COMMENT}:{opinion}:{ticket}", "title": title, "components": [*notice, missed, comment]}


def parse_comment(data: Mapping[str, Any]) -> tuple[int, Opinion, str] | None:
    """Parse a submitted comment modal into ticket, rating and comment; None for another modal."""
    custom_id = str(data.get("custom_id", ""))
    opinion, _, ticket = custom_id.removeprefix(f"{COMMENT}:").partition(":")
    if not custom_id.startswith(f"{COMMENT}:") or opinion not in {"up", "down", "rate"} or not is_numeric_id(ticket):
        return None
    sent = dict(read_modal_fields(data.get("components")))
    read = parse_opinion(opinion, missed=bool(sent.get("missed")), rating=sent.get("rating", ""))
    return (int(ticket), read, sent.get("text", "")) if read else None


def _emphasize_claim(part: MessagePart) -> MessagePart:
    """Return a claim as a label, which becomes the heading of its evidence; return other parts unchanged."""
    return MessagePart(PartKind.LABEL, part.runs) if part.kind is PartKind.CLAIM else part


def _page_buttons(source: str, page: int, pages: int) -> JsonObject:
    back = [build_button(f"{PAGE}:{_BACK}:{source}:{page - 1}", f"◀ {page}/{pages}")] if page else []
    on = [build_button(f"{PAGE}:{_ON}:{source}:{page + 1}", f"{page + 2}/{pages} ▶")] if page + 1 < pages else []
    return {"type": ROW, "components": [*back, *on]}


COMMENT_SECONDS = 1.0  # limit for storing the opinion before the comment modal opens


class DiscordActions:
    """Performs what users do with answers: press buttons, comment, list sources, retract."""

    def __init__(
        self, desk: Desk, acting: AnswerActions, replies: InteractionReplies, intake: DiscordIntake, zone: tzinfo
    ) -> None:
        self._buttons, self._actions, self._replies = ButtonActions(desk, acting), acting, replies
        self._intake, self._zone = intake, zone

    async def press(self, invocation: DiscordInvocation) -> None:
        """Perform a button's action, and reply to the user who pressed it."""
        page = parse_page_turn(invocation.name)
        if page and (page[0] == SOURCES or page[0].isdecimal()):
            await self._replies.accept(invocation)
            await self._show_evidence(invocation, *page)
        elif button := parse_button(invocation.name):
            await self._press(invocation, *button)
        elif doubt := parse_doubt(invocation.name):
            await self._confirm(invocation, *doubt)

    async def comment(self, invocation: DiscordInvocation) -> bool:
        """Store the comment of a submitted modal and confirm it; return False if another modal was submitted."""
        sent = parse_comment({**invocation.data})
        if sent is None:
            return False
        ticket, opinion, text = sent
        await self._replies.defer(invocation, private=True)
        by = await self.by(invocation)
        language = invocation.locale
        words = await explain_refusal(self._actions.feedback(ticket, by, opinion, text, language=language), language)
        await self._replies.change(invocation, build_sentence(words))
        return True

    async def sources(self, invocation: DiscordInvocation) -> None:
        """Show the user, privately, all pages that are cited in their conversation."""
        await self._replies.defer(invocation, private=True)
        await self._show_evidence(invocation, SOURCES, 0)

    async def take_back(self, invocation: DiscordInvocation, find: Callable[[], Awaitable[int | None]]) -> None:
        """Retract the answer whose ticket `find` returns; notify the user if it returns None."""
        await self._replies.defer(invocation, private=True)
        if (ticket := await find()) is None:
            await self._replies.change(invocation, build_sentence(translate("discord_no_answer", invocation.locale)))
        else:
            await self._retract(invocation, ticket)

    async def by(self, invocation: DiscordInvocation) -> Asker:
        """Return the user of an interaction as an asker, after looking up their rights."""
        return await locate_asker(self._intake.directory, invocation)

    async def _press(self, invocation: DiscordInvocation, action: ButtonAction, ticket: int) -> None:
        match action:
            case ButtonAction.STOP:
                await self._replies.accept(invocation)
                if words := await self._perform(invocation, action, ticket, await self.by(invocation)):
                    await self._replies.add(invocation, words)
            case ButtonAction.RETRACT:
                first = build_confirmation(action, invocation.locale)
                await self._replies.say(
                    invocation, first.question, render_confirmation(first, ticket, DoubtPrompt.BACK)
                )
            case ButtonAction.DOWN:
                await self._rate_down(invocation, ticket)
            case ButtonAction.RATE:
                await self._replies.modal(invocation, build_comment_modal(ticket, "rate", invocation.locale))
            case ButtonAction.EVIDENCE:
                await self._replies.defer(invocation, private=True)
                await self._show_evidence(invocation, str(ticket), 0)
            case _:
                await self._act(invocation, action, ticket)

    async def _perform(self, invocation: DiscordInvocation, action: ButtonAction, ticket: int, by: Asker) -> str:
        """Perform a button's action, and return the sentence to show to the user who pressed it."""

        async def find_name() -> str:
            return invocation.shown_name

        language = invocation.locale
        not_yours = translate("discord_not_yours", language)
        action_done = self._buttons.perform(action, ticket, by, language, find_name=find_name, not_yours=not_yours)
        return await explain_refusal(action_done, language)

    async def _confirm(self, invocation: DiscordInvocation, doubt: DoubtPrompt, ticket: int) -> None:
        """Ask the user for a confirmation, or handle its reply: ask a person about an answer, or retract the answer."""
        if doubt is DoubtPrompt.SURE:
            first = build_confirmation(ButtonAction.ASK, invocation.locale)
            await self._replies.say(invocation, first.question, render_confirmation(first, ticket))
            return
        await self._replies.accept(invocation)
        match doubt:
            case DoubtPrompt.YES:
                words = await self._perform(invocation, ButtonAction.ASK, ticket, await self.by(invocation))
                await self._replies.change(invocation, build_sentence(words))
            case DoubtPrompt.BACK:
                await self._retract(invocation, ticket)
            case _:
                await self._replies.remove(invocation)

    async def _retract(self, invocation: DiscordInvocation, ticket: int) -> None:
        refusal = await self._perform(invocation, ButtonAction.RETRACT, ticket, await self.by(invocation))
        await self._replies.change(
            invocation, build_sentence(refusal or translate("discord_taken_back", invocation.locale))
        )

    async def _rate_down(self, invocation: DiscordInvocation, ticket: int) -> None:
        """Store a negative rating, and open a modal that asks why. Discord opens a modal only as the first reply."""
        rating = asyncio.ensure_future(self._note_down(invocation, ticket))
        done, _ = await asyncio.wait({rating}, timeout=COMMENT_SECONDS)
        refused = rating.exception() if done else None
        if isinstance(refused, ActionDenied):
            await self._replies.say(invocation, refused.words)
            return
        await self._replies.modal(invocation, build_comment_modal(ticket, "down", invocation.locale))
        try:
            await rating
        except ActionDenied as denied:
            await self._replies.add(invocation, denied.words)

    async def _note_down(self, invocation: DiscordInvocation, ticket: int) -> str:
        return await self._actions.feedback(ticket, await self.by(invocation), "down", language=invocation.locale)

    async def _show_evidence(self, invocation: DiscordInvocation, source: str, page: int) -> None:
        """Load the evidence of a ticket, or the sources of a conversation, and show one page of it."""
        by = await self.by(invocation)
        if source == SOURCES:
            loading, heading = self._load_sources(invocation, by), "sources_heading"
        else:
            loading, heading = self._actions.evidence(int(source), by, language=invocation.locale), "evidence"
        view = await load_evidence_or_denial(loading, translate(heading, invocation.locale))
        await self._replies.change(
            invocation, build_evidence_message(view, source, page, invocation.locale, self._zone)
        )

    async def _load_sources(self, invocation: DiscordInvocation, by: Asker) -> EvidenceView:
        try:
            conversation = await self._intake.conversation(invocation)
        except StorageError as error:
            raise ActionDenied(translate("acting_unavailable", invocation.locale)) from error
        return await self._actions.sources(conversation, by, language=invocation.locale)

    async def _act(self, invocation: DiscordInvocation, action: ButtonAction, ticket: int) -> None:
        """Perform an action, and post its outcome. An admin who rated an answer up can then make it an example."""
        await self._replies.accept(invocation)
        by = await self.by(invocation)
        words = await self._perform(invocation, action, ticket, by)
        offered = action is ButtonAction.UP and await self._buttons.offers_example(ticket, by)
        offer = build_buttons([[build_example_button(ticket, invocation.locale)]]) if offered else []
        await self._replies.add(invocation, words, *offer)
