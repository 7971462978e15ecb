"""A list of all symbols serves many at the price of one call."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0035"
down_revision = "0034"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0035_lists.sql").read_text())
