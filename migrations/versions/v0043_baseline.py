"""The whole schema, but for what later migrations change."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0043"
down_revision = None


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0043_baseline.sql").read_text())
