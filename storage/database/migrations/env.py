"""What Alembic runs for every migration: one transaction, on the connection of `storage.database.engine`."""

from alembic import context

from storage.database.schema import metadata

# SQLite can roll back changes of tables, and a migration that was cut off must leave nothing behind.
context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, transactional_ddl=True)
with context.begin_transaction():
    context.run_migrations()
