"""The guide to sources: its examples are valid settings, and it documents every kind and key."""

import re
import tomllib
from pathlib import Path

from bot.settings.tables.settings_tables import CorpusSettings
from bot.settings.tables.source_registry import SOURCE_ENTRIES

GUIDE = Path(__file__).parents[2] / "docs" / "sources.md"


def test_every_type_of_source_has_a_valid_example():
    examples = re.findall(r"```toml\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)

    corpora = [CorpusSettings(**corpus) for text in examples for corpus in tomllib.loads(text).get("corpus", ())]

    assert {corpus.source.type for corpus in corpora} == set(SOURCE_ENTRIES)


def test_sources_guide_names_every_key():
    text = GUIDE.read_text(encoding="utf-8")
    missing = {
        f"{kind}.{key}"
        for kind, entry in SOURCE_ENTRIES.items()
        for key in entry.settings.model_fields
        if not re.search(rf"\b{key}\b", text)
    }

    assert missing == set()
