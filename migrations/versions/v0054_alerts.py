"""Alerts and silences."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0054"
down_revision = "0053"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0054_alerts.sql").read_text())
