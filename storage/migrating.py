"""Brings a database to the tables that the code knows: makes a fresh one, changes an older one, refuses a newer one.

Alembic takes longer to load than a database to open, so it is imported only where there is something to do.
"""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Engine, inspect

import storage.migrations
from storage.errors import DatabaseUnusable
from storage.faults import folder_fault
from storage.schema import REVISION

if TYPE_CHECKING:
    from alembic.config import Config

SCRIPTS = Path(storage.migrations.__path__[0])


def bring_up_to_date(
    engine: Engine, file: Path | None, *, read_only: bool = False, head: str = REVISION, scripts: Path = SCRIPTS
) -> None:
    """Look at the database's revision and, in one transaction, run what is missing.

    Args:
        engine: Where the database is.
        file: SQLite's file, copied to `<file>.before-<revision>` before it is changed; None for a server, which is
            backed up by those who run it.
        read_only: Refuse instead of changing anything.
        head: The revision that the code knows.
        scripts: Alembic's folder.

    Raises:
        DatabaseUnusable: It is newer than the code, or another program's.
        HomeUnusable: The folder takes no copy.
    """
    with engine.begin() as connection:
        found = _revision(connection)
    if found == head:
        return
    if read_only:
        hint = "Any command that writes, such as `footnote ingest`, brings it up to date if it is older."
        raise DatabaseUnusable("The database was written by another version of Footnote.", hint=hint)
    with engine.execution_options(begin="BEGIN IMMEDIATE").begin() as connection:
        # Another process may have done it while we waited for the lock.
        if (found := _revision(connection)) != head:
            _migrate(connection, found, file, head=head, scripts=scripts)


def _revision(connection: Connection) -> str | None:
    """Read which revision the database has; None when it is empty."""
    tables = inspect(connection).get_table_names()
    query = "SELECT version_num FROM alembic_version"
    if "alembic_version" in tables and (revision := connection.exec_driver_sql(query).scalar()):
        return str(revision)
    if tables:
        hint = "Choose another folder with FOOTNOTE_HOME, or another database. Nothing was changed."
        raise DatabaseUnusable("The database belongs to another program.", hint=hint)
    return None


def _migrate(connection: Connection, found: str | None, file: Path | None, *, head: str, scripts: Path) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(scripts).replace("%", "%%"))
    if found is not None:
        _require_older(config, found, head)
        _copy(file, found)
    config.attributes["connection"] = connection
    command.upgrade(config, head)


def _require_older(config: "Config", found: str, head: str) -> None:
    from alembic.script import ScriptDirectory

    if found not in {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}:
        hint = f"Upgrade Footnote; this one knows revision {head}. Nothing was changed."
        raise DatabaseUnusable(f"The database was written by a newer Footnote (revision {found}).", hint=hint)


def _copy(file: Path | None, revision: str) -> None:
    if file is None:
        return
    part = file.with_name(f"{file.name}.part")
    try:
        # SQLite's own copy sees what was committed, also where it still stands in the write-ahead log.
        with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(part)) as target:
            source.backup(target)
        part.replace(file.with_name(f"{file.name}.before-{revision}"))
    except OSError as error:
        raise folder_fault(error, file.parent) from error
