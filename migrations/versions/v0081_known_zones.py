"""Limits of a calendar day have a time zone that the database knows."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0081"
down_revision = "0080"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0081_known_zones.sql").read_text())
