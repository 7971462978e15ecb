"""Operation types of users' own, and the channel of REST tables."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0056"
down_revision = "0055"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0056_own_operations.sql").read_text())
