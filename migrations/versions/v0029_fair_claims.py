"""A task that needs more units than come free at a time has them saved."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0029"
down_revision = "0028"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0029_fair_claims.sql").read_text())
