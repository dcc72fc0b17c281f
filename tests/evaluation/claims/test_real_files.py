"""The readers with the published sets, if these are present."""

import os
from collections import Counter
from pathlib import Path

import pytest

from evaluation.claims.claim_formats import read_all, read_claims
from evaluation.claims.labelled_claims import CHUNK_WORDS, MOST_PASSAGES

DATA = Path(os.environ.get("FOOTNOTE_DATA") or Path(__file__).parents[4] / "shared/data") / "claims"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"no published claims in {DATA}")

ROWS = {
    "begin_dev_wow.tsv": ("begin", 430),
    "factcheck_gpt_benchmark.jsonl": ("factcheck-gpt/claims", 652),
    "factcheck_gpt_stance.jsonl": ("factcheck-gpt/passages", 3305),
    "faithdial_audit_wow.csv": ("faithdial", 190),
    "fever_symmetric_dev.jsonl": ("fever-symmetric", 702),
    "fm2_dev.minus-2-pages.jsonl": ("fm2", 1159),
    "qags_cnndm.jsonl": ("qags", 714),
    "wice_claim_dev.jsonl": ("wice", 349),
}


@pytest.mark.parametrize("name", ROWS)
def test_every_published_row_is_read(name: str) -> None:
    if not (DATA / name).exists():
        pytest.skip(f"no {name} in {DATA}")
    source, count = ROWS[name]

    claims = read_claims(DATA / name)

    assert {claim.source for claim in claims} == {source}
    assert len(claims) == count
    assert len({claim.id for claim in claims}) == count
    assert all(claim.claim and claim.evidence and all(claim.evidence) for claim in claims)
    assert {claim.supported for claim in claims} == {True, False}


def test_passages_of_long_pages_are_few_and_short() -> None:
    claims = [claim for claim in read_all([DATA]) if claim.source in {"wice", "qags"}]

    assert max(len(claim.evidence) for claim in claims) <= MOST_PASSAGES
    long = [passage for claim in claims for passage in claim.evidence if len(passage.split()) > CHUNK_WORDS]
    assert all(len(passage.split("\n")) == 1 for passage in long)


def test_published_folder_has_no_duplicates() -> None:
    claims = read_all([DATA])

    counted = Counter((claim.source, claim.claim, claim.evidence) for claim in claims)
    assert max(counted.values()) == 1
    assert Counter(claim.group.partition(": ")[0] for claim in claims).keys() == {claim.family for claim in claims}
