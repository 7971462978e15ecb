"""The database: engine, migrations, named queries, and the server we can run ourselves. No business rules in Python."""
