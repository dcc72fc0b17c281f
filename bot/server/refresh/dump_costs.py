"""Estimate what ingesting a dump would cost here, by a short measurement of this machine."""

import time
from pathlib import Path

from bot.settings.tables.settings_tables import Settings
from ingest.sources.dumps.dump_estimate import DumpEstimate, estimate_dump, sample_dump
from ingest.sources.dumps.worker_pool import count_cores
from storage.indexes.embedding import open_embedder


def measure_dump(dump: Path, settings: Settings) -> DumpEstimate:
    """Read and embed a sample of a dump, and extrapolate. Blocks. Raises `DumpError`, `StorageError`."""
    sample, texts = sample_dump(dump)
    chosen = settings.embedding
    embedder = open_embedder(chosen.function, chosen.options)
    embedder.embed(texts[:1])  # the first call also loads the model
    started = time.perf_counter()
    embedder.embed(texts)
    seconds = (time.perf_counter() - started) / len(texts)
    return estimate_dump(sample, count_cores(), seconds, embedder.dimensions)
