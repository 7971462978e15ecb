"""A data type may name who answers for it."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0038"
down_revision = "0037"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0038_owners.sql").read_text())
