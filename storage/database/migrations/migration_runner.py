"""Bring a database of an older version to the tables of this one."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Engine, func, inspect, select

from storage.database.schema import REVISION
from storage.errors import DatabaseUnusable, explain_folder_error
from storage.home.home_folder import make_private_file

if TYPE_CHECKING:
    from alembic.config import Config

_MIGRATION_LOCK = 0x6D6967  # of PostgreSQL's advisory locks, the one for migrations
MIGRATION_SCRIPTS = Path(__file__).parent


def migrate_database(
    engine: Engine,
    file: Path | None,
    *,
    read_only: bool = False,
    head: str = REVISION,
    scripts: Path = MIGRATION_SCRIPTS,
) -> None:
    """Run the migrations that the database lacks, in one transaction.

    SQLite's `file` is copied to `<file>.before-<revision>` first; a server (None) is backed up by those who run it.
    `read_only` refuses instead of changing anything.
    Raises `DatabaseUnusable` if it is newer than the code or another program's.
    """
    with engine.begin() as connection:
        found = _read_revision(connection)
    if found == head:
        return
    if read_only:
        hint = "Any command that writes, such as `footnote ingest`, migrates it if it is older."
        raise DatabaseUnusable("The database was written by another version of Footnote.", hint=hint)
    with engine.execution_options(begin="BEGIN IMMEDIATE").begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(select(func.pg_advisory_xact_lock(_MIGRATION_LOCK)))
        # Another process may have done it while we waited for the lock.
        if (found := _read_revision(connection)) != head:
            _migrate(connection, found, file, head=head, scripts=scripts)


def _read_revision(connection: Connection) -> str | None:
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
        _copy_file(file, found)
    config.attributes["connection"] = connection
    command.upgrade(config, head)


def _require_older(config: "Config", found: str, head: str) -> None:
    from alembic.script import ScriptDirectory

    if found not in {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}:
        hint = f"Upgrade Footnote; this one knows revision {head}. Nothing was changed."
        raise DatabaseUnusable(f"The database was written by a newer Footnote (revision {found}).", hint=hint)


def _copy_file(file: Path | None, revision: str) -> None:
    if file is None:
        return
    part = file.with_name(f"{file.name}.part")
    try:
        make_private_file(part)
        # SQLite's own copy sees what was committed, also where it still stands in the write-ahead log.
        with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(part)) as target:
            source.backup(target)
        part.replace(file.with_name(f"{file.name}.before-{revision}"))
    except OSError as error:
        raise explain_folder_error(error, file.parent) from error
