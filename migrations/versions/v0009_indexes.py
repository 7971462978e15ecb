"""What the queue and the demand are found by."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0009_indexes.sql").read_text())
