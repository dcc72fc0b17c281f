"""Files and folders -> labelled claims. The form of a file is told by its first row, not by its name."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from evaluation.claims import factscore, readers, wice
from evaluation.claims.rows import MalformedRow, Row, read_rows
from evaluation.claims.types import LabelledClaim, SplitSentence, UnreadableClaims

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Form:
    """How one set is written: what its rows hold at least, and who reads a row."""

    says: str
    fields: frozenset[str]
    read: Callable[[Row], Iterator[LabelledClaim]]


FORMS: Mapping[str, Form] = MappingProxyType({
    "wice": Form("WiCE (JSON lines)", frozenset({"claim", "supporting_sentences"}), wice.read),
    "fm2": Form("Fool Me Twice (JSON lines)", frozenset({"gold_evidence", "text", "label"}), readers.fm2),
    "stances": Form("Factcheck-GPT stances (JSON lines)", frozenset({"claim", "stance"}), readers.stances),
    "benchmark": Form("Factcheck-GPT benchmark (JSON lines)", frozenset({"prompt", "sentences"}), readers.benchmark),
    "qags": Form("QAGS (JSON lines)", frozenset({"article", "summary_sentences"}), readers.qags),
    "begin": Form("BEGIN (tab-separated)", frozenset({"knowledge", "begin_label"}), readers.begin),
    "faithdial": Form("FaithDial audit (CSV)", frozenset({"evidence", "response", "BEGIN"}), readers.faithdial),
    "fever-symmetric": Form("FEVER-symmetric (JSON lines)", frozenset({"claim", "evid"}), readers.fever_symmetric),
    "fever-sentence": Form(
        "FEVER-symmetric 0.1 (JSON lines)", frozenset({"claim", "evidence_sentence"}), readers.fever_symmetric
    ),
    "fm2-searched": Form(
        "Fool Me Twice and what was found", frozenset({"gold_evidence", "retrieved_evidence"}), readers.fm2_searched
    ),
    "plain": Form("our own (JSON lines)", frozenset({"claim", "evidence", "label"}), readers.plain),
})  # fmt: skip
"""Every form by the name that `--form` takes; a file has the first form whose fields its first row has."""

_BLANK = b" \t\r\n\xef\xbb\xbf"
_SPLIT = frozenset({"topic", "annotations"})


def read_all(paths: Sequence[Path], form: str = "") -> tuple[LabelledClaim, ...]:
    """Read files, and those files of folders that hold labelled claims. What is said twice is kept once.

    Args:
        paths: Files and folders. A folder may hold other files; a file named here must be in a known form.
        form: A name of `FORMS`, for files whose form is not to be told by their first row.

    Raises:
        UnreadableClaims: a file cannot be read, is in no known form, or has a malformed row.
    """
    found: list[LabelledClaim] = []
    for path in paths:
        if path.is_dir():
            within = [file for file in sorted(path.iterdir()) if file.is_file()]
            found += [claim for file in within if _told(file) for claim in read_claims(file)]
        else:
            found += read_claims(path, form)
    return linked(distinct(found))


def read_claims(path: Path, form: str = "") -> tuple[LabelledClaim, ...]:
    """Read one file as it is; see `read_all`."""
    if form and form not in FORMS:
        raise UnreadableClaims(f"No form is called {form!r}.", hint=f"There are {', '.join(FORMS)}.")
    if not path.exists():
        raise UnreadableClaims(f"There is no file {path}.")
    if _is_empty(path):
        raise UnreadableClaims(f"{path} is empty.", hint="Put claims into it, one row each, or name another file.")
    chosen = form or _told(path)
    if not chosen:
        forms = "; ".join(f"{known.says}: {', '.join(sorted(known.fields))}" for known in FORMS.values())
        raise UnreadableClaims(
            f"{path} holds no labelled claims in a form that is known.", hint=f"Known are, by their fields: {forms}."
        )
    claims = tuple(_each(path, FORMS[chosen].read))
    return tuple(replace(claim, source=path.stem) for claim in claims) if chosen == "plain" else claims


def read_split(path: Path) -> tuple[SplitSentence, ...]:
    """Read a file of FActScore's.

    Raises:
        UnreadableClaims: it is none, or has a malformed row.
    """
    if not _first_fields(path) >= _SPLIT:
        raise UnreadableClaims(f"{path} holds no sentences split into facts.", hint="FActScore's JSON lines do.")
    return tuple(_each(path, factscore.read))


def distinct(claims: Iterable[LabelledClaim]) -> tuple[LabelledClaim, ...]:
    """Keep one of the claims of a source that are offered the same evidence, none where their labels differ."""
    seen: dict[tuple[str, str, tuple[str, ...]], list[LabelledClaim]] = {}
    for claim in claims:
        seen.setdefault((claim.source, claim.claim, claim.evidence), []).append(claim)
    return tuple(same[0] for same in seen.values() if len({claim.label for claim in same}) == 1)


def linked(claims: Sequence[LabelledClaim]) -> tuple[LabelledClaim, ...]:
    """Join the groups of claims that share a group, a wording or a passage within a family."""
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
    """Return whether a file has nothing but white space; one that cannot be read is left to its reader."""
    try:
        with path.open("rb") as file:
            return all(not line.strip(_BLANK) for line in file)
    except OSError:
        return False


def _told(path: Path) -> str:
    """Return the name of a file's form, empty where it has none that is known."""
    fields = _first_fields(path)
    return next((name for name, form in FORMS.items() if fields >= form.fields), "")


def _first_fields(path: Path) -> frozenset[str]:
    """Return the names of the fields of a file's first row; none where it has no row that can be read."""
    try:
        first = next(read_rows(path), None)
    except (MalformedRow, OSError, UnicodeDecodeError):
        return frozenset()
    return frozenset(first.fields) if first else frozenset()


def _each(path: Path, read: Callable[[Row], Iterator[T]]) -> Iterator[T]:
    try:
        for row in read_rows(path):
            yield from read(row)
    except MalformedRow as error:
        raise UnreadableClaims(f"{path}, {error}.", hint="Mend the row, or leave it out.") from error
    except OSError as error:
        raise UnreadableClaims(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise UnreadableClaims(f"{path} is no text in UTF-8.", hint="Convert it to UTF-8.") from error
