"""Prices may be in coins whose codes have more than three letters."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0034"
down_revision = "0033"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0034_coins.sql").read_text())
