"""What Alembic needs to make and change the tables; `storage.database.engine` runs it."""
