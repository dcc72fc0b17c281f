"""Measure the speed of embedding with 32 bits and with 8 bits, and the cosines between both vectors."""

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random
from typing import Annotated

import typer

from evaluation.reports.printing import AsJson, print_report
from evaluation.speed.workload import generate_texts
from storage.indexes.embedding import MINILM, Embedder, open_embedder

BITS = (32, 8)
LENGTHS = (55, 120)  # words of a text


@dataclass(frozen=True)
class EmbeddingRate:
    """The figures of one embedder on texts of one length."""

    bits: int
    words: int
    rate: float  # texts a second, the median of all rounds
    ratio: float  # to the rate with 32 bits: the median of the rounds' ratios
    least_cosine: float  # with the vector of 32 bits
    mean_cosine: float


def embedding(
    source: Annotated[
        Path | None, typer.Argument(exists=True, help="A text file; without one, text is generated.")
    ] = None,
    texts: Annotated[int, typer.Option(help="Number of texts of each length.", min=1)] = 64,
    rounds: Annotated[int, typer.Option(help="How often each embedder embeds the texts.", min=1)] = 5,
    as_json: AsJson = False,
) -> None:
    """Measure the rate of embedding, with 32 bits and with 8.

    Example: footnote evaluate speed embedding --texts 16 --rounds 1
    """
    embedders = {bits: open_embedder(MINILM, {}, bits) for bits in BITS}
    rates = [rate for words in LENGTHS for rate in _measure(embedders, _take_texts(source, words, texts), rounds)]
    print_report({"compared": [asdict(rate) for rate in rates]}, "\n".join(map(_render, rates)), as_json=as_json)


def _take_texts(source: Path | None, words: int, count: int) -> list[str]:
    possible = generate_texts(Random(words), words) if source is None else _cut_texts(source, words)
    texts = list(islice(possible, count))
    if len(texts) < count:
        raise typer.BadParameter(f"{source} has only {len(texts)} texts of {words} words; ask for fewer with --texts")
    return texts


def _cut_texts(source: Path, words: int) -> Iterator[str]:
    text = source.read_text("utf-8", errors="replace").split()
    return (" ".join(text[start : start + words]) for start in range(0, len(text) - words + 1, words))


def _measure(embedders: Mapping[int, Embedder], texts: list[str], rounds: int) -> Iterator[EmbeddingRate]:
    for embedder in embedders.values():
        embedder.embed(texts[:1])
    calls = [partial(embedder.embed, texts) for embedder in embedders.values()]
    taken = list(zip(*([_time(call) for call in calls] for _ in range(rounds)), strict=True))
    exact = embedders[BITS[0]].embed(texts)
    for (bits, embedder), seconds in zip(embedders.items(), taken, strict=True):
        cosines = (embedder.embed(texts) * exact).sum(axis=1)
        yield EmbeddingRate(
            bits,
            len(texts[0].split()),
            round(len(texts) / statistics.median(seconds), 1),
            round(statistics.median(full / own for full, own in zip(taken[0], seconds, strict=True)), 2),
            round(float(cosines.min()), 6),
            round(float(cosines.mean()), 6),
        )


def _time(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _render(rate: EmbeddingRate) -> str:
    return (
        f"{rate.bits} bits, texts of {rate.words} words: {rate.rate} texts/s, {rate.ratio} times the rate of 32 bits; "
        f"cosine with it at least {rate.least_cosine}, mean {rate.mean_cosine}"
    )
