"""Describe what a turn ran under, for its record: the versions of code, settings, prompts, checks and embedder."""

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from importlib import resources

from bot import read_version
from bot.app import App
from bot.settings.tables.settings_tables import Settings
from storage.indexes.embedding import READER_SHA256


def read_versions(app: App) -> Mapping[str, str]:
    return {
        "version": read_version(),
        "settings": digest_settings(app.settings),
        "prompts": digest_files("pipeline.prompts", ".j2", ".json"),
        "support": digest_files("pipeline.support", "weights.json"),
        "reader": READER_SHA256[:16],
        "embedder": app.passages.embedder.name,
    }


def digest_settings(settings: Settings) -> str:
    """Return a short hash of the settings; two turns with different hashes ran under different settings.

    No secret is hashed: models' and platforms' secrets count as set or not, and the database's address is left out.
    """
    plain = json.dumps(settings.model_dump(mode="json", exclude={"database"}), sort_keys=True)
    return hashlib.sha256(plain.encode()).hexdigest()[:16]


@cache
def digest_files(package: str, *endings: str) -> str:
    """Return a short hash of the names and contents of a package's files."""
    whole = hashlib.sha256()
    files = [file for file in resources.files(package).iterdir() if file.name.endswith(endings)]
    for file in sorted(files, key=lambda file: file.name):
        for part in (file.name.encode(), file.read_bytes()):
            whole.update(len(part).to_bytes(8))
            whole.update(part)
    return whole.hexdigest()[:16]
