"""Advice on one data type that names it."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0023_one_type.sql").read_text())
