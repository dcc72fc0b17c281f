"""How fast MiniLM embeds here, beside Chroma's default embedding function, which runs the same weights.

Both embed the same texts in turns, so that a busy machine slows both; their vectors are compared. Then single questions
are embedded, alone and while a polite batch runs.
"""

import itertools
import json
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Annotated, Any

import numpy as np
import typer

from evaluation.speed.texts import salad
from storage.embedding import Embedder, open_embedder

MARKS = {55: 3.0, 120: 1.4}  # words of a text: how many times Chroma's rate it has to be
QUESTION = "How many days of holiday are there in the first year?"
QUESTIONS = 100
SUFFIXES = frozenset({".md", ".rst", ".txt"})


@dataclass(frozen=True)
class Compared:
    """Both on texts of one length. Rates are the medians of all rounds, in texts a second."""

    words: int
    texts: int
    tokens: float
    """A text, on average."""
    ours: float
    chromas: float
    ratio: float
    """The median of the rounds' ratios."""
    mark: float
    least_cosine: float
    mean_cosine: float


def embedding(
    source: Annotated[
        Path | None, typer.Argument(exists=True, help="A text file or a folder; else made-up text.")
    ] = None,
    texts: Annotated[int, typer.Option(help="How many, of each length.", min=1)] = 96,
    rounds: Annotated[int, typer.Option(help="How often each embeds them.", min=1)] = 3,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Compare the rate of embedding with that of Chroma's default function.

    Example: footnote evaluate speed embedding --texts 32 --rounds 1
    """
    from evaluation.speed.chroma_model import chroma_default

    started = time.perf_counter()
    ours = open_embedder("minilm", {})
    loaded = time.perf_counter() - started
    with tempfile.TemporaryDirectory() as folder:
        chromas = chroma_default(Path(folder))
        compared = [_compare(ours, chromas, _texts(source, words, texts), words, rounds) for words in MARKS]
    report = {
        "schema": 1,
        "source": str(source or "made up"),
        "seconds_to_load": round(loaded, 3),
        "compared": [asdict(each) for each in compared],
        "question_ms": {"alone": _questions(ours), "beside_polite": _beside(ours, list(_texts(source, 120, texts)))},
    }
    print(json.dumps(report) if as_json else _lines(report))


def _texts(source: Path | None, words: int, count: int) -> list[str]:
    made = salad(Random(words), words) if source is None else _cut(source, words)
    found = list(itertools.islice(made, count))
    if len(found) < count:
        raise typer.BadParameter(f"{source} has only {len(found)} texts of {words} words; ask for fewer with --texts")
    return found


def _cut(source: Path, words: int) -> Iterator[str]:
    files = sorted(path for path in source.rglob("*") if path.suffix in SUFFIXES) if source.is_dir() else [source]
    every = [word for file in files for word in file.read_text("utf-8", errors="replace").split()]
    return (" ".join(every[start : start + words]) for start in range(0, len(every) - words + 1, words))


def _compare(ours: Embedder, chromas: Any, texts: list[str], words: int, rounds: int) -> Compared:
    ours.embed(texts[:1])
    chromas(texts[:1])
    pairs = [(_seconds(lambda: ours.embed(texts)), _seconds(lambda: chromas(texts))) for _ in range(rounds)]
    mine, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
    cosines = (ours.embed(texts) * np.array(chromas(texts))).sum(axis=1)
    return Compared(
        words=words,
        texts=len(texts),
        tokens=round(statistics.mean(sum(chromas.tokenizer.encode(text).attention_mask) for text in texts), 1),
        ours=round(len(texts) / mine, 1),
        chromas=round(len(texts) / theirs, 1),
        ratio=round(statistics.median(second / first for first, second in pairs), 2),
        mark=MARKS[words],
        least_cosine=round(float(cosines.min()), 6),
        mean_cosine=round(float(cosines.mean()), 6),
    )


def _questions(embedder: Embedder) -> dict[str, float]:
    times = sorted(_seconds(lambda: embedder.embed([QUESTION])) * 1000 for _ in range(QUESTIONS))
    return {"p50": round(times[len(times) // 2], 1), "p95": round(times[len(times) * 95 // 100], 1)}


def _beside(embedder: Embedder, texts: Sequence[str]) -> dict[str, float]:
    done = threading.Event()

    def bulk() -> None:
        while not done.is_set():
            embedder.embed(texts, polite=True)

    thread = threading.Thread(target=bulk, name="bulk")
    thread.start()
    try:
        return _questions(embedder)
    finally:
        done.set()
        thread.join()


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _lines(report: dict[str, Any]) -> str:
    alone, beside = report["question_ms"]["alone"], report["question_ms"]["beside_polite"]
    return "\n".join(
        (
            f"MiniLM loaded in {report['seconds_to_load']} s; texts: {report['source']}",
            *map(_line, report["compared"]),
            f"one question alone: p50 {alone['p50']} ms, p95 {alone['p95']} ms",
            f"one question while a polite batch runs: p50 {beside['p50']} ms, p95 {beside['p95']} ms",
            "Chroma's function ran an ONNX file of the same weights, made here, not its download.",
        )
    )


def _line(each: dict[str, Any]) -> str:
    return (
        f"{each['texts']} texts of {each['words']} words ({each['tokens']} tokens): {each['ours']} texts/s, "
        f"Chroma's default function {each['chromas']}: {each['ratio']} times (to reach: {each['mark']}); "
        f"cosine at least {each['least_cosine']}, mean {each['mean_cosine']}"
    )
