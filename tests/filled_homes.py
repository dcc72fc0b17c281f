"""Fill homes with a few pages, which are indexed once in each process and then copied."""

import atexit
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ingest.refresh.corpus_refresh import refresh_corpus
from tests.fakes import PageSource
from tests.storage.stores import opened

_MADE: dict[str, Path] = {}


async def fill_home(home: Path, corpora: Mapping[str, Mapping[str, Any]]) -> None:
    pages = repr(corpora)
    if pages not in _MADE:
        folder = Path(tempfile.mkdtemp(prefix="footnote-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        with opened(folder / "home") as store:
            for name, contents in corpora.items():
                await refresh_corpus(PageSource(contents), name, store, progress=lambda _: None)
        _MADE[pages] = folder / "home"
    shutil.copytree(_MADE[pages], home, dirs_exist_ok=True)
