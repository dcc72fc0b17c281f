"""Read files of labelled claims, in our own format or those of published sets. The first row shows the format.

Labels such as neutral, irrelevant, partly supported or not attributable become NOT ENOUGH INFO.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from evaluation.claims.file_rows import FileRow, MalformedRow, explain_faults, read_rows
from evaluation.claims.labelled_claims import (
    MOST_PASSAGES,
    LabelledClaim,
    UnreadableClaims,
    detokenize,
    join_sentences,
    select_covering,
    select_similar,
    split_into_chunks,
)
from storage.language.sentences import sentence_spans
from storage.types import Verdict

_VERDICTS = {verdict.value: verdict for verdict in Verdict}
_STANCES = {
    "completely-support": Verdict.SUPPORTS,
    "partially-support": Verdict.NOT_ENOUGH_INFO,
    "irrelevant": Verdict.NOT_ENOUGH_INFO,
    "refute": Verdict.REFUTES,
}
_ATTRIBUTABLE = {
    "Fully attributable": Verdict.SUPPORTS,
    "Not fully attributable": Verdict.NOT_ENOUGH_INFO,
    "Generic": None,
}
_FAITHFUL = {
    "Entailment": Verdict.SUPPORTS,
    "Uncooperative": Verdict.SUPPORTS,
    "Hallucination": Verdict.NOT_ENOUGH_INFO,
    "Partial Hallucination": Verdict.NOT_ENOUGH_INFO,
    "Generic": None,
}
_VOTES = {"yes": True, "no": False}


def read_plain(row: FileRow) -> Iterator[LabelledClaim]:
    """Read our own format: "claim", "evidence" (a text or a list of texts) and "label" (a verdict).

    A row may also have "id", "group", "kind", "asked" (the question), and "held". Held-out claims form a set of their
    own.
    """
    evidence = (row.text("evidence"),) if isinstance(row.fields.get("evidence"), str) else row.texts("evidence")
    claim = row.text("claim")
    label = row.one_of("label", _VERDICTS)
    group = str(row.fields.get("group", claim))
    source = "plain/held" if row.fields.get("held") else "plain"
    kind, asked = str(row.fields.get("kind", "")), (row.text("asked"),) if row.fields.get("asked") else ()
    claim_id = str(row.fields.get("id", row.line))
    yield LabelledClaim(claim_id, source, claim, evidence, label, group, kind=kind, asked=asked)


def read_fever_symmetric(row: FileRow) -> Iterator[LabelledClaim]:
    """Read FEVER-symmetric: a claim and one sentence. Both are tokenized; that is undone."""
    claim = detokenize(row.text("claim"))
    evidence = detokenize(row.text("evidence"))
    label = row.one_of("gold_label", _VERDICTS)
    yield LabelledClaim(str(row.fields.get("id", row.line)), "fever-symmetric", claim, (evidence,), label, evidence)


def read_fm2(row: FileRow) -> Iterator[LabelledClaim]:
    """Read Fool Me Twice: a player's claim, and the sentences of an article that decide it."""
    evidence = tuple(passage.text("text") for passage in row.within("gold_evidence"))
    label = row.one_of("label", _VERDICTS)
    page = row.text("wikipedia_page")
    yield LabelledClaim(row.text("id"), "fm2", row.text("text"), evidence, label, page, title=page)


def read_begin(row: FileRow) -> Iterator[LabelledClaim]:
    """Read BEGIN: a system's reply to a message, and the sentence on which the reply should be based."""
    yield from _read_reply(row, "begin", "knowledge", row.one_of("begin_label", _ATTRIBUTABLE))


def read_faithdial(row: FileRow) -> Iterator[LabelledClaim]:
    """Read FaithDial's audit: a person's reply and its sentence. An "uncooperative" reply only repeats the sentence."""
    yield from _read_reply(row, "faithdial", "evidence", row.one_of("BEGIN", _FAITHFUL))


def _read_reply(row: FileRow, source: str, evidence: str, label: Verdict | None) -> Iterator[LabelledClaim]:
    """Yield a reply as a claim, unless it is generic and so claims nothing."""
    if label is not None:
        reply, knowledge = detokenize(row.text("response")), detokenize(row.text(evidence))
        yield LabelledClaim(str(row.line), source, reply, (knowledge,), label, knowledge)


def read_stances(row: FileRow) -> Iterator[LabelledClaim]:
    """Read Factcheck-GPT by passage: what one passage from a web search says about a claim."""
    claim, passage = row.text("claim"), row.text("evidence")
    label = row.one_of("stance", _STANCES)
    yield LabelledClaim(str(row.line), "factcheck-gpt/passages", claim, (passage,), label, claim)


def read_graded(row: FileRow) -> Iterator[LabelledClaim]:
    """Read Factcheck-GPT by claim: all passages of a claim, and their joint verdict.

    A passage that completely supports or refutes the claim decides. Claims that have both kinds, or no judged passage,
    are skipped.
    """
    for place, sentence in enumerate(row.within("sentences")):
        for number, judged in enumerate(_split_judged_claims(sentence)):
            label = _decide_stance(judged)
            if label is not None:
                evidence = tuple(dict.fromkeys(judged.texts("auto_evidence")))
                key, claim = f"{row.line}-{place}-{number}", judged.text("claim")
                yield LabelledClaim(key, "factcheck-gpt/claims", claim, evidence, label, row.text("prompt"))


def read_qags(row: FileRow) -> Iterator[LabelledClaim]:
    """Read QAGS: the sentences of an automatic summary, each with the most similar passages of the article."""
    article = row.text("article")
    sentences = [article[start:end] for start, end in sentence_spans(article)]
    passages = [join_sentences(sentences, run) for run in split_into_chunks(sentences)]
    for place, summary in enumerate(row.within("summary_sentences")):
        votes = Counter(vote.one_of("response", _VOTES) for vote in summary.within("responses"))
        label = Verdict.SUPPORTS if votes[True] > votes[False] else Verdict.NOT_ENOUGH_INFO
        claim = summary.text("sentence")
        evidence = select_similar(claim, passages)
        yield LabelledClaim(f"{row.line}-{place}", "qags", claim, evidence, label, str(row.line))


def _split_judged_claims(sentence: FileRow) -> Iterator[FileRow]:
    """Yield each claim of a sentence as a row with its passages and their stances."""
    claims, passages = sentence.many("claims"), sentence.many("auto_evidence")
    stances = sentence.many("stance_claim_autoEvid")
    if len(passages) != len(claims) or len(stances) != len(claims):
        raise sentence.unlike("auto_evidence", f"lists for each of {len(claims)} claims", passages)
    for claim, evidence, stance in zip(claims, passages, stances, strict=True):
        yield FileRow(sentence.line, {"claim": claim, "auto_evidence": evidence, "stances": stance})


def _decide_stance(judged: FileRow) -> Verdict | None:
    """Return the joint verdict of a claim's passages; None if none is judged, or if they contradict each other."""
    verdicts = {FileRow(judged.line, {"stance": word}).one_of("stance", _STANCES) for word in judged.texts("stances")}
    decided = verdicts - {Verdict.NOT_ENOUGH_INFO}
    if len(decided) > 1 or not verdicts:
        return None
    return decided.pop() if decided else Verdict.NOT_ENOUGH_INFO


_WICE_LABELS = {
    "supported": Verdict.SUPPORTS,
    "partially_supported": Verdict.NOT_ENOUGH_INFO,
    "not_supported": Verdict.NOT_ENOUGH_INFO,
}
_WICE_UNSUPPORTED = {label: label == "not_supported" for label in _WICE_LABELS}
_METADATA = "(meta data) "


def read_wice(row: FileRow) -> Iterator[LabelledClaim]:
    """Read WiCE: a claim of an article, and the passages that contain its supporting sentences."""
    (about,) = row.within("meta")
    claim = row.text("claim")
    label = row.one_of("label", _WICE_LABELS)
    evidence = _select_passages(claim, row)
    yield LabelledClaim(about.text("id"), "wice", claim, evidence, label, about.text("claim_title"))


def _select_passages(claim: str, row: FileRow) -> tuple[str, ...]:
    sentences = [str(sentence).removeprefix(_METADATA) for sentence in row.many("evidence")]
    sets = [_sentence_numbers(row, numbers, len(sentences)) for numbers in row.many("supporting_sentences")]
    if row.one_of("label", _WICE_UNSUPPORTED):
        return select_similar(claim, [join_sentences(sentences, run) for run in split_into_chunks(sentences)])
    chosen = [select_covering(sentences, places) for places in sets if places]
    if not chosen:
        raise row.unlike("supporting_sentences", "the numbers of sentences", row.fields["supporting_sentences"])
    return min(chosen, key=len)[:MOST_PASSAGES]


def _sentence_numbers(row: FileRow, listed: Any, count: int) -> list[int]:
    """Return a checked list of sentence numbers, each below `count`; if empty, no sentence supports the claim."""
    if not isinstance(listed, list) or not all(isinstance(at, int) and 0 <= at < count for at in listed):
        raise row.unlike("supporting_sentences", f"lists of numbers from 0 to {count - 1}", listed)
    return listed


Reader = Callable[[FileRow], Iterator[LabelledClaim]]
CLAIM_FORMATS: Mapping[str, tuple[frozenset[str], Reader]] = MappingProxyType({
    "WiCE (JSON lines)": (frozenset({"claim", "supporting_sentences"}), read_wice),
    "Fool Me Twice (JSON lines)": (frozenset({"gold_evidence", "text", "label"}), read_fm2),
    "Factcheck-GPT stances (JSON lines)": (frozenset({"claim", "stance"}), read_stances),
    "Factcheck-GPT benchmark (JSON lines)": (frozenset({"prompt", "sentences"}), read_graded),
    "QAGS (JSON lines)": (frozenset({"article", "summary_sentences"}), read_qags),
    "BEGIN (tab-separated)": (frozenset({"knowledge", "begin_label"}), read_begin),
    "FaithDial audit (CSV)": (frozenset({"evidence", "response", "BEGIN"}), read_faithdial),
    "FEVER-symmetric (JSON lines)": (frozenset({"claim", "evid"}), read_fever_symmetric),
    "our own (JSON lines)": (frozenset({"claim", "evidence", "label"}), read_plain),
})  # fmt: skip
"""The fields of every row and the reader, by name. A file has the first format whose fields are in its first row."""


def read_all(paths: Sequence[Path]) -> tuple[LabelledClaim, ...]:
    """Read files, and the files of labelled claims in folders, without duplicates. Raises `UnreadableClaims`."""
    claims: list[LabelledClaim] = []
    for path in paths:
        if path.is_dir():
            files = [file for file in sorted(path.iterdir()) if file.is_file()]
            claims += [claim for file in files if _find_reader(file) for claim in read_claims(file)]
        else:
            claims += read_claims(path)
    return link_groups(drop_duplicates(claims))


def read_claims(path: Path) -> tuple[LabelledClaim, ...]:
    if not path.exists():
        raise UnreadableClaims(f"There is no file {path}.")
    with explain_faults(path, UnreadableClaims):
        if not path.read_bytes().strip(b" \t\r\n\xef\xbb\xbf"):
            raise UnreadableClaims(f"{path} is empty.", hint="Put claims into it, one row each, or name another file.")
        if read := _find_reader(path):
            name = path.stem if read is read_plain else "plain"
            claims = (claim for row in read_rows(path) for claim in read(row))
            return tuple(replace(claim, source=claim.source.replace("plain", name, 1)) for claim in claims)
    forms = "; ".join(f"{name}: {', '.join(sorted(fields))}" for name, (fields, _) in CLAIM_FORMATS.items())
    raise UnreadableClaims(
        f"{path} has no labelled claims in a known format.", hint=f"Known formats and their fields: {forms}."
    )


def drop_duplicates(claims: Iterable[LabelledClaim]) -> tuple[LabelledClaim, ...]:
    """Keep one of several equal claims with the same evidence in a source; if their labels differ, keep none."""
    seen: dict[tuple[str, str, tuple[str, ...]], list[LabelledClaim]] = {}
    for claim in claims:
        seen.setdefault((claim.source, claim.claim, claim.evidence), []).append(claim)
    return tuple(same[0] for same in seen.values() if len({claim.label for claim in same}) == 1)


def link_groups(claims: Sequence[LabelledClaim]) -> tuple[LabelledClaim, ...]:
    """Merge groups of claims, within a family of sets, that have a wording or a passage in common."""
    leaders: dict[tuple[str, str], tuple[str, str]] = {}

    def leader(family: str, shared: str) -> tuple[str, str]:
        of = (family, shared)
        while (above := leaders.setdefault(of, of)) != of:
            of = above
        return of

    for claim in claims:
        for shared in (claim.claim, *claim.evidence):
            leaders[leader(claim.family, shared)] = leader(claim.family, claim.group)
    return tuple(replace(claim, group=": ".join(leader(claim.family, claim.group))) for claim in claims)


def _find_reader(path: Path) -> Reader | None:
    with suppress(MalformedRow, OSError, UnicodeDecodeError):
        first = next((frozenset(row.fields) for row in read_rows(path)), frozenset[str]())
        return next((read for fields, read in CLAIM_FORMATS.values() if first >= fields), None)
    return None
