"""Queued pairs keep the time at which they fell due."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0024"
down_revision = "0023"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0024_queued_in_place.sql").read_text())
