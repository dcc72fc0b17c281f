"""The database: engine, threads, tables, migrations, and the transactions over them."""
