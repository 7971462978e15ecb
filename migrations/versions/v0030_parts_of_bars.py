"""A bar keeps its close when other parts of it cannot be true, and says which were dropped."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0030"
down_revision = "0029"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0030_parts_of_bars.sql").read_text())
