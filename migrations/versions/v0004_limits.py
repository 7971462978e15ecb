"""Several keys, breakers, pacing and budgets."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0004_limits.sql").read_text())
