"""Handle buttons, pages of evidence, comments and their modals in Slack."""

import asyncio
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from functools import partial
from typing import Any, Literal

from bot.access import Asker
from bot.answering.introduction import Introduction, load_introduction, render_introduction
from bot.app import App
from bot.desk.answer_actions import MAX_COMMENT, AnswerActions, Opinion, load_evidence_or_denial
from bot.desk.channel_command import ChannelCommand
from bot.desk.channel_settings import find_searchable_corpora
from bot.desk.desk import Desk
from bot.desk.platform_port import PlatformError
from bot.platforms.shared.api_client import call_or_log
from bot.platforms.shared.button_actions import ButtonActions, explain_refusal, list_ratings, parse_opinion
from bot.platforms.shared.payload_text import Json, JsonObject, read_object, replace_pieces
from bot.platforms.slack import events
from bot.platforms.slack.client import OPEN_VIEW, PUBLISH_HOME, SUGGEST_PROMPTS, UPDATE_VIEW, SlackApiClient
from bot.platforms.slack.directory import SlackDirectory
from bot.platforms.slack.events import is_direct, is_ts
from bot.platforms.slack.intake import SlackInvocation
from bot.platforms.slack.messages import (
    MODAL,
    NOTHING,
    PREFIX,
    build_actions,
    build_home,
    build_label,
    build_rich_text,
    escape_mrkdwn,
    parse_action,
    render_plain,
)
from bot.views.catalog import translate
from bot.views.message_layout import MessagePage, MessagePart, PartKind, paginate_evidence
from bot.views.sanitize import WORD_JOINER, count_units
from bot.views.turn_view import ButtonAction, EvidenceView
from bot.views.view_reducer import build_example_button, shorten_line
from storage.errors import StorageError
from storage.language.lazy_pattern import lazy_compile

log = logging.getLogger(__name__)

EVIDENCE, COMMENT = f"{PREFIX}evidence", f"{PREFIX}comment"  # the callback ids
BACK, ON = f"{PREFIX}page:back", f"{PREFIX}page:on"  # the action ids of the buttons that turn pages
PATIENT_SECONDS = 1.0  # that evidence may take before a modal announces it
_SEPARATOR = "@"  # between a modal's source and its channel
_TITLE = 24
_HEADER = 150


def build_evidence_modal(view: EvidenceView, source: str, page: int, language: str, zone: tzinfo = UTC) -> JsonObject:
    """Return a modal with one page of an answer's evidence; the nearest page if `page` does not exist."""
    pages = paginate_evidence(view, MODAL, language, zone)
    page = min(max(page, 0), len(pages) - 1)
    page_buttons = [_page_buttons(source, page, len(pages))] if len(pages) > 1 else []
    return _build_modal(EVIDENCE, view.heading, [*_modal_blocks(pages[page], view.heading), *page_buttons], language)


def parse_page_turn(value: str) -> tuple[str, int] | None:
    """Parse a page button's value into its source (a ticket and a channel) and the page; None if it is invalid."""
    source, _, page = value.rpartition(":")
    return (source, int(page)) if source and page.isascii() and page.isdigit() else None


def build_comment_modal(
    ticket: int, opinion: Literal["up", "down", "rate"], language: str, *, at: str = ""
) -> JsonObject:
    """Return the modal that asks for a comment; `parse_comment` parses it. `at`: the channel where it was opened.

    With "rate", it asks for a rating from 1 to 5, too.
    """
    field: JsonObject = {"type": "plain_text_input", "action_id": "text", "multiline": True, "max_length": MAX_COMMENT}
    label = build_label(translate("slack_comment_label", language), 2_000)
    block = {"type": "input", "block_id": "comment", "optional": True, "label": label, "element": field}
    option = {"text": build_label(translate("missed", language)), "value": "missed"}
    ticks: JsonObject = {"type": "checkboxes", "action_id": "missed", "options": [option]}
    heading = translate("comment", language)
    missed = {"type": "input", "block_id": "missed", "optional": True, "label": build_label(heading), "element": ticks}
    if opinion == "rate":
        options = [{"text": build_label(text), "value": rating} for rating, text in list_ratings(language)]
        scale: JsonObject = {"type": "radio_buttons", "action_id": "rating", "options": options}
        missed = {"type": "input", "block_id": "rating", "label": build_label(heading), "element": scale}
        missed["hint"] = build_label(translate("study_notice", language), 2_000)
    modal = _build_modal(COMMENT, heading, [missed, block], language, close="slack_cancel")
    submit = build_label(translate("slack_send", language), _TITLE)
    metadata = f"{opinion}:{ticket}{f'{_SEPARATOR}{at}' if at else ''}"
    return {**modal, "submit": submit, "private_metadata": metadata}


def parse_comment(view: JsonObject) -> tuple[int, Opinion, str] | None:
    """Parse a submitted comment modal into ticket, rating and comment; None for another modal."""
    opinion, _, ticket = str(view.get("private_metadata", "")).partition(":")
    if view.get("callback_id") != COMMENT or opinion not in {"up", "down", "rate"} or not ticket.isdigit():
        return None
    values = view.get("state", {}).get("values", {})
    text = values.get("comment", {}).get("text", {}).get("value") or ""
    missed = values.get("missed", {}).get("missed", {}).get("selected_options")
    chosen = values.get("rating", {}).get("rating", {}).get("selected_option") or {}
    read = parse_opinion(opinion, missed=bool(missed), rating=str(chosen.get("value")))
    return (int(ticket), read, str(text)) if read else None


def build_notice_modal(heading: str, text: str, language: str) -> JsonObject:
    page = paginate_evidence(EvidenceView(heading, "", text=text), MODAL, language)[0]
    return _build_modal(EVIDENCE, heading, _modal_blocks(page, heading), language)


def _build_modal(
    name: str, heading: str, blocks: list[JsonObject], language: str, *, close: str = "slack_close"
) -> JsonObject:
    shown = blocks or [{"type": "section", "text": {"type": "plain_text", "text": NOTHING}}]
    title, close = build_label(heading.strip() or NOTHING, _TITLE), translate(close, language)
    return {"type": "modal", "callback_id": name, "title": title, "close": build_label(close, _TITLE), "blocks": shown}


def _modal_blocks(page: MessagePage, title: str) -> list[JsonObject]:
    """Return a page's blocks without its title, which the modal shows itself, and with a divider before each claim."""
    shown = list[JsonObject]()
    for part in page.parts:
        block = None if part.kind is PartKind.HEADING and _plain_text(part) == title else _modal_block(part)
        if block and shown:
            begins = part.kind is PartKind.CLAIM and shown[-1]["type"] != "header"
            shown += [{"type": "divider"}] if begins or part.kind is PartKind.HEADING else []
        shown += [block] if block else []
    return shown


def _modal_block(part: MessagePart) -> JsonObject | None:
    """Return a part as a block; a claim becomes the heading of its evidence."""
    if part.kind is PartKind.HEADING and 0 < count_units(text := render_plain(_plain_text(part))) <= _HEADER:
        return {"type": "header", "text": {"type": "plain_text", "text": text}}
    return build_rich_text(MessagePart(PartKind.LABEL, part.runs) if part.kind is PartKind.CLAIM else part)


def _plain_text(part: MessagePart) -> str:
    return "".join(run.text for run in part.runs)


def _page_buttons(source: str, page: int, pages: int) -> JsonObject:
    turns = [(BACK, page - 1, f"◀ {page}/{pages}"), (ON, page + 1, f"{page + 2}/{pages} ▶")]
    shown = [
        {"type": "button", "action_id": action, "text": build_label(text), "value": f"{source}:{to}"}
        for action, to, text in turns
        if 0 <= to < pages
    ]
    return {"type": "actions", "elements": shown}


@dataclass(frozen=True, slots=True)
class ButtonPress:
    """A press of a button: which one, by whom, and how to reply."""

    name: str
    value: str
    user: str
    channel: str
    trigger: str
    url: str = ""
    thread: str = ""
    view: str = ""  # the button's modal; empty if it is in a message


def parse_press(body: Json) -> ButtonPress | None:
    """Parse `block_actions`; None if it is invalid. Pure."""
    actions, container, view = body.get("actions"), read_object(body, "container"), read_object(body, "view")
    first = actions[0] if isinstance(actions, list) and actions and isinstance(actions[0], Mapping) else {}
    message = read_object(body, "message")
    thread = container.get("thread_ts") or message.get("thread_ts")
    press = ButtonPress(
        str(first.get("action_id", "")),
        str(first.get("value", "")),
        str(read_object(body, "user").get("id", "")),
        str(read_object(body, "channel").get("id") or container.get("channel_id") or ""),
        str(body.get("trigger_id", "")),
        str(body.get("response_url", "")),
        str(thread) if is_ts(thread) else "",
        str(view.get("id", "")),
    )
    return press if press.name and press.user else None


class SlackActions:
    """Performs what users of one workspace do with answers: press buttons, comment, turn pages."""

    def __init__(
        self, desk: Desk, acting: AnswerActions, call: SlackApiClient, directory: SlackDirectory, zone: tzinfo
    ) -> None:
        self._buttons, self._actions = ButtonActions(desk, acting), acting
        self._call, self._directory, self._zone = call, directory, zone

    async def press(self, press: ButtonPress) -> None:
        """Perform a button's action, and reply to the user who pressed it."""
        if press.view:
            await self._turn_page(press)
            return
        button = parse_action(press.name, press.value)
        if button is None:
            return
        by, language = await self._identify(press.user, press.channel)
        if words := await explain_refusal(self._perform(button[0], button[1], press, by, language), language):
            rated_up = button[0] is ButtonAction.UP
            await self._tell(press, words, await self._build_offer(button[1], by, language) if rated_up else [])

    async def comment(self, body: Json) -> Json | None:
        """Store the comment of a submitted modal, and return a modal with the outcome; None if it is not ours."""
        view = read_object(body, "view")
        metadata, _, channel = str(view.get("private_metadata", "")).partition(_SEPARATOR)
        comment = parse_comment({**view, "private_metadata": metadata})
        if comment is None:
            return None
        ticket, opinion, text = comment
        by, language = await self._identify(str(read_object(body, "user").get("id", "")), channel)
        words = await explain_refusal(self._actions.feedback(ticket, by, opinion, text, language=language), language)
        return build_notice_modal(translate("comment", language), words, language)

    async def _identify(self, user: str, channel: str) -> tuple[Asker, str]:
        """Return the user of a channel as an asker with looked-up facts, and their language."""
        asker = self._directory.asker(channel, user, direct=is_direct(channel))
        by, language = await asyncio.gather(asker, self._directory.language(user))
        return by, language or "en"

    async def _perform(self, action: ButtonAction, ticket: int, press: ButtonPress, by: Asker, language: str) -> str:
        """Perform an action and return the sentence for its user; empty if they see the effect anyway."""
        if action is ButtonAction.EVIDENCE:
            shown = await self._show_evidence(ticket, press, by, language)
            return "" if shown else translate("acting_unavailable", language)
        if action is ButtonAction.RATE:
            asked = await self._open_modal(press, build_comment_modal(ticket, "rate", language, at=press.channel))
            return "" if asked else translate("acting_unavailable", language)
        words = await self._buttons.perform(
            action,
            ticket,
            by,
            language,
            find_name=partial(self._directory.name, press.user),
            not_yours=translate("slack_not_yours", language),
        )
        if action is ButtonAction.DOWN:
            await self._open_modal(press, build_comment_modal(ticket, "down", language, at=press.channel))
        return words

    async def _show_evidence(self, ticket: int, press: ButtonPress, by: Asker, language: str) -> bool:
        """Show the evidence in a modal; return whether Slack opened it.

        A refusal raises `ActionDenied` if no modal is open yet; otherwise the modal shows the refusal.
        """
        loading = asyncio.ensure_future(self._actions.evidence(ticket, by, language=language))
        done, _ = await asyncio.wait({loading}, timeout=PATIENT_SECONDS)
        source = f"{ticket}{_SEPARATOR}{press.channel}"
        if done:
            modal = build_evidence_modal(loading.result(), source, 0, language, self._zone)
            return bool(await self._open_modal(press, modal))
        heading = translate("evidence", language)
        waiting = build_notice_modal(heading, translate("looking", language), language)
        opened = await self._open_modal(press, waiting)
        view = await load_evidence_or_denial(loading, heading)
        if opened:
            await self._update_modal(opened, build_evidence_modal(view, source, 0, language, self._zone))
        return bool(opened)

    async def _turn_page(self, press: ButtonPress) -> None:
        page_turn = parse_page_turn(press.value)
        ticket, _, channel = (page_turn[0] if page_turn else "").partition(_SEPARATOR)
        if page_turn is None or not ticket.isdigit():
            return
        by, language = await self._identify(press.user, channel)
        heading = translate("evidence", language)
        view = await load_evidence_or_denial(self._actions.evidence(int(ticket), by, language=language), heading)
        await self._update_modal(
            press.view, build_evidence_modal(view, page_turn[0], page_turn[1], language, self._zone)
        )

    async def _open_modal(self, press: ButtonPress, modal: Json) -> str:
        """Open a modal and return its id; empty if Slack refuses."""
        call = self._call(OPEN_VIEW, {"trigger_id": press.trigger, "view": modal})
        answer = await call_or_log(call, "opening a modal failed") or {}
        return str((answer.get("view") or {}).get("id", ""))

    async def _update_modal(self, view: str, modal: Json) -> None:
        await call_or_log(self._call(UPDATE_VIEW, {"view_id": view, "view": modal}), "updating a modal failed")

    async def _build_offer(self, ticket: int, by: Asker, language: str) -> list[JsonObject]:
        """Return the button by which an admin makes an answer an example; nothing for others."""
        is_offered = await self._buttons.offers_example(ticket, by)
        return build_actions([[build_example_button(ticket, language)]]) if is_offered else []

    async def _tell(self, press: ButtonPress, words: str, buttons: Sequence[Json] = ()) -> None:
        blocks = [{"type": "section", "text": {"type": "mrkdwn", "text": escape_mrkdwn(words)}}, *buttons]
        thread = {"thread_ts": press.thread} if press.thread else {}
        body = {"response_type": "ephemeral", "replace_original": False, "text": escape_mrkdwn(words), **thread}
        body |= {"blocks": blocks} if buttons else {}
        await call_or_log(self._call.respond(press.url, body), "reply to a user failed")


_SETTINGS_PIECES = lazy_compile(r"slack:[A-Z0-9]+/(?P<person>[UW][A-Z0-9]{1,30})\b|`(?P<typed>/footnote [\w ]+)`")


def render_settings(text: str) -> str:
    """Return an answer about channel settings as mrkdwn; its mentions ping no one."""
    return replace_pieces(text, _SETTINGS_PIECES, _render_piece, _separate_code)


def _render_piece(piece: re.Match[str]) -> str:
    return f"<@{piece['person']}>" if piece["person"] else f"`{piece['typed']}`"


def _separate_code(text: str) -> str:
    """Escape a text that follows code.

    An invisible joiner before a leading comma or stop is removed, because it would break the code's format.
    """
    escaped = escape_mrkdwn(text)
    return escaped.lstrip(WORD_JOINER) if text[:1] in {",", "."} else escaped


MAX_PROMPT = 75  # characters of a suggested prompt that are shown


class SlackNotices:
    """Answers `/footnote` and empty commands, and greets users who open a chat or the App Home."""

    def __init__(self, app: App, call: SlackApiClient, directory: SlackDirectory, configuring: ChannelCommand) -> None:
        self._app, self._call, self._directory, self._configuring = app, call, directory, configuring

    async def configure(self, command: Mapping[str, Any]) -> str:
        """Return the answer to `/footnote` as mrkdwn."""
        channel, user = str(command.get("channel_id", "")), str(command.get("user_id", ""))
        lookup = self._directory.asker(channel, user, direct=events.is_direct(channel))
        by, language = await asyncio.gather(lookup, self._directory.language(user))
        return render_settings(await self._configuring.answer(str(command.get("text") or ""), by, language or "en"))

    async def usage(self, invoked: SlackInvocation) -> str:
        language = await self._directory.language(invoked.user)
        return escape_mrkdwn(translate(f"slack_{invoked.task}_usage", language or "en"))

    async def suggest(self, opened: events.AssistantOpened) -> None:
        """Suggest first questions to a user who opens the chat."""
        try:
            introduction, language = await self._introduce(opened.channel, opened.user)
            questions = (
                translate("intro_question", language),
                *(render_plain(example.text) for example in introduction.questions),
            )
            facts: dict[str, Any] = {
                "channel_id": opened.channel,
                "title": translate("slack_prompts", language),
                "prompts": [
                    {"title": shorten_line(question, MAX_PROMPT), "message": question} for question in questions
                ],
            }
            # Without a thread: Slack would drop the prompts of an agent's chat.
            await self._call(SUGGEST_PROMPTS, facts)
        except (PlatformError, StorageError) as error:
            log.warning("setting suggested prompts failed", extra={"cause": str(error)})

    async def publish_home(self, opened: events.AssistantOpened) -> None:
        """Show a user what the bot is, what they may read, and what they could ask."""
        try:
            introduction, language = await self._introduce(opened.channel, opened.user)
            text = render_introduction(introduction, language, self._app.settings.zone)
            await self._call(PUBLISH_HOME, {"user_id": opened.user, "view": build_home(text, self._app.settings.zone)})
        except (PlatformError, StorageError) as error:
            log.warning("publishing the App Home failed", extra={"cause": str(error)})

    async def _introduce(self, channel: str, user: str) -> tuple[Introduction, str]:
        """Return our introduction for a user's DM, and their language. Raises `StorageError`."""
        lookup = self._directory.asker(channel, user, direct=True)
        by, spoken = await asyncio.gather(lookup, self._directory.language(user))
        readable = await find_searchable_corpora(self._app, by)
        return await load_introduction(self._app.manifest, readable, spoken or "en"), spoken or "en"
