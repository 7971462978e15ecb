"""The staleness check hands on due pairs as one list."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0046"
down_revision = "0045"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0046_due_pairs.sql").read_text())
