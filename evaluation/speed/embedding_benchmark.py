"""Measure the speed of embedding."""

import statistics
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from random import Random
from typing import Annotated

import typer

from evaluation.reports.printing import AsJson, print_report
from evaluation.speed.workload import generate_texts
from storage.indexes.embedders import MINILM
from storage.indexes.embedding import Embedder, open_embedder

LENGTHS = (8, 55, 120)  # words of a text, from a question to a passage


@dataclass(frozen=True)
class EmbeddingRate:
    """The rate on texts of one length."""

    words: int
    rate: float  # texts a second, the median of all rounds


def embedding(
    source: Annotated[
        Path | None, typer.Argument(exists=True, help="A text file; without one, text is generated.")
    ] = None,
    texts: Annotated[int, typer.Option(help="Number of texts of each length.", min=1)] = 64,
    rounds: Annotated[int, typer.Option(help="How often they are embedded.", min=1)] = 5,
    as_json: AsJson = False,
) -> None:
    """Measure the speed of embedding.

    Example: footnote evaluate speed embedding --texts 16 --rounds 1
    """
    embedder = open_embedder(MINILM, {})
    rates = [_measure(embedder, _take_texts(source, words, texts), rounds) for words in LENGTHS]
    lines = [f"texts of {rate.words} words: {rate.rate} a second" for rate in rates]
    print_report({"rates": [asdict(rate) for rate in rates]}, "\n".join(lines), as_json=as_json)


def _take_texts(source: Path | None, words: int, count: int) -> list[str]:
    possible = generate_texts(Random(words), words) if source is None else _cut_texts(source, words)
    texts = list(islice(possible, count))
    if len(texts) < count:
        raise typer.BadParameter(f"{source} has only {len(texts)} texts of {words} words; ask for fewer with --texts")
    return texts


def _cut_texts(source: Path, words: int) -> Iterator[str]:
    text = source.read_text("utf-8", errors="replace").split()
    return (" ".join(text[start : start + words]) for start in range(0, len(text) - words + 1, words))


def _measure(embedder: Embedder, texts: list[str], rounds: int) -> EmbeddingRate:
    embedder.embed(texts[:1])
    taken = list[float]()
    for _ in range(rounds):
        started = time.perf_counter()
        embedder.embed(texts)
        taken.append(time.perf_counter() - started)
    return EmbeddingRate(len(texts[0].split()), round(len(texts) / statistics.median(taken), 1))
