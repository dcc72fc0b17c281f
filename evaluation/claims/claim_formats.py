"""Read files of labelled claims, in our own format or those of published sets. The first row shows the format.

Labels such as neutral, irrelevant, partly supported or not attributable become NOT ENOUGH INFO.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from evaluation.claims.labelled_claims import (
    MOST_PASSAGES,
    ClaimRow,
    LabelledClaim,
    MalformedRow,
    UnreadableClaims,
    detokenize,
    join_sentences,
    read_rows,
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


def read_plain(row: ClaimRow) -> Iterator[LabelledClaim]:
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


def read_fever_symmetric(row: ClaimRow) -> Iterator[LabelledClaim]:
    """Read FEVER-symmetric: a claim and one sentence. Both are tokenized; that is undone."""
    claim = detokenize(row.text("claim"))
    evidence = detokenize(row.text("evidence" if "evidence" in row.fields else "evidence_sentence"))
    label = row.one_of("gold_label" if "gold_label" in row.fields else "label", _VERDICTS)
    yield LabelledClaim(str(row.fields.get("id", row.line)), "fever-symmetric", claim, (evidence,), label, evidence)


def read_fm2(row: ClaimRow) -> Iterator[LabelledClaim]:
    """Read Fool Me Twice: a player's claim, and the sentences of an article that decide it."""
    yield _read_fm2(row, "fm2", ())


def read_fm2_searched(row: ClaimRow) -> Iterator[LabelledClaim]:
    """Read Fool Me Twice with distracting sentences that a search found, as at most three passages."""
    yield _read_fm2(row, "fm2/searched", tuple(passage.text("text") for passage in row.within("retrieved_evidence")))


def _read_fm2(row: ClaimRow, source: str, more: tuple[str, ...]) -> LabelledClaim:
    gold = tuple(passage.text("text") for passage in row.within("gold_evidence"))
    evidence = gold + tuple(text for text in more if text not in gold)[: max(0, MOST_PASSAGES - len(gold))]
    label = row.one_of("label", _VERDICTS)
    page = row.text("wikipedia_page")
    return LabelledClaim(row.text("id"), source, row.text("text"), evidence, label, page, title=page)


def read_begin(row: ClaimRow) -> Iterator[LabelledClaim]:
    """Read BEGIN: a system's reply to a message, and the sentence on which the reply should be based."""
    yield from _read_reply(row, "begin", "knowledge", row.one_of("begin_label", _ATTRIBUTABLE))


def read_faithdial(row: ClaimRow) -> Iterator[LabelledClaim]:
    """Read FaithDial's audit: a person's reply and its sentence. An "uncooperative" reply only repeats the sentence."""
    yield from _read_reply(row, "faithdial", "evidence", row.one_of("BEGIN", _FAITHFUL))


def _read_reply(row: ClaimRow, source: str, evidence: str, label: Verdict | None) -> Iterator[LabelledClaim]:
    """Yield a reply as a claim, unless it is generic and so claims nothing."""
    if label is not None:
        reply, knowledge = detokenize(row.text("response")), detokenize(row.text(evidence))
        yield LabelledClaim(str(row.line), source, reply, (knowledge,), label, knowledge)


def read_stances(row: ClaimRow) -> Iterator[LabelledClaim]:
    """Read Factcheck-GPT by passage: what one passage from a web search says about a claim."""
    claim, passage = row.text("claim"), row.text("evidence")
    label = row.one_of("stance", _STANCES)
    yield LabelledClaim(str(row.line), "factcheck-gpt/passages", claim, (passage,), label, claim)


def read_graded(row: ClaimRow) -> Iterator[LabelledClaim]:
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


def read_qags(row: ClaimRow) -> Iterator[LabelledClaim]:
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


def _split_judged_claims(sentence: ClaimRow) -> Iterator[ClaimRow]:
    """Yield each claim of a sentence as a row with its passages and their stances."""
    claims, passages = sentence.many("claims"), sentence.many("auto_evidence")
    stances = sentence.many("stance_claim_autoEvid")
    if len(passages) != len(claims) or len(stances) != len(claims):
        raise sentence.unlike("auto_evidence", f"lists for each of {len(claims)} claims", passages)
    for claim, evidence, stance in zip(claims, passages, stances, strict=True):
        yield ClaimRow(sentence.line, {"claim": claim, "auto_evidence": evidence, "stances": stance})


def _decide_stance(judged: ClaimRow) -> Verdict | None:
    """Return the joint verdict of a claim's passages; None if none is judged, or if they contradict each other."""
    verdicts = {ClaimRow(judged.line, {"stance": word}).one_of("stance", _STANCES) for word in judged.texts("stances")}
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


def read_wice(row: ClaimRow) -> Iterator[LabelledClaim]:
    """Read WiCE: a claim of an article, and the passages that contain its supporting sentences."""
    (about,) = row.within("meta")
    claim = row.text("claim")
    label = row.one_of("label", _WICE_LABELS)
    evidence = _select_passages(claim, row)
    yield LabelledClaim(about.text("id"), "wice", claim, evidence, label, about.text("claim_title"))


def _select_passages(claim: str, row: ClaimRow) -> tuple[str, ...]:
    sentences = [str(sentence).removeprefix(_METADATA) for sentence in row.many("evidence")]
    sets = [_sentence_numbers(row, numbers, len(sentences)) for numbers in row.many("supporting_sentences")]
    if row.one_of("label", _WICE_UNSUPPORTED):
        return select_similar(claim, [join_sentences(sentences, run) for run in split_into_chunks(sentences)])
    chosen = [select_covering(sentences, places) for places in sets if places]
    if not chosen:
        raise row.unlike("supporting_sentences", "the numbers of sentences", row.fields["supporting_sentences"])
    return min(chosen, key=len)[:MOST_PASSAGES]


def _sentence_numbers(row: ClaimRow, listed: Any, count: int) -> list[int]:
    """Return a checked list of sentence numbers, each below `count`; if empty, no sentence supports the claim."""
    if not isinstance(listed, list) or not all(isinstance(at, int) and 0 <= at < count for at in listed):
        raise row.unlike("supporting_sentences", f"lists of numbers from 0 to {count - 1}", listed)
    return listed


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ClaimFormat:
    """The format of a set."""

    says: str  # its name for people
    fields: frozenset[str]  # those that every row has
    read: Callable[[ClaimRow], Iterator[LabelledClaim]]


CLAIM_FORMATS: Mapping[str, ClaimFormat] = MappingProxyType({
    "wice": ClaimFormat("WiCE (JSON lines)", frozenset({"claim", "supporting_sentences"}), read_wice),
    "fm2": ClaimFormat("Fool Me Twice (JSON lines)", frozenset({"gold_evidence", "text", "label"}), read_fm2),
    "stances": ClaimFormat("Factcheck-GPT stances (JSON lines)", frozenset({"claim", "stance"}), read_stances),
    "benchmark": ClaimFormat("Factcheck-GPT benchmark (JSON lines)", frozenset({"prompt", "sentences"}), read_graded),
    "qags": ClaimFormat("QAGS (JSON lines)", frozenset({"article", "summary_sentences"}), read_qags),
    "begin": ClaimFormat("BEGIN (tab-separated)", frozenset({"knowledge", "begin_label"}), read_begin),
    "faithdial": ClaimFormat("FaithDial audit (CSV)", frozenset({"evidence", "response", "BEGIN"}), read_faithdial),
    "fever-symmetric": ClaimFormat("FEVER-symmetric (JSON lines)", frozenset({"claim", "evid"}), read_fever_symmetric),
    "fever-sentence": ClaimFormat(
        "FEVER-symmetric 0.1 (JSON lines)", frozenset({"claim", "evidence_sentence"}), read_fever_symmetric
    ),
    "fm2-searched": ClaimFormat(
        "Fool Me Twice with retrieved evidence", frozenset({"gold_evidence", "retrieved_evidence"}), read_fm2_searched
    ),
    "plain": ClaimFormat("our own (JSON lines)", frozenset({"claim", "evidence", "label"}), read_plain),
})  # fmt: skip
"""Formats by the name that `--form` takes. A file has the first format all of whose fields are in its first row."""

_BLANK = b" \t\r\n\xef\xbb\xbf"


def read_all(paths: Sequence[Path], form: str = "") -> tuple[LabelledClaim, ...]:
    """Read files, and the files of labelled claims in folders, without duplicates. Raises `UnreadableClaims`.

    `form` is a name in `CLAIM_FORMATS`; it is needed if a file's first row does not show its format.
    """
    claims: list[LabelledClaim] = []
    for path in paths:
        if path.is_dir():
            files = [file for file in sorted(path.iterdir()) if file.is_file()]
            claims += [claim for file in files if _detect_format(file) for claim in read_claims(file)]
        else:
            claims += read_claims(path, form)
    return link_groups(drop_duplicates(claims))


def read_claims(path: Path, form: str = "") -> tuple[LabelledClaim, ...]:
    if form and form not in CLAIM_FORMATS:
        raise UnreadableClaims(f"No format is called {form!r}.", hint=f"The formats are {', '.join(CLAIM_FORMATS)}.")
    if not path.exists():
        raise UnreadableClaims(f"There is no file {path}.")
    if _is_empty(path):
        raise UnreadableClaims(f"{path} is empty.", hint="Put claims into it, one row each, or name another file.")
    chosen = form or _detect_format(path)
    if not chosen:
        forms = "; ".join(f"{known.says}: {', '.join(sorted(known.fields))}" for known in CLAIM_FORMATS.values())
        raise UnreadableClaims(
            f"{path} has no labelled claims in a known format.", hint=f"Known formats and their fields: {forms}."
        )
    claims = tuple(_read_each(path, CLAIM_FORMATS[chosen].read))
    if chosen != "plain":
        return claims
    return tuple(replace(claim, source=claim.source.replace("plain", path.stem, 1)) for claim in claims)


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


def _is_empty(path: Path) -> bool:
    """Return whether a file has only white space. If it cannot be opened, return False: its reader reports that."""
    try:
        with path.open("rb") as file:
            return all(not line.strip(_BLANK) for line in file)
    except OSError:
        return False


def _detect_format(path: Path) -> str:
    fields = _first_fields(path)
    return next((name for name, form in CLAIM_FORMATS.items() if fields >= form.fields), "")


def _first_fields(path: Path) -> frozenset[str]:
    try:
        first = next(read_rows(path), None)
    except (MalformedRow, OSError, UnicodeDecodeError):
        return frozenset()
    return frozenset(first.fields) if first else frozenset()


def _read_each(path: Path, read: Callable[[ClaimRow], Iterator[T]]) -> Iterator[T]:
    try:
        for row in read_rows(path):
            yield from read(row)
    except MalformedRow as error:
        raise UnreadableClaims(f"{path}, {error}.", hint="Fix the row, or remove it.") from error
    except OSError as error:
        raise UnreadableClaims(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise UnreadableClaims(f"{path} is not text in UTF-8.", hint="Convert it to UTF-8.") from error
