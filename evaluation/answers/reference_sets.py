"""Read published sets of conversations with a person's replies, and the knowledge that each reply is based on.

Other replies are skipped. The user names the files; none is in this repository. Their formats are described in:

- Wizard of Wikipedia, Wizard of the Internet: `agents.py` in `parlai/tasks/wizard_of_wikipedia`, and `agents.py` and
  `constants.py` in `parlai/tasks/wizard_of_internet`, of facebookresearch/ParlAI.
- DSTC11 track 5: `data/README.md` of alexa/dstc11-track5.
- OpenDialKG: `README.md` of facebookresearch/opendialkg, and `src/data/convert_opendialkg.py` of ziweiji/RHO.
- OTT-QA: `released_data/dev.traced.json` and the folders in `data` of wenhuchen/OTT-QA. LLM-Augmenter uses it, and its
  answers are traced to passages and cells. CRAG was not chosen: its pages are only "likely relevant".
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from string import capwords
from types import MappingProxyType
from typing import Any, Literal

from evaluation.answers.question_sets import Exam, ExamQuestion, SetText, UnreadableSet, build_set_source
from evaluation.claims.file_rows import FileRow, MalformedRow, explain_faults, parse_json, read_items, read_rows
from evaluation.claims.labelled_claims import detokenize
from evaluation.reports.word_measures import NameIndex
from pipeline.types import Turn
from storage.types import PassageKind

Used = tuple[str, str]  # the id of a text, and the part of it that a reply is based on


@dataclass
class SetBuilder:
    """Collects the texts and replies of a set. Equal texts are stored once."""

    texts: dict[tuple[str, str], SetText] = field(default_factory=dict)
    questions: list[ExamQuestion] = field(default_factory=list)
    names: set[str] = field(default_factory=set)

    def add_text(self, title: str, text: str, kind: PassageKind = PassageKind.PROSE) -> str:
        """Return the id of a text."""
        return self.texts.setdefault((title, text), SetText(str(len(self.texts)), title, text, kind=kind)).id

    def add_reply(self, talk: Sequence[Turn], reply: str, used: Sequence[Used], group: str) -> None:
        """Add a reply to a user's message, the last of `talk`."""
        if used and talk and talk[-1].speaker == "user":
            posed = ExamQuestion(talk[-1].text, (), frozenset(key for key, _ in used), group, tuple(talk[:-1]))
            self.questions.append(replace(posed, reply=reply, knowledge=tuple(dict.fromkeys(part for _, part in used))))

    def build(self, name: str) -> Exam:
        """Return the set. The bot's messages get the titles that they name, as if they cited these texts."""
        titles = frozenset(title for title, _ in self.texts)
        find = cache(NameIndex(titles).find)

        def cite(turn: Turn) -> Turn:
            return replace(turn, titles=tuple(find(turn.text))) if turn.speaker == "bot" else turn

        questions = tuple(replace(posed, earlier=tuple(map(cite, posed.earlier))) for posed in self.questions)
        source = build_set_source([*self.texts.values()], "en")
        return Exam(name, name, source, questions, removable=True, names=titles | self.names)


def read_wizard_of_wikipedia(built: SetBuilder, dialogues: Path) -> None:
    """Read dialogues. The wizard uses a sentence of a passage that was shown earlier in the dialogue."""
    for dialogue in read_items(dialogues, "dialogue"):
        talk, shown = list[Turn](), dict[str, str]()  # passages by id
        topic = dialogue.text("chosen_topic")
        _show(built, shown, topic, dialogue.texts("chosen_topic_passage"))
        for message in dialogue.within("dialog"):
            text, is_wizard = message.text("text"), "Wizard" in message.text("speaker")
            if is_wizard:
                used = [_find_sentence(built, shown, topic, sentence) for sentence in _list_checked(message)]
                built.add_reply(talk, text, used, str(dialogue.line))
            talk.append(Turn("bot" if is_wizard else "user", text))
            for passage in message.within("retrieved_passages"):
                for title in passage.fields:
                    _show(built, shown, title, passage.texts(title))


def _show(built: SetBuilder, shown: dict[str, str], title: str, sentences: Sequence[str]) -> None:
    shown[built.add_text(title, " ".join(sentences))] = " ".join(sentences)


def _list_checked(message: FileRow) -> Iterator[str]:
    for checked in message.within("checked_sentence") if message.fields.get("checked_sentence") else ():
        yield from (text for text in map(checked.text, checked.fields) if text != "no_passages_used")


def _find_sentence(built: SetBuilder, shown: Mapping[str, str], topic: str, sentence: str) -> Used:
    """Return the id of the last passage with a sentence, and the sentence, which is itself a text if none has it."""
    holders = [key for key, passage in shown.items() if sentence in passage]
    return holders[-1] if holders else built.add_text(topic, sentence), sentence


def read_wizard_of_the_internet(built: SetBuilder, dialogues: Path) -> None:
    """Read dialogues. The wizard uses lines of the pages that its searches found."""
    for row in read_rows(dialogues):
        for name, dialogue in row.objects():
            talk = list[Turn]()
            for message in dialogue.within("dialog_history"):
                used = [(key, line) for key, lines in _read_pages(built, message) for line in lines]
                match message.text("action"):
                    case "Apprentice => Wizard":
                        talk.append(Turn("user", message.text("text")))
                    case "Wizard => Apprentice":
                        built.add_reply(talk, message.text("text"), used, name)
                        talk.append(Turn("bot", message.text("text")))


def _read_pages(built: SetBuilder, message: FileRow) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the id of each page of a message, and its selected lines. The first selection marks that none is used."""
    for context in message.within("context") if message.fields.get("context") else ():
        selected, pages = context.fields.get("selected_contents") or [[True]], context.within("contents")
        lists = isinstance(selected, list) and all(isinstance(marks, list) for marks in selected)
        if not lists or len(selected) not in {1, len(pages) + 1}:
            raise context.unlike("selected_contents", f"one list more than the {len(pages)} contents", selected)
        nothing, *marks = selected
        for place, page in enumerate(pages):
            lines = page.many("content")
            used = zip(lines, marks[place] if marks and not any(nothing) else [], strict=False)
            yield built.add_text(page.text("title"), "\n".join(lines)), [line for line, mark in used if mark]


_DSTC_HINT = "Fix the row, or name the files in this order: logs.json labels.json knowledge.json."
_DSTC_SPEAKERS: Mapping[str, Literal["user", "bot"]] = {"U": "user", "S": "bot"}


def read_dstc11(built: SetBuilder, logs: Path, labels: Path, knowledge: Path) -> None:
    """Read conversations, their labels, and reviews and questions about hotels and restaurants."""
    talks = [
        [Turn(turn.one_of("speaker", _DSTC_SPEAKERS), turn.text("text")) for turn in log.within("turns")]
        for log in read_items(logs, "instance")
    ]
    with explain_faults(knowledge, UnreadableSet, _DSTC_HINT):
        snippets = dict(_read_snippets(built, FileRow(1, parse_json(knowledge.read_text("utf-8-sig")))))
    with explain_faults(labels, UnreadableSet, _DSTC_HINT):
        rows = list(read_items(labels, "instance"))
        if len(rows) != len(talks):
            raise MalformedRow(len(rows), f"it is the last one, but {logs.name} has {len(talks)}", "instance")
        for label, talk in zip(rows, talks, strict=True):
            if label.value("target"):
                used = [_find_snippet(label, named, snippets) for named in label.within("knowledge")]
                built.add_reply(talk, label.text("response"), used, talk[0].text)


def _read_snippets(built: SetBuilder, document: FileRow) -> Iterator[tuple[tuple[str, ...], Used]]:
    """Yield the path of each snippet in the file, with the id of its text and its own text."""
    for domain, entities in document.objects():
        for entity, about in entities.objects():
            title = capwords(str(about.fields.get("name", domain)))
            for number, review in about.objects("reviews"):
                (listed,) = review.within("sentences")
                sentences = {place: listed.text(place) for place in listed.fields}
                key = built.add_text(title, " ".join(sentences.values()))
                for place, sentence in sentences.items():
                    yield (domain, entity, "review", number, place), (key, sentence)
            for number, faq in about.objects("faqs"):
                text = f"{faq.text('question')} {faq.text('answer')}"
                yield (domain, entity, "faq", number), (built.add_text(title, text), text)


def _find_snippet(label: FileRow, named: FileRow, snippets: Mapping[tuple[str, ...], Used]) -> Used:
    names = ("domain", "entity_id", "doc_type", "doc_id", "sent_id")
    path = tuple(str(named.fields[name]) for name in names if name in named.fields)
    if path not in snippets:
        raise label.unlike("knowledge", "snippets of the knowledge file", "/".join(path))
    return snippets[path]


def read_opendialkg(built: SetBuilder, dialogues: Path, triples: Path | None = None) -> None:
    """Read dialogues. A reply is based on the paths, as rendered, that were chosen since the last message."""
    for row in read_rows(dialogues):
        actions = FileRow(row.line, {"Messages": parse_json(row.text("Messages"), row.line)})
        talk, used = list[Turn](), list[Used]()
        for action in actions.within("Messages"):
            if action.fields.get("metadata"):
                used += [_read_path(built, part) for part in action.within("metadata") if "path" in part.fields]
            elif action.text("type") == "chat":
                is_bot, text = action.text("sender") == "assistant", action.text("message")
                if is_bot:
                    built.add_reply(talk, text, used, str(row.line))
                talk.append(Turn("bot" if is_bot else "user", text))
                used = []
    if triples:
        with explain_faults(triples, UnreadableSet), triples.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                if line.count("\t") != 2:
                    raise MalformedRow(number, "it is not a subject, a relation and an object, separated by tabs")
                subject, relation, thing = line.strip("\n").split("\t")
                built.names |= {subject, thing}
                if not relation.startswith("~"):  # the reverse of another triple
                    built.add_text(subject, f"{subject} {relation.replace('_', ' ')} {thing}.")


def _read_path(built: SetBuilder, metadata: FileRow) -> Used:
    match metadata.many("path"):
        case [_, [[str(first), *_], *_] as path, str(text)] if text.strip():
            built.names.update(str(name) for triple in path for name in (triple[0], triple[-1]))
            return built.add_text(first, text.strip()), text.strip()
    raise metadata.unlike("path", "a score, triples and a text", metadata.fields["path"])


def read_ott_qa(built: SetBuilder, questions: Path, tables: Path, passages: Path) -> None:
    """Read questions with the nodes of their answers, their tables, and linked passages, all without tokenization."""
    known: dict[str, tuple[Sequence[Used], Mapping[str, Used]]] = {}
    for row in read_items(questions, "question"):
        table = row.text("table_id")
        if Path(table).name != table:
            raise row.unlike("table_id", "a file's name without a folder", table)
        if table not in known:
            known[table] = _read_table(built, tables / f"{table}.json"), _read_links(built, passages / f"{table}.json")
        rows, links = known[table]
        used = [part for node in row.many("answer-node") for part in _find_node(row, node, rows, links)]
        talk = [Turn("user", detokenize(row.text("question")))]
        built.add_reply(talk, detokenize(row.text("answer-text")), used, table)


def _read_table(built: SetBuilder, path: Path) -> Sequence[Used]:
    """Return each row of a table, with the id of the table's text."""
    with explain_faults(path, UnreadableSet):
        table = FileRow(1, parse_json(path.read_text("utf-8-sig")))
        heads = [detokenize(cell[0]) for cell in table.many("header")]
        rows = [
            "; ".join(f"{head}: {detokenize(cell[0])}" for head, cell in zip(heads, cells, strict=False))
            for cells in table.many("data")
        ]
        key = built.add_text(detokenize(table.text("title")), "\n".join(rows), PassageKind.TABLE)
        return [(key, row) for row in rows]


def _read_links(built: SetBuilder, path: Path) -> Mapping[str, Used]:
    """Return the passages that a table links to, with their ids, by their links."""
    with explain_faults(path, UnreadableSet):
        linked = FileRow(1, parse_json(path.read_text("utf-8-sig")))
        texts = {link: detokenize(linked.text(link)) for link in linked.fields if linked.fields[link]}
    return {
        link: (built.add_text(link.rpartition("/")[2].replace("_", " "), text), text) for link, text in texts.items()
    }


def _find_node(row: FileRow, node: Any, rows: Sequence[Used], links: Mapping[str, Used]) -> Sequence[Used]:
    """Return the row of an answer, with the passage to which it leads if the answer is in that."""
    match node:
        case [_, [int(place), _], _, "table"] if place < len(rows):
            return rows[place : place + 1]
        case [_, [int(place), _], str(link), "passage"] if place < len(rows) and link in links:
            return rows[place], links[link]
    raise row.unlike("answer-node", "cells of the table, or its linked passages", node)


REFERENCE_FORMS: Mapping[str, tuple[str, str, Callable[..., None]]] = MappingProxyType({
    "wow": ("Wizard of Wikipedia", "valid_random_split.json", read_wizard_of_wikipedia),
    "woi": ("Wizard of the Internet", "valid.jsonl", read_wizard_of_the_internet),
    "dstc11": ("DSTC11 track 5", "logs.json labels.json knowledge.json", read_dstc11),
    "opendialkg": ("OpenDialKG", "opendialkg.csv [opendialkg_triples.txt]", read_opendialkg),
    "ott-qa": ("OTT-QA", "dev.traced.json traindev_tables_tok traindev_request_tok", read_ott_qa),
})  # fmt: skip
"""Names for people, files in order, and readers, by the name that `--set` takes. Files in brackets may be left out."""


def read_reference_set(name: str, paths: Sequence[Path]) -> Exam:
    """Read the files of a set, which are given in the order of its form. Raises `UnreadableSet`."""
    if name not in REFERENCE_FORMS:
        raise UnreadableSet(f"No set is called {name!r}.", hint=f"The sets are {', '.join(REFERENCE_FORMS)}.")
    (says, listed, read), built = REFERENCE_FORMS[name], SetBuilder()
    files, hint = listed.split(), f"Name the files of {says}: {listed}."
    if not sum("[" not in file for file in files) <= len(paths) <= len(files):
        raise UnreadableSet(f"{len(paths)} is a wrong number of files for {says}.", hint=hint)
    try:
        with explain_faults(paths[0], UnreadableSet, hint):
            read(built, *paths)
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        fault = f"{type(error).__name__}: {error}"
        raise UnreadableSet(f"{paths[0]} is not in the format of {says} ({fault}).", hint=hint) from error
    if not built.questions:
        raise UnreadableSet(f"{paths[0]} has no reply that is based on knowledge.", hint=hint)
    return built.build(name)
