"""What Alembic needs to make and change the tables; `migration_runner` runs it."""
