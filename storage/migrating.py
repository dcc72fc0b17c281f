"""Brings a database to the tables that this code knows: makes a fresh one, changes an older one, refuses a newer one.

`storage.database` imports this only when there is something to do: Alembic takes longer to load than a database to
open.
"""

from collections.abc import Callable
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

import storage.migrations
from storage.errors import DatabaseUnusable
from storage.schema import REVISION

SCRIPTS = Path(storage.migrations.__path__[0])


def migrate(
    connection: Connection,
    found: str | None,
    *,
    copy: Callable[[str], None],
    head: str = REVISION,
    scripts: Path = SCRIPTS,
) -> None:
    """Run what is missing between two revisions, in the transaction of `connection`, which holds the write lock.

    Args:
        connection: Nothing is committed here.
        found: The revision that the database has; None when it is empty.
        copy: Called with `found` before a database that is not empty is changed.
        head: The revision that the code knows.
        scripts: Alembic's folder.

    Raises:
        DatabaseUnusable: The database is newer than the code.
    """
    config = Config()
    config.set_main_option("script_location", str(scripts).replace("%", "%%"))
    if found is not None:
        if found not in _revisions(config):
            hint = f"Upgrade Footnote; this one knows revision {head}. Nothing was changed."
            raise DatabaseUnusable(f"The database was written by a newer Footnote (revision {found}).", hint=hint)
        copy(found)
    config.attributes["connection"] = connection
    command.upgrade(config, head)


def _revisions(config: Config) -> set[str]:
    return {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
