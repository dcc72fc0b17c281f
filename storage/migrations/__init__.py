"""What Alembic needs to make and change the tables; `storage.migrating` runs it."""
