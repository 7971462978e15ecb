"""Counts of warnings, signs of life of notifiers, and when trouble began and went on."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0057"
down_revision = "0056"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0057_watched_notifier.sql").read_text())
