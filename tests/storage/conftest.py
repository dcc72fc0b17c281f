"""Fixture of an empty database, which most tests of storage use."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.database.engine import Database
from tests.storage.stores import open_empty_database


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with open_empty_database(tmp_path) as database:
        yield database
