"""Tables of side effects, their types, and who is told."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0053"
down_revision = "0052"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0053_operations.sql").read_text())
