"""Commodities of a game: terminals, and what is traded there at which price."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0072"
down_revision = "0071"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0072_commodities.sql").read_text())
