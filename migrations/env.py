"""Alembic's entry: runs the numbered SQL files in one transaction on the connection it is handed."""

from alembic import context

connection = context.config.attributes["connection"]
context.configure(connection=connection, version_table_schema="pricing", transactional_ddl=True)
with context.begin_transaction():
    context.run_migrations()
