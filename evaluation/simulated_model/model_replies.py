"""Write the simulated model's replies, in the format that the prompt requests and at the set length. Pure.

Notes are verbatim sentences of passages, so that the local check accepts them. Sentences of a draft are notes with a
few more words, so that each must be judged. The model's own claims have numbers that occur in no passage.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import Any

from evaluation.simulated_model.chat_protocol import get_schema
from evaluation.simulated_model.model_habits import spoil_reply
from evaluation.simulated_model.model_pace import CHARACTERS_A_TOKEN, ReplyLength, SimulatedModel, count_tokens
from pipeline.llm.model import ChatMessage
from pipeline.support.verdict_look import LOOK, LOOK_FIELDS
from storage.language.sentences import sentence_spans
from storage.language.words import content_terms


def choose_length(kind: str, prompt: str, simulated: SimulatedModel) -> ReplyLength:
    """Return the length of the reply to a prompt. For the same prompt, it is always the same."""
    mean = simulated.lengths.get(kind) or REPLY_LENGTHS[kind]
    if not simulated.spread:
        return mean
    random = seed_random(kind, prompt, simulated.seed)
    return ReplyLength(max(1, round(random.gauss(mean.tokens, simulated.spread * mean.tokens))), mean.items)


def seed_random(kind: str, prompt: str, seed: int) -> Random:
    """Return a random generator whose numbers depend only on the prompt, the kind of reply, and the seed."""
    return Random(hashlib.sha256(f"{seed}\0{kind}\0{prompt}".encode("utf-8", "replace")).digest())


def detect_kind(asked: Mapping[str, Any]) -> str:
    """Return the kind of reply that a request asks for, as a name in `REPLY_KINDS`."""
    fields, instruction = get_schema(asked).get("properties", {}), asked["messages"][0]["content"]
    by_words = (kind for kind in REPLY_KINDS if re.search(kind.words, instruction, re.MULTILINE))
    by_schema = [kind for kind in REPLY_KINDS if kind.field and kind.field in fields]
    return next((kind for kind in by_words if not by_schema or kind in by_schema), *by_schema[-1:]).name


_AT_MOST = re.compile(r"^\(At most (\d+)\.\)$", re.MULTILINE)
_ASKED = re.compile(r"^User: (.*)$", re.MULTILINE)
SENTENCE_LINE = re.compile(r"^(\d+): (.*)$", re.MULTILINE)
"""A numbered sentence in a prompt; the next two are a claim, with or without a number, and a note."""
CLAIM_LINE = re.compile(r"^Claim(?: (\d+))?: (.*)$", re.MULTILINE)
NOTE_LINE = re.compile(r"^\[(\d+)\] (.*?)(?: \(from: .*\))?$", re.MULTILINE)
_DRAFTED = re.compile(r"^(.*\[\d+\].*)$", re.MULTILINE)
NEEDED = 0.25  # how often the model calls its notes insufficient
SCORES = (40, 90)  # for a bad and a good draft, equally often
_ASPECTS_OF_DRAFTS = ("Supported", "Complete")
_CRITERIA = ("Relevant", "Natural", "Non-repetitive", "Temporally correct")
_SMALL = re.compile(
    r"\b(?:what|who|when|where|which|how|why|is|are|do|does|did|can|may|must|the|a|an|of|to|in)\b", re.IGNORECASE
)
_ASPECTS = ("allowance", "budget", "contract", "deadline", "doctor", "holiday", "invoice", "meal", "office", "repair")
_DIGIT, _CONDITION = re.compile(r"\d"), re.compile(r"\b(?:only|unless|except|if)\b[^.,;:]*", re.IGNORECASE)
_FEW_WORDS, _ENDS = 4, ("reasoning", "verdict")
_TAIL = ", and that is so"
_FILLING = "as far as anybody who works here has ever said or written about it in so many words"


def write_verdicts(rulings: Sequence[tuple[str, str, str]], prompt: str, reasoning: str = "So it is.") -> str:
    """Write verdicts on a prompt's claims as it requests. A ruling is the claim's number, the verdict, its sentences.

    If there is a single claim, without a number, each part is on a line of its own.
    """
    lines, claims = dict(SENTENCE_LINE.findall(prompt)), dict(CLAIM_LINE.findall(prompt))
    texts = [" ".join(lines.get(number, "") for number in re.findall(r"\d+", named)) for _, _, named in rulings]
    looks = [copy_look(claims.get(ruling[0], ""), text) for ruling, text in zip(rulings, texts, strict=True)]
    if rulings and not rulings[0][0]:
        _, verdict, sentences = rulings[0]
        look = "\n".join(f"{label.capitalize()}: {value}" for label, value in looks[0].items())
        return f"Sentences: {sentences or '-'}\n{look}\nReasoning: {reasoning}\nVerdict: {verdict}"
    return "\n".join(
        f"{claim}. {f'[{sentences}] ' if sentences else ''}{_join_look(look)}; {verdict}"
        for (claim, verdict, sentences), look in zip(rulings, looks, strict=True)
    )


def copy_look(claim: str, text: str) -> Mapping[str, str]:
    """Return what a text says of a claim, copied by common words, as prompts for verdicts request it."""
    words, terms = [word.strip(';:()[]|"“”') for word in text.split()], set(content_terms(claim))
    shared = [word for word in words if terms.intersection(content_terms(word))] or words[:_FEW_WORDS]
    numbers = [" ".join(words[at : at + 2]) for at, word in enumerate(words) if word in shared and _DIGIT.search(word)]
    condition = _CONDITION.search(text)
    parts = (" ".join(shared), ", ".join(numbers), condition[0].strip() if condition else "", "")
    return {label: part or "-" for label, part in zip(LOOK, parts, strict=True)}


def _join_look(look: Mapping[str, str]) -> str:
    return "; ".join(f"{label}: {value}" for label, value in look.items() if value != "-" or label in {"who", "if"})


@dataclass(frozen=True, slots=True)
class SimulatedReply:
    """A text in parts, called stretches, each with its number of tokens. A stretch is one item, such as a claim."""

    stretches: tuple[tuple[str, int], ...]
    cut: bool = False  # whether the server reports that it was cut off

    @property
    def text(self) -> str:
        return "".join(text for text, _ in self.stretches)

    def pieces(self) -> Iterator[str]:
        """Yield the tokens of the text. All tokens of a stretch have about the same length."""
        for text, tokens in self.stretches:
            cuts = [round(len(text) * place / tokens) for place in range(tokens + 1)]
            yield from (text[start:end] for start, end in pairwise(cuts))


def build_reply(asked: Mapping[str, Any], simulated: SimulatedModel) -> SimulatedReply:
    """Return the reply to a prompt, after the habit that is drawn for it; the same each time."""
    reply, prompt = _build_good_reply(asked, simulated), "\n".join(one["content"] for one in asked["messages"][-3:])
    spoilt = spoil_reply(asked, reply.text, simulated.habits, seed_random("habit", prompt, simulated.seed))
    if spoilt.text == reply.text and not spoilt.cut:
        return reply
    return SimulatedReply(((spoilt.text, count_tokens(spoilt.text)),), spoilt.cut)


def _build_good_reply(asked: Mapping[str, Any], simulated: SimulatedModel) -> SimulatedReply:
    kind = _BY_NAME[detect_kind(asked)]
    turn = asked["messages"][-1]["content"]
    length = choose_length(kind.name, turn, simulated)
    stretches = kind.make(turn, length, seed_random(kind.name, turn, simulated.seed))
    if kind.to_object and get_schema(asked):
        fitting = json.dumps(kind.to_object("".join(stretches)), ensure_ascii=False)
        return SimulatedReply(((fitting, length.tokens * len(stretches)),))
    return SimulatedReply(tuple((text, length.tokens) for text in stretches))


def _make_query(turn: str, length: ReplyLength, _: Random) -> Sequence[str]:
    frame = "Search: yes\nQuery: {}\nTime: none"
    room = max(12, length.tokens * CHARACTERS_A_TOKEN - len(frame))
    words = _find_topic(turn) or "everything"
    return [frame.format(words[:room].rsplit(" ", 1)[0] if len(words) > room else words)]


def _make_need(turn: str, length: ReplyLength, random: Random) -> Sequence[str]:
    return _make_query(turn, length, random) if random.random() < NEEDED else ["Search: no"]


def _make_bullets(turn: str, length: ReplyLength, random: Random) -> Sequence[str]:
    """Return one stretch for each passage: bullets that repeat some of its sentences."""
    passages = [SENTENCE_LINE.findall(passage) for passage in turn.split("\nFrom: ")]
    chosen = [
        _take_texts(length, [(text, number) for number, text in sentences], random)
        for sentences in passages
        if sentences
    ]
    ended = ["".join(f"- {text} [{number}]\n" for text, number in bullets) for bullets in chosen]
    return [*ended[:-1], ended[-1].rstrip()] if ended else ["None"]


def _make_prose(turn: str, length: ReplyLength, random: Random) -> Sequence[str]:
    about, room, text = _find_topic(turn), length.tokens * CHARACTERS_A_TOKEN, ""
    while len(text) < room:
        text += f"I would say of the {random.choice(_ASPECTS)} of {about} that it is {random.random()}, {_FILLING}. "
    return [text[:room]]


def _make_claims(turn: str, length: ReplyLength, random: Random) -> Sequence[str]:
    """Return one line for each claim. It is padded with filler words to the set length."""
    about = _find_topic(turn)
    room, most = length.tokens * CHARACTERS_A_TOKEN, _AT_MOST.search(turn)
    items = int(most[1]) if most else length.items
    aspects, lines = random.sample(_ASPECTS, len(_ASPECTS)), list[str]()
    for place in range(items):
        claim = f"- The {aspects[place % len(aspects)]} of {about[: room // 2]} is {random.randint(11_000, 99_000):,}"
        filling = f", {_FILLING}"[: max(0, room - len(claim) - len(". | none\n"))].rsplit(" ", 1)[0]
        lines.append(f"{claim}{filling}. | none" + ("\n" if place < items - 1 else ""))
    return lines


def _make_verdict(turn: str, length: ReplyLength, random: Random) -> Sequence[str]:
    numbers = [number for number, _ in SENTENCE_LINE.findall(turn)]
    if not numbers:
        return [write_verdicts([("", "NOT ENOUGH INFO", "")], turn, "Nothing is said of it.")]
    number = random.choice(numbers)
    rest = write_verdicts([("", "SUPPORTS", number)], turn, "")
    reasoning = f"Sentence {number} says so, {_FILLING}"[: max(length.tokens * CHARACTERS_A_TOKEN - len(rest), 32)]
    return [write_verdicts([("", "SUPPORTS", number)], turn, f"{reasoning.rsplit(' ', 1)[0]}.")]


def _make_verdicts(turn: str, _: ReplyLength, random: Random) -> Sequence[str]:
    """Return one line for each claim. It is supported by a sentence that it repeats, or else by a random one."""
    numbered, rulings = SENTENCE_LINE.findall(turn), list[tuple[str, str, str]]()
    for claim, text in CLAIM_LINE.findall(turn):
        numbers = [number for number, sentence in numbered if sentence.strip("#. ") in text] or [
            other for other, _ in numbered
        ]
        rulings.append((claim, *(("SUPPORTS", random.choice(numbers)) if numbers else ("NOT ENOUGH INFO", ""))))
    return write_verdicts(rulings, turn).splitlines(keepends=True) or ["NOT ENOUGH INFO"]


def _make_draft(turn: str, length: ReplyLength, random: Random) -> Sequence[str]:
    notes = [(text, number) for number, text in NOTE_LINE.findall(turn)]
    chosen = _take_texts(length, notes, random)
    sentences = ((text[start:end], number) for text, number in chosen for start, end in sentence_spans(text))
    return [" ".join(f"{text.rstrip('.')}{_TAIL} [{number}]." for text, number in sentences) or "NOTHING"]


def _make_feedback(_: str, length: ReplyLength, __: Random) -> Sequence[str]:
    room = length.tokens * CHARACTERS_A_TOKEN // len(_CRITERIA)
    lines = []
    for name in _CRITERIA:
        remark = f"It could be said more plainly, {_FILLING}"[: max(16, room - len(name) - len(": . 40/100\n"))]
        lines.append(f"{name}: {remark.rsplit(' ', 1)[0]}. 40/100")
    return ["\n".join(lines)]


def _make_criticism(_: str, __: ReplyLength, random: Random) -> Sequence[str]:
    score = random.choice(SCORES)
    return ["\n".join(f"{name}: It could be said more plainly. {score}/100" for name in _ASPECTS_OF_DRAFTS)]


def _make_revision(turn: str, _: ReplyLength, __: Random) -> Sequence[str]:
    return ["".join(_DRAFTED.findall(turn)[-1:]) or "NOTHING"]


def _find_topic(turn: str) -> str:
    """Return the content words of the user's last message."""
    questions = _ASKED.findall(turn)
    return " ".join(_SMALL.sub(" ", questions[-1] if questions else "").strip("?!. ").split())


def _take_texts(length: ReplyLength, texts: Sequence[tuple[str, str]], random: Random) -> Sequence[tuple[str, str]]:
    """Return consecutive texts that start at random, and whose total length is near the set length."""
    room, taken, start = length.tokens * CHARACTERS_A_TOKEN, list[tuple[str, str]](), 0
    if len(texts) > 1 and sum(len(text) for text, _ in texts) > 2 * room:
        start = random.randrange(len(texts) // 2)
    for text, number in texts[start:]:
        if taken and room < len(text) // 2:
            break
        taken.append((text, number))
        room -= len(text)
    return taken


def _read_label(text: str, name: str) -> str:
    match = re.search(rf"^{name}: (.*)$", text, re.MULTILINE)
    return match[1] if match else ""


def _list_items(text: str) -> Iterator[str]:
    return (line.removeprefix("- ") for line in text.splitlines() if line.startswith("- "))


def _bullet_object(line: str) -> dict[str, Any]:
    statement, _, number = line.rpartition(" [")
    return {"text": statement, "sentences": [int(number.rstrip("]"))]}


def _claim_object(line: str) -> dict[str, Any]:
    claim, _, time = line.rpartition(" | ")
    return {"text": claim, "time": time}


def _verdict_object(text: str) -> dict[str, Any]:
    numbers = [int(number) for number in re.findall(r"\d+", _read_label(text, "Sentences"))]
    copied = {name: _read_label(text, label.capitalize()) for name, label in zip(LOOK_FIELDS, LOOK, strict=True)}
    return {"sentences": numbers, **copied, **{name: _read_label(text, name.capitalize()) for name in _ENDS}}


def _query_object(text: str) -> dict[str, Any]:
    return {"search": "Search: yes" in text, "query": _read_label(text, "Query"), "time": "none"}


def _criticism_object(text: str) -> dict[str, Any]:
    remarks = ((name.lower(), _read_label(text, name).rpartition(" ")) for name in _ASPECTS_OF_DRAFTS)
    return {name: {"remark": remark, "score": int(score.removesuffix("/100"))} for name, (remark, _, score) in remarks}


def _feedback_object(text: str) -> dict[str, Any]:
    remarks = {name.lower().replace("-", "_").replace(" ", "_"): _read_label(text, name) for name in _CRITERIA}
    return {name: {"remark": remark.rpartition(" ")[0], "score": 40} for name, remark in remarks.items()}


@dataclass(frozen=True, slots=True)
class ReplyKind:
    """A kind of reply: how to recognise its prompts, its usual length, and how to write one."""

    name: str
    words: str  # a pattern that only the instruction of its prompts matches
    length: ReplyLength  # about that of current small models
    make: Callable[[str, ReplyLength, Random], Sequence[str]]
    """Writes a reply to the last message of the prompt, in stretches."""
    field: str = ""  # a field that only its schema has, if it can be requested as JSON
    to_object: Callable[[str], dict[str, Any]] | None = None
    """Returns the reply as a JSON object that fits the schema."""


REPLY_KINDS: tuple[ReplyKind, ...] = (
    ReplyKind("need", r"whether the notes are enough", ReplyLength(15), _make_need, "search", _query_object),
    ReplyKind("criticism", r"You criticise your", ReplyLength(40), _make_criticism, "supported", _criticism_object),
    ReplyKind("query", r"^Search: yes or no", ReplyLength(15), _make_query, "search", _query_object),
    ReplyKind(
        "summarise", r"- statement \[numbers\]", ReplyLength(40), _make_bullets, "bullets",
        lambda text: {"bullets": [_bullet_object(line) for line in _list_items(text)]},
    ),
    ReplyKind(
        "split", r"- claim \| time", ReplyLength(25, items=3), _make_claims, "claims",
        lambda text: {"claims": [_claim_object(line) for line in _list_items(text)]},
    ),
    ReplyKind("verify", r"^Verdict: SUPPORTS", ReplyLength(45), _make_verdict, "verdict", _verdict_object),
    ReplyKind("verdicts", r"^1\. \[2, 3\] who:", ReplyLength(20), _make_verdicts),
    ReplyKind("feedback", r"remark\. score/100", ReplyLength(60), _make_feedback, "relevant", _feedback_object),
    ReplyKind("continuation", r"You continue a reply", ReplyLength(40), _make_draft),
    ReplyKind("refine", r"You revise the draft", ReplyLength(120), _make_revision),
    ReplyKind("draft", r"numbers of the notes", ReplyLength(120), _make_draft),
    ReplyKind("generate", "", ReplyLength(125), _make_prose),
)  # fmt: skip
"""All kinds of replies; a prompt has the first kind whose words its instruction matches, or else the last."""
_UNSCRIPTED = frozenset({"need", "criticism"})  # kinds for which models scripted by stage have no lines
REPLY_LENGTHS: Mapping[str, ReplyLength] = {kind.name: kind.length for kind in REPLY_KINDS}
_BY_NAME: Mapping[str, ReplyKind] = {kind.name: kind for kind in REPLY_KINDS}


def reply_unscripted(messages: Sequence[ChatMessage]) -> str | None:
    """Return the reply to a prompt that scripts by stage do not cover; None for other prompts."""
    request = {"messages": [{"role": message.role, "content": message.text} for message in messages]}
    return build_reply(request, SimulatedModel()).text if detect_kind(request) in _UNSCRIPTED else None
