"""Render a view as Mattermost's posts, with buttons or reactions and with marks in their properties; pure.

Text is escaped once, in the last step. Lengths are counted in code points, as Mattermost does. The server sends pressed
buttons to us over HTTP; without an address for this, reactions are used.
"""

import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, tzinfo
from types import MappingProxyType

from bot.desk.answer_actions import MAX_COMMENT, Opinion
from bot.platforms.shared.button_actions import list_ratings
from bot.platforms.shared.markdown import MarkdownDialect
from bot.platforms.shared.payload_text import Json, JsonObject, read_object
from bot.views.catalog import translate
from bot.views.message_layout import (
    MessageLimits,
    MessagePage,
    MessagePart,
    TextRun,
    TextStyle,
    paginate_evidence,
    paginate_view,
)
from bot.views.sanitize import WORD_JOINER, defang_text
from bot.views.turn_view import Button, ButtonAction, EvidenceView, View
from storage.language.lazy_pattern import lazy_compile

Names = Mapping[str, str]
"""The names of users to mention, by id."""

# A backslash before a letter is literal in Mattermost, as in CommonMark; two would show as two.
_FORMATTING = lazy_compile(r"\\(?!\w)|[`*_~|{}\[\]()>#-]")
_CHANNEL = lazy_compile(r"~(?=\S|\Z)")


def escape_markdown(text: str) -> str:
    """Escape a text so that Mattermost shows the same words, without pings, links or formatting."""
    return _FORMATTING.sub(r"\\\g<0>", _CHANNEL.sub(f"~{WORD_JOINER}", defang_text(text)))


_DIALECT = MarkdownDialect(escape_markdown, link="[{}]({})")
format_link = _DIALECT.format_link

_PERSON = lazy_compile(r"[a-z0-9]{26}")
_NAME = lazy_compile(r"[a-z0-9][a-z0-9._-]{0,63}", re.IGNORECASE)


def render_markdown(part: MessagePart, names: Names) -> str:
    """Return a part as Mattermost's Markdown; empty if nothing of it is visible."""

    def format_mention(run: TextRun) -> str:
        is_person = run.style is TextStyle.PERSON and _PERSON.fullmatch(run.text)
        return f"@{names[run.text]}" if is_person and _NAME.fullmatch(names.get(run.text, "")) else ""

    return _DIALECT.render(part, format_mention)


def measure_markdown(text: str) -> int:
    return len(escape_markdown(text))


LIMITS = MessageLimits(message=4_000, parts=200, part=4_000, row=8, measure=measure_markdown, markup=64, line=6, gap=2)
"""Accepted by every server, and shown by clients with little folding; newer servers accept four times as much."""
NOTHING = "…"

EMOJI: Mapping[ButtonAction, str] = MappingProxyType(
    {
        ButtonAction.STOP: "octagonal_sign",
        ButtonAction.EVIDENCE: "mag",
        ButtonAction.UP: "+1",
        ButtonAction.DOWN: "-1",
        ButtonAction.ASK: "raising_hand",
        ButtonAction.SHARE: "loudspeaker",
        ButtonAction.RETRACT: "wastebasket",
        ButtonAction.EXAMPLE: "star",
    }
)
_SHOWN: Mapping[ButtonAction, str] = MappingProxyType(
    {
        ButtonAction.STOP: "🛑",
        ButtonAction.EVIDENCE: "🔍",
        ButtonAction.UP: "👍",
        ButtonAction.DOWN: "👎",
        ButtonAction.RATE: "1️⃣–5️⃣",
        ButtonAction.ASK: "🙋",
        ButtonAction.SHARE: "📢",
        ButtonAction.RETRACT: "🗑",
    }
)
_ACTIONS = {emoji: action for action, emoji in EMOJI.items()} | {
    "thumbsup": ButtonAction.UP,
    "thumbsdown": ButtonAction.DOWN,
    "stop_sign": ButtonAction.STOP,
    "mag_right": ButtonAction.EVIDENCE,
}
_TONE = lazy_compile(r"_(?:light|medium_light|medium|medium_dark|dark)_skin_tone\Z")


RATINGS: Mapping[str, Opinion] = MappingProxyType(
    {"zero": "0", "one": "1", "two": "2", "three": "3", "four": "4", "five": "5"}
)


def list_emoji(buttons: Iterable[Button]) -> list[str]:
    """Return the reactions that perform these actions."""
    kinds = [list(RATINGS)[1:] if button.action is ButtonAction.RATE else [EMOJI[button.action]] for button in buttons]
    return [emoji for group in kinds for emoji in group]


def read_rating(name: str, post: Json) -> Opinion | None:
    """Return the rating of an emoji beneath a post; None if it is not one, or if the post asks for none."""
    asks = _SHOWN[ButtonAction.RATE] in str(read_object(post, "props").get("attachments"))
    return RATINGS.get(name) if asks else None


def read_emoji(name: str) -> ButtonAction | None:
    """Return the action of an emoji, in any skin tone; None if it has none."""
    return _ACTIONS.get(_TONE.sub("", name.lower()))


@dataclass(frozen=True, slots=True)
class MattermostPost:
    text: str
    buttons: tuple[Button, ...] = ()


def render_messages(view: View, zone: tzinfo = UTC, names: Names = MappingProxyType({})) -> tuple[MattermostPost, ...]:
    """Return the posts that show a complete view: at least one."""
    return tuple(_render_page(page, names) for page in paginate_view(view, LIMITS, zone))


def render_first(view: View, zone: tzinfo = UTC) -> MattermostPost:
    """Return one post with the start of an unfinished view and all its buttons."""
    pages = paginate_view(view, LIMITS, zone)
    return _render_page(MessagePage(pages[0].parts, pages[-1].rows), {})


def render_evidence(view: EvidenceView, language: str, zone: tzinfo) -> tuple[MattermostPost, ...]:
    return tuple(_render_page(page, {}) for page in paginate_evidence(view, LIMITS, language, zone))


def _render_page(page: MessagePage, names: Names) -> MattermostPost:
    text = "\n\n".join(filter(None, (render_markdown(part, names) for part in page.parts)))
    return MattermostPost(text or NOTHING, tuple(button for row in page.rows for button in row))


MARK = "footnote"


@dataclass(frozen=True, slots=True)
class PostMark:
    """Stored in each post of ours, to find it again and to act on reactions to it.

    `key`: the hash of the question's key; `page`: which page of the answer this is, from 0; `ticket`: the question's
    ticket, 0 if the post offers no actions.
    """

    key: str
    page: int = 0
    ticket: int = 0


def hash_key(key: str) -> str:
    """Return the hash by which a key's posts are found again; it does not reveal the key."""
    return hashlib.sha256(key.encode()).hexdigest()[:32]


def read_mark(post: Json) -> PostMark | None:
    """Return the mark of our post; None if it has none."""
    mark = read_object(read_object(post, "props"), MARK)
    key, page, ticket = mark.get("key"), mark.get("page"), mark.get("ticket")
    if isinstance(key, str) and isinstance(page, int) and isinstance(ticket, int):
        return PostMark(key, page, ticket)
    return None


@dataclass(frozen=True, slots=True)
class Callback:
    """The address to which the server sends pressed buttons, and the secret by which we sign ours."""

    url: str
    secret: bytes

    def sign(self, action: ButtonAction, ticket: int) -> str:
        return hmac.new(self.secret, f"{action.value}:{ticket}".encode(), hashlib.sha256).hexdigest()

    def sign_form(self, ticket: int, user: str, channel: str) -> str:
        """Return the state of a form. Clients see it, so it is valid only for this user and channel."""
        proof = hmac.new(self.secret, f"form:{ticket}:{user}:{channel}".encode(), hashlib.sha256).hexdigest()
        return f"{ticket}:{proof}"

    def read_form(self, submitted: Json) -> int | None:
        """Return the ticket of a submitted form; None if we did not sign its state for its user and channel."""
        state, user, channel = (str(submitted.get(name, "")) for name in ("state", "user_id", "channel_id"))
        ticket = state.partition(":")[0]
        if not (ticket.isascii() and ticket.isdigit()):
            return None
        ours = self.sign_form(int(ticket), user, channel)
        return int(ticket) if hmac.compare_digest(ours.encode(), state.encode("utf-8", "replace")) else None

    def read(self, context: Json) -> tuple[ButtonAction, int] | None:
        """Return the action and ticket of a pressed button's context; None if we did not sign it."""
        name, ticket, proof = context.get("action"), context.get("ticket"), context.get("proof")
        if name not in set(ButtonAction) or not isinstance(ticket, int) or not isinstance(proof, str):
            return None
        action = ButtonAction(name)
        is_ours = hmac.compare_digest(self.sign(action, ticket).encode(), proof.encode("utf-8", "replace"))
        return (action, ticket) if is_ours else None


def build_rating_form(language: str, state: str) -> JsonObject:
    """Return the dialog that asks for a rating and a comment."""
    options = [{"text": label, "value": rating} for rating, label in list_ratings(language)]
    rate, label = translate("button_rate", language), translate("mattermost_comment_label", language)
    text: JsonObject = {"display_name": label, "name": "text", "type": "textarea", "optional": True}
    scale: JsonObject = {"display_name": rate, "name": "rating", "type": "radio", "options": options}
    elements = [scale, {**text, "max_length": MAX_COMMENT}]
    about = {"title": translate("comment", language), "introduction_text": translate("study_notice", language)}
    return {**about, "elements": elements, "submit_label": rate, "state": state}


def build_props(post: MattermostPost, mark: PostMark | None, callback: Callback | None) -> JsonObject:
    """Return the properties of a post. Attachments, even empty ones, prevent link previews."""
    props: JsonObject = {"unsafe_links": "true", "disable_group_highlight": True, "attachments": []}
    if post.buttons and callback:
        props["attachments"] = [
            {"fallback": "", "actions": [_build_action(button, callback) for button in post.buttons]}
        ]
    elif legend := _build_legend(post.buttons):
        props["attachments"] = [{"fallback": "", "text": legend}]
    if mark:
        props[MARK] = {"key": mark.key, "page": mark.page, "ticket": mark.ticket}
    return props


def _build_action(button: Button, callback: Callback) -> JsonObject:
    context = {
        "action": button.action.value,
        "ticket": button.ticket,
        "proof": callback.sign(button.action, button.ticket),
    }
    style = {"style": "danger"} if button.action is ButtonAction.STOP else {}
    name = " ".join(button.label.split())
    return {
        "id": button.action.value,
        "type": "button",
        "name": name,
        "integration": {"url": callback.url, "context": context},
        **style,
    }


def _build_legend(buttons: Iterable[Button]) -> str:
    """Return a line that explains the reactions beneath a post: adding one performs its action."""
    shown = ((_SHOWN.get(button.action, "⭐"), button.label) for button in buttons)
    return " · ".join(emoji if emoji == label else f"{emoji} {escape_markdown(label)}" for emoji, label in shown)


def build_pending_id(key: str, page: int, instead: str = "") -> str:
    """Return the id by which the server recognises a repeated post. `instead`: the deleted post that it replaces."""
    return hashlib.sha256(f"{key}\n{page}\n{instead}".encode()).hexdigest()[:40]
